/** A store as the copy of a ledger of changes: its rows, and how far it has come, are written together. */

import { ABORT, type Database as LmdbTable, type RootDatabase, TransactionFlags } from 'lmdb'
import type { WrittenRow } from './change-ledger.ts'
import { bufferOf } from './lmdb-change.ts'
import { writing } from './lmdb-writes.ts'
import type { OpenTables } from './open-tables.ts'
import { count, flag, object, type RowOf } from './row-form.ts'
import { textKeyTable } from './table.ts'

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

export class LedgerCopy {
  /** Whether writes may be in the kernel's memory alone. */
  isUnsynced = false
  readonly #environment: RootDatabase
  readonly #tables: OpenTables
  /** Those that were written so far: their rows as LMDB has them. */
  readonly #written = new Map<string, LmdbTable<Uint8Array, Uint8Array>>()

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
    for (const { table } of rows) if (!tables.has(table)) tables.set(table, this.#tables.raw(table))
    const states = this.#states
    let fault: unknown
    const writeAll = () => {
      for (const { table, key, value } of rows) {
        if (value === undefined) tables.get(table)!.remove(key)
        else tables.get(table)!.put(key, bufferOf(value))
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

  /** Opened late: a damaged store that is opened for reading could end the process. */
  get #states(): LmdbTable<unknown, string> {
    return this.#tables.open(COPY_STATE)?.lmdb as LmdbTable<unknown, string>
  }
}

const UNSYNCED = TransactionFlags.SYNCHRONOUS_COMMIT | TransactionFlags.NO_SYNC_FLUSH
