/**
 * The VRF results a pool has computed, those not used for long out first. The VRF is deterministic, so a result kept
 * in this process is as good as computed again; nothing from disk or from a peer gets in here.
 *
 * Everything lies in flat arrays: about 170 bytes an entry (17 MB for 100,000) and no work for the garbage collector.
 * A Map of objects with two byte arrays each takes three times that.
 *
 * Choice: what to evict is found by the clock algorithm (second chance) rather than by a list in order of use. A hit
 * then sets one flag and moves nothing; keeping the list in order cost several cache misses (0.7 us for a random hit
 * among 100,000 entries, now 0.35; 0.15 among those in use lately).
 */
import assert from 'node:assert'

import { VRF_HASH_BYTES } from '../../log/entry.ts'
import type { ProvenHash } from '../../log/vrf-suite.ts'
import { RESULT_BYTES, type VrfResult } from './vrf-job.ts'

/** No entry: the end of a bucket's chain. Entries are numbered from 1. */
const NONE = 0
/** An entry as uint32 words: user id and device id (two each), next entry of the bucket, result. */
const NEXT_WORD = 4
const HASH_WORD = 5
const ENTRY_WORDS = HASH_WORD + RESULT_BYTES / 4
const HAS_PROOF = 1
const IS_USED = 2
/** Entries in use that one eviction passes over, so that it costs a few microseconds when all of them are. */
const SECOND_CHANCES_MAX = 1024

export class VrfCache {
  readonly entriesMax: number
  #size = 0
  /** The entry the clock's hand points at: the next to go unless it is in use. */
  #hand = 1
  readonly #buckets: Uint32Array
  readonly #flags: Uint8Array
  readonly #words: Uint32Array
  readonly #bytes: Uint8Array
  /** The key being looked for: written as two uint64, read as four uint32, which costs no BigInt. */
  readonly #soughtIds = new BigUint64Array(2)
  readonly #sought = new Uint32Array(this.#soughtIds.buffer)

  /** Keeps at most `entriesMax` results; 0 keeps none. */
  constructor(entriesMax: number) {
    assert(Number.isSafeInteger(entriesMax) && entriesMax >= 0, 'vrf cache size is not a count')
    this.entriesMax = entriesMax
    this.#buckets = new Uint32Array(2 ** Math.ceil(Math.log2(entriesMax + 1)))
    this.#flags = new Uint8Array(entriesMax + 1)
    this.#words = new Uint32Array((entriesMax + 1) * ENTRY_WORDS)
    this.#bytes = new Uint8Array(this.#words.buffer)
  }

  get size(): number {
    return this.#size
  }

  /** A copy of the VRF hash of this user and device (uint64 both), or undefined. */
  hash(userId: bigint, deviceId: bigint): Uint8Array | undefined {
    const entry = this.#find(userId, deviceId)
    if (entry === NONE) return undefined
    this.#flags[entry]! |= IS_USED
    return this.#hashOf(entry)
  }

  /** A copy of the hash and proof of this user and device (uint64 both); undefined when there is no proof. */
  proof(userId: bigint, deviceId: bigint): ProvenHash | undefined {
    const entry = this.#find(userId, deviceId)
    if (entry === NONE || (this.#flags[entry]! & HAS_PROOF) === 0) return undefined
    this.#flags[entry]! |= IS_USED
    return { vrfHash: this.#hashOf(entry), vrfProof: this.#proofOf(entry) }
  }

  /** Keeps a copy of `result`, in place of one not used for long when full. A hash replaces no proof. */
  put(userId: bigint, deviceId: bigint, result: VrfResult): void {
    if (this.entriesMax === 0) return
    let entry = this.#find(userId, deviceId)
    if (entry === NONE) entry = this.#insertSought()
    const offset = (entry * ENTRY_WORDS + HASH_WORD) * 4
    this.#bytes.set(result.vrfHash, offset)
    if (result.vrfProof === undefined) return
    this.#bytes.set(result.vrfProof, offset + VRF_HASH_BYTES)
    this.#flags[entry]! |= HAS_PROOF
  }

  #find(userId: bigint, deviceId: bigint): number {
    // The store below would cut a larger value to 64 bits and find another user.
    assert(BigInt.asUintN(64, userId) === userId, 'user id is not a uint64')
    assert(BigInt.asUintN(64, deviceId) === deviceId, 'device id is not a uint64')
    this.#soughtIds[0] = userId
    this.#soughtIds[1] = deviceId
    let entry = this.#buckets[this.#bucketOf(this.#sought, 0)]!
    while (entry !== NONE && !this.#isSought(entry)) entry = this.#words[entry * ENTRY_WORDS + NEXT_WORD]!
    return entry
  }

  #isSought(entry: number): boolean {
    const words = this.#words
    const sought = this.#sought
    const word = entry * ENTRY_WORDS
    return (
      words[word] === sought[0] &&
      words[word + 1] === sought[1] &&
      words[word + 2] === sought[2] &&
      words[word + 3] === sought[3]
    )
  }

  #insertSought(): number {
    const entry = this.#size < this.entriesMax ? ++this.#size : this.#evict()
    const bucket = this.#bucketOf(this.#sought, 0)
    this.#words.set(this.#sought, entry * ENTRY_WORDS)
    this.#words[entry * ENTRY_WORDS + NEXT_WORD] = this.#buckets[bucket]!
    this.#buckets[bucket] = entry
    this.#flags[entry] = 0
    return entry
  }

  /** Takes the first entry from the hand on that was not used since the hand last came by. */
  #evict(): number {
    for (let passed = 0; passed < SECOND_CHANCES_MAX && this.#flags[this.#hand]! & IS_USED; passed++) {
      this.#flags[this.#hand]! &= ~IS_USED
      this.#turnHand()
    }
    const entry = this.#hand
    this.#turnHand()
    this.#unchain(entry)
    return entry
  }

  #turnHand(): void {
    this.#hand = this.#hand === this.entriesMax ? 1 : this.#hand + 1
  }

  #unchain(entry: number): void {
    const words = this.#words
    const next = words[entry * ENTRY_WORDS + NEXT_WORD]!
    const bucket = this.#bucketOf(words, entry * ENTRY_WORDS)
    let before = this.#buckets[bucket]!
    if (before === entry) {
      this.#buckets[bucket] = next
      return
    }
    while (words[before * ENTRY_WORDS + NEXT_WORD] !== entry)
      before = words[before * ENTRY_WORDS + NEXT_WORD]!
    words[before * ENTRY_WORDS + NEXT_WORD] = next
  }

  /** Ids are small and sequential, so all bits of the four words are mixed (the finalizer of MurmurHash3). */
  #bucketOf(words: Uint32Array, offset: number): number {
    let mixed = 0
    for (let word = offset; word < offset + NEXT_WORD; word++) {
      mixed ^= words[word]!
      mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b)
      mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
      mixed ^= mixed >>> 16
    }
    return mixed & (this.#buckets.length - 1)
  }

  /** A 64-byte slice lies on the JavaScript heap and is cheap. */
  #hashOf(entry: number): Uint8Array {
    const offset = (entry * ENTRY_WORDS + HASH_WORD) * 4
    return this.#bytes.slice(offset, offset + VRF_HASH_BYTES)
  }

  /** An 80-byte one does not: taken from Node's buffer pool it costs a fifth (50 ns, not 250). */
  #proofOf(entry: number): Uint8Array {
    const offset = (entry * ENTRY_WORDS + HASH_WORD) * 4
    const proof = Buffer.allocUnsafe(RESULT_BYTES - VRF_HASH_BYTES)
    proof.set(this.#bytes.subarray(offset + VRF_HASH_BYTES, offset + RESULT_BYTES))
    return proof
  }
}
