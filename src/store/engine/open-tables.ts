/** The tables of an LMDB environment: each opened once, as it is described or as raw rows, and who watches their rows. */

import type { Database as LmdbTable, RootDatabase } from 'lmdb'
import { Encoder } from 'msgpackr'
import type { OpenTable } from './lmdb-change.ts'
import type { RowWatcher } from './store.ts'
import { DESCRIBED_TABLES, type Key, type Table } from './table.ts'

export class OpenTables {
  readonly #environment: RootDatabase
  readonly #open = new Map<Table<never, never>, OpenTable>()
  /** By table name: one table may have several descriptions. */
  readonly #watchers = new Map<string, RowWatcher[]>()

  constructor(environment: RootDatabase) {
    this.#environment = environment
  }

  /** Opens every table described so far, if it exists. */
  openAll(): void {
    for (const table of DESCRIBED_TABLES) this.open(table)
  }

  /** Undefined for a table that is not there, in an environment that is open for reading only. */
  open(table: Table<never, never>): OpenTable | undefined {
    const known = this.#open.get(table)
    if (known !== undefined) return known
    const { name, codec, keys, shapes } = table
    const isMsgpack = codec === 'msgpack'
    // lmdb-js takes an encoder, though its types do not say so.
    const lmdb = this.#environment.openDB<unknown, Key>(name, {
      ...(isMsgpack && keys === 'bytes' ? { encoder: rowEncoder(shapes) } : {}),
      ...(keys === 'text' ? { encoding: isMsgpack ? 'msgpack' : 'binary' } : {}),
      ...(keys === 'bytes' ? { keyEncoding: 'binary' } : {}),
      ...(keys === 'bytes' && !isMsgpack ? { encoding: 'binary' } : {}),
    }) as LmdbTable<unknown, Key> | undefined
    if (lmdb === undefined) return undefined
    const opened = { name, lmdb, watchers: this.watchersOf(name) }
    this.#open.set(table, opened)
    return opened
  }

  watchersOf(table: string): RowWatcher[] {
    const watchers = this.#watchers.get(table) ?? []
    this.#watchers.set(table, watchers)
    return watchers
  }

  /** The rows as they are stored, whatever they are. */
  raw<RowKey extends Key>(name: string, keys: 'bytes' | 'text' = 'bytes'): LmdbTable<Uint8Array, RowKey> {
    const keyEncoding = keys === 'bytes' ? { keyEncoding: 'binary' as const } : {}
    return this.#environment.openDB<Uint8Array, RowKey>(name, { encoding: 'binary', ...keyEncoding })
  }
}

/** Writes and reads the rows of a `table` of these shapes. */
export function rowEncoder(shapes: readonly (readonly string[])[] = []): Encoder {
  return new Encoder({
    copyBuffers: true,
    // Marked so, they are what they were again after a row that brings names of its own under the same position.
    structures: shapes.map(shape => Object.assign([...shape], { isShared: true })),
    maxSharedStructures: shapes.length,
  })
}
