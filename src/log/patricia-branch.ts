/**
 * A row of an index's map that is a branch: the hashes of its sixteen children, and of the inner nodes between them and it.
 *
 * Layout. 2; which of the 31 hashes are there u32, big-endian; the hashes, 32 octets each, in the order of a binary heap:
 * slot 1 is the top, the children of slot s are 2s and 2s + 1, the row's children are slots 16 to 31.
 */
import { equalHashes, HASH_BYTES, type Hash } from './hash.ts'
import { EMPTY_TREE, keyBit, type PatriciaProof, patriciaNodeHash } from './patricia.ts'
import { damagedRow } from './patricia-page.ts'

/** The children of a row: by the next four bits of a key. */
export const CHILDREN = 16
export const CHILD_BITS = 4

export function isBranch(row: Uint8Array): boolean {
  return row[0] === BRANCH
}

export class Branch {
  readonly bytes: Uint8Array
  #there: number
  #changed = 0

  private constructor(bytes: Uint8Array) {
    this.bytes = bytes
    this.#there = (bytes[1]! << 24) | (bytes[2]! << 16) | (bytes[3]! << 8) | bytes[4]!
  }

  static empty(): Branch {
    const bytes = new Uint8Array(BRANCH_BYTES)
    bytes[0] = BRANCH
    return new Branch(bytes)
  }

  /** Throws `STORE_UNAVAILABLE` for octets that are no branch. */
  static read(bytes: Uint8Array): Branch {
    if (bytes.length !== BRANCH_BYTES) throw damagedRow(`is no branch: ${bytes.length} octets`)
    const branch = new Branch(bytes)
    if (!branch.#has(TOP) || parentsOf(branch.#there) !== (branch.#there & INNER))
      throw damagedRow('has inner nodes without children, or children without them')
    return branch
  }

  get top(): Hash {
    return this.#hash(TOP)
  }

  get isChanged(): boolean {
    return this.#changed !== 0
  }

  /** The hash of a child, or of the empty tree if there is no such child. */
  child(child: number): Hash {
    return this.#has(CHILDREN + child) ? this.#hash(CHILDREN + child).slice() : EMPTY_TREE
  }

  /** As its children make it. */
  anew(bits: number): Branch {
    const branch = Branch.empty()
    for (let child = 0; child < CHILDREN; child++)
      if (this.#has(CHILDREN + child)) branch.set(child, this.#hash(CHILDREN + child))
    branch.settle(bits)
    branch.#changed = 0
    return branch
  }

  has(child: number): boolean {
    return this.#has(CHILDREN + child)
  }

  set(child: number, hash: Hash): void {
    const slot = CHILDREN + child
    if (this.#has(slot) && equalHashes(this.#hash(slot), hash)) return
    this.#write(slot, hash)
    this.#changed |= 1 << child
  }

  /** Makes the hashes above the children that were set, in a row whose keys share their first `bits`. */
  settle(bits: number): void {
    let changed = this.#changed
    for (let level = CHILD_BITS - 1; level >= 0; level--) {
      const width = 1 << level
      let changedAbove = 0
      for (let node = 0; node < width; node++) {
        if (((changed >> (2 * node)) & 3) === 0) continue
        this.#write(width + node, this.#join(2 * (width + node), bits + level))
        changedAbove |= 1 << node
      }
      changed = changedAbove
    }
    for (let octet = 0; octet < 4; octet++) this.bytes[1 + octet] = this.#there >>> (24 - 8 * octet)
  }

  /** The child on the way to the key, or to the leaf where the search for it ends. Adds the steps to it. */
  descend(key: Uint8Array, bits: number, proof: PatriciaProof): number {
    let slot = TOP
    for (let bit = bits; bit < bits + CHILD_BITS; bit++) {
      const own = 2 * slot + keyBit(key, bit)
      const other = own ^ 1
      if (this.#has(own) && this.#has(other)) proof.addStep(bit, this.bytes, hashAt(other))
      slot = this.#has(own) ? own : other
    }
    return slot - CHILDREN
  }

  /** A node with one child is that child. */
  #join(left: number, bit: number): Hash {
    if (!this.#has(left)) return this.#hash(left + 1)
    return this.#has(left + 1)
      ? patriciaNodeHash(bit, this.#hash(left), this.#hash(left + 1))
      : this.#hash(left)
  }

  #has(slot: number): boolean {
    return (this.#there & (1 << slot)) !== 0
  }

  #hash(slot: number): Hash {
    const at = hashAt(slot)
    return this.bytes.subarray(at, at + HASH_BYTES)
  }

  #write(slot: number, hash: Hash): void {
    this.bytes.set(hash, hashAt(slot))
    this.#there |= 1 << slot
  }
}

/** Every slot s for which 2s or 2s + 1 is among the slots. */
function parentsOf(slots: number): number {
  let pairs = (slots | (slots >>> 1)) & 0x5555_5554
  // Each pair's bit 2s goes to s: the zeros between are left out, one, two, four, then eight at a time.
  pairs = (pairs | (pairs >>> 1)) & 0x3333_3333
  pairs = (pairs | (pairs >>> 2)) & 0x0f0f_0f0f
  pairs = (pairs | (pairs >>> 4)) & 0x00ff_00ff
  return (pairs | (pairs >>> 8)) & INNER
}

function hashAt(slot: number): number {
  return HASHES_AT + (slot - 1) * HASH_BYTES
}

const BRANCH = 2
const TOP = 1
/** The slots between the top and the children, and the top. */
const INNER = 2 ** CHILDREN - 1
const HASHES_AT = 5
const BRANCH_BYTES = HASHES_AT + (2 * CHILDREN - 1) * HASH_BYTES
