/**
 * One entry bundle taken apart: leaf hashes, and the form of every entry; the key log's entries begin with a VRF hash. The next
 * bundle reuses the arrays.
 */

import { decodeBase64 } from '#primitives'
import { messageOf } from '../../errors.ts'
import { parseEntry, VRF_HASH_BYTES, VRF_HASH_CHARS } from '../../log/entry.ts'
import { HASH_BYTES, hashLeaf } from '../../log/hash.ts'
import { TILE_WIDTH, tileWidth } from '../../log/tile.ts'
import type { Findings } from './fault.ts'
import type { RawTiles } from './raw-log.ts'

/** A part of all hashes: their first byte is at least `from` and below `to`. */
export interface HashRange {
  readonly from: number
  readonly to: number
}

export abstract class LeafBlock {
  /** The bundle's index, and how many of the tree's entries it should have. */
  index = 0
  width = 0
  /** How many of them were readable. */
  count = 0
  /** The readable ones: where each begins in the bundle, and its leaf hash. */
  readonly offsets = new Uint32Array(TILE_WIDTH)
  readonly leafHashes = new Uint8Array(TILE_WIDTH * HASH_BYTES)
  /** 1 where the entry has its form and is, as far as known, the logged one: only then what it says counts. */
  readonly isSound = new Uint8Array(TILE_WIDTH)

  get firstIndex(): number {
    return this.index * TILE_WIDTH
  }

  /** Reads a bundle and reports whatever is wrong with its form. */
  read(raw: RawTiles, index: number, treeSize: number, findings: Findings): void {
    const { bundle, fault } = this.cut(raw, index, treeSize)
    for (let at = 0; at < this.count; at++) {
      const entry = entryAt(bundle, this.offsets[at]!)
      this.leafHashes.set(hashLeaf(entry), at * HASH_BYTES)
      try {
        this.take(entry, at)
        this.isSound[at] = 1
      } catch (error) {
        this.#report(raw, findings, this.offsets[at]!, `entry ${this.firstIndex + at}: ${messageOf(error)}`)
      }
    }
    // Reported last: a wrong length first spoils an entry, and only then the bundle's end.
    if (fault !== undefined) this.#report(raw, findings, fault.offset, fault.detail)
  }

  /** Keeps what an entry says. Throws for one that has not its form. */
  protected abstract take(entry: Uint8Array, at: number): void

  protected cut(raw: RawTiles, index: number, treeSize: number): CutBundle {
    this.index = index
    this.width = tileWidth('entries', index, treeSize)
    this.count = 0
    this.isSound.fill(0)
    const bundle = raw.bundle(index)
    if (bundle === undefined) {
      return { bundle: NO_BYTES, fault: { offset: undefined, detail: `bundle ${index} is missing` } }
    }
    let at = 0
    while (this.count < this.width) {
      const end = at + LENGTH_BYTES + ((bundle[at]! << 8) | bundle[at + 1]!)
      if (at + LENGTH_BYTES > bundle.length || end > bundle.length) {
        return {
          bundle,
          fault: { offset: at, detail: `bundle ends inside entry ${this.firstIndex + this.count}` },
        }
      }
      this.offsets[this.count++] = at + LENGTH_BYTES
      at = end
    }
    if (at === bundle.length) return { bundle }
    return { bundle, fault: { offset: at, detail: 'bundle goes on beyond the tree' } }
  }

  #report(raw: RawTiles, findings: Findings, offset: number | undefined, detail: string): void {
    findings.report({
      ...raw.entriesAre,
      key: `${this.index}`,
      ...(offset === undefined ? {} : { offset }),
      detail,
      isDerived: false,
    })
  }
}

export class EntryBlock extends LeafBlock {
  readonly vrfHashes = new Uint8Array(TILE_WIDTH * VRF_HASH_BYTES)

  /** Reads again, of a bundle, the VRF hashes in a range only. */
  readRange(raw: RawTiles, index: number, treeSize: number, range: HashRange): void {
    const { bundle } = this.cut(raw, index, treeSize)
    for (let at = 0; at < this.count; at++) {
      const entry = entryAt(bundle, this.offsets[at]!)
      const firstByte = firstHashByte(entry)
      if (firstByte === undefined || firstByte < range.from || firstByte >= range.to) continue
      this.vrfHashes.set(decodeBase64(latin1(entry.subarray(0, VRF_HASH_CHARS))), at * VRF_HASH_BYTES)
      this.isSound[at] = 1
    }
  }

  protected take(entry: Uint8Array, at: number): void {
    this.vrfHashes.set(parseEntry(entry).vrfHash, at * VRF_HASH_BYTES)
  }
}

/** Splits all hashes into as many parts as keep the entries of each within a bound. */
export function rangesFor(treeSize: number, entriesPerRange: number): HashRange[] {
  const parts = Math.min(256, Math.max(1, Math.ceil(treeSize / entriesPerRange)))
  return Array.from({ length: parts }, (_, part) => ({
    from: Math.floor((256 * part) / parts),
    to: Math.floor((256 * (part + 1)) / parts),
  }))
}

interface CutBundle {
  readonly bundle: Uint8Array
  /** The fault of the bundle as a whole. */
  readonly fault?: { readonly offset: number | undefined; readonly detail: string }
}

function entryAt(bundle: Uint8Array, offset: number): Uint8Array {
  const length = (bundle[offset - 2]! << 8) | bundle[offset - 1]!
  return bundle.subarray(offset, offset + length)
}

/** The first byte of the VRF hash that the entry begins with, if that is base64. */
function firstHashByte(entry: Uint8Array): number | undefined {
  try {
    return entry.length < VRF_HASH_CHARS ? undefined : decodeBase64(latin1(entry.subarray(0, 4)))[0]
  } catch {
    return undefined
  }
}

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1')
}

const LENGTH_BYTES = 2
const NO_BYTES = new Uint8Array(0)
