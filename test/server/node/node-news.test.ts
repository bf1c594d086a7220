/** Which news a node hears first. */

import t from 'tap'
import { NewsOfNode, type NodeNews } from '../../../src/server/node/node-news.ts'

const lost = (epoch: number): NodeNews => ({ kind: 'lease-lost', epoch, reason: 'it has run out' })
const writer = (last: number): NodeNews => ({
  kind: 'writer',
  writer: { state: 'open', epoch: 1, last, holder: undefined, head: undefined },
})

t.test('of each kind the newest is heard, and the kind that has waited longest first', async t => {
  const news = new NewsOfNode()
  const first = news.next()
  news.offer(writer(1))
  t.same(await first, writer(1))
  for (const each of [writer(2), lost(1), writer(3)]) news.offer(each)
  t.same([await news.next(), await news.next()], [writer(3), lost(1)])
})

t.test('a node that is to stop hears nothing before it, so it does not become the writer', async t => {
  const news = new NewsOfNode()
  news.offer(writer(1))
  news.offer({ kind: 'stop' })
  t.same(await news.next(), { kind: 'stop' })
})
