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
import { sha256 } from '#primitives'
import { SignalError } from '../errors.ts'
import { HASH_BYTES, type Hash } from './hash.ts'
import {
  EMPTY_TREE,
  firstDifference,
  formatAbsence,
  formatSteps,
  keyBit,
  type PatriciaStep,
  patriciaLeafHash,
  patriciaNodeHash,
} from './patricia.ts'

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

/** The value under a key: SHA-256 over its indexes, ascending, each as u64 big-endian. */
export function indexValueOf(indexes: readonly number[]): Hash {
  const bytes = new Uint8Array(8 * indexes.length)
  const view = new DataView(bytes.buffer)
  for (const [at, index] of indexes.entries()) view.setBigUint64(8 * at, BigInt(index))
  return sha256(bytes)
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
  const sorted = entries.toSorted((one, other) => compareKeys(one.key, other.key) || one.index - other.index)
  const growth = new Growth(read, pageKeysMax)
  const root = growth.grow(ROOT_ID, 0, sorted)
  return { root, rows: growth.rows }
}

interface KeyRecord {
  readonly key: Uint8Array
  readonly indexes: number[]
}

interface Page {
  readonly keys: readonly KeyRecord[]
  /** The hash of the inner node that parts key `at` from the next one. */
  readonly nodes: readonly Hash[]
}

class Growth {
  readonly rows: [number, Uint8Array][] = []
  readonly #read: ReadRow
  readonly #pageKeysMax: number

  constructor(read: ReadRow, pageKeysMax: number) {
    this.#read = read
    this.#pageKeysMax = pageKeysMax
  }

  /** Returns the hash of what is under the row. */
  grow(id: number, depth: number, entries: readonly IndexedEntry[]): Hash {
    const row = this.#read(id)
    if (row !== undefined && isBranch(row))
      return this.#growBranch(id, depth, new Branch(row.slice()), entries)
    return this.#put(id, depth, merged(row === undefined ? [] : readPage(row).keys, entries))
  }

  #growBranch(id: number, depth: number, branch: Branch, entries: readonly IndexedEntry[]): Hash {
    for (const [nibble, part] of partsOf(entries, depth))
      branch.set(nibble, this.grow(childId(id, nibble), depth + 1, part))
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

/** The hash over the keys from `start` to before `end`; puts those of the inner nodes into `nodes`, each where its keys part. */
function hashRange(keys: readonly KeyRecord[], start: number, end: number, nodes: Hash[]): Hash {
  if (end - start === 1) {
    const { key, indexes } = keys[start]!
    return patriciaLeafHash(key, indexValueOf(indexes))
  }
  const [parting, bit] = partingOf(keys, start, end)
  const left = hashRange(keys, start, parting + 1, nodes)
  const right = hashRange(keys, parting + 1, end, nodes)
  const hash = patriciaNodeHash(bit, left, right)
  nodes[parting] = hash
  return hash
}

/** Returns where the search for the key ends. Adds the steps to it, from the top. */
function descendPage(
  keys: readonly KeyRecord[],
  nodes: readonly Hash[],
  key: Uint8Array,
  steps: PatriciaStep[],
): number {
  let [start, end] = [0, keys.length]
  while (end - start > 1) {
    const [parting, bit] = partingOf(keys, start, end)
    const isLeft = keyBit(key, bit) === 0
    const [from, to] = isLeft ? [parting + 1, end] : [start, parting + 1]
    steps.push({ bit, sibling: hashOfPart(keys, nodes, from, to) })
    if (isLeft) end = parting + 1
    else start = parting + 1
  }
  return start
}

function hashOfPart(keys: readonly KeyRecord[], nodes: readonly Hash[], start: number, end: number): Hash {
  if (end - start > 1) return nodes[partingOf(keys, start, end)[0]]!.slice()
  const { key, indexes } = keys[start]!
  return patriciaLeafHash(key, indexValueOf(indexes))
}

function pageHash({ keys, nodes }: Page): Hash {
  return hashOfPart(keys, nodes, 0, keys.length)
}

/** The key before the place where this many sorted keys part first, and at which bit. */
function partingOf(
  keys: readonly KeyRecord[],
  start: number,
  end: number,
): readonly [parting: number, bit: number] {
  // The first and the last key differ in the first bit that any two do.
  const bit = firstDifference(keys[start]!.key, keys[end - 1]!.key)
  let [low, high] = [start, end - 1]
  while (high - low > 1) {
    const middle = (low + high) >> 1
    if (keyBit(keys[middle]!.key, bit) === 0) low = middle
    else high = middle
  }
  return [low, bit]
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

function childId(id: number, nibble: number): number {
  return id * CHILDREN + nibble
}

/** Keys are views of `row`. */
function readPage(row: Uint8Array): Page {
  const view = viewOf(row)
  if (row[0] !== PAGE || row.length < PAGE_KEYS_AT) throw damaged(undefined, 'is no page')
  const count = view.getUint16(KIND_BYTES)
  const keys: KeyRecord[] = []
  let at = PAGE_KEYS_AT
  for (let read = 0; read < count; read++) {
    const countAt = at + HASH_BYTES
    if (countAt + COUNT_BYTES > row.length) throw damaged(undefined, 'page is cut off')
    const end = countAt + COUNT_BYTES + view.getUint16(countAt) * INDEX_BYTES
    if (end > row.length) throw damaged(undefined, 'page is cut off')
    const indexes: number[] = []
    for (let indexAt = countAt + COUNT_BYTES; indexAt < end; indexAt += INDEX_BYTES)
      indexes.push(view.getUint16(indexAt) * 2 ** 32 + view.getUint32(indexAt + 2))
    keys.push({ key: row.subarray(at, countAt), indexes })
    at = end
  }
  if (count === 0 || row.length - at !== (count - 1) * HASH_BYTES)
    throw damaged(undefined, `page of ${count} keys has ${row.length} octets`)
  const nodes = Array.from({ length: count - 1 }, (_, node) =>
    row.subarray(at + node * HASH_BYTES, at + (node + 1) * HASH_BYTES),
  )
  return { keys, nodes }
}

function formatPage({ keys, nodes }: Page): Uint8Array {
  const indexes = keys.reduce((sum, record) => sum + record.indexes.length, 0)
  const bytes = new Uint8Array(
    PAGE_KEYS_AT +
      keys.length * (HASH_BYTES + COUNT_BYTES) +
      indexes * INDEX_BYTES +
      nodes.length * HASH_BYTES,
  )
  const view = viewOf(bytes)
  bytes[0] = PAGE
  view.setUint16(KIND_BYTES, keys.length)
  let at = PAGE_KEYS_AT
  for (const record of keys) {
    // Our log keeps fewer keys for each device; that of another operator may not.
    if (record.indexes.length >= 2 ** 16)
      throw new SignalError('MALFORMED', 'index has more than 65535 entries under a key')
    bytes.set(record.key, at)
    view.setUint16(at + HASH_BYTES, record.indexes.length)
    at += HASH_BYTES + COUNT_BYTES
    for (const index of record.indexes) {
      view.setUint16(at, Math.floor(index / 2 ** 32))
      view.setUint32(at + 2, index % 2 ** 32)
      at += INDEX_BYTES
    }
  }
  for (const hash of nodes) {
    bytes.set(hash, at)
    at += HASH_BYTES
  }
  return bytes
}

function isBranch(row: Uint8Array): boolean {
  return row[0] === BRANCH
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

function compareKeys(one: Uint8Array, other: Uint8Array): number {
  const at = firstUnequal(one, other)
  return at === HASH_BYTES ? 0 : one[at]! - other[at]!
}

function firstUnequal(one: Uint8Array, other: Uint8Array): number {
  let at = 0
  while (at < HASH_BYTES && one[at] === other[at]) at++
  return at
}

function damaged(id: number | undefined, what: string): SignalError {
  const which = id === undefined ? 'a row' : `row ${id.toString(16)}`
  return new SignalError('STORE_UNAVAILABLE', `${which} of the index ${what}`)
}

const NO_OCTETS = new Uint8Array(0)
/** No other id is as small: those of a depth follow those above. */
export const ROOT_ID = 1
/** A page of so many keys with an index each has 2.3 kB. */
const PAGE_KEYS_MAX = 32
/** The deepest id has 45 bits. SHA-256 never fills a page there; if it did, that page would grow past its bound. */
const DEPTH_MAX = 11
const PAGE = 1
const BRANCH = 2
const CHILDREN = 16
const KIND_BYTES = 1
const COUNT_BYTES = 2
const INDEX_BYTES = 6
const PAGE_KEYS_AT = KIND_BYTES + COUNT_BYTES
const BRANCH_HASHES_AT = KIND_BYTES + 4
const BRANCH_BYTES = BRANCH_HASHES_AT + (2 * CHILDREN - 1) * HASH_BYTES
