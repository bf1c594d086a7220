/** The grid of tiles, for every number of people on stages of all sizes, against a slow search. */

import fc from 'fast-check'
import t from 'tap'
import { gridOf, TILE_GAP } from '../../src/ui/call/tile-grid.ts'
import { checkProperty } from '../support/property.ts'

/** The area of the largest tile that fits so many times, tried pixel by pixel. */
function largestArea(count: number, width: number, height: number): number {
  let largest = 0
  for (let tileWidth = 1; tileWidth <= width; tileWidth++) {
    const columns = Math.floor((width + TILE_GAP) / (tileWidth + TILE_GAP))
    const rows = Math.ceil(count / Math.min(columns, count))
    const place = Math.floor((height - TILE_GAP * (rows - 1)) / rows)
    const tileHeight = Math.min(place, Math.floor(tileWidth / (4 / 3)))
    if (tileHeight * (16 / 9) >= tileWidth) largest = Math.max(largest, tileWidth * tileHeight)
  }
  return largest
}

const counts = fc.integer({ min: 1, max: 32 })
const sides = fc.integer({ min: 240, max: 2600 })

t.test('all tiles fit on the stage, none is drawn out, and no row is needless', async t => {
  checkProperty(t, [counts, sides, sides], (count, width, height) => {
    const { columns, rows, tileWidth, tileHeight } = gridOf(count, width, height)
    const fitsWidth = columns * tileWidth + (columns - 1) * TILE_GAP <= width
    const fitsHeight = rows * tileHeight + (rows - 1) * TILE_GAP <= height
    const ratio = tileWidth / tileHeight
    // A pixel that was rounded off.
    const isNatural = ratio >= 4 / 3 - 0.001 && ratio <= 16 / 9 + 2 / tileHeight
    const isFull = columns * rows >= count && columns * (rows - 1) < count
    return fitsWidth && fitsHeight && isNatural && isFull
  })
})

t.test('no other grid has a larger tile', async t => {
  checkProperty(t, [counts, sides, sides], (count, width, height) => {
    const { tileWidth, tileHeight } = gridOf(count, width, height)
    return tileWidth * tileHeight >= largestArea(count, width, height)
  })
})

t.test('the usual screens', async t => {
  const shapeOf = (count: number, width: number, height: number) => {
    const { columns, rows } = gridOf(count, width, height)
    return [columns, rows]
  }
  t.same(shapeOf(3, 1280, 640), [2, 2], 'three on a desktop: two above one')
  t.same(shapeOf(5, 1280, 640), [3, 2], 'five on a desktop: three above two')
  t.same(shapeOf(3, 700, 330), [2, 2], 'three on a phone on its side')
  t.same(shapeOf(2, 390, 640), [1, 2], 'two on a phone: one above the other')
  t.same(shapeOf(0, 0, 0), [1, 1], 'before the page has a size')
})
