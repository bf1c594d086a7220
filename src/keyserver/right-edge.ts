/**
 * The right edge of a stored log, checked when it is opened: what the next batch builds on must be whole, must be what
 * the tree of the signed size needs, and nothing may lie beyond it. A head that was put back to an older one shows here
 * too, because tiles and bundles are then wider than it implies.
 */

import { SignalError } from '../errors.ts'
import { equalHashes, HASH_BYTES, hashLeaf } from '../log/hash.ts'
import type { TailBytes } from '../log/integrate.ts'
import { parseBundle, TILE_HEIGHT, TILE_WIDTH } from '../log/tile.ts'
import { type ReadHashes, RightEdge, rootNodes } from '../log/tree.ts'
import { BLOCK_RECORDS, RECORD_BYTES } from './identity-table.ts'

/** The stored bytes, or undefined where there is no row; each until the next read. */
export interface StoredLog {
  tile(level: number, index: number): Uint8Array | undefined
  bundle(index: number): Uint8Array | undefined
  /** Left out for any log but the key log. */
  identityBlock?(block: number): Uint8Array | undefined
  readonly readHashes: ReadHashes
}

/** Throws `CHECKPOINT_INVALID` for anything missing, altered or too much. */
export function readRightEdge(log: StoredLog, treeSize: number): TailBytes {
  const tiles: (Uint8Array | undefined)[] = []
  let complete = treeSize
  for (let level = 0; complete > 0; level++) {
    tiles.push(lastRow(`tile of level ${level}`, index => log.tile(level, index), complete, HASH_BYTES))
    complete = Math.floor(complete / TILE_WIDTH)
    if (complete > 0) assertLastFullTile(log, level, complete - 1)
  }
  if (log.tile(tiles.length, 0) !== undefined) throw damaged(`there is a tile of level ${tiles.length}`)
  const bundle = lastRow('entry bundle', index => log.bundle(index), treeSize)
  assertEntries(log, treeSize)
  assertIdentities(log, treeSize)
  return { edge: new RightEdge(treeSize, log.readHashes(rootNodes(treeSize))), tiles, bundle }
}

/** The refusal of a log that does not hold what its checkpoint covers. */
export function damaged(what: string, cause?: unknown): SignalError {
  return new SignalError(
    'CHECKPOINT_INVALID',
    `the log does not hold what its checkpoint covers: ${what} (fsck names what is damaged and repairs what is derived)`,
    { cause },
  )
}

/** The partial row that `units` leave at the end, or undefined; neither longer nor followed by another. */
function lastRow(
  what: string,
  read: (index: number) => Uint8Array | undefined,
  units: number,
  unitBytes?: number,
): Uint8Array | undefined {
  const index = Math.floor(units / TILE_WIDTH)
  const width = units % TILE_WIDTH
  if (read(index + 1) !== undefined) throw damaged(`${what} ${index + 1} lies beyond the tree`)
  const row = read(index)
  if (width === 0 && row !== undefined) throw damaged(`${what} ${index} lies beyond the tree`)
  if (width === 0) return undefined
  if (row === undefined) throw damaged(`${what} ${index} is missing`)
  if (unitBytes !== undefined && row.length !== width * unitBytes) {
    throw damaged(`${what} ${index} has ${row.length} bytes, not ${width * unitBytes}`)
  }
  return copyOf(row)
}

/** The root of the last full tile of a level must be its hash in the tile above. */
function assertLastFullTile(log: StoredLog, level: number, index: number): void {
  const row = log.tile(level, index)
  if (row?.length !== TILE_WIDTH * HASH_BYTES) throw damaged(`tile ${level}/${index} is not full`)
  const hashes = copyOf(row)
  const subtree = new RightEdge(0, [])
  for (let at = 0; at < hashes.length; at += HASH_BYTES) subtree.append(hashes.subarray(at, at + HASH_BYTES))
  const [above] = log.readHashes([{ level: (level + 1) * TILE_HEIGHT, index }])
  if (above === undefined || !equalHashes(subtree.rootHash(), above))
    throw damaged(`tile ${level}/${index} was altered`)
}

/** The last bundle, full or not, must hold the entries whose hashes the last level-0 tile holds. */
function assertEntries(log: StoredLog, treeSize: number): void {
  if (treeSize === 0) return
  const index = Math.floor((treeSize - 1) / TILE_WIDTH)
  const width = treeSize - index * TILE_WIDTH
  const bundle = log.bundle(index)
  if (bundle === undefined) throw damaged(`entry bundle ${index} is missing`)
  const entries = parseBundle(copyOf(bundle))
  if (entries.length !== width) {
    throw damaged(`entry bundle ${index} has ${entries.length} entries, not ${width}`)
  }
  const hashes = log.tile(0, index)
  for (const [position, entry] of entries.entries()) {
    const stored = hashes?.subarray(position * HASH_BYTES, (position + 1) * HASH_BYTES)
    if (stored === undefined || !equalHashes(hashLeaf(entry), stored)) {
      throw damaged(`entry ${index * TILE_WIDTH + position} does not match its leaf hash`)
    }
  }
}

function assertIdentities(log: StoredLog, treeSize: number): void {
  if (log.identityBlock === undefined) return
  const blocks = Math.ceil(treeSize / BLOCK_RECORDS)
  if (log.identityBlock(blocks) !== undefined) throw damaged(`identity block ${blocks} lies beyond the tree`)
  if (blocks === 0) return
  const records = treeSize - (blocks - 1) * BLOCK_RECORDS
  const bytes = log.identityBlock(blocks - 1)?.length ?? 0
  if (bytes !== records * RECORD_BYTES) {
    throw damaged(`identity block ${blocks - 1} has ${bytes} bytes, not ${records * RECORD_BYTES}`)
  }
}

/** lmdb-js hands out its whole read buffer under a length of its own. */
function copyOf(row: Uint8Array): Uint8Array {
  return new Uint8Array(row.buffer, row.byteOffset, row.length).slice()
}
