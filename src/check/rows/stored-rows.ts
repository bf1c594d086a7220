/**
 * The rows of a store at one moment, decoded and without any rule, for a check to read. A missing table reads as empty,
 * and no row is missed in it.
 */

import type { Encoder } from 'msgpackr'
import { BLOCK_RECORDS, RECORD_BYTES, readRecord } from '../../keyserver/identity-table.ts'
import { LOG_TABLES } from '../../keyserver/log-store.ts'
import { parseEntry } from '../../log/entry.ts'
import { entryInBundle, TILE_WIDTH } from '../../log/tile.ts'
import { lengthsOf } from '../../store/engine/key-parts.ts'
import { indexKey } from '../../store/engine/keys.ts'
import type { LmdbStore } from '../../store/engine/lmdb-store.ts'
import { rowEncoder } from '../../store/engine/open-tables.ts'
import type { Snapshot, StoredTable } from '../../store/engine/snapshot.ts'

import type { AnyTable, OtherRows } from '../../store/engine/table.ts'

/** The value of a row that can't be decoded, or is not of its form. */
export const UNREADABLE = Symbol('unreadable')

export interface StoredRow {
  readonly key: Buffer
  /** `UNREADABLE` where it has not its table's form. */
  readonly value: unknown
}

interface OpenTable {
  readonly table: AnyTable
  readonly rows: StoredTable
  readonly keyLengths: ReturnType<typeof lengthsOf>
  encoder: Encoder
}

/** The key in an entry of the log, and its owner. */
export interface LoggedKey {
  readonly userId: bigint
  readonly deviceId: bigint
  readonly publicKey: string
  readonly vrfHash: Uint8Array
}

export class StoredRows implements OtherRows {
  readonly #database: LmdbStore
  readonly #tables: ReadonlyMap<string, OpenTable>
  readonly #snapshot: Snapshot
  readonly #bundles: StoredTable | undefined
  readonly #identities: StoredTable | undefined

  /** `end` lets go of the moment that is read. */
  constructor(database: LmdbStore, tables: Iterable<AnyTable>) {
    this.#database = database
    const names = new Set(database.tableNames())
    const known = [...tables].filter(({ name }) => names.has(name))
    this.#tables = new Map(known.map(table => [table.name, openTable(database, table)]))
    const bytesOf = (name: string) => (names.has(name) ? database.storedRows(name) : undefined)
    this.#bundles = bytesOf(LOG_TABLES.bundles)
    this.#identities = bytesOf(LOG_TABLES.identities)
    this.#snapshot = database.snapshot()
  }

  /** How many rows each existing table has, the smallest first. */
  sizes(): ReadonlyMap<string, number> {
    const sized = [...this.#tables].map(([name, { rows }]) => [name, this.#database.rowCount(rows)] as const)
    return new Map(sized.sort(([, one], [, other]) => one - other))
  }

  /** The rows of a table, in order, as many as begin with `prefix`. */
  *rows(name: string, prefix?: Uint8Array): Iterable<StoredRow> {
    const table = this.#tables.get(name)
    if (table === undefined) return
    for (const row of this.#snapshot.rows(table.rows, prefix)) {
      const key = bufferOf(row.key)
      yield { key, value: decoded(table, key, row.value) }
    }
  }

  *keys(name: string): Iterable<Buffer> {
    const table = this.#tables.get(name)
    if (table === undefined) return
    for (const key of this.#snapshot.keys(table.rows)) yield bufferOf(key)
  }

  /** Whether there is such a row, readable or not. True where there is no such table. */
  has(name: string, key: Uint8Array): boolean {
    const table = this.#tables.get(name)
    return table === undefined || this.#snapshot.read(table.rows, key) !== undefined
  }

  /**
   * Whether there is such a row and this is so. True where it can't be told: of a row that is unreadable, which is
   * said of that one, and where there is no such table.
   */
  holds<Value>(name: string, key: Uint8Array, isSo: (value: Value) => boolean): boolean {
    const table = this.#tables.get(name)
    if (table === undefined) return true
    const bytes = this.#snapshot.read(table.rows, key)
    if (bytes === undefined) return false
    const value = decoded(table, key, bytes)
    return value === UNREADABLE || isSo(value as Value)
  }

  /** Undefined for an entry that is missing or unreadable, which the log's own check reports. */
  loggedKey(index: number): LoggedKey | undefined {
    try {
      const block =
        this.#identities && this.#snapshot.read(this.#identities, indexKey(Math.floor(index / BLOCK_RECORDS)))
      const bundle =
        this.#bundles && this.#snapshot.read(this.#bundles, indexKey(Math.floor(index / TILE_WIDTH)))
      const at = (index % BLOCK_RECORDS) * RECORD_BYTES
      if (block === undefined || bundle === undefined || at + RECORD_BYTES > block.length) return undefined
      const { userId, deviceId } = readRecord(block, at)
      return { userId, deviceId, ...parseEntry(entryInBundle(bundle, index % TILE_WIDTH)) }
    } catch {
      return undefined
    }
  }

  end(): void {
    this.#snapshot.end()
  }
}

function openTable(database: LmdbStore, table: AnyTable): OpenTable {
  const { name, keys, key, shapes } = table
  const rows = database.storedRows(name, keys)
  return { table, rows, keyLengths: lengthsOf(key), encoder: rowEncoder(shapes) }
}

function decoded(open: OpenTable, key: Uint8Array, bytes: Uint8Array): unknown {
  const { codec, shapes, row } = open.table
  const [least, most] = open.keyLengths
  if (key.length < least || key.length > most) return UNREADABLE
  try {
    const value: unknown = codec === 'bytes' ? bytes : open.encoder.decode(bytes)
    if (row.fits(value)) return value
  } catch {
    // Said below.
  }
  // Bytes that are no row may have taught it shapes.
  open.encoder = rowEncoder(shapes)
  return UNREADABLE
}

function bufferOf(key: Uint8Array | string): Buffer {
  if (Buffer.isBuffer(key)) return key
  return typeof key === 'string' ? Buffer.from(key) : Buffer.from(key.buffer, key.byteOffset, key.length)
}
