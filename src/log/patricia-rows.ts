/**
 * The Merkle Patricia tree of an index, kept in rows: under each key the indexes of the log's entries, and the hash of those
 * as its value. Rows are read and returned, never written here.
 *
 * A row has the part of the tree under some first bits of the keys, four more at each depth. It is a page of keys, or, where
 * those would be more than `PAGE_KEYS_MAX`, a branch: the hashes of its sixteen children and those between them and it. So
 * a lookup reads one row for each factor of 16, and a new key changes as many.
 *
 * Layout. A row's id is a 1 bit followed by the bits that its keys share. A page: 1, number of keys u16, then for each key,
 * sorted: 32 octets, number of indexes u16, indexes u48; then the hashes of its inner nodes, one for each pair of neighbours,
 * which part there. A branch: 2, which of its 31 hashes are there u32, the hashes, each 32 octets, in the order of a binary
 * heap. Numbers are big-endian.
 */
import { HASH_BYTES, type Hash } from './hash.ts'
import {
  EMPTY_TREE,
  formatAbsence,
  formatSteps,
  keyBit,
  type PatriciaStep,
  patriciaNodeHash,
} from './patricia.ts'
import {
  compareKeys,
  damaged,
  descendPage,
  firstUnequal,
  formatPage,
  hashRange,
  indexValueOf,
  type KeyRecord,
  KIND_BYTES,
  pageHash,
  readPage,
  viewOf,
} from './patricia-page.ts'

/** Reads a row by its id; undefined where there is none. Its bytes are used before the next one is read. */
export type ReadRow = (id: number) => Uint8Array | undefined

/** An entry of the log under a key of 32 bytes. */
export interface IndexedEntry {
  readonly key: Uint8Array
  readonly index: number
}

/** What a tree has under a key, with the proof of it: `mpt`'s octets. No indexes: the key is absent. */
export interface PatriciaLookup {
  readonly indexes: readonly number[]
  readonly proof: Uint8Array
}

export interface GrownTree {
  readonly root: Hash
  /** The rows that are new or changed, each once. */
  readonly rows: readonly (readonly [id: number, bytes: Uint8Array])[]
}

/** Throws `STORE_UNAVAILABLE` for a row that is damaged. */
export function patriciaRootOf(read: ReadRow): Hash {
  const row = read(ROOT_ID)
  if (row === undefined) return EMPTY_TREE
  return isBranch(row) ? new Branch(row).top : pageHash(readPage(row))
}

/** Throws `STORE_UNAVAILABLE` for a row that is damaged or missing. */
export function lookUpIn(read: ReadRow, key: Uint8Array): PatriciaLookup {
  const steps: PatriciaStep[] = []
  let id = ROOT_ID
  let row = read(id)
  if (row === undefined) return { indexes: [], proof: NO_OCTETS }
  for (let depth = 0; isBranch(row); depth++) {
    id = childId(id, new Branch(row).descend(key, depth, steps))
    row = read(id)
    if (row === undefined) throw damaged(id, 'is missing')
  }
  const { keys, nodes } = readPage(row)
  const found = keys[descendPage(keys, nodes, key, steps)]!
  steps.reverse()
  if (firstUnequal(found.key, key) === HASH_BYTES)
    return { indexes: found.indexes, proof: formatSteps(steps) }
  return {
    indexes: [],
    proof: formatAbsence({ key: found.key, value: indexValueOf(found.indexes) }, steps),
  }
}

/**
 * The tree with these entries, too, which may come in any order. One that the tree has already changes nothing, so that a
 * change which was written in part can be made again. `pageKeysMax` is for tests; a tree is always grown with the same.
 */
export function growTree(
  read: ReadRow,
  entries: readonly IndexedEntry[],
  pageKeysMax = PAGE_KEYS_MAX,
): GrownTree {
  if (entries.length === 0) return { root: patriciaRootOf(read), rows: [] }
  const growth = new Growth(read, pageKeysMax)
  const root = growth.grow(ROOT_ID, 0, sortedEntries(entries))
  return { root, rows: growth.rows }
}

function sortedEntries(entries: readonly IndexedEntry[]): IndexedEntry[] {
  return entries.toSorted((one, other) => compareKeys(one.key, other.key) || one.index - other.index)
}

/**
 * The same for rows that have this root, which is signed: each row that the entries lead to is compared with the hash above it,
 * so that no damage gets into a new root. Throws `STORE_UNAVAILABLE` where one is another.
 */
export function growSoundTree(read: ReadRow, root: Hash, entries: readonly IndexedEntry[]): GrownTree {
  const sorted = sortedEntries(entries)
  const growth = new Growth(read, PAGE_KEYS_MAX)
  if (sorted.length === 0) return { root, rows: [] }
  return { root: growth.grow(ROOT_ID, 0, sorted, root), rows: growth.rows }
}

class Growth {
  readonly rows: [number, Uint8Array][] = []
  readonly #read: ReadRow
  readonly #pageKeysMax: number

  constructor(read: ReadRow, pageKeysMax: number) {
    this.#read = read
    this.#pageKeysMax = pageKeysMax
  }

  /** Returns the hash of what is under the row. `expected` is what it has to be so far; left out, that is not looked at. */
  grow(id: number, depth: number, entries: readonly IndexedEntry[], expected?: Hash): Hash {
    const row = this.#read(id)
    if (row !== undefined && isBranch(row)) {
      const stored = new Branch(row.slice())
      const branch = expected === undefined ? stored : stored.anew(depth)
      if (expected !== undefined) assertHash(id, branch.top, expected)
      return this.#growBranch(id, depth, branch, entries, expected !== undefined)
    }
    const keys = row === undefined ? [] : readPage(row).keys
    if (expected !== undefined)
      assertHash(id, keys.length === 0 ? EMPTY_TREE : hashRange(keys, 0, keys.length, []), expected)
    return this.#put(id, depth, merged(keys, entries))
  }

  #growBranch(
    id: number,
    depth: number,
    branch: Branch,
    entries: readonly IndexedEntry[],
    isChecked: boolean,
  ): Hash {
    for (const [nibble, part] of partsOf(entries, depth)) {
      const expected = isChecked ? branch.child(nibble) : undefined
      branch.set(nibble, this.grow(childId(id, nibble), depth + 1, part, expected))
    }
    return this.#putBranch(id, depth, branch)
  }

  #put(id: number, depth: number, keys: readonly KeyRecord[]): Hash {
    if (keys.length > this.#pageKeysMax && depth < DEPTH_MAX) {
      const branch = Branch.empty()
      for (const [nibble, part] of partsOf(keys, depth))
        branch.set(nibble, this.#put(childId(id, nibble), depth + 1, part))
      return this.#putBranch(id, depth, branch)
    }
    const nodes: Hash[] = []
    const hash = hashRange(keys, 0, keys.length, nodes)
    this.rows.push([id, formatPage({ keys, nodes })])
    return hash
  }

  #putBranch(id: number, depth: number, branch: Branch): Hash {
    branch.settle(depth)
    this.rows.push([id, branch.bytes])
    return branch.top
  }
}

/** Sixteen children, and what is between them and the branch: slot 1 at the top, the children of slot s at 2s and 2s + 1. */
class Branch {
  readonly bytes: Uint8Array
  #there: number
  #changed = 0

  constructor(bytes: Uint8Array) {
    if (bytes.length !== BRANCH_BYTES) throw damaged(undefined, `branch has ${bytes.length} octets`)
    this.bytes = bytes
    this.#there = viewOf(bytes).getUint32(KIND_BYTES)
  }

  static empty(): Branch {
    const bytes = new Uint8Array(BRANCH_BYTES)
    bytes[0] = BRANCH
    return new Branch(bytes)
  }

  get top(): Hash {
    return this.#hash(1)
  }

  /** The hash of a child; that of an empty tree where there is none. */
  child(nibble: number): Hash {
    return this.#has(CHILDREN + nibble) ? this.#hash(CHILDREN + nibble).slice() : EMPTY_TREE
  }

  /** As its children make it. */
  anew(depth: number): Branch {
    const branch = Branch.empty()
    for (let nibble = 0; nibble < CHILDREN; nibble++)
      if (this.#has(CHILDREN + nibble)) branch.set(nibble, this.#hash(CHILDREN + nibble))
    branch.settle(depth)
    return branch
  }

  set(nibble: number, hash: Hash): void {
    this.#write(CHILDREN + nibble, hash)
    this.#changed |= 1 << nibble
  }

  /** Makes the hashes above the children that were set. */
  settle(depth: number): void {
    let slots = new Set<number>()
    for (let nibble = 0; nibble < CHILDREN; nibble++)
      if (this.#changed & (1 << nibble)) slots.add((CHILDREN + nibble) >> 1)
    for (let level = 3; level >= 0; level--) {
      for (const slot of slots) this.#write(slot, this.#join(2 * slot, 4 * depth + level))
      slots = new Set([...slots].map(slot => slot >> 1))
    }
    this.#changed = 0
    viewOf(this.bytes).setUint32(KIND_BYTES, this.#there)
  }

  /** The child on the way to the key, or to the leaf where the search for it ends. Adds the steps to it, from the top. */
  descend(key: Uint8Array, depth: number, steps: PatriciaStep[]): number {
    let slot = 1
    for (let level = 0; level < 4; level++) {
      const bit = 4 * depth + level
      const own = 2 * slot + keyBit(key, bit)
      const other = own ^ 1
      if (this.#has(own) && this.#has(other)) steps.push({ bit, sibling: this.#hash(other).slice() })
      slot = this.#has(own) ? own : other
    }
    if (!this.#has(slot)) throw damaged(undefined, 'branch has a node without children')
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
    const at = BRANCH_HASHES_AT + (slot - 1) * HASH_BYTES
    return this.bytes.subarray(at, at + HASH_BYTES)
  }

  #write(slot: number, hash: Hash): void {
    this.bytes.set(hash, BRANCH_HASHES_AT + (slot - 1) * HASH_BYTES)
    this.#there |= 1 << slot
  }
}

/** The keys with the entries, both sorted. */
function merged(keys: readonly KeyRecord[], entries: readonly IndexedEntry[]): KeyRecord[] {
  const records: KeyRecord[] = []
  let at = 0
  for (const { key, index } of entries) {
    while (at < keys.length && compareKeys(keys[at]!.key, key) <= 0) records.push(copied(keys[at++]!))
    const last = records.at(-1)
    if (last === undefined || compareKeys(last.key, key) !== 0) records.push({ key, indexes: [index] })
    else if (last.indexes.at(-1)! < index) last.indexes.push(index)
  }
  for (; at < keys.length; at++) records.push(copied(keys[at]!))
  return records
}

/** What was read lies in memory that the next read uses again. */
function copied({ key, indexes }: KeyRecord): KeyRecord {
  return { key: key.slice(), indexes }
}

/** The parts of a sorted list that go to each child of a row at that depth. */
function* partsOf<Keyed extends { readonly key: Uint8Array }>(
  sorted: readonly Keyed[],
  depth: number,
): Generator<readonly [nibble: number, part: readonly Keyed[]]> {
  let start = 0
  while (start < sorted.length) {
    const nibble = nibbleOf(sorted[start]!.key, depth)
    let end = start + 1
    while (end < sorted.length && nibbleOf(sorted[end]!.key, depth) === nibble) end++
    yield [nibble, sorted.slice(start, end)]
    start = end
  }
}

function nibbleOf(key: Uint8Array, depth: number): number {
  const octet = key[depth >> 1]!
  return depth % 2 === 0 ? octet >> 4 : octet & 15
}

function assertHash(id: number, hash: Hash, expected: Hash): void {
  if (firstUnequal(hash, expected) !== HASH_BYTES) throw damaged(id, 'has another hash than the row above it')
}

function childId(id: number, nibble: number): number {
  return id * CHILDREN + nibble
}

function isBranch(row: Uint8Array): boolean {
  return row[0] === BRANCH
}

const NO_OCTETS = new Uint8Array(0)
/** No other id is as small: those of a depth follow those above. */
export const ROOT_ID = 1
/** A page of so many keys with an index each has 2.3 kB. */
const PAGE_KEYS_MAX = 32
/** The deepest id has 45 bits. SHA-256 never fills a page there; if it did, that page would grow past its bound. */
const DEPTH_MAX = 11
const BRANCH = 2
const CHILDREN = 16
const BRANCH_HASHES_AT = KIND_BYTES + 4
const BRANCH_BYTES = BRANCH_HASHES_AT + (2 * CHILDREN - 1) * HASH_BYTES
