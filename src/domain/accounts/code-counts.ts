/**
 * One address's counts over all its codes (contract 2.2, 8): messages sent to it and wrong codes tried for it. The
 * counts are kept in the store, so that neither a restart nor a new challenge makes an attacker's day longer.
 *
 * Strangers share one pool. The account's own networks and refresh tokens each have a reserve besides, for when the
 * pool is empty: no stranger can use up what the owner needs, and someone behind the owner's own network can't use up
 * what the owner's app has.
 *
 *     guesses a day: 30 of the pool + 10 for networks + 10 for tokens = 50, 0.005 % of the codes
 */

import type { Asker } from './known-sign-in.ts'

export interface CodePool {
  /** Times of the last messages, oldest first, as many as the rules look back at. */
  readonly sentAtMs: readonly number[]
  /** Times of the last wrong codes, likewise. */
  readonly failedAtMs: readonly number[]
  /** Wrong codes since the last one that was accepted. */
  readonly failuresInRow: number
  /** No codes from this pool until then; in the past when they are not stopped. */
  readonly stoppedUntilMs: number
}

/** The shared pool and, once they are drawn on, the reserves. */
export interface CodeCounts extends CodePool {
  readonly reserves?: Readonly<Partial<Record<Reserve, CodePool>>>
}

type Reserve = Exclude<Asker, 'stranger'>

export const NO_COUNTS: CodeCounts = { sentAtMs: [], failedAtMs: [], failuresInRow: 0, stoppedUntilMs: 0 }

/** Milliseconds until another message may go to the address; 0 when it may now. */
export function missingForSend(counts: CodeCounts, asker: Asker, nowMs: number): number {
  return leastOf(counts, asker, (pool, { sends }) => longestOf(pool.sentAtMs, sends, nowMs))
}

/** Milliseconds until another challenge, worth five tries, may be made; 0 when it may now. */
export function missingForChallenge(counts: CodeCounts, asker: Asker, nowMs: number): number {
  return leastOf(counts, asker, (pool, { failures }) =>
    Math.max(longestOf(pool.failedAtMs, failures, nowMs), stopLeft(pool, nowMs)),
  )
}

/**
 * Milliseconds until one who holds a challenge may try a code; 0 when they may now. The bound of an hour is left to new
 * challenges: else a stranger would use up the tries of a newcomer who is typing.
 */
export function missingForTry(counts: CodeCounts, asker: Asker, nowMs: number): number {
  return leastOf(counts, asker, (pool, { failures }) => longestOf(pool.failedAtMs, failures.slice(-1), nowMs))
}

/** Milliseconds for which codes are still stopped; 0 when they are not. */
export function stopLeftMs(counts: CodeCounts, asker: Asker, nowMs: number): number {
  return leastOf(counts, asker, pool => stopLeft(pool, nowMs))
}

export function countSend(counts: CodeCounts, asker: Asker, nowMs: number): CodeCounts {
  return changed(counts, asker, {
    isOpen: (pool, { sends }) => longestOf(pool.sentAtMs, sends, nowMs) === 0,
    change: pool => ({ ...pool, sentAtMs: [...pool.sentAtMs, nowMs].slice(-SENDS_KEPT) }),
  })
}

/** Counts a wrong code; the last one that is taken in a row stops the codes of its pool and begins a new row. */
export function countFailure(counts: CodeCounts, asker: Asker, nowMs: number): CodeCounts {
  return changed(counts, asker, {
    isOpen: (pool, { failures }) =>
      longestOf(pool.failedAtMs, failures, nowMs) === 0 && stopLeft(pool, nowMs) === 0,
    change: pool => poolAfterFailure(pool, nowMs),
  })
}

/** The owner has read a code: rows of failures end. */
export function countSuccess(counts: CodeCounts): CodeCounts {
  const { reserves, ...shared } = counts
  const ended = Object.entries(reserves ?? {}).map(([name, pool]) => [name, { ...pool, failuresInRow: 0 }])
  const pool = { ...shared, failuresInRow: 0 }
  return ended.length === 0 ? pool : { ...pool, reserves: Object.fromEntries(ended) }
}

/** When nothing in the counts matters any more, milliseconds since 1970. */
export function countsEndMs({ reserves, ...shared }: CodeCounts): number {
  return Math.max(...[shared, ...Object.values(reserves ?? {})].map(poolEndMs))
}

interface Bound {
  readonly count: number
  readonly perMs: number
}

/** The longest window is last. */
interface Bounds {
  readonly sends: readonly Bound[]
  readonly failures: readonly Bound[]
}

function poolAfterFailure(pool: CodePool, nowMs: number): CodePool {
  const failedAtMs = [...pool.failedAtMs, nowMs].slice(-FAILURES_KEPT)
  const failuresInRow = pool.failuresInRow + 1
  if (failuresInRow < FAILURES_IN_ROW_MAX) return { ...pool, failedAtMs, failuresInRow }
  return { ...pool, failedAtMs, failuresInRow: 0, stoppedUntilMs: nowMs + STOPPED_MS }
}

function poolEndMs({ sentAtMs, failedAtMs, failuresInRow, stoppedUntilMs }: CodePool): number {
  const rowMs = failuresInRow > 0 ? ROW_KEPT_MS : DAY_MS
  return Math.max(stoppedUntilMs, (sentAtMs.at(-1) ?? 0) + DAY_MS, (failedAtMs.at(-1) ?? 0) + rowMs)
}

/** The pools that the asker may draw on, the shared one first. */
function poolsOf(counts: CodeCounts, asker: Asker): readonly (readonly [CodePool, Bounds])[] {
  const shared = [counts, SHARED] as const
  return asker === 'stranger' ? [shared] : [shared, [counts.reserves?.[asker] ?? NO_COUNTS, RESERVE]]
}

function leastOf(
  counts: CodeCounts,
  asker: Asker,
  waitMs: (pool: CodePool, bounds: Bounds) => number,
): number {
  return Math.min(...poolsOf(counts, asker).map(([pool, bounds]) => waitMs(pool, bounds)))
}

interface PoolChange {
  readonly isOpen: (pool: CodePool, bounds: Bounds) => boolean
  readonly change: (pool: CodePool) => CodePool
}

/** Changes the first pool that is open to the asker, or the last of them. */
function changed(counts: CodeCounts, asker: Asker, { isOpen, change }: PoolChange): CodeCounts {
  if (asker === 'stranger' || isOpen(counts, SHARED)) return { ...counts, ...change(counts) }
  const reserve = counts.reserves?.[asker] ?? NO_COUNTS
  return { ...counts, reserves: { ...counts.reserves, [asker]: change(reserve) } }
}

function longestOf(timesMs: readonly number[], bounds: readonly Bound[], nowMs: number): number {
  return Math.max(...bounds.map(bound => missingInWindow(timesMs, bound, nowMs)))
}

function stopLeft({ stoppedUntilMs }: CodePool, nowMs: number): number {
  return Math.max(0, stoppedUntilMs - nowMs)
}

/**
 * A window that slides: of the last `count` times, the oldest must have left it. A time ahead by more than the
 * window's width was written before the clock was set back: it would stop everything for as long as the clock was
 * wrong.
 */
function missingInWindow(timesMs: readonly number[], { count, perMs }: Bound, nowMs: number): number {
  const oldest = timesMs.filter(atMs => atMs <= nowMs + perMs).at(-count)
  return oldest === undefined ? 0 : Math.max(0, oldest + perMs - nowMs)
}

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const SHARED: Bounds = {
  sends: [
    { count: 5, perMs: HOUR_MS },
    { count: 10, perMs: DAY_MS },
  ],
  failures: [
    { count: 20, perMs: HOUR_MS },
    { count: 30, perMs: DAY_MS },
  ],
}
const RESERVE: Bounds = {
  sends: [{ count: 4, perMs: DAY_MS }],
  failures: [{ count: 10, perMs: DAY_MS }],
}
const SENDS_KEPT = 10
const FAILURES_KEPT = 30
/** NIST SP 800-63B, section 3.2.2: no more than 100 failures in a row. */
const FAILURES_IN_ROW_MAX = 100
const STOPPED_MS = DAY_MS
/** `Choice:` a row of failures is forgotten when nothing was tried for a month. */
const ROW_KEPT_MS = 30 * DAY_MS
