/**
 * An auditor's crawl of the static surface (c2sp.org/tlog-tiles): fetches every file that a signed checkpoint implies,
 * recomputes the tree from entries and from tiles, and trusts no tile by itself.
 */

import { fromBase64, leafHash, nodeHash, rootOfLeaves } from './tree.ts'
import { check } from './verification-error.ts'
import { type Checkpoint, type LogKeys, openCheckpoint } from './verifier.ts'

export interface CrawledLog {
  readonly checkpoint: Checkpoint
  /** Every file by its path; full and widest partial forms. */
  readonly files: ReadonlyMap<string, Buffer>
  readonly entries: readonly LogEntry[]
  /** The root of the first `size` entries, from the highest tiles that hold it. */
  rootAt(size: number): Buffer
}

export interface LogEntry {
  readonly vrfHash: string
  readonly publicKey: string
}

/** Fetches `<url>/checkpoint` and checks its signature. */
export async function fetchCheckpoint(url: string, keys: LogKeys): Promise<Checkpoint> {
  return openCheckpoint((await fetchFile(url, 'checkpoint')).toString(), keys)
}

/** Fetches the checkpoint and all that it implies. Throws at the first thing that does not hold. */
export async function crawl(url: string, keys: LogKeys): Promise<CrawledLog> {
  const files = new Map<string, Buffer>()
  const fetchTile = async (level: number | 'entries', index: number, width: number) => {
    const path = tilePath(level, index, width)
    const bytes = await fetchFile(url, path)
    files.set(path, bytes)
    return bytes
  }
  files.set('checkpoint', await fetchFile(url, 'checkpoint'))
  const checkpoint = openCheckpoint(files.get('checkpoint')!.toString(), keys)

  const bundles = await eachTile(checkpoint.size, async (index, width) =>
    splitBundle(await fetchTile('entries', index, width), width),
  )
  const leaves = bundles.flat().map(leafHash)
  check(rootOfLeaves(leaves).equals(checkpoint.rootHash), 'root', 'the entries have another root')

  const levels: Buffer[][] = []
  for (let hashes = checkpoint.size; hashes > 0; hashes = Math.floor(hashes / WIDTH)) {
    const level = levels.length
    const tiles = await eachTile(hashes, async (index, width) =>
      splitTile(await fetchTile(level, index, width), width),
    )
    levels.push(tiles.flat())
    checkLevel(levels[level]!, level === 0 ? leaves : fullTileRoots(levels[level - 1]!), level)
  }
  const rootAt = (size: number) => rootOfTiles(levels, size)
  check(rootAt(checkpoint.size).equals(checkpoint.rootHash), 'root', 'the tiles have another root')
  return { checkpoint, files, entries: bundles.flat().map(readEntry), rootAt }
}

/**
 * Fetches narrower partial forms of each level's last tile and of the last bundle (all of them where `step` is 1)
 * and checks that they are what the widest form begins with; returns how many it compared.
 */
export async function checkPartialForms(url: string, log: CrawledLog, step = 1): Promise<number> {
  let compared = 0
  for (const [path, bytes] of log.files) {
    const [, full, widest] = /^(tile\/.+)\.p\/(\d+)$/.exec(path) ?? []
    if (full === undefined) continue
    const ends = full.startsWith('tile/entries') ? entryEnds(bytes) : undefined
    for (let width = 1; width < Number(widest); width += step, compared++) {
      const partial = await fetchFile(url, `${full}.p/${width}`)
      const expected = bytes.subarray(0, ends?.[width - 1] ?? width * HASH_BYTES)
      check(partial.equals(expected), 'tile', `${full}.p/${width} is not a prefix`)
    }
  }
  return compared
}

/** `tile/<L>/<N>` or `tile/<L>/<N>.p/<W>`, the index in groups of three digits. */
export function tilePath(level: number | 'entries', index: number, width: number): string {
  let digits = `${index % 1000}`.padStart(3, '0')
  for (let rest = Math.floor(index / 1000); rest > 0; rest = Math.floor(rest / 1000)) {
    digits = `x${`${rest % 1000}`.padStart(3, '0')}/${digits}`
  }
  return `tile/${level}/${digits}${width === WIDTH ? '' : `.p/${width}`}`
}

async function fetchFile(url: string, path: string): Promise<Buffer> {
  const answer = await fetch(`${url}/${path}`, { redirect: 'error' })
  check(answer.status === 200, 'fetch', `${path} answers ${answer.status}`)
  const expected = path === 'checkpoint' ? 'text/plain; charset=utf-8' : 'application/octet-stream'
  const contentType = answer.headers.get('content-type')
  check(contentType === expected, 'fetch', `${path} is of type ${contentType}`)
  return Buffer.from(await answer.arrayBuffer())
}

/** Runs `read` for each tile that holds `hashes` hashes, a few at a time, and returns the results in order. */
async function eachTile<Result>(
  hashes: number,
  read: (index: number, width: number) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  const tiles = Math.ceil(hashes / WIDTH)
  for (let first = 0; first < tiles; first += FETCHES_AT_ONCE) {
    const count = Math.min(FETCHES_AT_ONCE, tiles - first)
    const indexes = Array.from({ length: count }, (_, offset) => first + offset)
    const widthOf = (index: number) => Math.min(WIDTH, hashes - index * WIDTH)
    results.push(...(await Promise.all(indexes.map(index => read(index, widthOf(index))))))
  }
  return results
}

function splitTile(bytes: Buffer, width: number): Buffer[] {
  check(bytes.length === width * HASH_BYTES, 'tile', `${bytes.length} bytes for ${width} hashes`)
  return Array.from({ length: width }, (_, at) => bytes.subarray(at * HASH_BYTES, (at + 1) * HASH_BYTES))
}

function splitBundle(bytes: Buffer, width: number): Buffer[] {
  const ends = entryEnds(bytes)
  check(ends.length === width, 'entry', `a bundle has ${ends.length} of ${width} entries`)
  return ends.map((end, at) => bytes.subarray((ends[at - 1] ?? 0) + 2, end))
}

/** Where each entry of a bundle ends: uint16 length, bytes, and again. */
function entryEnds(bundle: Buffer): number[] {
  const ends: number[] = []
  for (let at = 0; at < bundle.length; ends.push(at)) {
    check(at + 2 <= bundle.length, 'entry', 'a bundle ends inside a length')
    at += 2 + bundle.readUInt16BE(at)
    check(at <= bundle.length, 'entry', 'a bundle ends inside an entry')
  }
  return ends
}

/** An entry is exactly two lines of canonical base64, the first of 64 bytes. */
function readEntry(entry: Buffer): LogEntry {
  const [vrfHash, publicKey, end, ...more] = entry.toString('latin1').split('\n')
  check(end === '' && more.length === 0, 'entry', 'not two lines')
  check(fromBase64(vrfHash!)?.length === 64, 'entry', 'the first line is not a VRF hash')
  check(publicKey !== '' && fromBase64(publicKey!) !== undefined, 'entry', 'the second line is not a key')
  return { vrfHash: vrfHash!, publicKey: publicKey! }
}

function checkLevel(stored: readonly Buffer[], computed: readonly Buffer[], level: number): void {
  const isSame = stored.length === computed.length && stored.every((hash, at) => hash.equals(computed[at]!))
  check(isSame, 'tile', `level ${level} is not what the level below gives`)
}

/** The hashes that the level above holds: one for each full tile. */
function fullTileRoots(hashes: readonly Buffer[]): Buffer[] {
  const tiles = Math.floor(hashes.length / WIDTH)
  return Array.from({ length: tiles }, (_, at) => rootOfLeaves(hashes, at * WIDTH, (at + 1) * WIDTH))
}

/** The complete subtrees of a tree of `size`, the smallest and last one first, each hashed to the one before it. */
function rootOfTiles(levels: readonly (readonly Buffer[])[], size: number): Buffer {
  let root: Buffer | undefined
  for (let height = 0, start = size; start > 0; height++) {
    const width = 2 ** height
    if ((start / width) % 2 === 0) continue
    start -= width
    const subtree = subtreeOfTiles(levels, height, start / width)
    root = root === undefined ? subtree : nodeHash(subtree, root)
  }
  return root ?? rootOfLeaves([])
}

/** The hash of 2^height entries, from the tiles of the level at or below it. */
function subtreeOfTiles(levels: readonly (readonly Buffer[])[], height: number, index: number): Buffer {
  const level = Math.floor(height / 8)
  const hashes = 2 ** (height % 8)
  return rootOfLeaves(levels[level]!, index * hashes, (index + 1) * hashes)
}

const WIDTH = 256
const HASH_BYTES = 32
const FETCHES_AT_ONCE = 16
