/**
 * A log's tiles of hashes and bundles of entries, in two tables of the store. Bytes handed out by `...Volatile` methods live in
 * LMDB's read buffer until the next read; everything else is the caller's own.
 */

import { TILE_INTERIORS_MAX } from '../limits.ts'
import { HASH_BYTES, type Hash } from '../log/hash.ts'
import { TileInterior } from '../log/interior.ts'
import { entryInBundle, TILE_HEIGHT, TILE_WIDTH } from '../log/tile.ts'
import type { Node } from '../log/tree.ts'
import { BoundedCache } from '../store/engine/bounded-cache.ts'
import { indexKey, tileKey } from '../store/engine/keys.ts'
import type { ReadStore } from '../store/engine/store.ts'
import type { Table } from '../store/engine/table.ts'
import { damaged } from './right-edge.ts'

export interface TiledTables {
  readonly tiles: Table<Uint8Array>
  readonly bundles: Table<Uint8Array>
}

/** A tile while nodes of it are read; its bytes live until the next read of the store. */
interface OpenTile {
  readonly level: number
  readonly index: number
  readonly interior: TileInterior
  readonly bytes: Uint8Array
}

export class TiledLog {
  readonly #store: Pick<ReadStore, 'view'>
  readonly #tables: TiledTables
  readonly #interiors = new BoundedCache<number, TileInterior>(TILE_INTERIORS_MAX)

  constructor(store: Pick<ReadStore, 'view'>, tables: TiledTables) {
    this.#store = store
    this.#tables = tables
  }

  /** The first `width` hashes of a tile, 32 bytes each, until the next read. Throws `CHECKPOINT_INVALID`. */
  tileVolatile(level: number, index: number, width: number): Uint8Array {
    return viewOf(this.#readTile(level, index), width * HASH_BYTES)
  }

  /** The first `width` entries of a bundle with their length prefixes, until the next read. */
  bundleVolatile(index: number, width: number): Uint8Array {
    const bytes = this.readBundle(index)
    return viewOf(bytes, width === TILE_WIDTH ? bytes.length : endOfEntry(bytes, width - 1))
  }

  /** The entry at a committed leaf index, until the next read. Throws `CHECKPOINT_INVALID` when it is not there. */
  entryVolatile(index: number): Uint8Array {
    return entryInBundle(this.readBundle(Math.floor(index / TILE_WIDTH)), index % TILE_WIDTH)
  }

  /** Hashes of complete subtrees within the committed tree (the `ReadHashes` of `log/tree.ts`); copies. */
  readonly readHashes = (nodes: readonly Node[]): Hash[] => {
    let tile: OpenTile | undefined
    return nodes.map(node => {
      const level = Math.floor(node.level / TILE_HEIGHT)
      const levelInside = node.level % TILE_HEIGHT
      const nodesInTile = TILE_WIDTH >> levelInside
      const index = Math.floor(node.index / nodesInTile)
      // A path has up to eight nodes of one tile, one after the other.
      if (tile?.level !== level || tile.index !== index) tile = this.#openTile(level, index)
      const position = node.index % nodesInTile
      if (((position + 1) << levelInside) * HASH_BYTES > tile.bytes.length) {
        throw damaged(`tile ${level}/${index} has ${tile.bytes.length} bytes`)
      }
      return tile.interior.hash(tile.bytes, levelInside, position)
    })
  }

  /** A whole bundle as it is stored, until the next read. */
  protected readBundle(index: number): Buffer {
    const bytes = this.#store.view(view => view.getVolatile(this.#tables.bundles, indexKey(index)))
    if (bytes === undefined) throw damaged(`entry bundle ${index} is missing`)
    return bytes
  }

  #openTile(level: number, index: number): OpenTile {
    const key = index * TILE_LEVELS + level
    let interior = this.#interiors.get(key)
    if (interior === undefined) {
      interior = new TileInterior()
      this.#interiors.set(key, interior)
    }
    return { level, index, interior, bytes: this.#readTile(level, index) }
  }

  #readTile(level: number, index: number): Uint8Array {
    const bytes = this.#store.view(view => view.getVolatile(this.#tables.tiles, tileKey(level, index)))
    if (bytes === undefined) throw damaged(`tile ${level}/${index} is missing`)
    return bytes
  }
}

/** lmdb-js hands out its whole read buffer under a length of its own; this is really as long as it says. */
function viewOf(bytes: Uint8Array, length: number): Uint8Array {
  if (length > bytes.length) throw damaged(`a tile or bundle has ${bytes.length} of ${length} bytes`)
  return new Uint8Array(bytes.buffer, bytes.byteOffset, length)
}

function endOfEntry(bundle: Uint8Array, position: number): number {
  const entry = entryInBundle(bundle, position)
  return entry.byteOffset + entry.length - bundle.byteOffset
}

/** Levels a tile may have (c2sp.org/tlog-tiles). */
const TILE_LEVELS = 64
