/**
 * How many short messages may be paid for (contract 8): so many a day overall, and so many an hour to the numbers of
 * one country calling code. Where hardly any code that was sent is ever confirmed, somebody is earning on the messages
 * (SMS pumping), and sending to that calling code stops.
 */

import { missingInWindow } from './code-counts.ts'

/** Messages to one country calling code within the last hour, oldest first. */
export interface DialCodeCounts {
  readonly sentAtMs: readonly number[]
  /** Of the codes that were accepted. */
  readonly confirmedAtMs: readonly number[]
}

export interface DayCount {
  readonly day: number
  readonly count: number
}

export const NO_MESSAGES: DialCodeCounts = { sentAtMs: [], confirmedAtMs: [] }

/** Milliseconds until the calling code may have another message; 0 when it may now. */
export function missingForDialCode(counts: DialCodeCounts, nowMs: number): number {
  const missingMs = missingInWindow(counts.sentAtMs, { count: SENDS_MAX, perMs: HOUR_MS }, nowMs)
  return Math.max(missingMs, pumpedForMs(counts, nowMs))
}

/** Milliseconds for which sending is stopped because so few codes are confirmed; 0 when it is not. */
export function pumpedForMs({ sentAtMs, confirmedAtMs }: DialCodeCounts, nowMs: number): number {
  // A code that was sent a moment ago may be confirmed yet.
  const settled = sentAtMs.filter(atMs => atMs > nowMs - HOUR_MS && atMs <= nowMs - SETTLED_MS)
  const confirmed = confirmedAtMs.filter(atMs => atMs > nowMs - HOUR_MS)
  if (settled.length < JUDGED_MIN || confirmed.length >= settled.length * CONFIRMED_SHARE_MIN) return 0
  return settled.at(-JUDGED_MIN)! + HOUR_MS - nowMs
}

export function countMessage({ sentAtMs, confirmedAtMs }: DialCodeCounts, nowMs: number): DialCodeCounts {
  return { sentAtMs: [...sentAtMs, nowMs].slice(-SENDS_MAX), confirmedAtMs }
}

export function countConfirmation(
  { sentAtMs, confirmedAtMs }: DialCodeCounts,
  nowMs: number,
): DialCodeCounts {
  return { sentAtMs, confirmedAtMs: [...confirmedAtMs, nowMs].slice(-SENDS_MAX) }
}

/** Milliseconds until another message is within the day's budget; days are those of UTC. */
export function missingForDay(count: DayCount | undefined, countMax: number, nowMs: number): number {
  const day = Math.floor(nowMs / DAY_MS)
  return count?.day === day && count.count >= countMax ? (day + 1) * DAY_MS - nowMs : 0
}

export function countToday(count: DayCount | undefined, nowMs: number): DayCount {
  const day = Math.floor(nowMs / DAY_MS)
  return { day, count: count?.day === day ? count.count + 1 : 1 }
}

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** An hour, to one calling code. */
const SENDS_MAX = 50
/** The lifetime of a code. */
const SETTLED_MS = 300_000
/** Below so many messages a bad share is chance. */
const JUDGED_MIN = 20
const CONFIRMED_SHARE_MIN = 0.1
