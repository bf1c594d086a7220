/**
 * The Merkle Patricia tree of `filippo.io/torchwood/mpt` v0.10, specified in its head comment: a map with a root hash, under
 * which a proof shows the value of a key, or that the key is absent.
 *
 * - a leaf: SHA-256(0 || len(key) || key || len(value) || value), lengths as varints
 * - an inner node, where keys differ at bit B: SHA-256(1 || B || left || right), B as a varint; no node has one child
 * - the empty tree: SHA-256 of nothing
 *
 * A proof is the steps from the leaf to the root, each B and the sibling's hash; for an absent key it begins with the key and
 * value, each with its length, of the leaf where the search for it ends.
 */
import { sha256 } from '#primitives'
import { SignalError } from '../errors.ts'
import { EMPTY_ROOT, equalHashes, HASH_BYTES, type Hash } from './hash.ts'

/** The hash of the tree without keys. */
export const EMPTY_TREE = EMPTY_ROOT

/** The result of a lookup, as claimed. `value` is undefined where the key is said to be absent. */
export interface PatriciaClaim {
  readonly root: Hash
  readonly key: Uint8Array
  readonly value: Uint8Array | undefined
  readonly proof: Uint8Array
}

export interface PatriciaPair {
  readonly key: Uint8Array
  readonly value: Uint8Array
}

export function patriciaLeafHash(key: Uint8Array, value: Uint8Array): Hash {
  const bytes = 1 + 2 * VARINT_BYTES_MAX + key.length + value.length
  const input = bytes <= leafInput.length ? leafInput : new Uint8Array(bytes)
  let at = writeVarint(input, 1, key.length)
  input.set(key, at)
  at = writeVarint(input, at + key.length, value.length)
  input.set(value, at)
  return sha256(input.subarray(0, at + value.length))
}

/** Throws `MALFORMED` unless both hashes have 32 bytes. */
export function patriciaNodeHash(bit: number, left: Hash, right: Hash): Hash {
  // A short hash would leave bytes of an earlier call in place.
  if (left.length !== HASH_BYTES || right.length !== HASH_BYTES)
    throw new SignalError('MALFORMED', 'hash of a child node is not 32 bytes')
  const at = writeVarint(nodeInput, 1, bit)
  nodeInput.set(left, at)
  nodeInput.set(right, at + HASH_BYTES)
  return sha256(nodeInput.subarray(0, at + 2 * HASH_BYTES))
}

/** The bit of a key at a position: beyond its end a zero byte and then only ones, so that no key is the beginning of another. */
export function keyBit(key: Uint8Array, position: number): number {
  const at = Math.floor(position / 8)
  if (at < key.length) return (key[at]! >> (7 - (position % 8))) & 1
  return at === key.length ? 0 : 1
}

/** The position of the first bit in which two keys differ; they must not be the same. */
export function firstDifference(one: Uint8Array, other: Uint8Array): number {
  let at = 0
  while (at < one.length && one[at] === other[at]) at++
  let position = 8 * at
  while (keyBit(one, position) === keyBit(other, position)) position++
  return position
}

/** Throws `PROOF_INVALID` unless the proof shows that the tree has the value under the key or, without a value, no such key. */
export function verifyPatricia({ root, key, value, proof }: PatriciaClaim): void {
  if (value === undefined && proof.length === 0) {
    if (equalHashes(root, EMPTY_TREE)) return
    throw invalid('a tree with keys proves nothing by an empty proof')
  }
  const reader = new ProofReader(proof)
  const end = value === undefined ? readOther(reader, key) : { key, value }
  const found = reader.climb(key, end)
  if (!equalHashes(found, root)) throw invalid('it does not lead to the root')
}

/**
 * A proof in the making. A search meets the steps from the root down, and a proof ends at the root, so it is written
 * from its end.
 */
export class PatriciaProof {
  #bytes = new Uint8Array(PROOF_BYTES)
  #start = PROOF_BYTES

  get bytes(): Uint8Array {
    return this.#bytes.subarray(this.#start)
  }

  /** Where two subtrees part, and the hash of the one that is not on the way: the 32 octets of `hashes` from `at` on. */
  addStep(bit: number, hashes: Uint8Array, at: number): void {
    const start = this.#add(varintBytes(bit) + HASH_BYTES)
    const bytes = this.#bytes
    const siblingAt = writeVarint(bytes, start, bit)
    for (let octet = 0; octet < HASH_BYTES; octet++) bytes[siblingAt + octet] = hashes[at + octet]!
  }

  /** The leaf where the search for an absent key ended. Nothing is added behind it. */
  addOther({ key, value }: PatriciaPair): void {
    const start = this.#add(varintBytes(key.length) + key.length + varintBytes(value.length) + value.length)
    const keyAt = writeVarint(this.#bytes, start, key.length)
    this.#bytes.set(key, keyAt)
    const valueAt = writeVarint(this.#bytes, keyAt + key.length, value.length)
    this.#bytes.set(value, valueAt)
  }

  /** Makes room for that many octets and returns where it begins. */
  #add(octets: number): number {
    if (octets > this.#start) {
      const more = Math.max(octets, this.#bytes.length)
      const bytes = new Uint8Array(more + this.#bytes.length)
      bytes.set(this.#bytes, more)
      this.#bytes = bytes
      this.#start += more
    }
    this.#start -= octets
    return this.#start
  }
}

function readOther(reader: ProofReader, key: Uint8Array): PatriciaPair {
  const other = { key: reader.readBytes(), value: reader.readBytes() }
  if (equalHashes(other.key, key)) throw invalid('it is of the key that is said to be absent')
  return other
}

class ProofReader {
  readonly #bytes: Uint8Array
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  readBytes(): Uint8Array {
    return this.#take(this.#readVarint())
  }

  /** The root above the leaf of `end`, by the turns of `key`, from which it may differ only where no step looks. */
  climb(key: Uint8Array, end: PatriciaPair): Hash {
    let hash = patriciaLeafHash(end.key, end.value)
    let bitAbove = BIT_BOUND
    while (this.#at < this.#bytes.length) {
      const bit = this.#readVarint()
      if (bit >= bitAbove) throw invalid('its steps are out of order')
      bitAbove = bit
      const sibling = this.#take(HASH_BYTES)
      const side = keyBit(key, bit)
      if (side !== keyBit(end.key, bit)) throw invalid('it ends beside the way to the key')
      hash = side === 0 ? patriciaNodeHash(bit, hash, sibling) : patriciaNodeHash(bit, sibling, hash)
    }
    return hash
  }

  #take(length: number): Uint8Array {
    const end = this.#at + length
    if (end > this.#bytes.length) throw invalid('it is cut off')
    const bytes = this.#bytes.subarray(this.#at, end)
    this.#at = end
    return bytes
  }

  /** Fewer octets than Go's reader takes: a larger number is the length of nothing that fits in memory. */
  #readVarint(): number {
    let value = 0
    for (let shift = 0; shift < VARINT_BYTES_MAX; shift++) {
      const octet = this.#bytes[this.#at++]
      if (octet === undefined) throw invalid('it is cut off')
      value += (octet & 0x7f) * 128 ** shift
      if (octet < 0x80) return value
    }
    throw invalid('a number in it is too long')
  }
}

function varintBytes(value: number): number {
  let bytes = 1
  for (let bound = 128; value >= bound; bound *= 128) bytes++
  return bytes
}

function writeVarint(bytes: Uint8Array, start: number, value: number): number {
  let at = start
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 0x80) {
      bytes[at] = rest
      return at + 1
    }
    bytes[at++] = (rest & 0x7f) | 0x80
  }
}

function invalid(reason: string): SignalError {
  return new SignalError('PROOF_INVALID', `proof in the index: ${reason}`)
}

/** No position of a proof is as large: Go's verifier refuses it. */
const BIT_BOUND = 2 ** 30
/** As many as the proof in a tree of ten million keys needs. */
const PROOF_BYTES = 1024
/** Numbers below 2^49. */
const VARINT_BYTES_MAX = 7
// leafInput[0] stays 0.
const leafInput = new Uint8Array(128)
const nodeInput = new Uint8Array(1 + VARINT_BYTES_MAX + 2 * HASH_BYTES)
nodeInput[0] = 1
