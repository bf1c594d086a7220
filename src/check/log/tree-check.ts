/**
 * The tree of a stored log: the check computes every hash tile anew and compares it, from the entries up to the
 * signed root.
 *
 * Where an entry and its leaf hash disagree, one of the two was altered. The level above tells which: the tile's hash
 * in level 1 or, for the last tile, the signed root. So the check names a wrong byte where it is, and compares the
 * tiles above with the signed tree.
 */

import { equalHashes, HASH_BYTES, type Hash } from '../../log/hash.ts'
import { interiorHashes, TILE_HEIGHT, TILE_WIDTH, tileWidth } from '../../log/tile.ts'
import { foldRoots, RightEdge } from '../../log/tree.ts'
import { tileKey } from '../../store/engine/keys.ts'
import type { LeafBlock } from './entry-block.ts'
import type { Findings } from './fault.ts'
import type { RawTiles } from './raw-log.ts'

export class TreeCheck {
  readonly #raw: RawTiles
  readonly #treeSize: number
  readonly #signedRoot: Hash | undefined
  readonly #findings: Findings
  /** The tree over the full tiles of level 0, each a leaf. */
  readonly #fullTiles = new RightEdge(0, [])
  #lastTile = new RightEdge(0, [])
  /** The tiles of level 1 and up as computed so far. */
  readonly #upper: UpperTile[] = []
  /** Neither the entries nor the row gave a tile's hashes. */
  #isLost = false

  /** `signedRoot` is the checkpoint's root hash, verified or not. */
  constructor(raw: RawTiles, treeSize: number, signedRoot: Hash | undefined, findings: Findings) {
    this.#raw = raw
    this.#treeSize = treeSize
    this.#signedRoot = signedRoot
    this.#findings = findings
  }

  /** Takes the bundles in order. An entry that is not the logged one is no longer sound. */
  addBlock(block: LeafBlock): void {
    const stored = this.#raw.tile(0, block.index)
    const bytes = block.width * HASH_BYTES
    const fromEntries = block.count === block.width ? block.leafHashes.slice(0, bytes) : undefined
    const fromTile = stored !== undefined && stored.length >= bytes ? stored.subarray(0, bytes) : undefined
    const isSame = fromEntries !== undefined && fromTile !== undefined && equalHashes(fromEntries, fromTile)
    const hashes = isSame ? fromEntries : this.#choose(block, fromEntries, fromTile)
    if (hashes === undefined) {
      this.#isLost = true
      this.#reportTile(0, block.index, undefined, `tile is lost with its entries`)
      return
    }
    if (hashes === fromTile) this.#judgeEntries(block, hashes)
    this.#judgeTile(0, block.index, stored, hashes)
    this.#append(block, hashes)
  }

  /** Checks the partial tiles after the last bundle. Returns the root, or undefined when the tree is lost. */
  finish(): Hash | undefined {
    this.#findStrayTiles()
    // Above a lost tile nothing can be compared.
    if (this.#isLost) return undefined
    for (const { level, index, length, hashes } of this.#upper) {
      if (length > 0) this.#judgeTile(level, index, this.#raw.tile(level, index), hashes)
    }
    return foldRoots([...this.#fullTiles.roots, ...this.#lastTile.roots])
  }

  /**
   * Chooses between the entries' hashes and the row's: the ones that lead to the hash above; in doubt, the entries'.
   */
  #choose(
    block: LeafBlock,
    fromEntries: Uint8Array | undefined,
    fromTile: Uint8Array | undefined,
  ): Uint8Array | undefined {
    if (fromEntries === undefined || fromTile === undefined) return fromEntries ?? fromTile
    const isFull = block.width === TILE_WIDTH
    const above = isFull ? this.#hashAbove(block.index) : this.#signedRoot
    if (above === undefined) return fromEntries
    const leadsUp = (hashes: Uint8Array) =>
      equalHashes(isFull ? rootOfFull(hashes) : this.#rootWith(hashes), above)
    return !leadsUp(fromEntries) && leadsUp(fromTile) ? fromTile : fromEntries
  }

  /** The hash of a full tile of level 0, from the tile above. */
  #hashAbove(index: number): Hash | undefined {
    const at = (index % TILE_WIDTH) * HASH_BYTES
    const hash = this.#raw.tile(1, Math.floor(index / TILE_WIDTH))?.subarray(at, at + HASH_BYTES)
    return hash?.length === HASH_BYTES ? hash : undefined
  }

  #rootWith(lastHashes: Uint8Array): Hash {
    return foldRoots([...this.#fullTiles.roots, ...edgeOf(lastHashes).roots])
  }

  #judgeEntries(block: LeafBlock, hashes: Uint8Array): void {
    for (let at = 0; at < block.count; at++) {
      if (hasSameHash(block.leafHashes, hashes, at)) continue
      // An entry with a broken form has been reported.
      if (block.isSound[at] === 1) {
        this.#findings.report({
          ...this.#raw.entriesAre,
          key: `${block.index}`,
          offset: block.offsets[at]!,
          detail: `entry ${block.firstIndex + at} is not the one that was logged: it has another leaf hash`,
          isDerived: false,
        })
      }
      block.isSound[at] = 0
    }
  }

  #judgeTile(level: number, index: number, stored: Uint8Array | undefined, hashes: Uint8Array): void {
    const offset = firstDifference(stored ?? new Uint8Array(0), hashes)
    if (stored !== undefined && offset === undefined) return
    const detail =
      stored === undefined
        ? 'tile is missing'
        : stored.length !== hashes.length
          ? `tile has ${stored.length} bytes, not ${hashes.length}`
          : `hash ${Math.floor(offset! / HASH_BYTES)} of the tile is not that of ${level === 0 ? 'its entry' : 'the tile below'}`
    this.#reportTile(level, index, stored === undefined ? undefined : offset, detail)
    const value = hashes.slice()
    this.#correct(tileKey(level, index), value)
  }

  #append(block: LeafBlock, hashes: Uint8Array): void {
    if (this.#isLost) return
    if (block.width < TILE_WIDTH) {
      this.#lastTile = edgeOf(hashes)
      return
    }
    const root = rootOfFull(hashes)
    this.#appendUpper(1, root)
    this.#fullTiles.append(root, (level, hash) => {
      if (level % TILE_HEIGHT === 0) this.#appendUpper(1 + level / TILE_HEIGHT, hash)
    })
  }

  #appendUpper(level: number, hash: Hash): void {
    const tile = this.#upper[level - 1] ?? new UpperTile(level)
    this.#upper[level - 1] = tile
    tile.append(hash)
    if (!tile.isFull) return
    this.#judgeTile(level, tile.index, this.#raw.tile(level, tile.index), tile.hashes)
    tile.next()
  }

  #findStrayTiles(): void {
    for (const key of this.#raw.keys(this.#raw.tilesAre.table)) {
      const bytes = Buffer.from(key)
      const isKey = bytes.length === TILE_KEY_BYTES
      const level = isKey ? bytes[0]! : -1
      const index = isKey ? bytes.readUIntBE(1, TILE_KEY_BYTES - 1) : -1
      if (isKey && tileWidth(level, index, this.#treeSize) > 0) continue
      const name = isKey ? `${level}/${index}` : bytes.toString('hex')
      this.#findings.report({
        ...this.#raw.tilesAre,
        key: name,
        detail: 'the tree has no such tile',
        isDerived: true,
      })
      this.#correct(bytes, undefined)
    }
  }

  #correct(key: Uint8Array, value: Uint8Array | undefined): void {
    this.#findings.correct({ kind: 'row', table: this.#raw.tilesAre.table, key, value })
  }

  #reportTile(level: number, index: number, offset: number | undefined, detail: string): void {
    this.#findings.report({
      ...this.#raw.tilesAre,
      key: `${level}/${index}`,
      ...(offset === undefined ? {} : { offset }),
      detail,
      isDerived: true,
    })
  }
}

/** A tile above level 0 that is being filled from below. */
class UpperTile {
  readonly level: number
  index = 0
  length = 0
  readonly #bytes = new Uint8Array(TILE_WIDTH * HASH_BYTES)

  constructor(level: number) {
    this.level = level
  }

  get isFull(): boolean {
    return this.length === this.#bytes.length
  }

  /** Returns a view. */
  get hashes(): Uint8Array {
    return this.#bytes.subarray(0, this.length)
  }

  append(hash: Hash): void {
    this.#bytes.set(hash, this.length)
    this.length += HASH_BYTES
  }

  next(): void {
    this.index++
    this.length = 0
  }
}

function rootOfFull(hashes: Uint8Array): Hash {
  return interiorHashes(hashes).slice(-HASH_BYTES)
}

function edgeOf(hashes: Uint8Array): RightEdge {
  const edge = new RightEdge(0, [])
  for (let at = 0; at < hashes.length; at += HASH_BYTES) edge.append(hashes.slice(at, at + HASH_BYTES))
  return edge
}

function hasSameHash(a: Uint8Array, b: Uint8Array, position: number): boolean {
  const start = position * HASH_BYTES
  const end = start + HASH_BYTES
  return equalHashes(a.subarray(start, end), b.subarray(start, end))
}

/** The first byte in which two rows differ, where the shorter one's end counts; undefined for equal rows. */
export function firstDifference(a: Uint8Array, b: Uint8Array): number | undefined {
  const shorter = Math.min(a.length, b.length)
  for (let at = 0; at < shorter; at++) if (a[at] !== b[at]) return at
  return a.length === b.length ? undefined : shorter
}

const TILE_KEY_BYTES = 7
