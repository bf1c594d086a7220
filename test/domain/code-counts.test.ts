/** What is counted for an address, against plain lists of all that happened. */

import fc from 'fast-check'
import t from 'tap'
import {
  type CodeCounts,
  countFailure,
  countSend,
  countSuccess,
  countsEndMs,
  missingForChallenge,
  missingForFailure,
  missingForSend,
  NO_COUNTS,
  stopLeftMs,
} from '../../src/domain/code-counts.ts'
import { checkProperty } from '../support/property.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
const START_MS = Date.UTC(2026, 0, 1)

/** The most times that lie in one window of this width. */
function mostWithin(timesMs: readonly number[], widthMs: number): number {
  return Math.max(0, ...timesMs.map(from => timesMs.filter(at => at >= from && at < from + widthMs).length))
}

function failTimes(counts: CodeCounts, times: number, nowMs: number): CodeCounts {
  let failed = counts
  for (let time = 0; time < times; time++) failed = countFailure(failed, nowMs)
  return failed
}

const PAUSES_MS = fc.array(fc.integer({ min: 0, max: 2 * HOUR_MS }), { maxLength: 150 })

t.test('however sends are tried, no hour has more than five and no day more than ten', async t => {
  checkProperty(t, [PAUSES_MS], pausesMs => {
    let [counts, nowMs] = [NO_COUNTS, START_MS]
    const sentAtMs: number[] = []
    for (const pauseMs of pausesMs) {
      nowMs += pauseMs
      if (missingForSend(counts, nowMs) > 0) continue
      counts = countSend(counts, nowMs)
      sentAtMs.push(nowMs)
    }
    return mostWithin(sentAtMs, HOUR_MS) <= 5 && mostWithin(sentAtMs, DAY_MS) <= 10
  })
})

t.test('a send is possible exactly when it was said to be', async t => {
  checkProperty(t, [PAUSES_MS], pausesMs => {
    let [counts, nowMs] = [NO_COUNTS, START_MS]
    for (const pauseMs of pausesMs) {
      nowMs += pauseMs
      const missingMs = missingForSend(counts, nowMs)
      if (missingMs === 0) counts = countSend(counts, nowMs)
      else if (missingForSend(counts, nowMs + missingMs - 1) === 0) return false
      else if (missingForSend(counts, nowMs + missingMs) > 0) return false
    }
    return true
  })
})

t.test(
  'twenty wrong codes in an hour stop new challenges until the first of them is an hour old',
  async t => {
    const nineteen = failTimes(NO_COUNTS, 19, START_MS)
    t.equal(missingForChallenge(nineteen, START_MS), 0)
    const twenty = countFailure(nineteen, START_MS + MINUTE_MS)
    t.equal(missingForChallenge(twenty, START_MS + MINUTE_MS), 59 * MINUTE_MS)
    t.equal(missingForFailure(twenty, START_MS + HOUR_MS), 0)
  },
)

t.test('a hundred wrong codes in a row stop codes for a day, however slowly they come', async t => {
  let counts = NO_COUNTS
  for (let at = 0; at < 99; at++) counts = countFailure(counts, START_MS + at * 2 * HOUR_MS)
  const nowMs = START_MS + 99 * 2 * HOUR_MS
  t.equal(stopLeftMs(counts, nowMs), 0)
  const stopped = countFailure(counts, nowMs)
  t.equal(stopLeftMs(stopped, nowMs), DAY_MS)
  t.equal(missingForChallenge(stopped, nowMs), DAY_MS)
  t.equal(stopLeftMs(stopped, nowMs + DAY_MS), 0)
  t.equal(stopLeftMs(failTimes(stopped, 99, nowMs + DAY_MS), nowMs + DAY_MS), 0, 'a new row begins')
})

t.test('an accepted code ends the row, and only the row', async t => {
  const counts = countSuccess(failTimes(countSend(NO_COUNTS, START_MS), 20, START_MS))
  t.equal(stopLeftMs(failTimes(counts, 99, START_MS), START_MS), 0)
  t.equal(missingForChallenge(counts, START_MS), HOUR_MS, 'the hour has its twenty failures still')
  t.equal(counts.sentAtMs.length, 1)
})

t.test('counts are kept as long as they say anything, and bounded however much happens', async t => {
  checkProperty(t, [fc.array(fc.tuple(fc.boolean(), fc.integer({ min: 0, max: DAY_MS })))], events => {
    let [counts, nowMs] = [NO_COUNTS, START_MS]
    for (const [isSend, pauseMs] of events) {
      nowMs += pauseMs
      counts = isSend ? countSend(counts, nowMs) : countFailure(counts, nowMs)
    }
    const endMs = countsEndMs(counts)
    const isOver = missingForSend(counts, endMs) === 0 && missingForChallenge(counts, endMs) === 0
    return isOver && counts.sentAtMs.length <= 10 && counts.failedAtMs.length <= 20
  })
})
