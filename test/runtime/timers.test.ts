import t from 'tap'
import { CallbackTimer, TICK_MS, TimerWheel } from '../../src/runtime/timers.ts'
import { SeededRandom } from '../support/world.ts'

/** A wheel over a clock that the test sets. */
class Bench {
  nowMs = 12_345.6
  readonly wheel = new TimerWheel(() => this.nowMs)
  readonly fired: string[] = []

  timer(name: string, then: () => void = () => {}): CallbackTimer {
    return new CallbackTimer(() => {
      this.fired.push(name)
      then()
    })
  }

  pass(ms: number): void {
    this.nowMs += ms
    this.wheel.advance()
  }
}

t.test('a timer fires within a tick after its time and never before it', async t => {
  const draw = new SeededRandom(3)
  const bench = new Bench()
  let early = 0
  let late = 0
  let fired = 0
  for (let i = 0; i < 2_000; i++) {
    const dueMs = draw.below(300_000) + bench.nowMs + draw.next()
    const timer = new CallbackTimer(() => {
      fired += 1
      if (bench.nowMs < dueMs) early += 1
      // The clock moves in steps of 37 ms, so that much later than the tick is still in time.
      if (bench.nowMs > dueMs + TICK_MS + 37) late += 1
    })
    bench.wheel.arm(timer, dueMs - bench.nowMs)
    bench.pass(37)
  }
  for (let i = 0; i < 10_000; i++) bench.pass(37)
  t.same({ early, late, fired, armed: bench.wheel.armed }, { early: 0, late: 0, fired: 2_000, armed: 0 })
})

t.test('a timer that is due now fires at the next tick, not a round later', async t => {
  const bench = new Bench()
  bench.pass(10 * TICK_MS)
  bench.wheel.arm(bench.timer('now'), 0)
  bench.wheel.arm(bench.timer('overdue'), -5_000)
  t.same(bench.fired, [], 'not within arm')
  bench.pass(TICK_MS)
  t.same(bench.fired, ['now', 'overdue'])
})

t.test('a timer of several rounds waits for its round', async t => {
  const bench = new Bench()
  bench.wheel.arm(bench.timer('three rounds'), 3 * 1_024 * TICK_MS)
  for (let i = 0; i < 3 * 1_024 - 1; i++) bench.pass(TICK_MS)
  t.same(bench.fired, [])
  bench.pass(TICK_MS)
  t.same(bench.fired, ['three rounds'])
})

t.test('a cancelled timer does not fire, a moved one fires once at its new time', async t => {
  const bench = new Bench()
  const cancelled = bench.timer('cancelled')
  const moved = bench.timer('moved')
  bench.wheel.arm(cancelled, 500)
  bench.wheel.arm(moved, 500)
  bench.wheel.cancel(cancelled)
  bench.wheel.cancel(cancelled)
  bench.wheel.arm(moved, 1_000)
  t.equal(bench.wheel.armed, 1)
  bench.pass(900)
  t.same(bench.fired, [])
  bench.pass(5_000)
  t.same(bench.fired, ['moved'])
})

t.test('a firing may cancel another of the same tick and arm itself again', async t => {
  const bench = new Bench()
  const second = bench.timer('second')
  const first = bench.timer('first', () => {
    bench.wheel.cancel(second)
    if (bench.fired.length === 1) bench.wheel.arm(first, 100)
  })
  bench.wheel.arm(first, 100)
  bench.wheel.arm(second, 100)
  bench.pass(200)
  t.same(bench.fired, ['first'])
  bench.pass(200)
  t.same(bench.fired, ['first', 'first'])
  t.equal(bench.wheel.armed, 0)
})

t.test('timers of one advance fire in the order of their ticks, then of arming', async t => {
  const bench = new Bench()
  bench.wheel.arm(bench.timer('c'), 900)
  bench.wheel.arm(bench.timer('a'), 100)
  bench.wheel.arm(bench.timer('b1'), 400)
  bench.wheel.arm(bench.timer('b2'), 400)
  bench.pass(1_000)
  t.same(bench.fired, ['a', 'b1', 'b2', 'c'])
})

t.test('after a sleep of many rounds everything due fires once and nothing else', async t => {
  const bench = new Bench()
  for (let i = 0; i < 500; i++) bench.wheel.arm(bench.timer('due'), i * 1_000)
  bench.wheel.arm(bench.timer('not yet'), 3_600_000)
  bench.pass(3_000_000)
  t.equal(bench.fired.length, 500)
  t.equal(bench.wheel.armed, 1)
  bench.pass(600_000)
  t.equal(bench.fired.at(-1), 'not yet')
})

t.test('expiring all fires whatever is armed', async t => {
  const bench = new Bench()
  for (let i = 0; i < 50; i++) bench.wheel.arm(bench.timer('armed'), i * 10_000)
  bench.wheel.expireAll()
  t.equal(bench.fired.length, 50)
  t.equal(bench.wheel.armed, 0)
})
