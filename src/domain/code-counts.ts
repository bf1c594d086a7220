/**
 * What is counted for one address over all its codes (contract 2.2, 8): messages sent to it and wrong codes tried for
 * it. The counts are kept in the store, so that neither a restart nor a new challenge makes an attacker's day longer.
 */

export interface CodeCounts {
  /** Of the last messages, oldest first, as many as the rules look back at. */
  readonly sentAtMs: readonly number[]
  /** Of the last wrong codes, likewise. */
  readonly failedAtMs: readonly number[]
  /** Wrong codes since the last one that was accepted. */
  readonly failuresInRow: number
  /** No codes for this address until then; in the past when they are not stopped. */
  readonly stoppedUntilMs: number
}

export const NO_COUNTS: CodeCounts = { sentAtMs: [], failedAtMs: [], failuresInRow: 0, stoppedUntilMs: 0 }

/** Milliseconds until another message may go to the address; 0 when it may now. */
export function missingForSend({ sentAtMs }: CodeCounts, nowMs: number): number {
  return Math.max(...SENDS_MAX.map(bound => missingInWindow(sentAtMs, bound, nowMs)))
}

/** Milliseconds until another challenge may be made, each of which is five more tries; 0 when it may now. */
export function missingForChallenge(counts: CodeCounts, nowMs: number): number {
  return Math.max(missingForFailure(counts, nowMs), stopLeftMs(counts, nowMs))
}

/** Milliseconds until another wrong code is within the rule; 0 when it is now. */
export function missingForFailure({ failedAtMs }: CodeCounts, nowMs: number): number {
  return missingInWindow(failedAtMs, FAILURES_MAX, nowMs)
}

/** Milliseconds for which codes are still stopped; 0 when they are not. */
export function stopLeftMs({ stoppedUntilMs }: CodeCounts, nowMs: number): number {
  return Math.max(0, stoppedUntilMs - nowMs)
}

export function countSend(counts: CodeCounts, nowMs: number): CodeCounts {
  return { ...counts, sentAtMs: [...counts.sentAtMs, nowMs].slice(-SENDS_KEPT) }
}

/** Counts a wrong code; the last one that is taken in a row stops the codes and begins a new row. */
export function countFailure(counts: CodeCounts, nowMs: number): CodeCounts {
  const failedAtMs = [...counts.failedAtMs, nowMs].slice(-FAILURES_MAX.count)
  const failuresInRow = counts.failuresInRow + 1
  if (failuresInRow < FAILURES_IN_ROW_MAX) return { ...counts, failedAtMs, failuresInRow }
  return { ...counts, failedAtMs, failuresInRow: 0, stoppedUntilMs: nowMs + STOPPED_MS }
}

export function countSuccess(counts: CodeCounts): CodeCounts {
  return { ...counts, failuresInRow: 0 }
}

/** When nothing in the counts matters any more, milliseconds since 1970. */
export function countsEndMs({ sentAtMs, failedAtMs, failuresInRow, stoppedUntilMs }: CodeCounts): number {
  const rowMs = failuresInRow > 0 ? ROW_KEPT_MS : FAILURES_MAX.perMs
  return Math.max(stoppedUntilMs, (sentAtMs.at(-1) ?? 0) + DAY_MS, (failedAtMs.at(-1) ?? 0) + rowMs)
}

interface Bound {
  readonly count: number
  readonly perMs: number
}

/**
 * A window that slides: of the last `count` times, the oldest must have left it. What is further ahead than the window
 * is wide was written by a clock that has been set back since: it would stop everything for as long as the clock was
 * wrong.
 */
function missingInWindow(timesMs: readonly number[], { count, perMs }: Bound, nowMs: number): number {
  const oldest = timesMs.filter(atMs => atMs <= nowMs + perMs).at(-count)
  return oldest === undefined ? 0 : Math.max(0, oldest + perMs - nowMs)
}

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const SENDS_MAX: readonly Bound[] = [
  { count: 5, perMs: HOUR_MS },
  { count: 10, perMs: DAY_MS },
]
const SENDS_KEPT = 10
const FAILURES_MAX: Bound = { count: 20, perMs: HOUR_MS }
/** NIST SP 800-63B, section 3.2.2: no more than 100 failures in a row. */
const FAILURES_IN_ROW_MAX = 100
const STOPPED_MS = DAY_MS
/** `Choice:` a row of failures is forgotten when nothing was tried for a month. */
const ROW_KEPT_MS = 30 * DAY_MS
