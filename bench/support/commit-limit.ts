/**
 * Program, the limit of operations that write: LMDB alone, committing rows of the same sizes in as many transactions,
 * with as many operations at a time.
 */

import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { type Database, open, type RootDatabase } from 'lmdb'
import { serveParent } from './program.ts'
import type { RowSize } from './store-rows.ts'

export interface CommitLimitProtocol {
  /** The writes of each transaction of one operation, in their order. */
  readonly setup: { readonly folder: string; readonly transactions: readonly (readonly RowSize[])[] }
  readonly request: { readonly operations: number; readonly inFlight: number }
  readonly answer: { readonly perSecond: number }
}

serveParent<CommitLimitProtocol>(async ({ folder, transactions }) => {
  const environment = open({ path: join(folder, 'store'), overlappingSync: false, maxDbs: 64 })
  const writes = transactions.map(rows => rows.map(row => new BareTable(environment, row)))
  return async ({ operations, inFlight }) => {
    let next = 0
    const startedAt = performance.now()
    const operateUntilEnd = async () => {
      while (next++ < operations) {
        for (const tables of writes) {
          await environment.transaction(() => {
            for (const table of tables) table.write()
          })
        }
      }
    }
    await Promise.all(Array.from({ length: inFlight }, operateUntilEnd))
    return { perSecond: (operations * 1000) / (performance.now() - startedAt) }
  }
})

/** Puts rows under random keys, and removes some of them again where the operation removes rows. */
class BareTable {
  readonly #table: Database<Uint8Array, Uint8Array>
  readonly #row: RowSize
  readonly #value: Uint8Array
  readonly #keys: Uint8Array[] = []

  constructor(environment: RootDatabase, row: RowSize) {
    this.#table = environment.openDB(row.table, { encoding: 'binary', keyEncoding: 'binary' })
    this.#row = row
    this.#value = randomBytes(row.valueBytes)
  }

  write(): void {
    const { puts, removes, keyBytes } = this.#row
    for (let at = 0; at < puts; at++) {
      const key = randomBytes(keyBytes)
      this.#table.put(key, this.#value)
      if (this.#keys.length < KEYS_KEPT) this.#keys.push(key)
    }
    for (let at = 0; at < removes; at++) {
      const key = this.#keys.pop()
      if (key !== undefined) this.#table.remove(key)
    }
  }
}

const KEYS_KEPT = 10_000
