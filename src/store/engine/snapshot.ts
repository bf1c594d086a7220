/** One moment of a store, for readers of all of it. */

import type { Database as LmdbTable, Transaction } from 'lmdb'
import { rangeOf } from './keys.ts'
import type { Row } from './store.ts'
import type { Key } from './table.ts'

/** A table with its rows as they are stored. */
export type StoredTable = Pick<LmdbTable<Uint8Array, Key>, 'get' | 'getKeys' | 'getRange' | 'getStats'>

/** As long as it is not ended, writers can't use again what it still sees, and the file grows. */
export class Snapshot {
  readonly #transaction: Transaction

  constructor(transaction: Transaction) {
    this.#transaction = transaction
  }

  /** A copy of the value. */
  read(table: StoredTable, key: Key): Uint8Array | undefined {
    return table.get(key, { transaction: this.#transaction })
  }

  keys(table: StoredTable): Iterable<Key> {
    return table.getKeys({ transaction: this.#transaction })
  }

  /** Keys and copies of values, in order: all of them, or those whose key begins with `prefix`. */
  rows(table: StoredTable, prefix?: Uint8Array): Iterable<Row<Uint8Array, Key>> {
    const range = prefix === undefined ? {} : rangeOf(prefix)
    return table.getRange({ ...range, transaction: this.#transaction })
  }

  end(): void {
    this.#transaction.done()
  }
}
