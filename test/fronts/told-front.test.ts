/** How the writer knows what a front has heeded. */

import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { Heeding } from '../../src/fronts/heeding.ts'
import type { SaidByWriter } from '../../src/fronts/messages.ts'
import { ToldFront } from '../../src/fronts/told-front.ts'
import { Deferred } from '../support/deferred.ts'

const settle: SaidByWriter = { kind: 'settle' }

function open() {
  const words: SaidByWriter[] = []
  const say = (said: unknown) => void words.push(said as SaidByWriter)
  const front = new ToldFront({ say, saySoon: say })
  const heeding = new Heeding(count => front.onHeard(count))
  let released = 0
  return {
    front,
    get released() {
      return released
    },
    wait: () => void front.caughtUp()?.then(() => (released += 1)),
    /** Has the front heed the words so far; returns their kinds. */
    heed(until?: Promise<void>) {
      return words.splice(0).map(said => {
        void heeding.of(said, () => until)
        return said.kind
      })
    },
  }
}

t.test(
  'a front that was told something is asked once how far it is, and only for those who wait',
  async t => {
    const told = open()
    t.equal(told.front.caughtUp(), undefined, 'it was told nothing')
    told.front.say(settle)
    told.front.saySoon(settle)
    t.same(told.heed(), ['settle', 'settle'])
    told.wait()
    told.wait()
    t.equal(told.released, 0)
    t.same(told.heed(), ['how-far'])
    await setImmediate()
    t.equal(told.released, 2)
    t.equal(told.front.caughtUp(), undefined)
  },
)

t.test('those who wait for what was said later wait on', async t => {
  const told = open()
  told.front.say(settle)
  told.wait()
  told.front.say(settle)
  told.wait()
  const later = new Deferred<void>()
  t.same(told.heed(Promise.resolve(later)), ['settle', 'how-far', 'settle', 'how-far'])
  await setImmediate()
  t.equal(told.released, 0, 'it is not heeded yet')
  later.resolve()
  await setImmediate()
  told.front.say(settle)
  told.wait()
  told.heed()
  await setImmediate()
  t.equal(told.released, 3)
})

t.test('a front that is lost, or does not answer for three ticks, is not waited for', async t => {
  const [silent, lost] = [open(), open()]
  for (const told of [silent, lost]) {
    told.front.say(settle)
    told.wait()
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
  silent.heed()
  t.notOk(silent.front.isLate, 'it has come back')
  t.notOk(lost.front.isLate)
})
