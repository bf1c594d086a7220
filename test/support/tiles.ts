/**
 * Which tiles and bundles a tree has to have, and a bundle's bytes, from sizes and entries alone: what `integrate.ts`,
 * which writes them as the tree grows, is held against.
 */

import { TILE_WIDTH, type Tile } from '../../src/log/tile.ts'

/**
 * Every bundle and hash tile that `newSize` has and `oldSize` has not, or less wide, each once and as wide as it gets.
 * Bundles come first, then tiles from level 0 up.
 */
export function tilesBetween(oldSize: number, newSize: number): Tile[] {
  const tiles: Tile[] = []
  addTiles(tiles, 'entries', oldSize, newSize)
  for (let level = 0; hashesOnLevel(level, newSize) > 0; level++) {
    addTiles(tiles, level, hashesOnLevel(level, oldSize), hashesOnLevel(level, newSize))
  }
  return tiles
}

/** Each entry behind its length, a uint16 (c2sp.org/tlog-tiles). */
export function formatBundle(entries: readonly Uint8Array[]): Uint8Array {
  const parts = entries.flatMap(entry => [Uint8Array.of(entry.length >> 8, entry.length), entry])
  return new Uint8Array(Buffer.concat(parts))
}

function hashesOnLevel(level: number, treeSize: number): number {
  return Math.floor(treeSize / TILE_WIDTH ** level)
}

function addTiles(tiles: Tile[], level: number | 'entries', oldHashes: number, newHashes: number): void {
  if (oldHashes === newHashes) return
  const full = Math.floor(newHashes / TILE_WIDTH)
  for (let index = Math.floor(oldHashes / TILE_WIDTH); index < full; index++) {
    tiles.push({ level, index, width: TILE_WIDTH })
  }
  const width = newHashes % TILE_WIDTH
  if (width > 0) tiles.push({ level, index: full, width })
}
