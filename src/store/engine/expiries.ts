/**
 * What ends at a time: one row per ending, in order of time, so that a sweep looks at nothing else and no request ever
 * scans. A row that lives longer than it was to live when its ending was written is given a new ending by the sweep.
 * A table that is itself in order of time needs no such rows: the sweep looks at its oldest.
 */

import { assert } from '../../errors.ts'
import { KIND, opaque, TIME } from './key-parts.ts'
import { timeBytes } from './keys.ts'
import { oneOf } from './row-form.ts'
import type { Change, Store, View } from './store.ts'
import { rowTable, type Table } from './table.ts'
import { isOfLmdb } from './write-failure.ts'

/**
 * Ends the row under a key that is due, or returns the later time, in milliseconds since 1970, at which it ends.
 */
export type Expire = (change: Change, key: Uint8Array) => number | undefined

/** A table in order of time, whose rows all live as long as each other and have no endings of their own. */
interface Aged {
  readonly table: Table<never>
  readonly keptMs: number
  readonly expire: (change: Change, key: Uint8Array) => void
  /** After a fault, no sooner than then. */
  heldUntilMs: number
}

export class Expiries {
  readonly #kinds = new Map<number, Expire>()
  readonly #aged: Aged[] = []
  readonly #onFault: (error: unknown) => void

  /** `onFault` is told of endings that fail, once for each kind in a sweep; where it throws, so does the sweep. */
  constructor(onFault: (error: unknown) => void = rethrow) {
    this.#onFault = onFault
  }

  /** Says what the ending of a kind (1 byte) does. */
  define(kind: number, expire: Expire): void {
    assert(!this.#kinds.has(kind), `expiry kind ${kind} is defined once`)
    this.#kinds.set(kind, expire)
  }

  /** Says what ends a row of a table whose keys begin with the time from which on it lives for `keptMs`. */
  defineAged(table: Table<never>, keptMs: number, expire: Aged['expire']): void {
    this.#aged.push({ table, keptMs, expire, heldUntilMs: 0 })
  }

  /** Has `key` end at that time. */
  add(change: Change, kind: number, endsAtMs: number, key: Uint8Array): void {
    change.put(EXPIRIES, endingKey(kind, endsAtMs, key), 0)
  }

  /** `key` does not end at that time any more. */
  remove(change: Change, kind: number, endsAtMs: number, key: Uint8Array): void {
    change.remove(EXPIRIES, endingKey(kind, endsAtMs, key))
  }

  /**
   * Ends up to `countMax` due rows, in one change; resolves with how many there were. An ending that fails
   * leaves nothing behind, is tried again a minute later, and keeps no other waiting.
   */
  async sweep(database: Store, nowMs: number, countMax: number): Promise<number> {
    const aged = this.#aged.filter(({ heldUntilMs }) => heldUntilMs <= nowMs)
    const isDue = (view: View) =>
      dueIn(view, nowMs, 1).length > 0 || aged.some(each => oldIn(view, each, nowMs, 1).length > 0)
    if (!database.view(isDue)) return 0
    const { count, faults } = await database.change(change => {
      const due = dueIn(change, nowMs, countMax)
      const faults = new Map<number | Aged, unknown>()
      for (const row of due) this.#end(change, row, faults)
      let count = due.length
      for (const each of aged) count += endOld(change, each, countMax - count, faults)
      return { count, faults }
    }, nowMs)
    for (const each of aged) if (faults.has(each)) each.heldUntilMs = nowMs + POSTPONED_MS
    for (const fault of faults.values()) this.#onFault(fault)
    return count
  }

  #end(change: Change, row: Uint8Array, faults: Map<number | Aged, unknown>): void {
    const { nowMs } = change
    const kind = row[TIME_BYTES]!
    const key = row.subarray(TIME_BYTES + 1)
    // First, since the row may have another ending at the same moment.
    change.remove(EXPIRIES, row)
    try {
      const expire = this.#kinds.get(kind)
      assert(expire !== undefined, `expiry kind ${kind} is one of ours`)
      const endsAtMs = change.attempt(() => expire(change, key))
      if (endsAtMs !== undefined) this.add(change, kind, Math.max(endsAtMs, nowMs + 1), key)
    } catch (error) {
      if (isOfLmdb(error)) throw error
      faults.set(kind, error)
      this.add(change, kind, nowMs + POSTPONED_MS, key)
    }
  }
}

/** A key of the table `expiries`. */
export function endingKey(kind: number, endsAtMs: number, key: Uint8Array): Uint8Array {
  return Buffer.concat([timeBytes(endsAtMs), Uint8Array.of(kind), key])
}

/** The kinds of endings. A change of a number raises `STORE_FORM`. */
export const EXPIRY = {
  session: 1,
  code: 2,
  identifier: 3,
  idempotency: 4,
  identityToken: 5,
  shareToken: 6,
  friendRequest: 7,
  rate: 8,
  erasure: 9,
  inbox: 10,
  deferredTask: 13,
  smsTally: 14,
  knownSignIn: 15,
  codeTries: 16,
  sessionEnding: 17,
  waitingSignIn: 18,
  refusedSignIn: 19,
  passkeyChallenge: 20,
  suspension: 21,
  report: 22,
  audit: 23,
  deadWebhook: 25,
  serverKey: 26,
  erasedUser: 27,
} as const

function dueIn(view: View, nowMs: number, limit: number): Uint8Array[] {
  return [...view.keys(EXPIRIES, { start: NO_TIME, end: timeBytes(nowMs + 1), limit })]
}

function oldIn(view: View, { table, keptMs }: Aged, nowMs: number, limit: number): Uint8Array[] {
  const end = timeBytes(nowMs - keptMs + 1)
  return limit === 0 ? [] : [...view.keys(table, { start: NO_TIME, end, limit })]
}

/** Ends the oldest of the rows that are due; returns how many there were. */
function endOld(change: Change, aged: Aged, limit: number, faults: Map<number | Aged, unknown>): number {
  const old = oldIn(change, aged, change.nowMs, limit)
  for (const key of old) {
    try {
      change.attempt(() => aged.expire(change, key))
    } catch (error) {
      if (isOfLmdb(error)) throw error
      faults.set(aged, error)
    }
  }
  return old.length
}

function rethrow(error: unknown): never {
  throw error
}

/** After an ending that failed. */
const POSTPONED_MS = 60_000
const NO_TIME = timeBytes(0)
/** How a key begins: with the time, then the kind. */
export const TIME_BYTES = TIME.bytes

export const EXPIRIES = rowTable(
  'expiries',
  { time: TIME, kind: KIND, 'key of the row': opaque(64, 1) },
  oneOf(0),
  {
    holds: 'nothing: what ends when',
    remedy: 'the sweep logs a fault for it each minute: restore a backup',
  },
)
