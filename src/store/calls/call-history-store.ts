/**
 * The calls that each user remembers, newest first (contract 4.6): at most a thousand, for `CALLSIGN_HISTORY_DAYS`. A call is
 * written once for all its people, and beside it a short row for each for whom it is over. One that goes on is no row's: lists
 * have it from the call itself. Rows name people by their ids alone, so a person who is erased leaves no name in the history
 * of other users.
 *
 * All rows that a user has not looked at are behind their mark, so that nobody looks through a thousand for them.
 */

import {
  type CallHistoryRow,
  type CallMemory,
  type HistoryEffect,
  isMissedBy,
  pastRowOf,
} from '../../domain/calls/call-history.ts'
import type { CallId, UserId } from '../../domain/ids.ts'
import type { Expiries } from '../engine/expiries.ts'
import { idsKey, keyBehind, rangeOf } from '../engine/keys.ts'
import type { Change, ReadStore, Row, View } from '../engine/store.ts'
import { CALL_HISTORY, HISTORY_MARKS, REMEMBERED_CALLS } from './call-tables.ts'
import { type Figures, HistoryFigures, NO_ROWS, rowsSinceMark } from './history-figures.ts'
import {
  type CallHistoryPlace,
  isSeen,
  memoryKey,
  packCall,
  packMemory,
  peopleIn,
  placeInKey,
  placeKey,
  readCall,
  readMemory,
  readPlace,
  seenRow,
} from './history-rows.ts'

/** A part of a user's list. */
interface HistoryRange {
  readonly limit: number
  /** Only what is older than this place. The call there may be gone. */
  readonly after?: CallHistoryPlace | undefined
  /** Entries of calls that go on for the user, in any order. */
  readonly active?: readonly CallHistoryRow[]
}

export class CallHistoryStore {
  readonly #figures: HistoryFigures
  readonly #keptMs: number

  /** Rows are kept for so many days; 0: none is written. */
  constructor(deps: {
    readonly database: Pick<ReadStore, 'watch'>
    readonly expiries: Expiries
    readonly historyDays: number
  }) {
    this.#keptMs = deps.historyDays * DAY_MS
    this.#figures = new HistoryFigures(deps.database)
    deps.expiries.defineAged(REMEMBERED_CALLS, this.#keptMs, (change, place) => this.#expire(change, place))
  }

  /** Calls of the days that are kept, newest first. */
  list(
    view: View,
    userId: UserId,
    { limit, after, active = [] }: HistoryRange,
    nowMs: number,
  ): CallHistoryRow[] {
    const last = after && placeKey(after)
    const start = last === undefined ? keyBehind(idsKey(userId)) : memoryKey(userId, last)
    const oldestAtMs = nowMs - this.#keptMs
    const end = memoryKey(userId, placeKey({ atMs: oldestAtMs, id: ID_MAX }))
    // Read backwards, the start belongs to the range: it may be the row itself, and one more makes up for it.
    const rows = [...view.range(CALL_HISTORY, { start, end, reverse: true, limit: limit + 1 })]
    const past = rows
      .filter(({ key }) => last === undefined || Buffer.compare(placeInKey(key), last) !== 0)
      .flatMap(row => pastOf(view, userId, row) ?? [])
    if (this.#keptMs === 0 || active.length === 0) return past.slice(0, limit)
    const goingOn = active.filter(
      row => row.createdAtMs > oldestAtMs && (!after || isBefore(placeOf(row), after)),
    )
    return [...past, ...goingOn]
      .sort((one, other) => (isBefore(placeOf(one), placeOf(other)) ? 1 : -1))
      .slice(0, limit)
  }

  /** The user's entry of a call that is over for them. */
  ofCall(view: View, userId: UserId, callId: CallId): CallHistoryRow | undefined {
    const key = findKey(view, userId, callId)
    return key && pastOf(view, userId, { key, value: view.get(CALL_HISTORY, key)! })
  }

  /** How many calls the user has missed and not looked at. */
  missedOf(view: View, userId: UserId): number {
    return this.#figures.of(view, userId).missed
  }

  /**
   * A user's oldest row goes where there is no room. A call that is missed once more counts as not looked at. Choice: a row
   * that the user deleted while the call goes on comes back when something else becomes of it.
   */
  put(change: Change, { call, memories, back }: HistoryEffect): void {
    if (this.#keptMs === 0) return
    const place = { atMs: call.createdAtMs, id: call.callId }
    const key = placeKey(place)
    for (const userId of back) this.#forget(change, userId, key)
    if (memories.length === 0) return
    for (const memory of memories)
      this.#remember(change, memory, {
        place,
        key: memoryKey(memory.userId, key),
        seen: !isMissedBy(call, memory),
      })
    change.put(REMEMBERED_CALLS, key, packCall(call))
  }

  /** The user has looked at their missed calls. */
  markSeen(change: Change, userId: UserId): void {
    const rows = [...rowsSinceMark(change, userId)]
    const newest = rows[0]?.key
    if (newest === undefined) return
    const figures = this.#figures.of(change, userId)
    change.put(HISTORY_MARKS, idsKey(userId), placeInKey(newest))
    if (figures.missed === 0) return
    for (const { key, value } of rows) if (!isSeen(value)) change.put(CALL_HISTORY, key, seenRow(value))
    this.#figures.keep(userId, { ...figures, missed: 0 })
    change.happened({ kind: 'badge-changed', userId })
  }

  /** False when the user has no row of this call. */
  remove(change: Change, userId: UserId, callId: CallId): boolean {
    const key = findKey(change, userId, callId)
    if (key !== undefined) this.#forget(change, userId, placeInKey(key))
    return key !== undefined
  }

  /** Removes all rows of the user. */
  removeAll(change: Change, userId: UserId): void {
    const missed = this.missedOf(change, userId)
    this.eraseOf(change, userId)
    if (missed > 0) change.happened({ kind: 'badge-changed', userId })
  }

  /** Removes the user's own rows; other people's calls keep the user's id. */
  eraseOf(change: Change, userId: UserId): void {
    const prefix = idsKey(userId)
    const keys = [...change.keys(CALL_HISTORY, rangeOf(prefix))]
    if (keys.length === 0) return
    for (const key of keys) change.remove(CALL_HISTORY, key)
    for (const key of keys) forgetUnlessRemembered(change, placeInKey(key))
    change.remove(HISTORY_MARKS, prefix)
    this.#figures.keep(userId, NO_ROWS)
  }

  #remember(
    change: Change,
    memory: CallMemory,
    { place, key, seen }: { place: CallHistoryPlace; key: Uint8Array; seen: boolean },
  ): void {
    const { userId } = memory
    const figures = this.#figures.of(change, userId)
    const { newest } = figures
    const isNewest = newest === undefined || isBefore(newest, place)
    const before = isNewest ? undefined : change.get(CALL_HISTORY, key)
    const isMore = before === undefined && figures.rows >= ROWS_MAX
    // The row that goes for want of room is replaced too: counted by itself, the badge would go down and up again.
    const gone = isMore ? this.#takeOldest(change, userId) : before
    change.put(CALL_HISTORY, key, packMemory(memory, seen))
    // The mark says that all rows before it were looked at.
    if (!seen && !isNewest) change.remove(HISTORY_MARKS, idsKey(userId))
    const moreMissed = Number(!seen) - missedIn(gone)
    this.#figures.keep(userId, {
      rows: figures.rows + (gone === undefined ? 1 : 0),
      missed: figures.missed + moreMissed,
      newest: isNewest ? place : newest,
    })
    if (moreMissed !== 0) change.happened({ kind: 'badge-changed', userId })
  }

  #takeOldest(change: Change, userId: UserId): Uint8Array | undefined {
    const [oldest] = [...change.range(CALL_HISTORY, { ...rangeOf(idsKey(userId)), limit: 1 })]
    if (oldest === undefined) return undefined
    removeRow(change, userId, oldest.key)
    forgetUnlessRemembered(change, placeInKey(oldest.key))
    return oldest.value
  }

  /** Removes the user's row, if there is one, and the call with the last of its rows. */
  #forget(change: Change, userId: UserId, place: Uint8Array): void {
    if (this.#removeCounted(change, userId, place)) forgetUnlessRemembered(change, place)
  }

  /** False where the user has no such row. */
  #removeCounted(change: Change, userId: UserId, place: Uint8Array): boolean {
    const key = memoryKey(userId, place)
    const row = change.get(CALL_HISTORY, key)
    if (row === undefined) return false
    const figures = this.#figures.known(change, userId)
    removeRow(change, userId, key)
    if (figures !== undefined) this.#figures.keep(userId, without(figures, row))
    if (!isSeen(row)) change.happened({ kind: 'badge-changed', userId })
    return true
  }

  /** The rows of all its people. */
  #expire(change: Change, place: Uint8Array): void {
    for (const userId of peopleIn(change.get(REMEMBERED_CALLS, place)!))
      this.#removeCounted(change, userId, place)
    change.remove(REMEMBERED_CALLS, place)
  }
}

function pastOf(view: View, userId: UserId, { key, value }: Row<Uint8Array>): CallHistoryRow | undefined {
  const place = placeInKey(key)
  const call = view.get(REMEMBERED_CALLS, place)
  const memory = readMemory(userId, value)
  return call && memory && pastRowOf(readCall(place, call), memory, isSeen(value))
}

function placeOf({ createdAtMs, callId }: CallHistoryRow): CallHistoryPlace {
  return { atMs: createdAtMs, id: callId }
}

function isBefore(one: CallHistoryPlace, other: CallHistoryPlace): boolean {
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.id < other.id)
}

/** Looks through the user's keys: only who deletes a row does not know when its call was created. */
function findKey(view: View, userId: UserId, callId: CallId): Uint8Array | undefined {
  for (const key of view.keys(CALL_HISTORY, rangeOf(idsKey(userId)))) {
    if (readPlace(placeInKey(key)).id === callId) return key
  }
  return undefined
}

/** The user's row, and their mark where it is at this row. */
function removeRow(change: Change, userId: UserId, key: Uint8Array): void {
  const mark = change.get(HISTORY_MARKS, idsKey(userId))
  if (mark !== undefined && Buffer.compare(mark, placeInKey(key)) === 0)
    change.remove(HISTORY_MARKS, idsKey(userId))
  change.remove(CALL_HISTORY, key)
}

/** A call goes with the last row of one of its people: what they delete is gone. */
function forgetUnlessRemembered(change: Change, place: Uint8Array): void {
  const call = change.get(REMEMBERED_CALLS, place)
  const isRemembered = (userId: UserId) => change.has(CALL_HISTORY, memoryKey(userId, place))
  if (call !== undefined && !peopleIn(call).some(isRemembered)) change.remove(REMEMBERED_CALLS, place)
}

function without({ rows, missed, newest }: Figures, row: Uint8Array): Figures {
  return rows === 1 ? NO_ROWS : { rows: rows - 1, missed: missed - missedIn(row), newest }
}

function missedIn(row: Uint8Array | undefined): number {
  return row === undefined || isSeen(row) ? 0 : 1
}

/** Contract 4.6. */
const ROWS_MAX = 1_000
const DAY_MS = 86_400_000
const ID_MAX = 2n ** 64n - 1n
