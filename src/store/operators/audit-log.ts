/** The record of every change that was asked for by the server API, written in the same change as what it tells of. */

import { EXPIRY, type Expiries } from '../engine/expiries.ts'
import { timeBytes } from '../engine/keys.ts'
import type { Change, View } from '../engine/store.ts'
import { AUDIT, type AuditRow } from './operator-tables.ts'

/** A row with its place: `key` names it to pages. */
export interface AuditEntry extends AuditRow {
  readonly atMs: number
  readonly key: Uint8Array
}

export interface AuditRange {
  /** Milliseconds since 1970. */
  readonly sinceMs: number
  /** The last row of the page before. */
  readonly after?: Uint8Array | undefined
  readonly limit: number
}

export class AuditLog {
  readonly #expiries: Expiries
  readonly #randomBytes: (length: number) => Uint8Array
  readonly #keptMs: number

  /** Rows are kept for `keptMs`. */
  constructor(
    {
      expiries,
      randomBytes,
    }: { readonly expiries: Expiries; readonly randomBytes: (length: number) => Uint8Array },
    keptMs: number,
  ) {
    this.#expiries = expiries
    this.#randomBytes = randomBytes
    this.#keptMs = keptMs
    expiries.define(EXPIRY.audit, (change, key) => this.#onDue(change, key))
  }

  add(change: Change, row: AuditRow): void {
    const key = Buffer.concat([timeBytes(change.nowMs), this.#randomBytes(6)])
    change.put(AUDIT, key, row)
    this.#expiries.add(change, EXPIRY.audit, change.nowMs + this.#keptMs, key)
  }

  /** Oldest first. */
  read(view: View, { sinceMs, after, limit }: AuditRange): AuditEntry[] {
    const start = after === undefined ? timeBytes(sinceMs) : Buffer.concat([after, Uint8Array.of(0)])
    const rows = view.range(AUDIT, { start, limit })
    return [...rows].map(({ key, value }) => ({ ...value, atMs: timeOf(key), key: Uint8Array.from(key) }))
  }

  /** The settings may have another time by now. */
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
