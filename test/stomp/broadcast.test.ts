/** One message to many: the same octets for all who are alike, and each in its own version. */

import t from 'tap'
import { Broadcast } from '../../src/stomp/broadcast.ts'
import { MessageTemplate } from '../../src/stomp/serializer.ts'
import { SubscriptionHeads } from '../../src/stomp/subscription-heads.ts'

t.test('receivers that are alike get the very same octets, the rest their own', async t => {
  const heads = new SubscriptionHeads(10)
  const broadcast = new Broadcast('id-1', ['k', 'a:b'], Buffer.from('body'))
  const alike = () => heads.of('1.2', 'sub-0', '/topic/dev.t', false).head
  t.equal(broadcast.encode(alike()), broadcast.encode(alike()))
  const others = [
    heads.of('1.2', 'sub-1', '/topic/dev.t', false),
    heads.of('1.1', 'sub-0', '/topic/dev.t', false),
    heads.of('1.2', 'sub-0', '/topic/dev.t', true),
    heads.of('1.0', undefined, '/topic/dev.t', false),
  ]
  for (const { head } of [...others, ...others]) {
    const expected = new MessageTemplate(['k', 'a:b'], Buffer.from('body')).encode(head, 'id-1')
    t.same(broadcast.encode(head), expected)
  }
  t.ok(broadcast.isText)
  t.notOk(new Broadcast('id-2', [], Buffer.of(0)).isText)
})

t.test('receivers alike in everything share a head, and no others do', async t => {
  const heads = new SubscriptionHeads(10)
  const head = heads.of('1.2', 'a', '/topic/b', false)
  t.equal(heads.of('1.2', 'a', '/topic/b', false), head)
  for (const [version, id, destination, isAcknowledged] of [
    ['1.1', 'a', '/topic/b', false],
    ['1.2', 'b', '/topic/b', false],
    ['1.2', undefined, '/topic/b', false],
    ['1.2', '', '/topic/b', false],
    ['1.2', 'a', '/topic/c', false],
    ['1.2', 'a', '/topic/b', true],
    ['1.2', 'b\0a', '/topic', false],
  ] as const) {
    const other = heads.of(version, id, destination, isAcknowledged)
    t.not(other, head)
    t.same([other.id, other.destination, other.head.version], [id, destination, version])
  }
})

t.test('a bounded number are remembered; the rest are as good', async t => {
  const heads = new SubscriptionHeads(1)
  const first = heads.of('1.2', 'a', '/topic/b', false)
  const second = heads.of('1.2', 'b', '/topic/b', false)
  t.equal(heads.of('1.2', 'a', '/topic/b', false), first)
  t.not(heads.of('1.2', 'b', '/topic/b', false), second)
  t.same(heads.of('1.2', 'b', '/topic/b', false), second)
})
