/**
 * The calls that each user remembers, newest first (contract 4.6): at most a thousand, for `CALLSIGN_HISTORY_DAYS`. How many
 * missed ones they have not looked at is kept as a figure, since every badge asks for it. A row names people by their ids
 * alone, so a person who is erased leaves no name in the history of other users.
 */

import { decode, encode } from 'msgpackr'
import type { CallHistoryRow } from '../../domain/calls/call-history.ts'
import type { UserId } from '../../domain/ids.ts'
import { lastOf } from '../../last-of.ts'
import { EXPIRY } from '../engine/expiries.ts'
import { idsKey, keyBehind, rangeOf, timeBytes, userInKey } from '../engine/keys.ts'
import { RowCache } from '../engine/row-cache.ts'
import type { Change, Store, View } from '../engine/store.ts'
import type { StoreDeps } from '../tables/deps.ts'
import { CALL_HISTORY, FIGURES, type Figures, HISTORY_DAYS, type StoredHistoryRow } from './call-tables.ts'

/** A place in the list. Its row may be gone. */
export interface CallHistoryPlace {
  /** When the call was created, milliseconds since 1970. */
  readonly atMs: number
  readonly id: bigint
}

/** A row in the place of another, which may be another call's. */
interface Replacement {
  readonly before: StoredHistoryRow | undefined
  readonly after: CallHistoryRow | undefined
}

type CallHistoryStoreDeps = Pick<StoreDeps, 'database' | 'expiries'> & {
  /** How long a row is kept; 0: none is written. */
  readonly historyDays: number
}

export class CallHistoryStore {
  readonly #deps: CallHistoryStoreDeps
  readonly #figures: RowCache<Figures, Figures>
  readonly #days: number

  constructor(deps: CallHistoryStoreDeps) {
    this.#deps = deps
    this.#days = deps.historyDays
    this.#figures = new RowCache(deps.database, FIGURES, figures => figures ?? NO_ROWS, FIGURES_KEPT_MAX)
    deps.expiries.define(EXPIRY.callHistory, (change, key) => this.#expire(change, userInKey(key)))
  }

  /** Calls of the days that are kept, newest first, at most `limit`; only those behind `after`, if it is given. */
  list(
    view: View,
    userId: UserId,
    { limit, after }: { readonly limit: number; readonly after?: CallHistoryPlace | undefined },
    nowMs: number,
  ): CallHistoryRow[] {
    const start = after === undefined ? keyBehind(idsKey(userId)) : rowKey(userId, after)
    const end = rowKey(userId, { atMs: nowMs - this.#keptMs, id: ID_MAX })
    // Read backwards, the start belongs to the range: it may be the row itself, and one more makes up for it.
    const rows = [...view.range(CALL_HISTORY, { start, end, reverse: true, limit: limit + 1 })]
    const behind = rows.filter(({ value }) => value.callId !== after?.id)
    return behind.slice(0, limit).map(({ value }) => listedRow(value))
  }

  /** The user's row of a call. */
  ofCall(view: View, userId: UserId, callId: bigint): CallHistoryRow | undefined {
    const row = this.#find(view, userId, callId)
    return row && listedRow(row)
  }

  /** How many calls the user has missed and not looked at. */
  missedOf(view: View, userId: UserId): number {
    return this.#figuresOf(view, userId).missed
  }

  /**
   * Writes a user's row of a call in place of an earlier one. The oldest goes where there is no room.
   * A call that is missed once more counts as not looked at. Choice: a row that the user deleted while the call goes on
   * comes back when something else becomes of it.
   */
  put(change: Change, userId: UserId, row: CallHistoryRow): void {
    if (this.#days === 0) return
    const key = rowKey(userId, placeOf(row))
    const figures = this.#figuresOf(change, userId)
    const known = figures.count === 0 ? undefined : change.get(CALL_HISTORY, key)
    // The row that goes for want of room is replaced too: counted by itself, the badge would go down and up again.
    const before = known ?? (figures.count < ROWS_MAX ? undefined : this.#oldest(change, userId, 1)[0])
    this.#change(change, userId, { before, after: row }, figures)
  }

  /** The user has looked at their missed calls. */
  markSeen(change: Change, userId: UserId): void {
    const missed = this.missedOf(change, userId)
    for (const row of this.#unseen(change, userId, missed)) {
      change.put(CALL_HISTORY, rowKey(userId, placeOf(row)), { ...row, seen: true })
    }
    if (missed === 0) return
    change.put(FIGURES, idsKey(userId), { ...this.#figuresOf(change, userId), missed: 0 })
    change.happened({ kind: 'badge-changed', userId })
  }

  /** False when the user has no row of this call. */
  remove(change: Change, userId: UserId, callId: bigint): boolean {
    const row = this.#find(change, userId, callId)
    if (row !== undefined) this.#change(change, userId, { before: row, after: undefined })
    return row !== undefined
  }

  /** Removes all rows of the user. */
  removeAll(change: Change, userId: UserId): void {
    const missed = this.missedOf(change, userId)
    this.eraseOf(change, userId)
    if (missed > 0) change.happened({ kind: 'badge-changed', userId })
  }

  /** Removes the user's own rows; other people's rows keep the user's id. */
  eraseOf(change: Change, userId: UserId): void {
    const figures = this.#figuresOf(change, userId)
    for (const key of [...change.keys(CALL_HISTORY, rangeOf(idsKey(userId)))])
      change.remove(CALL_HISTORY, key)
    if (figures.count > 0) this.#end(change, idsKey(userId), figures.endsAtMs)
  }

  /**
   * Gives rows that an earlier setting kept for longer the ending of the present one, so that the next sweep ends those
   * whose time has passed. Does nothing where the setting is the last one's. A crash before its end begins it anew.
   */
  async applyDays(database: Store): Promise<void> {
    const lastDays = database.view(view => view.get(HISTORY_DAYS, DAYS_KEY))
    if (lastDays === this.#days) return
    if (lastDays !== undefined && lastDays > this.#days) {
      let after: Uint8Array | undefined = FIRST_KEY
      while (after !== undefined) {
        const start: Uint8Array = after
        after = await database.change(change => this.#endEarlier(change, start))
      }
    }
    await database.change(change => change.put(HISTORY_DAYS, DAYS_KEY, this.#days))
  }

  /** Goes on with a bounded number of users from a key of the figures; returns the key to go on from. */
  #endEarlier(change: Change, start: Uint8Array): Uint8Array | undefined {
    const users = [...change.range(FIGURES, { start, limit: USERS_AT_ONCE })]
    for (const { key, value } of users) {
      const oldest = this.#oldest(change, userInKey(key), 1)[0]
      const endsAtMs = oldest && this.#endOf(oldest)
      if (endsAtMs === undefined || endsAtMs >= value.endsAtMs) continue
      this.#deps.expiries.remove(change, EXPIRY.callHistory, value.endsAtMs, key)
      this.#deps.expiries.add(change, EXPIRY.callHistory, endsAtMs, key)
      change.put(FIGURES, key, { ...value, endsAtMs })
    }
    const last = users.at(-1)
    return last === undefined || users.length < USERS_AT_ONCE ? undefined : keyBehind(last.key)
  }

  get #keptMs(): number {
    return this.#days * DAY_MS
  }

  #endOf({ createdAtMs }: Pick<CallHistoryRow, 'createdAtMs'>): number {
    return createdAtMs + this.#keptMs
  }

  /** Removes some of the expired rows; returns when it is to go on, or when the next one expires. */
  #expire(change: Change, userId: UserId): number | undefined {
    // An ending that failed before and is tried again; the rows that it was for are gone, and later ones have another.
    if (this.#figuresOf(change, userId).endsAtMs > change.nowMs) return undefined
    const [expired, left] = [[] as StoredHistoryRow[], this.#oldest(change, userId, EXPIRED_AT_ONCE + 1)]
    while (left.length > 0 && this.#endOf(left[0]!) <= change.nowMs && expired.length < EXPIRED_AT_ONCE)
      expired.push(left.shift()!)
    for (const row of expired) this.#change(change, userId, { before: row, after: undefined })
    if (left[0] === undefined) return undefined
    const endsAtMs = Math.max(this.#endOf(left[0]), change.nowMs + 1)
    change.put(FIGURES, idsKey(userId), { ...this.#figuresOf(change, userId), endsAtMs })
    return endsAtMs
  }

  /** Puts `after` in place of `before`, which may be another call's row, and keeps the figures. */
  #change(
    change: Change,
    userId: UserId,
    replacement: Replacement,
    figures = this.#figuresOf(change, userId),
  ): void {
    const { before, after } = replacement
    if (before !== undefined && before.callId !== after?.callId) {
      change.remove(CALL_HISTORY, rowKey(userId, placeOf(before)))
    }
    if (after !== undefined) change.put(CALL_HISTORY, rowKey(userId, placeOf(after)), storedRow(after))
    this.#countChange(change, userId, replacement, figures)
  }

  #countChange(
    change: Change,
    userId: UserId,
    { before, after }: Replacement,
    { count, missed, endsAtMs }: Figures,
  ): void {
    const more = Number(after !== undefined) - Number(before !== undefined)
    const moreMissed = countOfMissed(after) - countOfMissed(before)
    const key = idsKey(userId)
    if (count + more === 0) this.#end(change, key, endsAtMs)
    else if (count === 0) this.#begin(change, key, this.#endOf(after!), moreMissed)
    else if (more !== 0 || moreMissed !== 0) {
      change.put(FIGURES, key, { count: count + more, missed: missed + moreMissed, endsAtMs })
    }
    if (moreMissed !== 0) change.happened({ kind: 'badge-changed', userId })
  }

  /** One ending for each user, when the oldest row ends. */
  #begin(change: Change, key: Uint8Array, endsAtMs: number, missed: number): void {
    change.put(FIGURES, key, { count: 1, missed, endsAtMs })
    this.#deps.expiries.add(change, EXPIRY.callHistory, endsAtMs, key)
  }

  #end(change: Change, key: Uint8Array, endsAtMs: number): void {
    change.remove(FIGURES, key)
    this.#deps.expiries.remove(change, EXPIRY.callHistory, endsAtMs, key)
  }

  /** Looks through the user's keys: only who deletes a row does not know when its call was created. */
  #find(view: View, userId: UserId, callId: bigint): StoredHistoryRow | undefined {
    for (const key of view.keys(CALL_HISTORY, rangeOf(idsKey(userId)))) {
      if (callInKey(key) === callId) return view.get(CALL_HISTORY, key)
    }
    return undefined
  }

  #oldest(view: View, userId: UserId, limit: number): StoredHistoryRow[] {
    return [...view.range(CALL_HISTORY, { ...rangeOf(idsKey(userId)), limit })].map(({ value }) => value)
  }

  /** The newest missed calls that were not looked at, so many as there are known to be. */
  #unseen(view: View, userId: UserId, count: number): StoredHistoryRow[] {
    const [start, end] = [keyBehind(idsKey(userId)), idsKey(userId)]
    const unseen: StoredHistoryRow[] = []
    for (const { value } of view.range(CALL_HISTORY, { start, end, reverse: true })) {
      if (unseen.length === count) break
      if (!value.seen) unseen.push(value)
    }
    return unseen
  }

  #figuresOf(view: View, userId: UserId): Figures {
    return this.#figures.of(view, idsKey(userId))
  }
}

const packPeople = lastOf((people: readonly UserId[]) => encode(people))

/** In the order of its shape. */
function storedRow(row: CallHistoryRow): StoredHistoryRow {
  return {
    callId: row.callId,
    direction: row.direction,
    status: row.status,
    isVideo: row.isVideo,
    isGroup: row.isGroup,
    createdAtMs: row.createdAtMs,
    startedAtMs: row.startedAtMs,
    endedAtMs: row.endedAtMs,
    talkedMs: row.talkedMs,
    seen: row.seen,
    people: packPeople(row.people),
  }
}

function listedRow(row: StoredHistoryRow): CallHistoryRow {
  return { ...row, people: decode(row.people) }
}

function countOfMissed(row: Pick<CallHistoryRow, 'seen'> | undefined): number {
  return row === undefined || row.seen ? 0 : 1
}

function placeOf({ createdAtMs, callId }: Pick<CallHistoryRow, 'createdAtMs' | 'callId'>): CallHistoryPlace {
  return { atMs: createdAtMs, id: callId }
}

function rowKey(userId: UserId, { atMs, id }: CallHistoryPlace): Uint8Array {
  return Buffer.concat([idsKey(userId), timeBytes(atMs), idsKey(id)])
}

function callInKey(key: Uint8Array): bigint {
  return Buffer.from(key.buffer, key.byteOffset, key.length).readBigUInt64BE(CALL_AT)
}

const NO_ROWS: Figures = { count: 0, missed: 0, endsAtMs: 0 }
/** In a key, behind user and time. */
const CALL_AT = 14
/** Contract 4.6. */
const ROWS_MAX = 1_000
const DAY_MS = 86_400_000
const DAYS_KEY = 'days'
const FIRST_KEY = new Uint8Array(8)
/** Looked at in one change: a few milliseconds. */
const USERS_AT_ONCE = 500
/** Rows of one user. A sweep ends those of a thousand users in one change, and a shorter setting ends hundreds of each. */
const EXPIRED_AT_ONCE = 10
const ID_MAX = 2n ** 64n - 1n
const FIGURES_KEPT_MAX = 8_192
