/** Counts by slots against plain lists of times, and when a rule lets go again. */

import fc from 'fast-check'
import t from 'tap'
import {
  missingForTally,
  NO_TALLY,
  sumWithin,
  type Tally,
  type TallyRule,
  tallyConfirmed,
  tallyEndMs,
  tallyMade,
} from '../../src/domain/tally.ts'
import { checkProperty } from '../support/property.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
const NOW_MS = Date.UTC(2026, 0, 1, 12)
const RULE: TallyRule = { perMs: HOUR_MS, floor: 30, perConfirmed: 9, confirmedPerMs: HOUR_MS }

const EVENTS = fc.array(fc.tuple(fc.boolean(), fc.integer({ min: 0, max: HOUR_MS })), { maxLength: 200 })

function live(events: readonly (readonly [boolean, number])[]) {
  let [tally, nowMs]: [Tally, number] = [NO_TALLY, NOW_MS]
  const madeAtMs: number[] = []
  for (const [isMade, pauseMs] of events) {
    nowMs += pauseMs
    tally = isMade ? tallyMade(tally, nowMs) : tallyConfirmed(tally, nowMs)
    if (isMade) madeAtMs.push(nowMs)
  }
  return { tally, nowMs, madeAtMs }
}

t.test('a window holds all that happened within it, and at most ten minutes more', async t => {
  checkProperty(t, [EVENTS], events => {
    const { tally, nowMs, madeAtMs } = live(events)
    const within = (perMs: number) => madeAtMs.filter(atMs => atMs > nowMs - perMs).length
    return [HOUR_MS, DAY_MS].every(perMs => {
      const { made } = sumWithin(tally, perMs, nowMs)
      return made >= within(perMs) && made <= within(perMs + 10 * MINUTE_MS)
    })
  })
})

t.test('however much happens, a day of slots is kept, and all of it ends', async t => {
  checkProperty(t, [EVENTS], events => {
    const { tally } = live(events)
    const endMs = tallyEndMs(tally)
    return tally.length <= 145 && sumWithin(tally, DAY_MS, endMs).made === 0
  })
})

t.test('unconfirmed codes are bounded by the floor, or by so many for each confirmed one', async t => {
  t.equal(missingForTally(tallyMade(NO_TALLY, NOW_MS, 29), RULE, NOW_MS), 0)
  t.equal(missingForTally(tallyMade(NO_TALLY, NOW_MS, 30), RULE, NOW_MS), 70 * MINUTE_MS)
  const tenth = tallyConfirmed(tallyMade(NO_TALLY, NOW_MS, 999), NOW_MS, 100)
  t.equal(missingForTally(tenth, RULE, NOW_MS), 0)
  t.equal(missingForTally(tallyMade(tenth, NOW_MS), RULE, NOW_MS), 70 * MINUTE_MS)
})

t.test('a code is allowed exactly when it was said to be', async t => {
  checkProperty(t, [EVENTS, fc.integer({ min: 1, max: 20 })], (events, floor) => {
    const { tally, nowMs } = live(events)
    const rule = { ...RULE, floor, perConfirmed: 1 }
    const missingMs = missingForTally(tally, rule, nowMs)
    if (missingMs === 0) return true
    return (
      missingForTally(tally, rule, nowMs + missingMs) === 0 &&
      missingForTally(tally, rule, nowMs + missingMs - 1) > 0
    )
  })
})

t.test('what a clock that was a day ahead has counted stops nothing once it is set back', async t => {
  const ahead = tallyMade(NO_TALLY, NOW_MS, 100)
  t.equal(missingForTally(ahead, RULE, NOW_MS - DAY_MS), 0)
  t.ok(missingForTally(ahead, RULE, NOW_MS - 1_000) > 0, 'a second is no reason')
  t.same(tallyMade(ahead, NOW_MS - 2 * DAY_MS).length, 1)
})
