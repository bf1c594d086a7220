/** Damage to a stored log, row by row, below everything that would refuse to write it. */

import type { TableName } from '../../src/check/log/raw-log.ts'
import { INDEX_TABLES } from '../../src/keyserver/index/index-tables.ts'
import { LOG_TABLES } from '../../src/keyserver/log-store.ts'
import { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import { storedTable } from './stored-table.ts'

/** A binary key, or the text key of a record. */
export type RowKey = Uint8Array | string

export class RawTables {
  readonly database: LmdbStore

  private constructor(database: LmdbStore) {
    this.database = database
  }

  static open(dataFolder: string): RawTables {
    return new RawTables(LmdbStore.open(dataFolder))
  }

  /** The tables of a store that is open already. */
  static of(database: LmdbStore): RawTables {
    return new RawTables(database)
  }

  keys(table: TableName): RowKey[] {
    return this.database.view(view => [...view.keys(described(table))])
  }

  get(table: TableName, key: RowKey): Buffer | undefined {
    const value = this.database.view(view => view.get(described(table), key))
    return value === undefined ? undefined : Buffer.from(value)
  }

  put(table: TableName, key: RowKey, value: Uint8Array): Promise<void> {
    return this.database.change(change => change.put(described(table), key, value))
  }

  remove(table: TableName, key: RowKey): Promise<void> {
    return this.database.change(change => change.remove(described(table), key))
  }

  /** Changes one byte of a row to another value; resolves with the row as it was. */
  async change(table: TableName, key: RowKey, offset: number, xor: number): Promise<Buffer> {
    const value = this.get(table, key)!
    const altered = Buffer.from(value)
    altered[offset]! ^= xor
    await this.put(table, key, altered)
    return value
  }

  close(): Promise<void> {
    return this.database.close()
  }
}

function described(table: TableName) {
  return storedTable<RowKey>(table, OF_RECORDS.has(table) ? 'text' : 'bytes')
}

/** The key as a report writes it. */
export function nameOfKey(table: TableName, key: RowKey): string {
  if (typeof key === 'string') return key
  const bytes = Buffer.from(key)
  if (table === LOG_TABLES.tiles || table === INDEX_TABLES.tiles)
    return `${bytes[0]}/${bytes.readUIntBE(1, 6)}`
  return bytes.readUIntBE(0, 6).toString(OF_IDS.has(table) ? 16 : 10)
}

const OF_RECORDS: ReadonlySet<TableName> = new Set([
  LOG_TABLES.head,
  LOG_TABLES.maker,
  INDEX_TABLES.head,
  INDEX_TABLES.state,
])
const OF_IDS: ReadonlySet<TableName> = new Set([LOG_TABLES.lookup, INDEX_TABLES.rows])
