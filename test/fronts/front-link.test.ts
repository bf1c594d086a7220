/** How the writer knows what a front has acknowledged. */

import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { Acknowledgements } from '../../src/fronts/acknowledgements.ts'
import { FrontLink } from '../../src/fronts/front-link.ts'
import type { MessageToFront } from '../../src/fronts/messages.ts'
import { Deferred } from '../support/deferred.ts'

const flush: MessageToFront = { kind: 'flush' }

function open() {
  const sent: MessageToFront[] = []
  const send = (message: unknown) => void sent.push(message as MessageToFront)
  const front = new FrontLink({ send, sendSoon: send })
  const acknowledgements = new Acknowledgements()
  const writer = { send: (message: unknown) => front.onAcknowledged((message as { count: number }).count) }
  let released = 0
  return {
    front,
    get released() {
      return released
    },
    wait: () => void front.caughtUp()?.then(() => (released += 1)),
    /** Has the front handle all messages sent so far; returns their kinds. */
    handle(until?: Promise<void>) {
      return sent.splice(0).map(said => {
        void acknowledgements.of(said, writer, () => until)
        return said.kind
      })
    },
  }
}

t.test(
  'a front that was told something is asked once how far it is, and only for those who wait',
  async t => {
    const link = open()
    t.equal(link.front.caughtUp(), undefined, 'it was told nothing')
    link.front.send(flush)
    link.front.sendSoon(flush)
    t.same(link.handle(), ['flush', 'flush'])
    link.wait()
    link.wait()
    t.equal(link.released, 0)
    t.same(link.handle(), ['barrier'])
    await setImmediate()
    t.equal(link.released, 2)
    t.equal(link.front.caughtUp(), undefined)
  },
)

t.test('waits for later messages go on', async t => {
  const link = open()
  link.front.send(flush)
  link.wait()
  link.front.send(flush)
  link.wait()
  const later = new Deferred<void>()
  t.same(link.handle(Promise.resolve(later)), ['flush', 'barrier', 'flush', 'barrier'])
  await setImmediate()
  t.equal(link.released, 0, 'it is not heeded yet')
  later.resolve()
  await setImmediate()
  link.front.send(flush)
  link.wait()
  link.handle()
  await setImmediate()
  t.equal(link.released, 3)
})

t.test('a front that is lost, or does not answer for three ticks, is not waited for', async t => {
  const [silent, lost] = [open(), open()]
  for (const link of [silent, lost]) {
    link.front.send(flush)
    link.wait()
  }
  lost.front.onLost()
  for (const _ of ['first', 'second']) silent.front.onTick()
  await setImmediate()
  t.same([lost.released, silent.released], [1, 0])
  t.same([lost.front.isAwaited, silent.front.isAwaited], [false, true])
  t.notOk(silent.front.isLate)
  silent.front.onTick()
  await setImmediate()
  t.equal(silent.released, 1)
  t.ok(silent.front.isLate)
  silent.handle()
  t.notOk(silent.front.isLate, 'it has come back')
  t.notOk(lost.front.isLate)
})
