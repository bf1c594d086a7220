/**
 * Extends a log by a batch of entries: what c2sp.org/tlog-tiles calls integration. Pure: it is given the right edge
 * of the tree and returns the tiles, entry bundles and root that the larger tree needs. Storing them and signing the
 * root is the log appender's business.
 */

import { HASH_BYTES, type Hash, hashLeaf } from './hash.ts'
import { BUNDLE_ENTRY_BYTES_MAX, TILE_HEIGHT, TILE_WIDTH } from './tile.ts'
import type { RightEdge } from './tree.ts'

/** A hash tile as wide as the tree now makes it; a narrower partial tile is its prefix. */
export interface GrownTile {
  readonly level: number
  readonly index: number
  readonly bytes: Uint8Array
}

/** An entry bundle as long as the tree now makes it. */
export interface GrownBundle {
  readonly index: number
  readonly bytes: Uint8Array
}

/** One batch's additions. The byte arrays belong to the receiver and are never written again. */
export interface Integration {
  readonly treeSize: number
  readonly rootHash: Hash
  /** The complete subtrees of the new tree, largest first. */
  readonly roots: readonly Hash[]
  readonly tiles: readonly GrownTile[]
  readonly bundles: readonly GrownBundle[]
}

/** The partial tile of each level (absent or empty where the level is full or not begun) and the partial bundle. */
export interface TailBytes {
  readonly edge: RightEdge
  readonly tiles: readonly (Uint8Array | undefined)[]
  readonly bundle: Uint8Array | undefined
}

export class TreeTail {
  readonly #edge: RightEdge
  readonly #tiles: TailTile[] = []
  #bundle: TailBundle

  constructor({ edge, tiles, bundle }: TailBytes) {
    this.#edge = edge
    let complete = edge.treeSize
    for (const bytes of tiles) {
      this.#tiles.push(new TailTile(this.#tiles.length, Math.floor(complete / TILE_WIDTH), bytes))
      complete = Math.floor(complete / TILE_WIDTH)
    }
    this.#bundle = new TailBundle(Math.floor(edge.treeSize / TILE_WIDTH), bundle)
  }

  get treeSize(): number {
    return this.#edge.treeSize
  }

  rootHash(): Hash {
    return this.#edge.rootHash()
  }

  /**
   * Appends `entries` in order. Returns the tiles and bundles to store, with the new root. After a failed write the
   * tail is ahead of the store and must be thrown away.
   */
  integrate(entries: readonly Uint8Array[]): Integration {
    const tiles: GrownTile[] = []
    const bundles: GrownBundle[] = []
    const onNode = (level: number, hash: Hash) => {
      if (level % TILE_HEIGHT === 0) this.#appendHash(level / TILE_HEIGHT, hash, tiles)
    }
    for (const entry of entries) {
      this.#appendEntry(entry, bundles)
      const leafHash = hashLeaf(entry)
      this.#appendHash(0, leafHash, tiles)
      this.#edge.append(leafHash, onNode)
    }
    for (const tile of this.#tiles) if (tile.isGrown) tiles.push(tile.snapshot())
    if (this.#bundle.isGrown) bundles.push(this.#bundle.snapshot())
    return {
      treeSize: this.#edge.treeSize,
      rootHash: this.#edge.rootHash(),
      roots: this.#edge.roots.slice(),
      tiles,
      bundles,
    }
  }

  #appendHash(level: number, hash: Hash, tiles: GrownTile[]): void {
    const tile = this.#tiles[level] ?? new TailTile(level, 0, undefined)
    this.#tiles[level] = tile
    tile.append(hash)
    if (tile.isFull) {
      tiles.push(tile.snapshot())
      this.#tiles[level] = new TailTile(level, tile.index + 1, undefined)
    }
  }

  #appendEntry(entry: Uint8Array, bundles: GrownBundle[]): void {
    this.#bundle.append(entry)
    if (this.#bundle.isFull) {
      bundles.push(this.#bundle.snapshot())
      this.#bundle = new TailBundle(this.#bundle.index + 1, undefined)
    }
  }
}

class TailTile {
  readonly level: number
  readonly index: number
  readonly #bytes = new Uint8Array(TILE_WIDTH * HASH_BYTES)
  #length = 0
  #storedLength = 0

  constructor(level: number, index: number, bytes: Uint8Array | undefined) {
    this.level = level
    this.index = index
    if (bytes !== undefined) this.#bytes.set(bytes)
    this.#length = bytes?.length ?? 0
    this.#storedLength = this.#length
  }

  get isFull(): boolean {
    return this.#length === this.#bytes.length
  }

  get isGrown(): boolean {
    return this.#length > this.#storedLength
  }

  append(hash: Hash): void {
    this.#bytes.set(hash, this.#length)
    this.#length += HASH_BYTES
  }

  snapshot(): GrownTile {
    this.#storedLength = this.#length
    const bytes = this.isFull ? this.#bytes : this.#bytes.slice(0, this.#length)
    return { level: this.level, index: this.index, bytes }
  }
}

class TailBundle {
  readonly index: number
  #bytes: Uint8Array
  #length = 0
  #storedLength = 0
  #entries = 0

  constructor(index: number, bytes: Uint8Array | undefined) {
    this.index = index
    this.#bytes = new Uint8Array(BUNDLE_BYTES_USUAL)
    if (bytes === undefined) return
    this.#reserve(bytes.length)
    this.#bytes.set(bytes)
    this.#length = bytes.length
    this.#storedLength = bytes.length
    this.#entries = countEntries(bytes)
  }

  get isFull(): boolean {
    return this.#entries === TILE_WIDTH
  }

  get isGrown(): boolean {
    return this.#length > this.#storedLength
  }

  append(entry: Uint8Array): void {
    if (entry.length > BUNDLE_ENTRY_BYTES_MAX) {
      throw new RangeError(`entry of ${entry.length} bytes exceeds ${BUNDLE_ENTRY_BYTES_MAX}`)
    }
    this.#reserve(this.#length + 2 + entry.length)
    this.#bytes[this.#length] = entry.length >> 8
    this.#bytes[this.#length + 1] = entry.length & 0xff
    this.#bytes.set(entry, this.#length + 2)
    this.#length += 2 + entry.length
    this.#entries++
  }

  snapshot(): GrownBundle {
    this.#storedLength = this.#length
    return { index: this.index, bytes: this.#bytes.slice(0, this.#length) }
  }

  #reserve(length: number): void {
    if (length <= this.#bytes.length) return
    const grown = new Uint8Array(Math.max(length, 2 * this.#bytes.length))
    grown.set(this.#bytes.subarray(0, this.#length))
    this.#bytes = grown
  }
}

function countEntries(bundle: Uint8Array): number {
  let entries = 0
  for (let at = 0; at < bundle.length; entries++) at += 2 + ((bundle[at]! << 8) | bundle[at + 1]!)
  return entries
}

/** 256 entries with a 32-byte key each. */
const BUNDLE_BYTES_USUAL = TILE_WIDTH * 136
