/**
 * The tables of the log's index: the rows of its map, its output log, and which of its trees is shown. One change writes what
 * a shown leaf stands for, so every view has a map, a leaf and a checkpoint that belong together.
 */

import type { ReadRow } from '../../log/patricia-rows.ts'
import { KIND, NUMBER } from '../../store/engine/key-parts.ts'
import { indexKey } from '../../store/engine/keys.ts'
import { bytes, count, flag, listOf, object, type RowOf, text } from '../../store/engine/row-form.ts'
import type { View } from '../../store/engine/store.ts'
import { bytesTable, textKeyTable } from '../../store/engine/table.ts'

/** The names of the tables. */
export const INDEX_TABLES = {
  rows: 'index-rows',
  tiles: 'index-tiles',
  bundles: 'index-bundles',
  head: 'index-head',
  state: 'index-state',
} as const

/** See `log/patricia-rows.ts`. */
export const INDEX_ROWS = bytesTable(INDEX_TABLES.rows, { row: NUMBER }, bytes(), {
  holds: 'a part of the map from a hash to the entries under it',
})
export const INDEX_TILES = bytesTable(INDEX_TABLES.tiles, { level: KIND, index: NUMBER }, bytes(), {
  holds: 'up to 256 hashes of the output log',
})
export const INDEX_BUNDLES = bytesTable(INDEX_TABLES.bundles, { index: NUMBER }, bytes(), {
  holds: 'up to 256 leaves of the output log',
})
export const INDEX_HEAD = textKeyTable(
  INDEX_TABLES.head,
  '`head` or `shown`',
  object({ treeSize: count, checkpoint: text }),
  {
    holds: 'the newest checkpoint of the output log, and the one that is shown',
  },
)

/** The map as its rows are. */
export type IndexState = RowOf<typeof INDEX_STATE_FORM>
const INDEX_STATE_FORM = object({
  /** The key that signs the output log. */
  vkey: text,
  /** The map has the first so many entries of the log, and may have some of those behind them while the index is built. */
  entries: count,
  /** Size of the output log whose last leaf has the map's root; 0 while the index is built for the first time. */
  leaves: count,
  /** Whether something is wrong with it: nothing is appended, and no process answers from it. */
  isHeld: flag,
  /** Each key that may have signed a checkpoint of this output log, as a signature line names it. */
  signers: listOf(text),
  /** Those of earlier indexes: with one of them an output log would begin a second time. */
  earlierSigners: listOf(text),
})
export const INDEX_STATE = textKeyTable(INDEX_TABLES.state, '`map`', INDEX_STATE_FORM, {
  holds: 'which key the index is of, and how far its map goes',
})
export const MAP = 'map'
export const HEAD = 'head'
export const SHOWN = 'shown'

/** The rows of the map. Plain arrays: `slice` of a Buffer is no copy, and its memory is used again by the next read. */
export function indexRowsIn(view: View): ReadRow {
  return id => {
    const row = view.getVolatile(INDEX_ROWS, indexKey(id))
    return row && new Uint8Array(row.buffer, row.byteOffset, row.length)
  }
}
