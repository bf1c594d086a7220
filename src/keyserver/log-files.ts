/**
 * The log's public files (LOG 4.3, c2sp.org/tlog-tiles): which bytes a path names, and how long they may be kept.
 * Only the canonical spelling of a path within the published tree names anything.
 */

import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { SignalError } from '../errors.ts'
import { GZIP_BUNDLES_MAX } from '../limits.ts'
import { parseTilePath, TILE_WIDTH, type Tile } from '../log/tile.ts'
import { BoundedCache } from '../store/engine/bounded-cache.ts'
import type { PublicFile } from '../transport/route.ts'
import type { PublishedLog } from './published-log.ts'

type Log = Pick<PublishedLog, 'head' | 'tileVolatile'>

export class LogFiles {
  readonly #log: Log
  /** Sets the files of this log apart from those of another that was served at the same address. */
  readonly #logTag: string
  /** The last checkpoint, and what its cosignatures add to its tag. */
  #tagged: { readonly checkpoint: string; readonly tag: string } | undefined
  readonly #gzipped = new BoundedCache<string, Uint8Array | Promise<Uint8Array>>(GZIP_BUNDLES_MAX)

  constructor(log: Log, logTag: string) {
    this.#log = log
    this.#logTag = logTag
  }

  /** The file at a path that begins with a slash; undefined for every other spelling and beyond the tree. */
  readonly find = (path: string): PublicFile | undefined =>
    path === '/checkpoint' ? this.#checkpoint() : this.#tile(path.slice(1))

  #checkpoint(): PublicFile {
    const { checkpoint, treeSize } = this.#log.head
    return {
      bytes: checkpoint,
      contentType: 'text/plain; charset=utf-8',
      cacheControl: 'no-cache',
      etag: `"${this.#logTag}-${treeSize}${this.#cosignatureTag(checkpoint)}"`,
    }
  }

  /** A log signs one checkpoint for each size; witnesses cosign it again and again. */
  #cosignatureTag(checkpoint: string): string {
    if (this.#tagged?.checkpoint !== checkpoint) {
      const signatures = checkpoint.slice(checkpoint.lastIndexOf('\n\n') + 2)
      const isBare = signatures.indexOf('\n') === signatures.length - 1
      const hash = createHash('sha256').update(signatures).digest('base64url')
      this.#tagged = { checkpoint, tag: isBare ? '' : `-${hash.slice(0, TAG_CHARS)}` }
    }
    return this.#tagged.tag
  }

  #tile(path: string): PublicFile | undefined {
    const tile = parsePath(path)
    const bytes = tile === undefined ? undefined : this.#log.tileVolatile(tile)
    if (tile === undefined || bytes === undefined) return undefined
    const file = {
      bytes,
      contentType: 'application/octet-stream',
      cacheControl: tile.width === TILE_WIDTH ? 'public, max-age=31536000, immutable' : 'public, max-age=60',
      // What a path names never changes.
      etag: `"${this.#logTag}-${path}"`,
    }
    // Hashes do not shrink; the base64 text of entries does.
    return tile.level === 'entries' ? { ...file, gzip: () => this.#gzip(path, bytes) } : file
  }

  #gzip(path: string, bytes: Uint8Array): Uint8Array | Promise<Uint8Array> {
    const known = this.#gzipped.get(path)
    if (known !== undefined) return known
    const pending = compress(new Uint8Array(bytes))
    this.#gzipped.set(path, pending)
    pending.then(
      gzipped => this.#gzipped.set(path, gzipped),
      () => this.#gzipped.delete(path),
    )
    return pending
  }
}

function parsePath(path: string): Tile | undefined {
  try {
    return parseTilePath(path)
  } catch (error) {
    if (error instanceof SignalError) return undefined
    throw error
  }
}

const compress = promisify(gzip)
const TAG_CHARS = 12
