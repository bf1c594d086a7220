/**
 * The VRF results a pool has computed, least recently used out first. The VRF is deterministic, so a result kept in
 * this process is as good as computed again; nothing from disk or from a peer gets in here.
 *
 * Everything lies in flat arrays, about 180 bytes an entry (18 MB for 100,000) and no work for the garbage collector;
 * a Map of objects holding two byte arrays takes three times that. Its slots are chained twice: by hash bucket to be
 * found, and in a ring by last use to be evicted.
 */
import assert from 'node:assert'

import { type ProvenHash, VRF_HASH_BYTES } from './vrf.ts'
import { RESULT_BYTES, type VrfResult } from './vrf-job.ts'

/** Slot 0 is no entry: it ends every bucket's chain, and in the ring it stands between the newest and the oldest. */
const NONE = 0
const KEY_WORDS = 4

export class VrfCache {
  readonly entriesMax: number
  #size = 0
  readonly #buckets: Uint32Array
  readonly #bucketNext: Uint32Array
  readonly #older: Uint32Array
  readonly #newer: Uint32Array
  readonly #keys: Uint32Array
  readonly #hasProof: Uint8Array
  readonly #results: Uint8Array
  /** The key being looked for: written as two uint64, read as four uint32, which costs no BigInt. */
  readonly #soughtIds = new BigUint64Array(2)
  readonly #sought = new Uint32Array(this.#soughtIds.buffer)

  /** Keeps at most `entriesMax` results; 0 keeps none. */
  constructor(entriesMax: number) {
    assert(Number.isSafeInteger(entriesMax) && entriesMax >= 0, 'vrf cache size is not a count')
    this.entriesMax = entriesMax
    const slots = entriesMax + 1
    this.#buckets = new Uint32Array(2 ** Math.ceil(Math.log2(slots)))
    this.#bucketNext = new Uint32Array(slots)
    this.#older = new Uint32Array(slots)
    this.#newer = new Uint32Array(slots)
    this.#keys = new Uint32Array(slots * KEY_WORDS)
    this.#hasProof = new Uint8Array(slots)
    this.#results = new Uint8Array(slots * RESULT_BYTES)
  }

  get size(): number {
    return this.#size
  }

  /** A copy of the VRF hash of this user and device (uint64 both), or undefined. */
  hash(userId: bigint, deviceId: bigint): Uint8Array | undefined {
    const slot = this.#find(userId, deviceId)
    if (slot === NONE) return undefined
    this.#use(slot)
    return this.#hashAt(slot)
  }

  /** A copy of the hash and proof of this user and device (uint64 both); undefined when there is no proof. */
  proof(userId: bigint, deviceId: bigint): ProvenHash | undefined {
    const slot = this.#find(userId, deviceId)
    if (slot === NONE || this.#hasProof[slot] === 0) return undefined
    this.#use(slot)
    return { vrfHash: this.#hashAt(slot), vrfProof: this.#proofAt(slot) }
  }

  /** Keeps a copy of `result`, instead of the least recently used one when full. A hash replaces no proof. */
  put(userId: bigint, deviceId: bigint, result: VrfResult): void {
    if (this.entriesMax === 0) return
    let slot = this.#find(userId, deviceId)
    if (slot === NONE) slot = this.#insertSought()
    else this.#use(slot)
    this.#results.set(result.vrfHash, slot * RESULT_BYTES)
    if (result.vrfProof === undefined) return
    this.#results.set(result.vrfProof, slot * RESULT_BYTES + VRF_HASH_BYTES)
    this.#hasProof[slot] = 1
  }

  #find(userId: bigint, deviceId: bigint): number {
    // The store below would cut a larger value to 64 bits and find another user.
    assert(BigInt.asUintN(64, userId) === userId, 'user id is not a uint64')
    assert(BigInt.asUintN(64, deviceId) === deviceId, 'device id is not a uint64')
    this.#soughtIds[0] = userId
    this.#soughtIds[1] = deviceId
    let slot = this.#buckets[this.#bucketOf(this.#sought, 0)]!
    while (slot !== NONE && !this.#isSought(slot)) slot = this.#bucketNext[slot]!
    return slot
  }

  #isSought(slot: number): boolean {
    const keys = this.#keys
    const sought = this.#sought
    const offset = slot * KEY_WORDS
    return (
      keys[offset] === sought[0] &&
      keys[offset + 1] === sought[1] &&
      keys[offset + 2] === sought[2] &&
      keys[offset + 3] === sought[3]
    )
  }

  #insertSought(): number {
    const slot = this.#size < this.entriesMax ? ++this.#size : this.#evictOldest()
    const bucket = this.#bucketOf(this.#sought, 0)
    this.#keys.set(this.#sought, slot * KEY_WORDS)
    this.#hasProof[slot] = 0
    this.#bucketNext[slot] = this.#buckets[bucket]!
    this.#buckets[bucket] = slot
    this.#link(slot)
    return slot
  }

  #evictOldest(): number {
    const oldest = this.#newer[NONE]!
    this.#unlink(oldest)
    const bucket = this.#bucketOf(this.#keys, oldest * KEY_WORDS)
    if (this.#buckets[bucket] === oldest) {
      this.#buckets[bucket] = this.#bucketNext[oldest]!
    } else {
      let before = this.#buckets[bucket]!
      while (this.#bucketNext[before] !== oldest) before = this.#bucketNext[before]!
      this.#bucketNext[before] = this.#bucketNext[oldest]!
    }
    return oldest
  }

  #use(slot: number): void {
    if (this.#older[NONE] === slot) return
    this.#unlink(slot)
    this.#link(slot)
  }

  /** Into the ring as the newest. */
  #link(slot: number): void {
    const newest = this.#older[NONE]!
    this.#older[slot] = newest
    this.#newer[slot] = NONE
    this.#newer[newest] = slot
    this.#older[NONE] = slot
  }

  #unlink(slot: number): void {
    const older = this.#older[slot]!
    const newer = this.#newer[slot]!
    this.#newer[older] = newer
    this.#older[newer] = older
  }

  /** Ids are small and sequential, so all bits of the four words are mixed (the finalizer of MurmurHash3). */
  #bucketOf(words: Uint32Array, offset: number): number {
    let mixed = 0
    for (let word = 0; word < KEY_WORDS; word++) {
      mixed = (mixed ^ words[offset + word]!) | 0
      mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b)
      mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
      mixed ^= mixed >>> 16
    }
    return mixed & (this.#buckets.length - 1)
  }

  /** A 64-byte slice lies on the JavaScript heap and is cheap. */
  #hashAt(slot: number): Uint8Array {
    return this.#results.slice(slot * RESULT_BYTES, slot * RESULT_BYTES + VRF_HASH_BYTES)
  }

  /** An 80-byte one does not: taken from Node's buffer pool it costs a fifth (50 ns, not 250). */
  #proofAt(slot: number): Uint8Array {
    const proof = Buffer.allocUnsafe(RESULT_BYTES - VRF_HASH_BYTES)
    proof.set(this.#results.subarray(slot * RESULT_BYTES + VRF_HASH_BYTES, (slot + 1) * RESULT_BYTES))
    return proof
  }
}
