/**
 * For each VRF hash of a part of the log: its newest leaf index, and how many keys were logged under it. A table of
 * typed arrays with open addressing: 27 bytes a slot, where a Map from hash to numbers would take five times as much.
 *
 * Choice: two hashes that share 16 bytes count as one, as in the lookup index. It happens once in 2^128 pairs.
 */

import { assert } from '../../errors.ts'

export class NewestKeys {
  #slots: number
  #used = 0
  /** Four words a slot: the first 16 bytes of the hash. */
  #hashes: Uint32Array
  /** The newest leaf index + 1; 0 is a free slot. */
  #indexes: Float64Array
  #counts: Uint16Array
  #marks: Uint8Array

  /** Starts with room for so many hashes, and grows. */
  constructor(hashes: number) {
    this.#slots = 2 ** Math.ceil(Math.log2(Math.max(16, hashes / LOAD_MAX)))
    this.#hashes = new Uint32Array(4 * this.#slots)
    this.#indexes = new Float64Array(this.#slots)
    this.#counts = new Uint16Array(this.#slots)
    this.#marks = new Uint8Array(this.#slots)
  }

  clear(): void {
    this.#used = 0
    this.#indexes.fill(0)
    this.#marks.fill(0)
  }

  /** The slot of the hash that begins at `offset`, or undefined. Slots hold until the next `add`. */
  find(bytes: Uint8Array, offset: number): number | undefined {
    const slot = this.#slotOf(word(bytes, offset), bytes, offset)
    return this.#indexes[slot] === 0 ? undefined : slot
  }

  /** The newest leaf index under the slot's hash. */
  index(slot: number): number {
    return this.#indexes[slot]! - 1
  }

  /** How many keys were logged under it. */
  count(slot: number): number {
    return this.#counts[slot]!
  }

  /** Makes `index` the newest of the hash, as the last of `count` keys. Indexes come in ascending order. */
  add(bytes: Uint8Array, offset: number, index: number, count: number): void {
    if (this.#used >= this.#slots * LOAD_MAX) this.#grow()
    const slot = this.#slotOf(word(bytes, offset), bytes, offset)
    assert(index >= this.#indexes[slot]!, 'entries are added in the order of the log')
    if (this.#indexes[slot] === 0) {
      this.#used++
      for (let at = 0; at < 4; at++) this.#hashes[4 * slot + at] = word(bytes, offset + 4 * at)
    }
    this.#indexes[slot] = index + 1
    this.#counts[slot] = Math.min(count, COUNT_MAX)
  }

  mark(slot: number): void {
    this.#marks[slot] = 1
  }

  /** The slots that are in use and not marked. */
  *unmarked(): Generator<number> {
    for (let slot = 0; slot < this.#slots; slot++) {
      if (this.#indexes[slot] !== 0 && this.#marks[slot] === 0) yield slot
    }
  }

  /** The first byte of the slot's hash. */
  firstByte(slot: number): number {
    return this.#hashes[4 * slot]! >>> 24
  }

  /** The hash's own slot, or the free one where it would go. */
  #slotOf(first: number, bytes: Uint8Array, offset: number): number {
    const mask = this.#slots - 1
    // VRF hashes are uniform, but a part shares its first bits: the second word gives the place.
    let slot = word(bytes, offset + 4) & mask
    while (this.#indexes[slot] !== 0) {
      const at = 4 * slot
      const isSame =
        this.#hashes[at] === first &&
        this.#hashes[at + 1] === word(bytes, offset + 4) &&
        this.#hashes[at + 2] === word(bytes, offset + 8) &&
        this.#hashes[at + 3] === word(bytes, offset + 12)
      if (isSame) return slot
      slot = (slot + 1) & mask
    }
    return slot
  }

  #grow(): void {
    const twice = new NewestKeys(2 * this.#slots * LOAD_MAX)
    const bytes = new Uint8Array(16)
    const view = new DataView(bytes.buffer)
    for (const slot of this.unmarked()) {
      for (let at = 0; at < 4; at++) view.setUint32(4 * at, this.#hashes[4 * slot + at]!)
      twice.add(bytes, 0, this.index(slot), this.count(slot))
    }
    this.#slots = twice.#slots
    this.#hashes = twice.#hashes
    this.#indexes = twice.#indexes
    this.#counts = twice.#counts
    this.#marks = twice.#marks
  }
}

/** A set of leaf indexes of one log, a bit each. */
export class LeafSet {
  readonly #bits: Uint8Array

  constructor(treeSize: number) {
    this.#bits = new Uint8Array(Math.ceil(treeSize / 8))
  }

  add(index: number): void {
    const byte = Math.floor(index / 8)
    this.#bits[byte] = this.#bits[byte]! | (1 << (index % 8))
  }

  has(index: number): boolean {
    return ((this.#bits[Math.floor(index / 8)] ?? 0) >> (index % 8)) % 2 === 1
  }
}

function word(bytes: Uint8Array, at: number): number {
  return ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>> 0
}

const LOAD_MAX = 0.7
const COUNT_MAX = 0xffff
