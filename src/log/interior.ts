/**
 * The inner nodes of one hash tile (c2sp.org/tlog-tiles). A tile stores only its 256 bottom hashes; the seven levels
 * between them and the tile above are recomputed, and a proof needs one node of each. The upper five are kept here, each
 * node computed once, because a complete subtree never changes; a node of the lower two is four hashes for a proof,
 * and keeping them would take four times the memory.
 *
 * Departure from the plain `hashInTile`: recomputing costs up to 127 hashes a node, 73 us a tile and proof;
 * kept nodes make it a copy (`bench/lookup.ts`).
 */

import { HASH_BYTES, type Hash, hashNodeAt } from './hash.ts'
import { hashInTile, TILE_HEIGHT, TILE_WIDTH } from './tile.ts'

const LOWEST_KEPT = 3

export class TileInterior {
  // The kept levels, bottom level first: 32 + 16 + 8 + 4 + 2 hashes.
  readonly #nodes = new Uint8Array(offset(TILE_HEIGHT, 0))
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
    if (level < LOWEST_KEPT) return hashInTile(tileBytes, { level, index: position })
    if (width > this.#width) this.#extend(tileBytes, width)
    const at = offset(level, position)
    return this.#nodes.slice(at, at + HASH_BYTES)
  }

  #extend(tileBytes: Uint8Array, width: number): void {
    for (let level = LOWEST_KEPT; level < TILE_HEIGHT; level++) {
      for (let position = this.#width >> level; position < width >> level; position++) {
        const node =
          level === LOWEST_KEPT
            ? hashInTile(tileBytes, { level, index: position })
            : hashNodeAt(this.#nodes, offset(level - 1, 2 * position))
        this.#nodes.set(node, offset(level, position))
      }
    }
    this.#width = width
  }
}

/** In bytes. The kept levels below `level` hold 64 - 2^(9 - level) nodes in all. */
function offset(level: number, position: number): number {
  return ((TILE_WIDTH >> (LOWEST_KEPT - 1)) - (TILE_WIDTH >> (level - 1)) + position) * HASH_BYTES
}
