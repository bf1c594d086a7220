/** What operations leave in a store: read from the running server's own, so that it is never another operation's. */

import { LmdbStore } from '../../src/store/engine/lmdb-store.ts'

/** What one operation writes to one table. */
export interface RowSize {
  readonly table: string
  readonly puts: number
  readonly removes: number
  readonly keyBytes: number
  readonly valueBytes: number
}

interface TableSize {
  readonly rows: number
  readonly keyBytes: number
  readonly valueBytes: number
}

/** Rows and bytes of every table under binary keys. */
export type StoreSize = ReadonlyMap<string, TableSize>

export async function readStoreSize(dataFolder: string): Promise<StoreSize> {
  const database = LmdbStore.openReadOnly(dataFolder)
  try {
    const names = database.tableNames().filter(name => !TABLES_WITH_TEXT_KEYS.has(name))
    return new Map(names.map(name => [name, sizeOf(database, name)]))
  } finally {
    await database.close()
  }
}

/**
 * What each of `operations` has written between the two. Tables that shrink have lost rows; rows that were written over
 * are not seen.
 */
export function rowsBetween(before: StoreSize, after: StoreSize, operations: number): RowSize[] {
  return [...after].flatMap(([table, now]) => {
    const then = before.get(table) ?? EMPTY
    const rows = now.rows - then.rows
    const puts = Math.round(Math.max(0, rows) / operations)
    const removes = Math.round(Math.max(0, -rows) / operations)
    if (puts === 0 && removes === 0) return []
    const { keyBytes, valueBytes } = meanBetween(then, now)
    return [{ table, puts, removes, keyBytes, valueBytes }]
  })
}

/** Bytes that a table has grown by for each operation, as one row: for tables whose rows hold many entries. */
export function bytesBetween(
  table: string,
  before: StoreSize,
  after: StoreSize,
  operations: number,
): RowSize[] {
  const grown = (after.get(table) ?? EMPTY).valueBytes - (before.get(table) ?? EMPTY).valueBytes
  const valueBytes = Math.round(grown / operations)
  return valueBytes <= 0 ? [] : [{ table, puts: 1, removes: 0, keyBytes: 8, valueBytes }]
}

function sizeOf(database: LmdbStore, name: string): TableSize {
  let [rows, keyBytes, valueBytes] = [0, 0, 0]
  for (const { key, value } of database.storedRows(name).getRange()) {
    rows++
    keyBytes += key.length
    valueBytes += value.length
  }
  return { rows, keyBytes, valueBytes }
}

function meanBetween(then: TableSize, now: TableSize): { keyBytes: number; valueBytes: number } {
  const rows = now.rows - then.rows
  const mean = (of: 'keyBytes' | 'valueBytes') => Math.max(1, Math.round((now[of] - then[of]) / rows))
  return { keyBytes: mean('keyBytes'), valueBytes: mean('valueBytes') }
}

const EMPTY: TableSize = { rows: 0, keyBytes: 0, valueBytes: 0 }
const TABLES_WITH_TEXT_KEYS = new Set(['log-head', 'log-maker', 'sms-dial-codes'])
