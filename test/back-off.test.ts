import t from 'tap'
import { backOffMs } from '../src/back-off.ts'

const LIMITS = { minMs: 100, maxMs: 1_000 }
const FAILURES = [1, 2, 3, 4, 5, 60, 5_000]

t.test('pauses double from the minimum, and end in the upper half of the maximum', t => {
  t.same(
    FAILURES.map(failures => backOffMs(LIMITS, failures, () => 0)),
    [100, 200, 400, 500, 500, 500, 500],
  )
  t.end()
})

t.test('a part is random, and never more than as much again', t => {
  const longest = FAILURES.map(failures => backOffMs(LIMITS, failures, () => 1 - Number.EPSILON))
  const bounds = [200, 400, 800, 1_000, 1_000, 1_000, 1_000]
  t.ok(longest.every((pauseMs, at) => pauseMs > bounds[at]! - 1 && pauseMs <= bounds[at]!))
  t.same(
    FAILURES.map(failures => backOffMs(LIMITS, failures, () => 0.5)),
    [150, 300, 600, 750, 750, 750, 750],
  )
  t.end()
})
