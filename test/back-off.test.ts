import t from 'tap'
import { backOffMs, fullJitterMs } from '../src/back-off.ts'

const BACK_OFF = { firstMs: 100, maxMs: 1_000 }
const BOUNDS = [100, 200, 400, 800, 1_000, 1_000, 1_000]
const FAILURES = [1, 2, 3, 4, 5, 60, 5_000]

const pauses = (pauseMs: typeof backOffMs, random: number) =>
  FAILURES.map(failures => pauseMs(BACK_OFF, failures, random))

t.test('pauses double up to the maximum, and are random in the upper half of their bound', t => {
  t.same(
    pauses(backOffMs, 0),
    BOUNDS.map(bound => bound / 2),
  )
  t.same(
    pauses(backOffMs, 0.5),
    BOUNDS.map(bound => 0.75 * bound),
  )
  t.ok(pauses(backOffMs, 1 - Number.EPSILON).every((pauseMs, at) => pauseMs <= BOUNDS[at]!))
  t.end()
})

t.test('pauses of clients are random from zero to the same bound', t => {
  t.same(
    pauses(fullJitterMs, 0),
    BOUNDS.map(() => 0),
  )
  t.same(
    pauses(fullJitterMs, 0.5),
    BOUNDS.map(bound => bound / 2),
  )
  t.ok(pauses(fullJitterMs, 1 - Number.EPSILON).every((pauseMs, at) => pauseMs <= BOUNDS[at]!))
  t.end()
})
