/** The tail: entries that the log has appended since the newest leaf of its index, read from its entry bundles. */
import { messageOf } from '../errors.ts'
import { VRF_HASH_CHARS } from '../log/entry.ts'
import { equalHashes, hashLeaf } from '../log/hash.ts'
import { parseBundle, TILE_WIDTH, tileWidth } from '../log/tile.ts'
import { RightEdge, rootNodes } from '../log/tree.ts'
import { type FetchTile, fetchTiles, hashReader, type TreeHead } from './tile-consistency.ts'

/** `unread`: there are more than anyone has to read. `lost`: no source serves what leads to the signed roots. */
export type Tail =
  | {
      readonly kind: 'read'
      /** The indexes of a VRF hash, in base64, ascending. */
      readonly indexesOf: (vrfHash: string) => readonly number[]
    }
  | { readonly kind: 'unread' }
  | { readonly kind: 'lost'; readonly detail: string }

/**
 * Reads the entries between two signed trees. They count only once they lead from the older root to the newer one; so do
 * tiles and bundles of a cache. The sources are asked in turn.
 */
export async function readTail(
  sources: readonly FetchTile[],
  older: TreeHead,
  newer: TreeHead,
): Promise<Tail> {
  if (newer.treeSize <= older.treeSize) return { kind: 'read', indexesOf: () => NO_INDEXES }
  if (newer.treeSize - older.treeSize > TAIL_ENTRIES_MAX) return { kind: 'unread' }
  let detail = ''
  for (const fetchTile of sources) {
    try {
      const found = await entriesBetween(fetchTile, older, newer)
      if (found !== undefined) return { kind: 'read', indexesOf: hash => found.get(hash) ?? NO_INDEXES }
      detail ||= `the tiles and entries do not lead from tree size ${older.treeSize} to ${newer.treeSize}`
    } catch (error) {
      detail ||= messageOf(error)
    }
  }
  return { kind: 'lost', detail }
}

async function entriesBetween(
  fetchTile: FetchTile,
  older: TreeHead,
  newer: TreeHead,
): Promise<ReadonlyMap<string, readonly number[]> | undefined> {
  const edgeNodes = rootNodes(older.treeSize)
  const first = Math.floor(older.treeSize / TILE_WIDTH)
  const bundleIndexes = Array.from(
    { length: Math.ceil(newer.treeSize / TILE_WIDTH) - first },
    (_, at) => first + at,
  )
  const [tiles, ...bundles] = await Promise.all([
    fetchTiles(fetchTile, edgeNodes, newer.treeSize),
    ...bundleIndexes.map(index =>
      fetchTile({ level: 'entries', index, width: tileWidth('entries', index, newer.treeSize) }),
    ),
  ])
  const edge = new RightEdge(older.treeSize, hashReader(tiles)(edgeNodes))
  if (!equalHashes(edge.rootHash(), older.rootHash)) return undefined
  const entries = bundles.flatMap(parseBundle).slice(older.treeSize - first * TILE_WIDTH)
  const indexes = new Map<string, number[]>()
  for (const entry of entries) {
    const vrfHash = hashIn(entry)
    const known = indexes.get(vrfHash)
    if (known === undefined) indexes.set(vrfHash, [edge.treeSize])
    else known.push(edge.treeSize)
    edge.append(hashLeaf(entry))
  }
  const isWhole = edge.treeSize === newer.treeSize && equalHashes(edge.rootHash(), newer.rootHash)
  return isWhole ? indexes : undefined
}

/** The base64 text that an entry begins with. */
function hashIn(entry: Uint8Array): string {
  return String.fromCharCode(...entry.subarray(0, VRF_HASH_CHARS))
}

/** Some 600 kB, of keys as apps have them: an index that is further behind does not do its work. */
const TAIL_ENTRIES_MAX = 4_096
const NO_INDEXES: readonly number[] = []
