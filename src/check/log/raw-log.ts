/**
 * The tables of the log and of its index as stored, at one moment and without any rule, for a check to read. Values are copies. A missing
 * table reads as empty.
 */

import { INDEX_TABLES } from '../../keyserver/index/index-tables.ts'
import { LOG_TABLES } from '../../keyserver/log-store.ts'
import { indexKey, tileKey } from '../../store/engine/keys.ts'
import type { LmdbStore } from '../../store/engine/lmdb-store.ts'
import { rowEncoder } from '../../store/engine/open-tables.ts'
import type { Snapshot, StoredTable } from '../../store/engine/snapshot.ts'

export type TableName =
  | (typeof LOG_TABLES)[keyof typeof LOG_TABLES]
  | (typeof INDEX_TABLES)[keyof typeof INDEX_TABLES]
/** Tables of rows under binary keys. */
export type BytesName = Exclude<TableName, OneRowName>
/** Tables of a row or two under texts. */
export type OneRowName =
  | typeof LOG_TABLES.head
  | typeof LOG_TABLES.maker
  | typeof INDEX_TABLES.head
  | typeof INDEX_TABLES.state

/** The tiles and bundles of one of the two logs. */
export interface RawTiles {
  /** Where each is, and which check tells of faults in it. */
  readonly tilesAre: Place
  readonly entriesAre: Place
  tile(level: number, index: number): Uint8Array | undefined
  bundle(index: number): Uint8Array | undefined
  /** Every key of a table, in order. */
  keys(name: BytesName): Iterable<Uint8Array>
}

interface Place {
  readonly check: 'tiles' | 'entries' | 'index-tiles' | 'index-leaves'
  readonly table: BytesName
}

export class RawLog implements RawTiles {
  readonly tilesAre = { check: 'tiles', table: LOG_TABLES.tiles } as const
  readonly entriesAre = { check: 'entries', table: LOG_TABLES.bundles } as const
  /** The output log of the index. */
  readonly output: RawTiles = {
    tilesAre: { check: 'index-tiles', table: INDEX_TABLES.tiles },
    entriesAre: { check: 'index-leaves', table: INDEX_TABLES.bundles },
    tile: (level, index) => this.#row(INDEX_TABLES.tiles, tileKey(level, index)),
    bundle: index => this.#row(INDEX_TABLES.bundles, indexKey(index)),
    keys: name => this.keys(name),
  }
  readonly #rows: ReadonlyMap<BytesName, StoredTable>
  readonly #records: ReadonlyMap<OneRowName, StoredTable>
  readonly #snapshot: Snapshot

  /** `end` releases the moment. */
  constructor(database: LmdbStore) {
    const there = new Set(database.tableNames())
    const { head, maker, ...rows } = LOG_TABLES
    const { head: indexHead, state, ...indexRows } = INDEX_TABLES
    const records = [head, maker, indexHead, state].filter(name => there.has(name))
    this.#records = new Map(records.map(name => [name, database.storedRows(name, 'text')]))
    const names = [...Object.values(rows), ...Object.values(indexRows)].filter(name => there.has(name))
    this.#rows = new Map(names.map(name => [name, database.storedRows(name)]))
    this.#snapshot = database.snapshot()
  }

  /** A record decoded: anything at all, or undefined when there is none. Throws when it can't be decoded. */
  record(name: OneRowName, key: string): unknown {
    const bytes = this.recordBytes(name, key)
    return bytes && rowEncoder().decode(bytes)
  }

  recordBytes(name: OneRowName, key: string): Uint8Array | undefined {
    const table = this.#records.get(name)
    return table === undefined ? undefined : this.#snapshot.read(table, key)
  }

  recordKeys(name: OneRowName): Iterable<string> {
    const table = this.#records.get(name)
    return (table === undefined ? [] : this.#snapshot.keys(table)) as Iterable<string>
  }

  tile(level: number, index: number): Uint8Array | undefined {
    return this.#row(LOG_TABLES.tiles, tileKey(level, index))
  }

  bundle(index: number): Uint8Array | undefined {
    return this.#row(LOG_TABLES.bundles, indexKey(index))
  }

  identityBlock(index: number): Uint8Array | undefined {
    return this.#row(LOG_TABLES.identities, indexKey(index))
  }

  lookupNode(id: number): Uint8Array | undefined {
    return this.#row(LOG_TABLES.lookup, indexKey(id))
  }

  /** A row of the index's map. */
  mapRow(id: number): Uint8Array | undefined {
    return this.#row(INDEX_TABLES.rows, indexKey(id))
  }

  /** Every key of a table, in order. */
  keys(name: BytesName): Iterable<Uint8Array> {
    const table = this.#rows.get(name)
    return (table === undefined ? [] : this.#snapshot.keys(table)) as Iterable<Uint8Array>
  }

  end(): void {
    this.#snapshot.end()
  }

  #row(name: BytesName, key: Uint8Array): Uint8Array | undefined {
    const table = this.#rows.get(name)
    return table === undefined ? undefined : this.#snapshot.read(table, key)
  }
}
