/**
 * Whether an old tree is the beginning of a new one, found out from the log's hash tiles (c2sp.org/tlog-tiles) and
 * from nothing else: tlog-tiles has no endpoint for consistency proofs and needs none. Where tiles come from is the
 * caller's business; what they say counts only once it leads to the signed root of the new tree.
 */
import { SignalError } from '../errors.ts'
import { consistencyNodes, proveConsistency, verifyConsistency } from '../log/consistency.ts'
import { EMPTY_ROOT, equalHashes, HASH_BYTES, type Hash } from '../log/hash.ts'
import { hashInTile, type Tile, tileOfNode, tileWidth } from '../log/tile.ts'
import { type Node, type ReadHashes, rootHash, rootNodes } from '../log/tree.ts'

/** A tree's size in entries and its root (32 bytes), from a checkpoint. */
export interface TreeHead {
  readonly treeSize: number
  readonly rootHash: Hash
}

/** Gives the bytes of a tile or entry bundle of the new tree, in the width asked for. Rejects as it likes when it cannot. */
export type FetchTile = (tile: Tile) => Promise<Uint8Array>

/**
 * `tiles`: the fetched tiles do not lead to the new root, so nothing is known of the old tree. `consistency`: they do,
 * and the new tree does not begin with the old one: the log has rewritten its history.
 */
export type TileConsistency =
  | { readonly kind: 'consistent' }
  | { readonly kind: 'inconsistent'; readonly check: 'tiles' | 'consistency'; readonly detail: string }

/**
 * Checks that the tree of `older` is the beginning of `newer`'s tree, both heads taken from checkpoints whose
 * signature held. Fetches each tile that the proof needs once, at most a dozen, side by side, and none for trees of
 * one size. Throws `MALFORMED` when `older` is the larger one, and rejects with whatever `fetchTile` rejects with.
 */
export async function consistencyFromTiles(
  fetchTile: FetchTile,
  older: TreeHead,
  newer: TreeHead,
): Promise<TileConsistency> {
  const proofNodes = consistencyNodes(older.treeSize, newer.treeSize)
  if (older.treeSize === 0 || older.treeSize === newer.treeSize) return compareWithoutTiles(older, newer)
  const nodes = [...rootNodes(older.treeSize), ...proofNodes]
  const tiles = await fetchTiles(fetchTile, nodes, newer.treeSize)
  const tooShort = tiles.find(({ tile, bytes }) => bytes.length !== tile.width * HASH_BYTES)
  if (tooShort !== undefined) {
    const { tile, bytes } = tooShort
    const name = `tile ${tile.index} of level ${tile.level}`
    return inconsistent('tiles', `${name} has ${bytes.length} bytes instead of ${tile.width} hashes`)
  }
  return compareInTiles(hashReader(tiles), older, newer)
}

function compareWithoutTiles(older: TreeHead, newer: TreeHead): TileConsistency {
  if (older.treeSize === 0 && !equalHashes(older.rootHash, EMPTY_ROOT)) {
    return inconsistent('consistency', 'the tree without entries has another root')
  }
  if (older.treeSize === newer.treeSize && !equalHashes(older.rootHash, newer.rootHash)) {
    return inconsistent('consistency', `tree size ${older.treeSize} has two roots`)
  }
  return { kind: 'consistent' }
}

/** The old root is computed from the tiles, not assumed, to distinguish a bad tile from a bad log. */
function compareInTiles(readHashes: ReadHashes, older: TreeHead, newer: TreeHead): TileConsistency {
  const oldSize = older.treeSize
  const newSize = newer.treeSize
  const oldRoot = rootHash(oldSize, readHashes)
  const proof = proveConsistency(oldSize, newSize, readHashes)
  try {
    verifyConsistency({ oldSize, oldRoot, newSize, newRoot: newer.rootHash, proof })
  } catch (error) {
    if (!(error instanceof SignalError)) throw error
    return inconsistent('tiles', `the tiles do not lead to the root of size ${newSize}`)
  }
  if (equalHashes(oldRoot, older.rootHash)) return { kind: 'consistent' }
  return inconsistent(
    'consistency',
    `the tree of size ${newSize} does not begin with that of size ${oldSize}`,
  )
}

export interface FetchedTile {
  readonly tile: Tile
  readonly bytes: Uint8Array
}

/** The tiles that hold `nodes`, each as wide as a tree of `treeSize` has it: only that width is sure to be there. */
export async function fetchTiles(
  fetchTile: FetchTile,
  nodes: readonly Node[],
  treeSize: number,
): Promise<FetchedTile[]> {
  const wanted = new Map<string, Tile>()
  for (const node of nodes) {
    const { level, index } = tileOfNode(node)
    wanted.set(`${level}/${index}`, { level, index, width: tileWidth(level, index, treeSize) })
  }
  return Promise.all([...wanted.values()].map(async tile => ({ tile, bytes: await fetchTile(tile) })))
}

export function hashReader(tiles: readonly FetchedTile[]): ReadHashes {
  return nodes =>
    nodes.map(node => {
      const { level, index } = tileOfNode(node)
      const found = tiles.find(({ tile }) => tile.level === level && tile.index === index)
      return hashInTile(found!.bytes, node)
    })
}

function inconsistent(check: 'tiles' | 'consistency', detail: string): TileConsistency {
  return { kind: 'inconsistent', check, detail }
}
