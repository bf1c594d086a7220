/** A store as the copy of a ledger of changes: its rows, and how far it has come, are written together. */

import { ABORT, type Database as LmdbTable, type RootDatabase, TransactionFlags } from 'lmdb'
import type { WrittenRow } from './change-ledger.ts'
import { bufferOf } from './lmdb-change.ts'
import { writing } from './lmdb-writes.ts'
import type { OpenTables } from './open-tables.ts'
import { count, flag, object, type RowOf } from './row-form.ts'
import { DESCRIBED_TABLES, type Key, textKeyTable } from './table.ts'

/** How far a copy of a ledger has come. */
export type CopyState = RowOf<typeof COPY_STATE_ROW>
const COPY_STATE_ROW = object({
  /** The last change's; 0 where there was none. */
  number: count,
  epoch: count,
  /** Whether rows of a snapshot are still missing. */
  isFilling: flag,
})

export const COPY_STATE = textKeyTable('copy-state', '`state`', COPY_STATE_ROW, {
  holds: 'how far it has come',
  remedy: 'remove the store of this node: it is filled anew from the ledger',
})
export const STATE_KEY = 'state'

/** The rows of a table as LMDB has them, under keys of the table's own kind. */
interface WrittenTable {
  readonly rows: LmdbTable<Uint8Array, Key>
  readonly keyOf: (key: Uint8Array) => Key
}

export class LedgerCopy {
  /** Whether writes may be in the kernel's memory alone. */
  isUnsynced = false
  readonly #environment: RootDatabase
  readonly #tables: OpenTables
  /** Those that were written so far. */
  readonly #written = new Map<string, WrittenTable>()

  constructor(environment: RootDatabase, tables: OpenTables) {
    this.#environment = environment
    this.#tables = tables
  }

  /** Resolves when that is durable. */
  async forget(): Promise<void> {
    await this.#states.remove(STATE_KEY)
  }

  /**
   * Resolves when all of it is durable, or the kernel has it where it is unsynced. Rejects with what LMDB failed over; then
   * nothing of it is there.
   */
  async write(rows: readonly WrittenRow[], state: CopyState): Promise<void> {
    const tables = this.#written
    // A table can't be opened within the transaction.
    for (const { table } of rows) if (!tables.has(table)) tables.set(table, this.#open(table))
    const states = this.#states
    let fault: unknown
    const writeAll = () => {
      for (const { table, key, value } of rows) {
        const { rows, keyOf } = tables.get(table)!
        if (value === undefined) rows.remove(keyOf(key))
        else rows.put(keyOf(key), bufferOf(value))
      }
      states.put(STATE_KEY, state)
    }
    // Without a sync LMDB's own thread is not worth the way there.
    if (this.isUnsynced) return this.#environment.transactionSync(writeAll, UNSYNCED)
    const transaction = this.#environment.transaction(() =>
      // LMDB can take back a child alone.
      this.#environment.childTransaction(() => {
        try {
          writeAll()
          return undefined
        } catch (error) {
          fault = error
          return ABORT
        }
      }),
    )
    await writing(transaction)
    if (fault !== undefined) throw fault
  }

  /**
   * lmdb-js compares text keys four octets at a time and reads beyond shorter ones, which it therefore pads with zeros. It pads
   * no key of octets, and would put those in a wrong order into a table that is open under texts.
   */
  #open(name: string): WrittenTable {
    const isText = DESCRIBED_TABLES.find(table => table.name === name)?.keys === 'text'
    return isText
      ? { rows: this.#tables.raw(name, 'text'), keyOf: key => bufferOf(key).toString() }
      : { rows: this.#tables.raw(name), keyOf: bufferOf }
  }

  /** Opened late: a damaged store that is opened for reading could end the process. */
  get #states(): LmdbTable<unknown, string> {
    return this.#tables.open(COPY_STATE)?.lmdb as LmdbTable<unknown, string>
  }
}

const UNSYNCED = TransactionFlags.SYNCHRONOUS_COMMIT | TransactionFlags.NO_SYNC_FLUSH
