/**
 * The inclusion paths of lookups as text, kept in two parts: from a leaf to the root of its tile, which never changes
 * once the tile is full, and from there to the root, which all 256 leaves of the tile share while the tree has one size.
 *
 * Departure from proving and writing each path anew: that takes 11 us of a lookup (`bench/lookup.ts`).
 */

import { LOOKUPS_KEPT_MAX } from '../limits.ts'
import type { Hash } from '../log/hash.ts'
import { formatPath } from '../log/proof.ts'
import { TILE_HEIGHT, TILE_WIDTH } from '../log/tile.ts'
import { escapeForJson } from '../schema/log.ts'
import { BoundedCache } from '../store/bounded-cache.ts'
import type { LoggedKey, VerifiedHead } from '../store/published-log.ts'

/** Sibling hashes that were checked to lead from the key's entry to the root of the head. */
export type ProvePath = (key: LoggedKey, head: VerifiedHead) => readonly Hash[]

export class PathLines {
  readonly #provePath: ProvePath
  readonly #withinTile = new BoundedCache<number, string>(LOOKUPS_KEPT_MAX)
  readonly #aboveTile = new BoundedCache<number, string>(LOOKUPS_KEPT_MAX)
  #treeSize = 0

  constructor(provePath: ProvePath) {
    this.#provePath = provePath
  }

  /** The lines of a path (`formatPath`) as the inside of a JSON string. */
  inJson(key: LoggedKey, head: VerifiedHead): string {
    const { index } = key
    const { treeSize } = head
    const tileIndex = Math.floor(index / TILE_WIDTH)
    const isTileFull = (tileIndex + 1) * TILE_WIDTH <= treeSize
    if (!isTileFull) return formatLines(this.#provePath(key, head))
    if (treeSize !== this.#treeSize) {
      this.#aboveTile.clear()
      this.#treeSize = treeSize
    }
    let within = this.#withinTile.get(index)
    let above = this.#aboveTile.get(tileIndex)
    if (within === undefined || above === undefined) {
      const path = this.#provePath(key, head)
      within = formatLines(path.slice(0, TILE_HEIGHT))
      above = formatLines(path.slice(TILE_HEIGHT))
      this.#withinTile.set(index, within)
      this.#aboveTile.set(tileIndex, above)
    }
    return within + above
  }
}

function formatLines(path: readonly Hash[]): string {
  return escapeForJson(formatPath(path))
}
