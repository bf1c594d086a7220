/**
 * A row of an index's map that is a page: all keys that begin with the row's bits, and the hashes of the tree over them.
 *
 * Layout. 1; number of keys u16; the keys, sorted, 32 octets each; the hashes of the inner nodes, one for each pair of
 * neighbours, which part there; for each key its number of indexes u16; the indexes in the order of their keys, u48 each.
 * Numbers are big-endian.
 */
import { assert, SignalError } from '../errors.ts'
import { HASH_BYTES, type Hash } from './hash.ts'
import { indexValueOf } from './index-leaf.ts'
import { keyBit, type PatriciaProof, patriciaLeafHash, patriciaNodeHash } from './patricia.ts'

export interface PageKey {
  /** 32 bytes. */
  readonly key: Uint8Array
  /** Ascending. */
  readonly indexes: number[]
  /** The hash of the inner node that parts it from the next key, where it was read from a page with one. */
  readonly node: Hash | undefined
  /** It is new, or has an index more than in that page. */
  isChanged: boolean
}

export class Page {
  readonly bytes: Uint8Array
  readonly #size: number
  readonly #nodesAt: number
  readonly #countsAt: number

  /** Throws `STORE_UNAVAILABLE` for octets that are no page. */
  constructor(bytes: Uint8Array) {
    this.bytes = bytes
    const size = bytes[0] === PAGE && bytes.length > KEYS_AT ? readUint16(bytes, 1) : 0
    this.#size = size
    this.#nodesAt = KEYS_AT + size * HASH_BYTES
    this.#countsAt = this.#nodesAt + (size - 1) * HASH_BYTES
    // Counts that lie beyond the octets are not numbers, and neither is their sum.
    if (size === 0 || this.#indexesAt(size) !== bytes.length)
      throw damagedRow(`is no page: ${bytes.length} octets for ${size} keys`)
  }

  /** A page of keys in order. */
  static of(keys: readonly PageKey[]): Page {
    assert(keys.length < 2 ** 16, 'a page is split long before it has so many keys')
    const indexes = keys.reduce((sum, each) => sum + each.indexes.length, 0)
    const countsAt = KEYS_AT + (2 * keys.length - 1) * HASH_BYTES
    const indexesAt = countsAt + keys.length * COUNT_BYTES
    const bytes = new Uint8Array(indexesAt + indexes * INDEX_BYTES)
    bytes[0] = PAGE
    writeNumber(bytes, 1, COUNT_BYTES, keys.length)
    let indexAt = indexesAt
    for (const [at, { key, indexes }] of keys.entries()) {
      // Our log keeps fewer keys for each device; another operator's may not.
      if (indexes.length >= 2 ** 16)
        throw new SignalError('MALFORMED', 'index has more than 65535 entries under a key')
      bytes.set(key, KEYS_AT + at * HASH_BYTES)
      writeNumber(bytes, countsAt + at * COUNT_BYTES, COUNT_BYTES, indexes.length)
      for (const index of indexes) {
        writeNumber(bytes, indexAt, INDEX_BYTES, index)
        indexAt += INDEX_BYTES
      }
    }
    const page = new Page(bytes)
    page.#settle(keys)
    return page
  }

  /** The hash over all keys. */
  get top(): Hash {
    return this.#hash(0, this.#size)
  }

  /** As its keys make it. Throws as `keys`. */
  anew(): Page {
    return Page.of(this.keys().map(each => ({ ...each, node: undefined, isChanged: true })))
  }

  /** The keys, as views of the octets. Throws `STORE_UNAVAILABLE` where they are out of order. */
  keys(): PageKey[] {
    const keys: PageKey[] = []
    for (let at = 0; at < this.#size; at++) {
      const key = this.key(at)
      if (at > 0 && compareKeys(keys[at - 1]!.key, key) >= 0) throw damagedRow('has keys out of order')
      const node = at < this.#size - 1 ? this.#node(at) : undefined
      keys.push({ key, indexes: this.indexes(at), node, isChanged: false })
    }
    return keys
  }

  /** A view of the octets. */
  key(at: number): Uint8Array {
    return this.bytes.subarray(KEYS_AT + at * HASH_BYTES, KEYS_AT + (at + 1) * HASH_BYTES)
  }

  indexes(at: number): number[] {
    const indexes: number[] = []
    const end = this.#indexesAt(at + 1)
    for (let from = this.#indexesAt(at); from < end; from += INDEX_BYTES) {
      let index = 0
      for (let octet = from; octet < from + INDEX_BYTES; octet++) index = index * 256 + this.bytes[octet]!
      indexes.push(index)
    }
    if (indexes.length === 0) throw damagedRow('has a key without indexes')
    return indexes
  }

  /** Where the search for the key ends. Adds the steps to there, which are of `bits` and those behind it. */
  descend(key: Uint8Array, bits: number, proof: PatriciaProof): number {
    let [start, end] = [0, this.#size]
    let bitsAbove = bits
    while (end - start > 1) {
      const [parting, bit] = this.#partingOf(start, end)
      if (bit < bitsAbove) throw damagedRow('has keys out of order')
      bitsAbove = bit + 1
      if (keyBit(key, bit) === 0) {
        this.#addStep(proof, bit, parting + 1, end)
        end = parting + 1
      } else {
        this.#addStep(proof, bit, start, parting + 1)
        start = parting + 1
      }
    }
    return start
  }

  /** The step beside the keys from `start` to before `end`. */
  #addStep(proof: PatriciaProof, bit: number, start: number, end: number): void {
    if (end - start === 1) proof.addStep(bit, this.#hash(start, end), 0)
    else proof.addStep(bit, this.bytes, this.#nodeAt(this.#partingOf(start, end)[0]))
  }

  /** Makes the hashes of the inner nodes; those that have no changed key under them are known. */
  #settle(keys: readonly PageKey[]): void {
    for (let at = 0; at < keys.length - 1; at++) {
      const known = keys[at]!.node
      if (known !== undefined) this.#node(at).set(known)
    }
    const settle = (start: number, end: number): Hash => {
      if (end - start === 1 || !hasChanged(keys, start, end)) return this.#hash(start, end)
      const [parting, bit] = this.#partingOf(start, end)
      const hash = patriciaNodeHash(bit, settle(start, parting + 1), settle(parting + 1, end))
      this.#node(parting).set(hash)
      return hash
    }
    settle(0, keys.length)
  }

  /** The hash over the keys from `start` to before `end`. An inner node's is a view of the octets. */
  #hash(start: number, end: number): Hash {
    if (end - start > 1) return this.#node(this.#partingOf(start, end)[0])
    return patriciaLeafHash(this.key(start), indexValueOf(this.indexes(start)))
  }

  /** The hash of the inner node where a key parts from the next one. */
  #node(parting: number): Hash {
    const at = this.#nodeAt(parting)
    return this.bytes.subarray(at, at + HASH_BYTES)
  }

  #nodeAt(parting: number): number {
    return this.#nodesAt + parting * HASH_BYTES
  }

  /** The key before the place where the keys from `start` to before `end` part first, and at which bit. */
  #partingOf(start: number, end: number): readonly [parting: number, bit: number] {
    // The first and the last of sorted keys differ in the first bit that any two do.
    const bit = this.#firstDifference(start, end - 1)
    const octet = KEYS_AT + (bit >> 3)
    const mask = 128 >> (bit & 7)
    let [low, high] = [start, end - 1]
    while (high - low > 1) {
      const middle = (low + high) >> 1
      if ((this.bytes[octet + middle * HASH_BYTES]! & mask) === 0) low = middle
      else high = middle
    }
    return [low, bit]
  }

  #firstDifference(one: number, other: number): number {
    const start = KEYS_AT + one * HASH_BYTES
    const apart = (other - one) * HASH_BYTES
    let at = start
    while (at < start + HASH_BYTES && this.bytes[at] === this.bytes[at + apart]) at++
    if (at === start + HASH_BYTES) throw damagedRow('has a key twice')
    return 8 * (at - start) + Math.clz32(this.bytes[at]! ^ this.bytes[at + apart]!) - 24
  }

  /** Where the indexes of a key begin. */
  #indexesAt(key: number): number {
    let indexes = 0
    for (let at = this.#countsAt; at < this.#countsAt + key * COUNT_BYTES; at += COUNT_BYTES)
      indexes += readUint16(this.bytes, at)
    return this.#countsAt + this.#size * COUNT_BYTES + indexes * INDEX_BYTES
  }
}

/** Negative, zero or positive: a key of 32 bytes stands before another, is the same, or stands behind it. */
export function compareKeys(one: Uint8Array, other: Uint8Array): number {
  let at = 0
  while (at < HASH_BYTES - 1 && one[at] === other[at]) at++
  return one[at]! - other[at]!
}

export function damagedRow(what: string): SignalError {
  return new SignalError('STORE_UNAVAILABLE', `a row of the index ${what}`)
}

function hasChanged(keys: readonly PageKey[], start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (keys[at]!.isChanged) return true
  return false
}

function readUint16(bytes: Uint8Array, at: number): number {
  return bytes[at]! * 256 + bytes[at + 1]!
}

function writeNumber(bytes: Uint8Array, at: number, octets: number, value: number): void {
  let rest = value
  for (let octet = at + octets - 1; octet >= at; octet--) {
    bytes[octet] = rest % 256
    rest = Math.floor(rest / 256)
  }
}

const PAGE = 1
const COUNT_BYTES = 2
const INDEX_BYTES = 6
const KEYS_AT = 1 + COUNT_BYTES
