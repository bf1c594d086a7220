/** An address's counts, against plain lists of all events. */

import fc from 'fast-check'
import t from 'tap'
import {
  type CodeCounts,
  countFailure,
  countSend,
  countSuccess,
  countsEndMs,
  missingForChallenge,
  missingForSend,
  missingForTry,
  NO_COUNTS,
  stopLeftMs,
} from '../../../src/domain/accounts/code-counts.ts'
import type { Asker } from '../../../src/domain/accounts/known-sign-in.ts'
import { checkProperty } from '../../support/property.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
const START_MS = Date.UTC(2026, 0, 1)
const ASKERS: readonly Asker[] = ['stranger', 'network', 'token']

/** The most times that lie in one window of this width. */
function mostWithin(timesMs: readonly number[], widthMs: number): number {
  return Math.max(0, ...timesMs.map(from => timesMs.filter(at => at >= from && at < from + widthMs).length))
}

function failTimes(counts: CodeCounts, times: number, nowMs: number, asker: Asker = 'stranger'): CodeCounts {
  let failed = counts
  for (let time = 0; time < times; time++) failed = countFailure(failed, asker, nowMs)
  return failed
}

const PAUSES_MS = fc.array(fc.integer({ min: 0, max: 2 * HOUR_MS }), { maxLength: 150 })
const ACTS = fc.array(fc.tuple(fc.constantFrom(...ASKERS), fc.integer({ min: 0, max: HOUR_MS })), {
  maxLength: 200,
})

t.test('however strangers try to send, no hour has more than five and no day more than ten', async t => {
  checkProperty(t, [PAUSES_MS], pausesMs => {
    let [counts, nowMs] = [NO_COUNTS, START_MS]
    const sentAtMs: number[] = []
    for (const pauseMs of pausesMs) {
      nowMs += pauseMs
      if (missingForSend(counts, 'stranger', nowMs) > 0) continue
      counts = countSend(counts, 'stranger', nowMs)
      sentAtMs.push(nowMs)
    }
    return mostWithin(sentAtMs, HOUR_MS) <= 5 && mostWithin(sentAtMs, DAY_MS) <= 10
  })
})

t.test('for any mix of askers, no day has more than eighteen sends and fifty wrong codes', async t => {
  checkProperty(t, [ACTS, ACTS], (sends, failures) => {
    let [counts, nowMs] = [NO_COUNTS, START_MS]
    const sentAtMs: number[] = []
    for (const [asker, pauseMs] of sends) {
      nowMs += pauseMs
      if (missingForSend(counts, asker, nowMs) > 0) continue
      counts = countSend(counts, asker, nowMs)
      sentAtMs.push(nowMs)
    }
    const failedAtMs: number[] = []
    for (const [asker, pauseMs] of failures) {
      nowMs += pauseMs
      if (missingForTry(counts, asker, nowMs) > 0 || stopLeftMs(counts, asker, nowMs) > 0) continue
      counts = countFailure(counts, asker, nowMs)
      failedAtMs.push(nowMs)
    }
    return mostWithin(sentAtMs, DAY_MS) <= 18 && mostWithin(failedAtMs, DAY_MS) <= 50
  })
})

t.test('however much strangers send and fail, who is known has four sends and ten tries left', async t => {
  checkProperty(t, [PAUSES_MS, fc.integer({ min: 0, max: 200 })], (pausesMs, failures) => {
    let [counts, nowMs] = [NO_COUNTS, START_MS]
    for (const pauseMs of pausesMs) {
      nowMs += pauseMs
      counts = countSend(failTimes(counts, failures % 50, nowMs), 'stranger', nowMs)
    }
    for (const asker of ['network', 'token'] as const) {
      for (let send = 0; send < 4; send++) {
        if (missingForSend(counts, asker, nowMs) > 0) return false
        counts = countSend(counts, asker, nowMs)
      }
      for (let failure = 0; failure < 10; failure++) {
        if (missingForChallenge(counts, asker, nowMs) > 0) return false
        counts = countFailure(counts, asker, nowMs)
      }
    }
    return true
  })
})

t.test('a send is possible exactly when it was said to be', async t => {
  checkProperty(t, [ACTS], acts => {
    let [counts, nowMs] = [NO_COUNTS, START_MS]
    for (const [asker, pauseMs] of acts) {
      nowMs += pauseMs
      const missingMs = missingForSend(counts, asker, nowMs)
      if (missingMs === 0) counts = countSend(counts, asker, nowMs)
      else if (missingForSend(counts, asker, nowMs + missingMs - 1) === 0) return false
      else if (missingForSend(counts, asker, nowMs + missingMs) > 0) return false
    }
    return true
  })
})

t.test(
  'twenty wrong codes in an hour stop new challenges until the first of them is an hour old',
  async t => {
    const nineteen = failTimes(NO_COUNTS, 19, START_MS)
    t.equal(missingForChallenge(nineteen, 'stranger', START_MS), 0)
    const twenty = countFailure(nineteen, 'stranger', START_MS + MINUTE_MS)
    t.equal(missingForChallenge(twenty, 'stranger', START_MS + MINUTE_MS), 59 * MINUTE_MS)
    t.equal(missingForChallenge(twenty, 'stranger', START_MS + HOUR_MS), 0)
    t.equal(missingForTry(twenty, 'stranger', START_MS + MINUTE_MS), 0, 'who holds one goes on')
  },
)

t.test('thirty wrong codes in a day stop tries too', async t => {
  const thirty = failTimes(NO_COUNTS, 30, START_MS)
  t.equal(missingForTry(thirty, 'stranger', START_MS), DAY_MS)
  t.equal(missingForTry(thirty, 'network', START_MS), 0)
})

t.test('a hundred wrong codes in a row stop codes for a day, however slowly they come', async t => {
  let counts = NO_COUNTS
  for (let at = 0; at < 99; at++) counts = countFailure(counts, 'stranger', START_MS + at * 2 * HOUR_MS)
  const nowMs = START_MS + 99 * 2 * HOUR_MS
  t.equal(stopLeftMs(counts, 'stranger', nowMs), 0)
  const stopped = countFailure(counts, 'stranger', nowMs)
  t.equal(stopLeftMs(stopped, 'stranger', nowMs), DAY_MS)
  t.equal(missingForChallenge(stopped, 'stranger', nowMs), DAY_MS)
  t.equal(stopLeftMs(stopped, 'stranger', nowMs + DAY_MS), 0)
  t.equal(stopLeftMs(stopped, 'token', nowMs), 0, 'who is known is not stopped by it')
  const after = failTimes(stopped, 99, nowMs + DAY_MS)
  t.equal(stopLeftMs(after, 'stranger', nowMs + DAY_MS), 0, 'a new row begins')
})

t.test('an accepted code ends the rows, and only the rows', async t => {
  const failed = failTimes(countSend(NO_COUNTS, 'stranger', START_MS), 20, START_MS)
  const counts = countSuccess(failTimes(failed, 9, START_MS, 'token'))
  t.equal(stopLeftMs(failTimes(counts, 99, START_MS), 'stranger', START_MS), 0)
  t.equal(
    missingForChallenge(counts, 'stranger', START_MS),
    HOUR_MS,
    'the hour has its twenty failures still',
  )
  t.same([counts.sentAtMs.length, counts.reserves?.token?.failedAtMs.length], [1, 9])
  t.equal(counts.reserves?.token?.failuresInRow, 0)
})

t.test('counts are kept as long as they say anything, and bounded however much happens', async t => {
  const events = fc.array(
    fc.tuple(fc.boolean(), fc.constantFrom(...ASKERS), fc.integer({ min: 0, max: DAY_MS })),
  )
  checkProperty(t, [events], happened => {
    let [counts, nowMs] = [NO_COUNTS, START_MS]
    for (const [isSend, asker, pauseMs] of happened) {
      nowMs += pauseMs
      counts = isSend ? countSend(counts, asker, nowMs) : countFailure(counts, asker, nowMs)
    }
    const endMs = countsEndMs(counts)
    const isOver = ASKERS.every(
      asker => missingForSend(counts, asker, endMs) === 0 && missingForChallenge(counts, asker, endMs) === 0,
    )
    return isOver && counts.sentAtMs.length <= 10 && counts.failedAtMs.length <= 30
  })
})
