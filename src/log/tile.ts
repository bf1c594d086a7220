/**
 * Hash tiles and entry bundles (c2sp.org/tlog-tiles): their names, how wide they are in a tree, and the hashes in them.
 *
 * A tile of level L holds up to 256 hashes side by side, those of the complete subtrees of level 8 * L; the seven
 * levels between are computed from it. An entry bundle holds the entries whose leaf hashes are in the tile of level 0
 * with the same index. The right-most of each level may be partial; a narrower one is always its prefix.
 */
import { SignalError } from '../errors.ts'
import { HASH_BYTES, type Hash, hashNode, hashNodeAt } from './hash.ts'
import type { Node } from './tree.ts'

/** Levels of the tree in one tile, and hashes on its lowest one. */
export const TILE_HEIGHT = 8
export const TILE_WIDTH = 256
/** The length of an entry is written into a bundle as a uint16. */
export const BUNDLE_ENTRY_BYTES_MAX = 65_535

/** A hash tile of levels 0 to 63, or an entry bundle. `width` counts its hashes or entries: 1 to 256, 256 = full. */
export interface Tile {
  readonly level: number | 'entries'
  readonly index: number
  readonly width: number
}

/** The tile's path without a leading slash, `tile/0/x001/x234/067.p/5`. Throws `MALFORMED` when there is no such. */
export function formatTilePath({ level, index, width }: Tile): string {
  if (!isTile(level, index, width)) {
    throw new SignalError('MALFORMED', `no tile has level ${level}, index ${index} and width ${width}`)
  }
  let groups = threeDigits(index % 1000)
  for (let rest = Math.floor(index / 1000); rest > 0; rest = Math.floor(rest / 1000)) {
    groups = `x${threeDigits(rest % 1000)}/${groups}`
  }
  return width === TILE_WIDTH ? `tile/${level}/${groups}` : `tile/${level}/${groups}.p/${width}`
}

/** The tile of a path as `formatTilePath` writes it. Throws `MALFORMED` for any other spelling. */
export function parseTilePath(path: string): Tile {
  if (!path.startsWith('tile/')) throw noTilePath(path)
  const levelEnd = path.indexOf('/', LEVEL_START)
  const level = levelAt(path, levelEnd)
  let at = levelEnd + 1
  let index = 0
  // A further group follows each group with an x; the first is never zero, or it would not be there.
  while (path.charCodeAt(at) === LETTER_X) {
    const group = threeDigitsAt(path, at + 1)
    if (group < 0 || path.charCodeAt(at + 4) !== SLASH || (index === 0 && group === 0)) throw noTilePath(path)
    index = index * 1000 + group
    at += 5
  }
  const group = threeDigitsAt(path, at)
  index = index * 1000 + group
  at += 3
  const width = at === path.length ? TILE_WIDTH : partialWidthAt(path, at)
  if (group < 0 || !isTile(level, index, width)) throw noTilePath(path)
  return { level, index, width }
}

/** How wide that tile is in a tree of `treeSize`: 256 when full, 0 when the tree does not reach it. */
export function tileWidth(level: number | 'entries', index: number, treeSize: number): number {
  const hashes = hashesOnLevel(level === 'entries' ? 0 : level, treeSize)
  return Math.max(0, Math.min(TILE_WIDTH, hashes - index * TILE_WIDTH))
}

/** Part of a hash tile: its positions from `start` up to, not including, `end`. */
export interface TileRange {
  readonly level: number
  readonly index: number
  readonly start: number
  readonly end: number
}

/**
 * Where the hash of a node comes from: the tile, and the positions in it that the node covers (a power of two of
 * them, one when the hash is stored as it is).
 */
export function tileOfNode({ level, index }: Node): TileRange {
  const covered = 1 << (level % TILE_HEIGHT)
  const perTile = TILE_WIDTH / covered
  const start = (index % perTile) * covered
  return {
    level: Math.floor(level / TILE_HEIGHT),
    index: Math.floor(index / perTile),
    start,
    end: start + covered,
  }
}

/**
 * The hash of a node out of the bytes of its tile, which may be partial as long as it reaches over the node. Always
 * a copy. Throws `MALFORMED` when the tile is too narrow.
 */
export function hashInTile(tileBytes: Uint8Array, node: Node): Hash {
  const { start, end } = tileOfNode(node)
  if (tileBytes.length < end * HASH_BYTES) {
    throw new SignalError('MALFORMED', `tile of ${tileBytes.length} bytes does not reach position ${end}`)
  }
  if (end - start === 1) return copyHash(tileBytes, start)
  let hashes: Hash[] = []
  for (let at = start; at < end; at += 2) hashes.push(hashNodeAt(tileBytes, at * HASH_BYTES))
  while (hashes.length > 1) {
    const parents: Hash[] = []
    for (let at = 0; at < hashes.length; at += 2) parents.push(hashNode(hashes[at]!, hashes[at + 1]!))
    hashes = parents
  }
  return hashes[0]!
}

/**
 * All nodes above the lowest level of a full tile, side by side: the 128 of level 1, the 64 of level 2, and so on to
 * the one of level 8; 255 hashes, as an auditor compares them with the tiles above. Throws `MALFORMED`
 * unless `tileBytes` has 8,192 bytes.
 */
export function interiorHashes(tileBytes: Uint8Array): Uint8Array {
  assertFullTile(tileBytes)
  const interiors = new Uint8Array((TILE_WIDTH - 1) * HASH_BYTES)
  const half = TILE_WIDTH / 2
  for (let at = 0; at < half; at++) {
    interiors.set(hashNodeAt(tileBytes, at * 2 * HASH_BYTES), at * HASH_BYTES)
  }
  // Further up, the children of the node at position 128 + n are those at 2n and 2n + 1.
  for (let at = half; at < TILE_WIDTH - 1; at++) {
    interiors.set(hashNodeAt(interiors, (at - half) * 2 * HASH_BYTES), at * HASH_BYTES)
  }
  return interiors
}

/**
 * The entries of a bundle, as views into it. Entries without bytes are legal here, though we write none. Throws
 * `MALFORMED` when the bundle ends inside an entry or holds more than 256.
 */
export function parseBundle(bundle: Uint8Array): Uint8Array[] {
  const entries: Uint8Array[] = []
  for (let at = 0; at < bundle.length; ) {
    const end = entryEnd(bundle, at)
    entries.push(bundle.subarray(at + LENGTH_BYTES, end))
    at = end
  }
  if (entries.length > TILE_WIDTH) {
    throw new SignalError('MALFORMED', `bundle of ${entries.length} entries exceeds 256`)
  }
  return entries
}

/** The entry at a position of 0 to 255, as a view into the bundle. Throws `MALFORMED` when there is none. */
export function entryInBundle(bundle: Uint8Array, position: number): Uint8Array {
  if (position < 0) throw new SignalError('MALFORMED', `bundle has no position ${position}`)
  let at = 0
  for (let skipped = 0; skipped < position; skipped++) at = entryEnd(bundle, at)
  return bundle.subarray(at + LENGTH_BYTES, entryEnd(bundle, at))
}

function isTile(level: number | 'entries', index: number, width: number): boolean {
  const isLevel = level === 'entries' || (Number.isInteger(level) && level >= 0 && level <= TILE_LEVEL_MAX)
  const isWidth = Number.isInteger(width) && width >= 1 && width <= TILE_WIDTH
  return isLevel && isWidth && Number.isSafeInteger(index) && index >= 0
}

function noTilePath(path: string): SignalError {
  return new SignalError('MALFORMED', `${JSON.stringify(path.slice(0, 80))} is not the path of a tile`)
}

/** `entries`, a number without leading zeros, or -1. */
function levelAt(path: string, end: number): number | 'entries' {
  if (end === LEVEL_START + 7 && path.startsWith('entries', LEVEL_START)) return 'entries'
  return numberAt(path, LEVEL_START, end)
}

/** The width behind `.p/`, at most 255 and without leading zeros, or -1. */
function partialWidthAt(path: string, at: number): number {
  if (!path.startsWith('.p/', at)) return -1
  const width = numberAt(path, at + 3, path.length)
  return width < TILE_WIDTH ? width : -1
}

/** The number that fills `path` from `start` to `end`, however large, or -1. */
function numberAt(path: string, start: number, end: number): number {
  const digits = end - start
  if (digits < 1 || (digits > 1 && path.charCodeAt(start) === DIGIT_0)) return -1
  let value = 0
  for (let at = start; at < end; at++) {
    const digit = path.charCodeAt(at) - DIGIT_0
    if (!(digit >= 0 && digit <= 9)) return -1
    value = value * 10 + digit
  }
  return value
}

function threeDigitsAt(path: string, at: number): number {
  let value = 0
  for (let offset = 0; offset < 3; offset++) {
    const digit = path.charCodeAt(at + offset) - DIGIT_0
    if (!(digit >= 0 && digit <= 9)) return -1
    value = value * 10 + digit
  }
  return value
}

function threeDigits(value: number): string {
  if (value >= 100) return `${value}`
  return value >= 10 ? `0${value}` : `00${value}`
}

/** How many complete subtrees of 256^level leaves the tree has, which are the hashes in that level's tiles. */
function hashesOnLevel(level: number, treeSize: number): number {
  return Math.floor(treeSize / TILE_WIDTH ** level)
}

function copyHash(hashes: Uint8Array, position: number): Hash {
  const start = position * HASH_BYTES
  const copy = new Uint8Array(HASH_BYTES)
  for (let at = 0; at < HASH_BYTES; at++) copy[at] = hashes[start + at]!
  return copy
}

function assertFullTile(tileBytes: Uint8Array): void {
  if (tileBytes.length !== TILE_WIDTH * HASH_BYTES) {
    throw new SignalError('MALFORMED', `tile of ${tileBytes.length} bytes is not full`)
  }
}

/** Where the entry that starts at `at` with its length ends. */
function entryEnd(bundle: Uint8Array, at: number): number {
  const end = at + LENGTH_BYTES + ((bundle[at]! << 8) | bundle[at + 1]!)
  // Bytes of a length beyond the end count as zero; the two that a length takes are then too many all the same.
  if (end > bundle.length) throw new SignalError('MALFORMED', `bundle ends inside the entry at byte ${at}`)
  return end
}

const TILE_LEVEL_MAX = 63
const LENGTH_BYTES = 2
const LEVEL_START = 'tile/'.length
const SLASH = 0x2f
const DIGIT_0 = 0x30
const LETTER_X = 0x78
