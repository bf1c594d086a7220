/**
 * Reads a signed tree to its end and computes it anew: every entry bundle, every hash tile (c2sp.org/tlog-tiles).
 *
 * Files come in the order in which they are needed, several under way at a time. The leaf hashes of a bundle must equal
 * the tile beside it. Full tiles are hashed upwards, and the hash must stand in the tile above; the right edge makes
 * the root. So the root is computed from the entries, every hash of every tile is compared, and only one tile per level
 * is in memory.
 */

import type { TreeHead } from '../../src/client/tile-consistency.ts'
import { equalHashes, HASH_BYTES, type Hash } from '../../src/log/hash.ts'
import { rootFromPath } from '../../src/log/inclusion.ts'
import {
  formatTilePath,
  hashInTile,
  interiorHashes,
  TILE_WIDTH,
  type Tile,
  tileOfNode,
  tileWidth,
} from '../../src/log/tile.ts'
import { rootHash } from '../../src/log/tree.ts'
import { type EntryCheck, EntryFormFault, hashBundle } from './bundle.ts'
import { AuditFailure, pending, proven } from './finding.ts'
import { readInclusion, readNodes, type TileReader } from './log-reader.ts'

export interface CrawlOptions {
  /** How many files are asked for at a time. */
  readonly filesAtOnce: number
  /**
   * Told before each bundle of the tree computed so far, which is not tied to any signature before the crawl ends;
   * `head` computes its root.
   */
  readonly onProgress: (treeSize: number, head: () => TreeHead) => void
  /** Called with each bundle of a checked form, and the index of its first entry. */
  readonly onBundle?: (firstIndex: number, bundle: Uint8Array) => void
  /** Checks the form of an entry. Unless given, entries have the form of the key log's. */
  readonly isForm?: EntryCheck | undefined
}

/**
 * Reads all of `signed` behind `audited`, a tree that it has been proven to begin with. Throws `AuditFailure` of
 * `entries`, `tiles` or `fetch` at the first thing that does not hold: proven where the signed root itself covers it,
 * else pending, as the files may be a cache's.
 */
export async function crawl(
  log: TileReader,
  audited: Pick<TreeHead, 'treeSize'>,
  signed: TreeHead,
  { filesAtOnce, onProgress, onBundle, isForm }: CrawlOptions,
): Promise<void> {
  // A bundle that was partial is read again from its first entry.
  const start = audited.treeSize - (audited.treeSize % TILE_WIDTH)
  const tree = await ComputedTree.open(log, start, signed.treeSize)
  const files = inOrder(filesBetween(start, signed.treeSize), filesAtOnce, tile => log.tile(tile))
  for await (const [tile, bytes] of files) {
    if (tile.level === 'entries') {
      onProgress(tree.treeSize, () => tree.head())
      tree.setLeaves(await leavesOf(log, tile, bytes, signed, isForm))
      onBundle?.(tile.index * TILE_WIDTH, bytes)
      continue
    }
    const position = tree.firstDifference(tile, bytes)
    if (position !== undefined) throw await wrongHash(log, tree, tile, position, signed)
    tree.fold(tile)
  }
  if (!equalHashes(tree.head().rootHash, signed.rootHash)) {
    const fault = signed.treeSize === 0 ? proven : pending
    throw fault('tiles', `the root of all ${signed.treeSize} entries is not the one that the log signed`)
  }
}

/** The leaf hashes of a bundle. */
async function leavesOf(
  log: TileReader,
  { width, index }: Tile,
  bundle: Uint8Array,
  signed: TreeHead,
  isForm: EntryCheck | undefined,
): Promise<Uint8Array> {
  try {
    return hashBundle(bundle, width, index * TILE_WIDTH, isForm)
  } catch (error) {
    if (!(error instanceof EntryFormFault)) throw error
    const isIncluded = await inclusionOf(log, error.index, signed)
    if (!isIncluded?.(error.leafHash)) throw error
    throw proven('entries', error.message, { index: String(error.index) })
  }
}

/** The right-most tile of each level, as computed from the entries. */
class ComputedTree {
  /** Full length; how much of it is computed is in `#lengths`. */
  readonly #tiles: Uint8Array[] = []
  readonly #lengths: number[] = []
  #leaves = 0

  /**
   * The right edge at `start`, a multiple of 256, out of tiles of the tree of `treeSize`. They are not verified: with
   * a wrong one among them no crawl ends in the signed root.
   */
  static async open(log: TileReader, start: number, treeSize: number): Promise<ComputedTree> {
    const tree = new ComputedTree()
    tree.#leaves = start
    for (let level = 0, hashes = start; hashes > 0; level++, hashes = Math.floor(hashes / TILE_WIDTH)) {
      const index = Math.floor(hashes / TILE_WIDTH)
      const width = hashes % TILE_WIDTH
      tree.#set(level, width === 0 ? NO_HASHES : await readPrefix(log, { level, index, width }, treeSize))
    }
    return tree
  }

  get treeSize(): number {
    return this.#leaves
  }

  /** The leaf hashes of the next bundle. */
  setLeaves(hashes: Uint8Array): void {
    this.#set(0, hashes)
    this.#leaves += hashes.length / HASH_BYTES
  }

  /** Where a tile that was served is not the one computed, undefined where it is. */
  firstDifference({ level, width }: Tile, served: Uint8Array): number | undefined {
    const computed = this.#computed(Number(level))
    if (computed.length === width * HASH_BYTES && isSame(computed, served)) return undefined
    for (let position = 0; position < width; position++) {
      if (!equalHashes(hashAt(computed, position), hashAt(served, position))) return position
    }
    throw new Error(`assertion failed: ${computed.length} bytes computed for a tile of width ${width}`)
  }

  hashAt({ level }: Tile, position: number): Hash {
    return hashAt(this.#computed(Number(level)), position).slice()
  }

  /** Hands the hash of a full tile to the level above, and makes room for the next one. */
  fold({ level, width }: Tile): void {
    if (width < TILE_WIDTH) return
    const top = interiorHashes(this.#computed(Number(level))).subarray(-HASH_BYTES)
    this.#set(Number(level), NO_HASHES)
    this.#append(Number(level) + 1, top)
  }

  head(): TreeHead {
    const treeSize = this.#leaves
    const readHashes = (nodes: readonly { level: number; index: number }[]) =>
      nodes.map(node => hashInTile(this.#computed(tileOfNode(node).level), node))
    return { treeSize, rootHash: rootHash(treeSize, readHashes) }
  }

  #computed(level: number): Uint8Array {
    return this.#tiles[level]?.subarray(0, this.#lengths[level]) ?? NO_HASHES
  }

  #set(level: number, hashes: Uint8Array): void {
    this.#lengths[level] = 0
    this.#append(level, hashes)
  }

  #append(level: number, hashes: Uint8Array): void {
    this.#tiles[level] ??= new Uint8Array(TILE_WIDTH * HASH_BYTES)
    const length = this.#lengths[level] ?? 0
    this.#tiles[level].set(hashes, length)
    this.#lengths[level] = length + hashes.length
  }
}

/** Every file that the tree of size `end` has and the one of size `start` has not, each when it can be checked. */
function* filesBetween(start: number, end: number): Generator<Tile> {
  for (let index = start / TILE_WIDTH; index * TILE_WIDTH < end; index++) {
    const width = tileWidth(0, index, end)
    yield { level: 'entries', index, width }
    yield { level: 0, index, width }
    if (width < TILE_WIDTH) break
    // The number of full tiles tells which tiles above became full with this one.
    for (let level = 1, tiles = index + 1; tiles % TILE_WIDTH === 0; level++) {
      tiles /= TILE_WIDTH
      yield { level, index: tiles - 1, width: TILE_WIDTH }
    }
  }
  for (let level = 1, hashes = Math.floor(end / TILE_WIDTH); hashes > 0; level++) {
    const width = hashes % TILE_WIDTH
    hashes = Math.floor(hashes / TILE_WIDTH)
    if (width > 0) yield { level, index: hashes, width }
  }
}

/** The results of `read` for each item, in order, with so many read ahead. */
async function* inOrder<Item, Result>(
  items: Iterable<Item>,
  atOnce: number,
  read: (item: Item) => Promise<Result>,
): AsyncGenerator<readonly [Item, Result]> {
  const underWay: (readonly [Item, Promise<Result>])[] = []
  for (const item of items) {
    const result = read(item)
    // If it fails it is thrown when its turn comes, or never, when an earlier one ended the crawl.
    result.catch(() => {})
    underWay.push([item, result])
    if (underWay.length < atOnce) continue
    const [next, nextResult] = underWay.shift()!
    yield [next, await nextResult]
  }
  for (const [item, result] of underWay) yield [item, await result]
}

async function readPrefix(log: TileReader, tile: Tile, treeSize: number): Promise<Uint8Array> {
  const width = tileWidth(tile.level, tile.index, treeSize)
  return (await log.tile({ ...tile, width })).subarray(0, tile.width * HASH_BYTES)
}

/** Finds the wrong one when an entry and its tile, or a tile and the one above it, disagree. */
async function wrongHash(
  log: TileReader,
  tree: ComputedTree,
  tile: Tile,
  position: number,
  signed: TreeHead,
): Promise<AuditFailure> {
  const path = formatTilePath(tile)
  if (tile.level !== 0) {
    return pending('tiles', `${path} has another hash at position ${position} than the tiles below it make`)
  }
  const index = tile.index * TILE_WIDTH + position
  const facts = { index: String(index) }
  const isIncluded = await inclusionOf(log, index, signed)
  if (isIncluded?.(tree.hashAt(tile, position))) {
    return pending(
      'tiles',
      `${path} has a wrong hash at position ${position}: entry ${index} is in the tree`,
      facts,
    )
  }
  if (isIncluded?.(await leafInTile(log, index, signed))) {
    return pending('entries', `entry ${index} is not the one in the tree`, facts)
  }
  return pending(
    'tiles',
    `${path} at position ${position} and entry ${index} disagree, and neither is in the tree`,
    facts,
  )
}

/** Tells whether a leaf hash is included at that index, by a path from tiles; undefined when there is no such path. */
async function inclusionOf(
  log: TileReader,
  index: number,
  { treeSize, rootHash }: TreeHead,
): Promise<((leafHash: Hash) => boolean) | undefined> {
  try {
    const path = await readInclusion(log, index, treeSize)
    return leafHash => equalHashes(rootFromPath(leafHash, index, treeSize, path), rootHash)
  } catch (error) {
    if (error instanceof AuditFailure) return undefined
    throw error
  }
}

async function leafInTile(log: TileReader, index: number, { treeSize }: TreeHead): Promise<Hash> {
  const [leafHash] = await readNodes(log, [{ level: 0, index }], treeSize)
  return leafHash!
}

function hashAt(hashes: Uint8Array, position: number): Hash {
  return hashes.subarray(position * HASH_BYTES, (position + 1) * HASH_BYTES)
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0
}

const NO_HASHES = new Uint8Array(0)
