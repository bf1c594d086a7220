/** A front's way to the writer, which changes: the next writer hears who is connected, and nothing goes to the one before. */

import t from 'tap'
import { WriterPort } from '../../src/fronts/writer-port.ts'
import type { Ref } from '../../src/runtime/actor.ts'
import type { ActorSystem } from '../../src/runtime/system.ts'
import { kindOf } from '../support/actors.ts'
import { linkedNodes } from '../support/linked-nodes.ts'

interface Message {
  readonly kind: string
  readonly connection?: { readonly ref: Ref<unknown> }
  readonly connectionId?: string
}

function openWriter(front?: ReturnType<typeof linkedNodes>['front']) {
  const nodes = linkedNodes({}, { serves: new Map([['presence', () => true]]) })
  const heard: string[] = []
  nodes.writer.system.define({
    ...kindOf<Message>(({ kind, connection, connectionId }, _context, id) =>
      heard.push(`${id} ${kind} ${connection?.ref.id ?? connectionId ?? ''}`.trim()),
    ),
    kind: 'presence',
  })
  return { nodes, heard, front }
}

t.test('each writer hears of the connections that there are', async t => {
  const port = new WriterPort()
  const [first, second] = [openWriter(), openWriter()]
  const connectionOf = (system: ActorSystem, id: string) => ({ ref: system.ref('probe', id) })
  const { front } = first.nodes
  const attach = (user: string, id: string) =>
    port.tellControl('presence', user, { kind: 'attached', connection: connectionOf(front.system, id) })

  t.ok(attach('1', 'a'), 'it is kept where there is no writer yet')
  t.notOk(port.tell('presence', '1', { kind: 'news' }), 'and what only a writer could heed is not')
  port.use(first.nodes.front.link)
  attach('2', 'b')
  attach('2', 'c')
  port.tellControl('presence', '1', { kind: 'detached', connectionId: 'a' })
  await first.nodes.settle()
  t.same(first.heard.toSorted(), ['1 attached a', '1 detached a', '2 attached b', '2 attached c'])

  port.use(undefined)
  port.tellControl('presence', '2', { kind: 'detached', connectionId: 'c' })
  port.use(second.nodes.front.link)
  port.tell('presence', '2', { kind: 'news' })
  await Promise.all([first.nodes.settle(), second.nodes.settle()])
  t.equal(first.heard.length, 4)
  t.same(second.heard, ['2 attached b', '2 news'])
})
