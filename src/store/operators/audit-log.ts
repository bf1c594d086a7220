/** The record of every change that was asked for by the server API, written in the same change as what it tells of. */

import { EXPIRY, type Expiries } from '../engine/expiries.ts'
import { indexKey, keyBehind, timeBytes } from '../engine/keys.ts'
import type { Change, View } from '../engine/store.ts'
import { AUDIT, type AuditRow } from './operator-tables.ts'

/** A row with its place: `key` names it to pages. */
export interface AuditEntry extends AuditRow {
  readonly atMs: number
  readonly key: Uint8Array
}

export interface AuditRange {
  /** Milliseconds since 1970: no older rows. */
  readonly sinceMs: number
  /** The last row of the page before. */
  readonly after?: Uint8Array | undefined
  readonly limit: number
}

export class AuditLog {
  readonly #expiries: Expiries
  readonly #keptMs: number

  /** Rows are kept for `keptMs`. */
  constructor({ expiries }: { readonly expiries: Expiries }, keptMs: number) {
    this.#expiries = expiries
    this.#keptMs = keptMs
    expiries.define(EXPIRY.audit, (change, key) =>
      OVERDUE.equals(key) ? this.#endOverdue(change) : this.#onDue(change, key),
    )
  }

  add(change: Change, row: AuditRow): void {
    const key = this.#nextKey(change)
    change.put(AUDIT, key, row)
    this.#expiries.add(change, EXPIRY.audit, change.nowMs + this.#keptMs, key)
  }

  /** Behind the rows of the same millisecond, so that they stay in their order. */
  #nextKey(change: Change): Uint8Array {
    const time = timeBytes(change.nowMs)
    const [last] = change.keys(AUDIT, { start: keyBehind(time), end: time, reverse: true, limit: 1 })
    return Buffer.concat([time, indexKey(last === undefined ? 0 : countOf(last) + 1)])
  }

  /** Newest first. */
  read(view: View, { sinceMs, after, limit }: AuditRange): AuditEntry[] {
    const range = { start: after ?? BEHIND_ALL, end: timeBytes(sinceMs), reverse: true, limit: limit + 1 }
    // Read backwards, the start belongs to the range.
    const rows = [...view.range(AUDIT, range)].filter(({ key }) => !after || Buffer.compare(key, after) !== 0)
    const entryOf = ({ key, value }: (typeof rows)[number]) => ({
      ...value,
      atMs: timeOf(key),
      key: Uint8Array.from(key),
    })
    return rows.slice(0, limit).map(entryOf)
  }

  /** Has the next sweep end rows that an earlier, longer setting would keep. */
  applyRetention(change: Change): void {
    if (this.#overdue(change, 1).length > 0) this.#expiries.add(change, EXPIRY.audit, change.nowMs, OVERDUE)
  }

  #endOverdue(change: Change): number | undefined {
    const overdue = this.#overdue(change, ENDED_AT_ONCE)
    for (const key of overdue) change.remove(AUDIT, key)
    return overdue.length < ENDED_AT_ONCE ? undefined : change.nowMs
  }

  #overdue(change: Change, limit: number): Uint8Array[] {
    return [...change.keys(AUDIT, { end: timeBytes(change.nowMs - this.#keptMs), limit })]
  }

  /** A longer setting gives the row a later ending. */
  #onDue(change: Change, key: Uint8Array): number | undefined {
    const endsAtMs = timeOf(key) + this.#keptMs
    if (endsAtMs > change.nowMs) return endsAtMs
    change.remove(AUDIT, key)
    return undefined
  }
}

function timeOf(key: Uint8Array): number {
  return Buffer.from(key.buffer, key.byteOffset, key.length).readUIntBE(0, 6)
}

function countOf(key: Uint8Array): number {
  return Buffer.from(key.buffer, key.byteOffset, key.length).readUIntBE(6, 6)
}

const BEHIND_ALL = Buffer.alloc(13, 0xff)
/** Key of the ending for rows past a shortened setting: as long as a row's, and no row's. */
const OVERDUE = Buffer.alloc(12)
/** Rows ended in one change: a few milliseconds. */
const ENDED_AT_ONCE = 500
