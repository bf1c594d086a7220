/** Damage to a stored log, row by row, below everything that would refuse to write it. */

import { LOG_TABLES } from '../../src/keyserver/log-store.ts'
import { type BytesTable, Database, type RecordTable } from '../../src/store/engine/database.ts'

export type TableName = (typeof LOG_TABLES)[keyof typeof LOG_TABLES]
/** A binary key, or the text key of a record. */
export type RowKey = Uint8Array | string

export class RawTables {
  readonly database: Database
  readonly #rows: ReadonlyMap<string, BytesTable>
  readonly #records: ReadonlyMap<string, RecordTable<Uint8Array>>

  private constructor(database: Database) {
    const { head, maker, ...rows } = LOG_TABLES
    this.database = database
    this.#rows = new Map(Object.values(rows).map(name => [name, database.bytesTable(name)]))
    this.#records = new Map([head, maker].map(name => [name, database.recordBytesTable(name)]))
  }

  static open(dataFolder: string): RawTables {
    return new RawTables(Database.open(dataFolder))
  }

  /** The tables of a store that is open already. */
  static of(database: Database): RawTables {
    return new RawTables(database)
  }

  keys(table: TableName): RowKey[] {
    const records = this.#records.get(table)
    return records === undefined ? [...this.#rows.get(table)!.getKeys()] : [...records.getKeys()]
  }

  get(table: TableName, key: RowKey): Buffer | undefined {
    const value =
      typeof key === 'string' ? this.#records.get(table)!.get(key) : this.#rows.get(table)!.get(key)
    return value === undefined ? undefined : Buffer.from(value)
  }

  put(table: TableName, key: RowKey, value: Uint8Array): Promise<void> {
    return this.database.commit(() => {
      if (typeof key === 'string') this.#records.get(table)!.put(key, value)
      else this.#rows.get(table)!.put(key, value)
    })
  }

  remove(table: TableName, key: RowKey): Promise<void> {
    return this.database.commit(() => {
      if (typeof key === 'string') this.#records.get(table)!.remove(key)
      else this.#rows.get(table)!.remove(key)
    })
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

/** The key as a report writes it. */
export function nameOfKey(table: TableName, key: RowKey): string {
  if (typeof key === 'string') return key
  const bytes = Buffer.from(key)
  if (table === LOG_TABLES.tiles) return `${bytes[0]}/${bytes.readUIntBE(1, 6)}`
  return bytes.readUIntBE(0, 6).toString(table === LOG_TABLES.lookup ? 16 : 10)
}
