/** What is counted for each address (contract 2.2): one row each, gone when nothing in it matters any more. */

import { addressIdentifier } from '../../domain/accounts/account.ts'
import type { Address } from '../../domain/accounts/challenge.ts'
import { type CodeCounts, countsEndMs, NO_COUNTS } from '../../domain/accounts/code-counts.ts'
import type { Database, Table } from '../engine/database.ts'
import { EXPIRY, type Expiries } from '../engine/expiries.ts'
import { textKey } from '../engine/keys.ts'

export class CodeCountTable {
  readonly #expiries: Expiries
  readonly #table: Table<CodeCounts>

  constructor(database: Database, expiries: Expiries) {
    this.#expiries = expiries
    this.#table = database.table('code-counts')
    expiries.define(EXPIRY.identifier, (key, nowMs) => this.#expire(key, nowMs))
  }

  read(address: Address): CodeCounts {
    return this.#table.get(keyOf(address)) ?? NO_COUNTS
  }

  /** In a transaction. */
  put(address: Address, counts: CodeCounts): void {
    const key = keyOf(address)
    const isNew = !this.#table.doesExist(key)
    this.#table.put(key, counts)
    if (isNew) this.#expiries.add(EXPIRY.identifier, countsEndMs(counts), key)
  }

  #expire(key: Uint8Array, nowMs: number): number | undefined {
    const counts = this.#table.get(key)
    if (counts === undefined) return undefined
    if (nowMs < countsEndMs(counts)) return countsEndMs(counts)
    this.#table.remove(key)
    return undefined
  }
}

function keyOf({ kind, key }: Address): Uint8Array {
  return textKey(addressIdentifier(kind, key))
}
