/** The budget of short messages: bounds by hour and day, and when a calling code is being pumped. */

import fc from 'fast-check'
import t from 'tap'
import {
  countConfirmation,
  countMessage,
  countToday,
  type DialCodeCounts,
  missingForDay,
  missingForDialCode,
  NO_MESSAGES,
  pumpedForMs,
} from '../../src/domain/sms-budget.ts'
import { checkProperty } from '../support/property.ts'

const NOW_MS = Date.UTC(2026, 0, 1, 12)
const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

function messages(sent: number, confirmed = 0, counts = NO_MESSAGES): DialCodeCounts {
  let after = counts
  for (let message = 0; message < sent; message++) after = countMessage(after, NOW_MS)
  for (let message = 0; message < confirmed; message++) after = countConfirmation(after, NOW_MS)
  return after
}

t.test('however messages come, no hour has more than fifty of them', async t => {
  checkProperty(t, [fc.array(fc.integer({ min: 0, max: 3 * MINUTE_MS }), { maxLength: 300 })], pausesMs => {
    let [counts, nowMs] = [NO_MESSAGES, NOW_MS]
    const sentAtMs: number[] = []
    for (const pauseMs of pausesMs) {
      nowMs += pauseMs
      // All are confirmed, so that only the bound matters.
      if (missingForDialCode(counts, nowMs) > 0) continue
      counts = countConfirmation(countMessage(counts, nowMs), nowMs)
      sentAtMs.push(nowMs)
    }
    return sentAtMs.every((atMs, at) => at < 50 || atMs - sentAtMs[at - 50]! >= HOUR_MS)
  })
})

t.test(
  'a calling code with less than a tenth of its codes confirmed is stopped until they are an hour old',
  async t => {
    const counts = messages(20, 1)
    t.equal(pumpedForMs(counts, NOW_MS), 0, 'the codes can be confirmed yet')
    t.equal(pumpedForMs(counts, NOW_MS + 5 * MINUTE_MS), 55 * MINUTE_MS)
    t.equal(missingForDialCode(counts, NOW_MS + 5 * MINUTE_MS), 55 * MINUTE_MS)
    t.equal(pumpedForMs(counts, NOW_MS + HOUR_MS), 0)
  },
)

t.test('what was sent while the clock was a day ahead stops no calling code once it is set back', async t => {
  t.equal(missingForDialCode(messages(50, 50), NOW_MS - 24 * HOUR_MS), 0)
  t.equal(missingForDialCode(messages(50, 50), NOW_MS - 1_000), HOUR_MS + 1_000, 'a second is no reason')
})

t.test('a tenth is enough, and few messages say nothing', async t => {
  t.equal(pumpedForMs(messages(20, 2), NOW_MS + 5 * MINUTE_MS), 0)
  t.equal(pumpedForMs(messages(19), NOW_MS + 5 * MINUTE_MS), 0)
  t.equal(pumpedForMs(messages(50, 4), NOW_MS + 5 * MINUTE_MS) > 0, true)
})

t.test('a day has its budget, and the next one anew', async t => {
  let count = countToday(undefined, NOW_MS)
  t.equal(missingForDay(count, 2, NOW_MS), 0)
  count = countToday(count, NOW_MS)
  t.equal(missingForDay(count, 2, NOW_MS), 12 * HOUR_MS)
  t.equal(missingForDay(count, 2, NOW_MS + 12 * HOUR_MS), 0)
  t.equal(countToday(count, NOW_MS + 12 * HOUR_MS).count, 1)
})
