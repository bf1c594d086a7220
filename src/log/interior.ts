/**
 * The inner nodes of one hash tile (c2sp.org/tlog-tiles). A tile stores only its 256 bottom hashes; the seven levels
 * between them and the tile above are recomputed, and a proof needs one node of each. They are kept here, each
 * computed once, because a complete subtree never changes.
 *
 * Departure from the plain `hashInTile`: recomputing costs up to 127 hashes a node, 73 us a tile and proof;
 * kept nodes make it a copy (`bench/lookup.ts`).
 */

import { HASH_BYTES, type Hash, hashNodeAt } from './hash.ts'
import { TILE_HEIGHT, TILE_WIDTH } from './tile.ts'

export class TileInterior {
  // Levels 1 to 7, bottom level first: 128 + 64 + ... + 2 hashes.
  readonly #nodes = new Uint8Array((TILE_WIDTH - 2) * HASH_BYTES)
  #width = 0

  /**
   * The hash of the node at `level` (0 to 7, counted inside the tile) and `position` of a tile whose bottom hashes
   * are `tileBytes`, `width` of them. The result is a copy. Throws a RangeError when `tileBytes` does not cover it.
   */
  hash(tileBytes: Uint8Array, level: number, position: number): Hash {
    const width = tileBytes.length / HASH_BYTES
    if (level >= TILE_HEIGHT || (position + 1) << level > width) {
      throw new RangeError(`node ${level}/${position} is not in a tile of width ${width}`)
    }
    if (level === 0) return copyOf(tileBytes.subarray(position * HASH_BYTES, (position + 1) * HASH_BYTES))
    if (width > this.#width) this.#extend(tileBytes, width)
    const at = offset(level, position)
    return this.#nodes.slice(at, at + HASH_BYTES)
  }

  #extend(tileBytes: Uint8Array, width: number): void {
    let below = tileBytes
    let belowStart = 0
    for (let level = 1; level < TILE_HEIGHT; level++) {
      const start = offset(level, 0)
      for (let position = this.#width >> level; position < width >> level; position++) {
        const node = hashNodeAt(below, belowStart + 2 * position * HASH_BYTES)
        this.#nodes.set(node, start + position * HASH_BYTES)
      }
      below = this.#nodes
      belowStart = start
    }
    this.#width = width
  }
}

/** Not `slice`: on a Node `Buffer` that makes a view, and the tile's memory may be the store's read buffer. */
function copyOf(hash: Uint8Array): Hash {
  const copy = new Uint8Array(HASH_BYTES)
  copy.set(hash)
  return copy
}

/** Levels 1 to `level - 1` hold 256 - 2^(9 - level) nodes in all. */
function offset(level: number, position: number): number {
  return (TILE_WIDTH - (TILE_WIDTH >> (level - 1)) + position) * HASH_BYTES
}
