/**
 * The public files of a log (c2sp.org/tlog-tiles) as a stranger reads them, each of the length that a signed
 * checkpoint implies. Nothing in them is believed here.
 */

import { HASH_BYTES, type Hash } from '../../src/log/hash.ts'
import { inclusionNodes, proveInclusion } from '../../src/log/inclusion.ts'
import {
  BUNDLE_ENTRY_BYTES_MAX,
  formatTilePath,
  hashInTile,
  TILE_WIDTH,
  type Tile,
  tileOfNode,
  tileWidth,
} from '../../src/log/tile.ts'
import type { Node } from '../../src/log/tree.ts'
import { AuditFailure, pending, unchecked } from './finding.ts'
import type { HttpSource } from './http-source.ts'

/** Gives hash tiles and entry bundles of a signed tree; see `LogReader`. */
export interface TileReader {
  tile(tile: Tile): Promise<Uint8Array>
}

export class LogReader implements TileReader {
  readonly #source: HttpSource
  #signedSize = 0

  constructor(source: HttpSource) {
    this.#source = source
  }

  get url(): string {
    return this.#source.url
  }

  /** The signed note at `/checkpoint`, unopened, where there is one. */
  note(): Promise<Uint8Array | undefined> {
    return this.#source.read('checkpoint', NOTE_BYTES_MAX)
  }

  /** The same. Where there is none, nothing can be checked. */
  async checkpoint(): Promise<Uint8Array> {
    const note = await this.note()
    if (note === undefined) throw unchecked('fetch', `${this.url}/checkpoint is not there`)
    return note
  }

  /** The log has signed a tree of so many entries, and may have dropped the partial tiles that are full in it. */
  grow(treeSize: number): void {
    this.#signedSize = Math.max(this.#signedSize, treeSize)
  }

  /**
   * A hash tile or entry bundle of a signed tree. A partial one is cut from the full one: at once where a signed tree has
   * it full, else when it is missing, as the log may have grown since. Throws `AuditFailure`, pending, when neither is
   * there or of its length.
   */
  async tile(tile: Tile): Promise<Uint8Array> {
    const full = { ...tile, width: TILE_WIDTH }
    const isFull = tileWidth(tile.level, tile.index, this.#signedSize) === TILE_WIDTH
    const ways = tile.width === TILE_WIDTH ? [tile] : isFull ? [full, tile] : [tile, full]
    let failure: AuditFailure | undefined
    for (const way of ways) {
      try {
        const bytes = await this.#readTile(way)
        if (bytes !== undefined) return way === full ? bytes.subarray(0, prefixBytes(tile, bytes)) : bytes
      } catch (error) {
        if (!(error instanceof AuditFailure && error.isPending)) throw error
        failure ??= error
      }
    }
    throw (
      failure ?? pending('fetch', `${this.url}/${formatTilePath(tile)} is missing, and a signed tree has it`)
    )
  }

  async #readTile(tile: Tile): Promise<Uint8Array | undefined> {
    const bytesMax = tile.width * (tile.level === 'entries' ? ENTRY_BYTES_MAX : HASH_BYTES)
    const bytes = await this.#source.read(formatTilePath(tile), bytesMax)
    if (bytes !== undefined && tile.level !== 'entries' && bytes.length !== bytesMax) {
      throw pending('tiles', `${this.url}/${formatTilePath(tile)} has ${bytes.length} bytes, not ${bytesMax}`)
    }
    return bytes
  }
}

/** Asks the readers in turn. Rejects with the first one's failure. */
export function firstOf(readers: readonly TileReader[]): TileReader {
  return {
    async tile(tile) {
      let failure: unknown
      for (const reader of readers) {
        try {
          return await reader.tile(tile)
        } catch (error) {
          if (!(error instanceof AuditFailure)) throw error
          failure ??= error
        }
      }
      throw failure
    },
  }
}

/**
 * The hashes of complete subtrees of a tree of `treeSize`, in order, out of its tiles; each tile is fetched once. A
 * proof made of them is worth no more than the root it leads to.
 */
export async function readNodes(
  log: TileReader,
  nodes: readonly Node[],
  treeSize: number,
): Promise<readonly Hash[]> {
  const tiles = new Map<string, Promise<Uint8Array>>()
  const tileOf = (node: Node) => {
    const { level, index } = tileOfNode(node)
    const tile = { level, index, width: tileWidth(level, index, treeSize) }
    const path = formatTilePath(tile)
    const bytes = tiles.get(path) ?? log.tile(tile)
    tiles.set(path, bytes)
    return bytes
  }
  return Promise.all(nodes.map(async node => hashInTile(await tileOf(node), node)))
}

/** The inclusion proof of a leaf, out of tiles: worth no more than the root it leads to. */
export async function readInclusion(log: TileReader, index: number, treeSize: number): Promise<Hash[]> {
  const hashes = await readNodes(log, inclusionNodes(index, treeSize), treeSize)
  return proveInclusion(index, treeSize, () => hashes)
}

/** Keeps the last few megabytes that were read, in case they are asked for again. */
export function keepingRecent(reader: TileReader): TileReader {
  const files = new Map<string, Uint8Array>()
  let kept = 0
  return {
    async tile(tile) {
      const path = formatTilePath(tile)
      const known = files.get(path)
      if (known !== undefined) return known
      const bytes = await reader.tile(tile)
      if (!files.has(path)) kept += bytes.length
      files.set(path, bytes)
      for (const [oldest, { length }] of files) {
        if (kept <= RECENT_BYTES) break
        files.delete(oldest)
        kept -= length
      }
      return bytes
    },
  }
}

/** How many bytes of a full tile or bundle a partial one has. */
function prefixBytes({ level, width }: Tile, full: Uint8Array): number {
  if (level !== 'entries') return width * HASH_BYTES
  let end = 0
  for (let entry = 0; entry < width && end < full.length; entry++) {
    end += 2 + ((full[end]! << 8) | (full[end + 1] ?? 0))
  }
  return end
}

const RECENT_BYTES = 8 * 1024 * 1024
/** As much as a note can have that we open; the specification asks for at least 16 signatures. */
const NOTE_BYTES_MAX = 1_000_000
/** With the two bytes of its length. */
const ENTRY_BYTES_MAX = 2 + BUNDLE_ENTRY_BYTES_MAX
