/** The levels of hash tiles (c2sp.org/tlog-tiles): how many are full, and how far the partial one has filled up. */

import { html, nothing, svg, type TemplateResult } from 'lit-html'
import { formatTilePath, TILE_WIDTH, tileWidth } from '../../src/log/tile.ts'
import { countOf, manyOf } from '../shared/figures.ts'

/** `fetched` are paths of tiles to be marked. */
export function tilesDrawing(treeSize: number, fetched: ReadonlySet<string>): TemplateResult {
  const rows: TemplateResult[] = []
  for (let level = 0, hashes = treeSize; hashes > 0; level++, hashes = Math.floor(hashes / TILE_WIDTH)) {
    rows.push(levelRow(level, treeSize, hashes, fetched))
  }
  return html`<ol class="tiles" reversed aria-label="levels of tiles">${rows}</ol>`
}

function levelRow(
  level: number,
  treeSize: number,
  hashes: number,
  fetched: ReadonlySet<string>,
): TemplateResult {
  const full = Math.floor(hashes / TILE_WIDTH)
  const width = tileWidth(level, full, treeSize)
  const isFetched = [...fetched].some(path => path.startsWith(`tile/${level}/`))
  const words = [
    ...(full === 0 ? [] : [manyOf(full, 'full tile')]),
    ...(width === 0 ? [] : [`${width} of 256`, formatTilePath({ level, index: full, width })]),
  ]
  return html`<li class=${isFetched ? 'fetched' : nothing}>
    <span class="level">level ${level}</span>
    <span class="drawn">${fullTiles(full)}${width === 0 ? nothing : partialTile(width)}</span>
    <span class="mono soft">${words.join(' · ')}${isFetched ? html` <span class="good">fetched</span>` : nothing}</span>
  </li>`
}

function fullTiles(count: number): TemplateResult | typeof nothing {
  const drawn = Math.min(count, DRAWN_MAX)
  if (drawn === 0) return nothing
  return html`<svg class="full-tiles" width=${drawn * 14} height="12" aria-hidden="true">${Array.from(
    { length: drawn },
    (_, at) => svg`<rect x=${at * 14} width="12" height="12" rx="2"></rect>`,
  )}</svg>${count > drawn ? html`<span class="soft">+${countOf(count - drawn)}</span>` : nothing}`
}

function partialTile(width: number): TemplateResult {
  const filled = (width / TILE_WIDTH) * PARTIAL_PX
  return html`<svg class="partial-tile" width=${PARTIAL_PX + 2} height="12" role="img" aria-label="${width} of 256 hashes">
    <rect class="room" x="1" y="1" width=${PARTIAL_PX} height="10" rx="2"></rect>
    <rect class="filled" x="1" y="1" width=${Math.max(1, filled)} height="10" rx="1"></rect>
  </svg>`
}

const DRAWN_MAX = 8
const PARTIAL_PX = 128
