/**
 * The newest entry of each VRF hash, for `--watch` and `--serve`: a file beside the state with a digest for each entry in order, which the
 * crawl appends to, and a table in memory. Only entries of a tree that was verified count.
 *
 * The digest is salted, so that a log can't choose hashes that collide in the table. In memory an entry takes at most 27 bytes.
 */

import { randomBytes } from 'node:crypto'
import { closeSync, fdatasyncSync, fstatSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs'
import { sha256 } from '#primitives'
import { VRF_HASH_CHARS } from '../../src/log/entry.ts'
import { HASH_BYTES } from '../../src/log/hash.ts'

export class HashIndex {
  readonly #file: number
  /** Entries in the file; those below `#verified` are in the table. */
  #size: number
  #verified = 0
  #table = new Table(FIRST_SLOTS)
  readonly #record = Buffer.alloc(DIGEST_BYTES)
  /** The salt, with room for a hash behind it. */
  readonly #input = Buffer.alloc(SALT_BYTES + VRF_HASH_CHARS)

  private constructor(file: number, salt: Buffer, size: number) {
    this.#file = file
    this.#input.set(salt)
    this.#size = size
  }

  /** Begins anew where the file is of another log or form. Throws when it cannot be read or written. */
  static open(path: string, origin: string): HashIndex {
    const file = openSync(path, 'a+', 0o644)
    closeSync(file)
    const both = openSync(path, 'r+')
    const name = Buffer.from(sha256(Buffer.from(`${MAGIC}${origin}`)))
    const header = Buffer.alloc(HEADER_BYTES)
    const read = readSync(both, header, 0, HEADER_BYTES, 0)
    if (read < HEADER_BYTES || !header.subarray(0, HASH_BYTES).equals(name)) {
      ftruncateSync(both)
      const salt = randomBytes(SALT_BYTES)
      writeSync(both, Buffer.concat([name, salt, Buffer.alloc(VERIFIED_BYTES)]), 0, HEADER_BYTES, 0)
      return new HashIndex(both, salt, 0)
    }
    const records = Math.floor((fstatSync(both).size - HEADER_BYTES) / DIGEST_BYTES)
    const index = new HashIndex(both, Buffer.from(header.subarray(SALT_AT, VERIFIED_AT)), records)
    index.#insertUpTo(Math.min(records, Number(header.readBigUInt64BE(VERIFIED_AT))))
    return index
  }

  /** The size of the newest tree that was verified, with all its entries here. */
  get verifiedSize(): number {
    return this.#verified
  }

  /** Goes back to the first entries of a tree, as a crawl begins after them. */
  startAfter(size: number): void {
    if (size < this.#verified) {
      this.#table = new Table(FIRST_SLOTS)
      this.#verified = 0
      this.#insertUpTo(size)
      // Before other entries take the place of those that were verified.
      this.#writeVerified()
    }
    this.#size = size
    ftruncateSync(this.#file, HEADER_BYTES + size * DIGEST_BYTES)
  }

  /** Appends a bundle of a checked form; skips entries that are there already. */
  append(firstIndex: number, bundle: Uint8Array): void {
    const digests: Buffer[] = []
    let index = firstIndex
    for (let at = 0; at < bundle.length; at += 2 + ((bundle[at]! << 8) | bundle[at + 1]!)) {
      if (index++ >= this.#size)
        digests.push(this.#digestOf(bundle.subarray(at + 2, at + 2 + VRF_HASH_CHARS)))
    }
    const bytes = Buffer.concat(digests)
    writeSync(this.#file, bytes, 0, bytes.length, HEADER_BYTES + this.#size * DIGEST_BYTES)
    this.#size += digests.length
  }

  /** All that was appended is of a verified tree. Durable when this returns. */
  verify(): void {
    this.#insertUpTo(this.#size)
    fdatasyncSync(this.#file)
    this.#writeVerified()
  }

  /** The index of the newest entry under a hash in base64. */
  newest(vrfHash: string): number | undefined {
    return this.#find(this.#digestOf(vrfHash))
  }

  /** The indexes of all entries under these hashes from `start` on, in order, each with its hash. */
  *entriesUnder(hashes: readonly string[], start: number): Generator<readonly [string, number]> {
    const wanted = new Map(hashes.map(hash => [this.#digestOf(hash).toString('latin1'), hash]))
    for (const [index, digest] of this.#records(start, this.#verified)) {
      const hash = wanted.get(digest.toString('latin1'))
      if (hash !== undefined) yield [hash, index]
    }
  }

  close(): void {
    closeSync(this.#file)
  }

  #writeVerified(): void {
    const verified = Buffer.alloc(VERIFIED_BYTES)
    verified.writeBigUInt64BE(BigInt(this.#verified))
    writeSync(this.#file, verified, 0, VERIFIED_BYTES, VERIFIED_AT)
    fdatasyncSync(this.#file)
  }

  #insertUpTo(size: number): void {
    for (const [index, digest] of this.#records(this.#verified, size)) {
      if (this.#table.isFull) this.#table = this.#table.doubled()
      this.#table.set(digest.readUInt32BE(), index, other => this.#isRecord(other, digest))
    }
    this.#verified = size
  }

  #find(digest: Buffer): number | undefined {
    return this.#table.get(digest.readUInt32BE(), other => this.#isRecord(other, digest))
  }

  #isRecord(index: number, digest: Buffer): boolean {
    readSync(this.#file, this.#record, 0, DIGEST_BYTES, HEADER_BYTES + index * DIGEST_BYTES)
    return this.#record.equals(digest)
  }

  *#records(start: number, end: number): Generator<readonly [number, Buffer]> {
    const block = Buffer.alloc(BLOCK_RECORDS * DIGEST_BYTES)
    for (let first = start; first < end; first += BLOCK_RECORDS) {
      const records = Math.min(BLOCK_RECORDS, end - first)
      readSync(this.#file, block, 0, records * DIGEST_BYTES, HEADER_BYTES + first * DIGEST_BYTES)
      for (let at = 0; at < records; at++)
        yield [first + at, block.subarray(at * DIGEST_BYTES, (at + 1) * DIGEST_BYTES)]
    }
  }

  /** Of at most 88 characters of base64. */
  #digestOf(hash: Uint8Array | string): Buffer {
    const input = this.#input.subarray(0, SALT_BYTES + hash.length)
    if (typeof hash === 'string') input.write(hash, SALT_BYTES, 'latin1')
    else input.set(hash, SALT_BYTES)
    return Buffer.from(sha256(input).buffer)
  }
}

/** Open addressing: for each hash the first bytes of its digest, and the index of its newest entry, plus one. */
class Table {
  readonly #marks: Uint32Array
  readonly #indexes: Uint32Array
  #used = 0

  /** A power of two. */
  constructor(slots: number) {
    this.#marks = new Uint32Array(slots)
    this.#indexes = new Uint32Array(slots)
  }

  get isFull(): boolean {
    return this.#used > this.#marks.length * 0.6
  }

  doubled(): Table {
    const table = new Table(this.#marks.length * 2)
    // All are of different hashes.
    for (const [slot, index] of this.#indexes.entries())
      if (index !== 0) table.set(this.#marks[slot]!, index - 1, () => false)
    return table
  }

  set(mark: number, index: number, isSame: (index: number) => boolean): void {
    const slot = this.#slotOf(mark, isSame)
    if (this.#indexes[slot] === 0) this.#used++
    this.#marks[slot] = mark
    this.#indexes[slot] = index + 1
  }

  get(mark: number, isSame: (index: number) => boolean): number | undefined {
    const index = this.#indexes[this.#slotOf(mark, isSame)]!
    return index === 0 ? undefined : index - 1
  }

  /** The slot of that hash, or the free one where it belongs. */
  #slotOf(mark: number, isSame: (index: number) => boolean): number {
    const last = this.#marks.length - 1
    for (let slot = (mark & last) >>> 0; ; slot = (slot + 1) & last) {
      const index = this.#indexes[slot]!
      if (index === 0 || (this.#marks[slot] === mark && isSame(index - 1))) return slot
    }
  }
}

const MAGIC = 'callsign hashes v1\n'
const SALT_BYTES = 16
const VERIFIED_BYTES = 8
const SALT_AT = HASH_BYTES
const VERIFIED_AT = SALT_AT + SALT_BYTES
const HEADER_BYTES = VERIFIED_AT + VERIFIED_BYTES
const DIGEST_BYTES = 32
const BLOCK_RECORDS = 2_048
const FIRST_SLOTS = 4_096
