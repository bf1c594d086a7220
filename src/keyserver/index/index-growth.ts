/**
 * The work of a step: the map with the next entries of the log, over rows that are read and not written. It binds its input to
 * signatures: the entries to the log's root, and the rows to the root of the last leaf.
 */

import { SignalError } from '../../errors.ts'
import { equalHashes, type Hash, hashLeaf } from '../../log/hash.ts'
import { indexKeyOfEntry } from '../../log/index-leaf.ts'
import { type GrownTree, growSoundTree, growTree, type IndexedEntry } from '../../log/patricia-rows.ts'
import { parseBundle, TILE_WIDTH } from '../../log/tile.ts'
import { RightEdge, rootNodes } from '../../log/tree.ts'
import type { ReadStore } from '../../store/engine/store.ts'
import { BUNDLES, TILES } from '../log-store.ts'
import { damaged } from '../right-edge.ts'
import { TiledLog } from '../tiled-log.ts'
import type { MapRows } from './index-store.ts'
import { INDEX_STATE, indexRowsIn, MAP } from './index-tables.ts'

export interface GrowRequest {
  /** How many entries the map has. */
  readonly from: number
  /** How many it is to have. */
  readonly to: number
  /** Root of the log's tree of that size. */
  readonly logRoot: Hash
  /** Root of the map so far; undefined while it is built, when rows may be ahead of those above them. */
  readonly mapRoot: Hash | undefined
}

/** How a step ended: with a root, after all rows; or a reason that no attempt mends by itself. */
export type GrowthEnd =
  | { readonly kind: 'grown'; readonly root: Hash }
  /** The entries are as they were signed, and the rows are not. */
  | { readonly kind: 'map damaged'; readonly reason: string }
  | { readonly kind: 'log damaged'; readonly reason: string }

/** Does a step elsewhere, and gives the rows in portions; the next one comes when `onRows` has resolved. Rejects where it was cut short. */
export type Grow = (
  request: GrowRequest,
  onRows: (rows: MapRows) => Promise<void> | undefined,
) => Promise<GrowthEnd>

/** Throws where the map is not at `from`. */
export function growIndex(
  store: Pick<ReadStore, 'view'>,
  { from, to, logRoot, mapRoot }: GrowRequest,
): { readonly end: GrowthEnd; readonly rows: MapRows } {
  return store.view(view => {
    const entries = view.get(INDEX_STATE, MAP)?.entries
    if (entries !== from)
      throw new SignalError('STORE_UNAVAILABLE', `the map has ${entries} entries, not ${from}`)
    const added = sound('log damaged', () => readEntries(store, from, to, logRoot))
    if (!Array.isArray(added)) return { end: added, rows: [] }
    const read = indexRowsIn(view)
    const grown = sound('map damaged', () =>
      mapRoot === undefined ? growTree(read, added) : growSoundTree(read, mapRoot, added),
    )
    return isTree(grown)
      ? { end: { kind: 'grown', root: grown.root }, rows: grown.rows }
      : { end: grown, rows: [] }
  })
}

type Damage = Exclude<GrowthEnd, { readonly kind: 'grown' }>

function sound<Result>(kind: Damage['kind'], read: () => Result): Result | Damage {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof SignalError)) throw error
    return { kind, reason: error.message }
  }
}

function isTree(grown: GrownTree | Damage): grown is GrownTree {
  return 'root' in grown
}

/** The entries with indexes from `from` up to before `to`. */
function readEntries(
  store: Pick<ReadStore, 'view'>,
  from: number,
  to: number,
  logRoot: Hash,
): IndexedEntry[] {
  const log = new TiledLog(store, { tiles: TILES, bundles: BUNDLES })
  const edge = new RightEdge(from, log.readHashes(rootNodes(from)))
  const entries: IndexedEntry[] = []
  for (let first = from - (from % TILE_WIDTH); first < to; first += TILE_WIDTH) {
    const width = Math.min(TILE_WIDTH, to - first)
    const bundle = parseBundle(log.bundleVolatile(first / TILE_WIDTH, width))
    for (let at = Math.max(0, from - first); at < width; at++) {
      const entry = bundle[at]
      if (entry === undefined) throw damaged(`entry ${first + at} is missing`)
      edge.append(hashLeaf(entry))
      entries.push({ key: indexKeyOfEntry(entry), index: first + at })
    }
  }
  if (!equalHashes(edge.rootHash(), logRoot))
    throw damaged(`entries ${from} to ${to - 1} are not those of its signed tree`)
  return entries
}
