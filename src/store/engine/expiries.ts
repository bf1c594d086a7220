/**
 * What ends at a time: one row per ending, in order of time, so that a sweep looks at nothing else and no request ever
 * scans. A row that lives longer than it was to live when its ending was written is given a new ending by the sweep.
 */

import { assert } from '../../errors.ts'
import type { Database, Table } from './database.ts'
import { timeBytes } from './keys.ts'
import type { Change } from './store.ts'

/**
 * Called in a transaction for a key whose time has come: removes what is under it, or returns the later time, in
 * milliseconds since 1970, at which it ends.
 */
export type Expire = (key: Uint8Array, nowMs: number) => number | undefined

export class Expiries {
  readonly #database: Database
  readonly #table: Table<0>
  readonly #kinds = new Map<number, Expire>()
  readonly #onFault: (error: unknown) => void

  /** `onFault` is told of endings that fail, once for each kind in a sweep; where it throws, so does the sweep. */
  constructor(database: Database, onFault: (error: unknown) => void = rethrow) {
    this.#database = database
    this.#onFault = onFault
    this.#table = database.table('expiries')
  }

  /** Says what the ending of a kind (1 byte, never reused for another) does. */
  define(kind: number, expire: Expire): void {
    assert(!this.#kinds.has(kind), `expiry kind ${kind} is defined once`)
    this.#kinds.set(kind, expire)
  }

  /** In a transaction: has `key` end at that time. */
  add(kind: number, endsAtMs: number, key: Uint8Array): void {
    this.#table.put(endingKey(kind, endsAtMs, key), 0)
  }

  /** In a transaction: `key` does not end at that time any more. */
  remove(kind: number, endsAtMs: number, key: Uint8Array): void {
    this.#table.remove(endingKey(kind, endsAtMs, key))
  }

  /**
   * Ends up to `countMax` of what is due, in one transaction; resolves with how many there were. An ending that fails
   * leaves nothing behind, is tried again a minute later, and keeps no other waiting.
   */
  async sweep(nowMs: number, countMax: number): Promise<number> {
    if (this.#due(nowMs, 1).length === 0) return 0
    const { count, faults } = await this.#database.change(change => {
      const due = this.#due(nowMs, countMax)
      const faults = new Map<number, unknown>()
      for (const row of due) this.#end(change, row, faults)
      return { count: due.length, faults }
    }, nowMs)
    for (const fault of faults.values()) this.#onFault(fault)
    return count
  }

  #due(nowMs: number, limit: number): Uint8Array[] {
    return [...this.#table.getKeys({ start: NO_TIME, end: timeBytes(nowMs + 1), limit })]
  }

  #end(change: Change, row: Uint8Array, faults: Map<number, unknown>): void {
    const { nowMs } = change
    const kind = row[TIME_BYTES]!
    const key = row.subarray(TIME_BYTES + 1)
    // First, since what ends may have another ending at the same moment.
    this.#table.remove(row)
    try {
      const expire = this.#kinds.get(kind)
      assert(expire !== undefined, `expiry kind ${kind} is one of ours`)
      const endsAtMs = change.attempt(() => expire(key, nowMs))
      if (endsAtMs !== undefined) this.add(kind, Math.max(endsAtMs, nowMs + 1), key)
    } catch (error) {
      faults.set(kind, error)
      this.add(kind, nowMs + POSTPONED_MS, key)
    }
  }
}

/** Of the table `expiries`. */
export function endingKey(kind: number, endsAtMs: number, key: Uint8Array): Uint8Array {
  return Buffer.concat([timeBytes(endsAtMs), Uint8Array.of(kind), key])
}

/** The kinds of endings. A number is never given to another kind: rows of it may be in a store. */
export const EXPIRY = {
  session: 1,
  code: 3,
  identifier: 4,
  idempotency: 5,
  identityToken: 6,
  shareToken: 7,
  friendRequest: 8,
  rate: 9,
  erasure: 10,
  inbox: 12,
  callHistory: 13,
  endedCall: 14,
  errand: 15,
  smsTally: 17,
  knownSignIn: 18,
  codeTries: 19,
} as const

function rethrow(error: unknown): never {
  throw error
}

/** After an ending that failed. */
const POSTPONED_MS = 60_000
const NO_TIME = timeBytes(0)
/** How a key begins: with the time, then the kind. */
export const TIME_BYTES = 6
