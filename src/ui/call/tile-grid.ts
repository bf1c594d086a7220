/** The grid of a call's tiles: as large as the stage allows, of one size, the last row in the middle. */

export interface TileGrid {
  readonly columns: number
  readonly rows: number
  /** CSS pixels, rounded down. */
  readonly tileWidth: number
  readonly tileHeight: number
}

/**
 * Columns and rows with the largest tile for so many people on a stage of this size, in CSS pixels with `gap` between tiles.
 * The tile is between 4:3 and 16:9. Of grids with equal tiles it takes the one with fewer places left over.
 */
export function gridOf(count: number, width: number, height: number, gap = TILE_GAP): TileGrid {
  let best: TileGrid = { columns: 1, rows: Math.max(1, count), tileWidth: 0, tileHeight: 0 }
  for (let columns = 1; columns <= count; columns++) {
    const rows = Math.ceil(count / columns)
    const tile = tileIn((width - gap * (columns - 1)) / columns, (height - gap * (rows - 1)) / rows)
    const more = tile.tileWidth * tile.tileHeight - best.tileWidth * best.tileHeight
    const isFuller = more === 0 && columns * rows < best.columns * best.rows
    if (more > 0 || isFuller) best = { columns, rows, ...tile }
  }
  return best
}

/** The largest tile in a place of this size. */
function tileIn(width: number, height: number): Pick<TileGrid, 'tileWidth' | 'tileHeight'> {
  const tileWidth = Math.max(0, Math.floor(Math.min(width, height * WIDEST)))
  return { tileWidth, tileHeight: Math.max(0, Math.floor(Math.min(height, tileWidth / NARROWEST))) }
}

/** CSS pixels between tiles. */
export const TILE_GAP = 8
const WIDEST = 16 / 9
const NARROWEST = 4 / 3
