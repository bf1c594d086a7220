/**
 * The Merkle Patricia tree of an index, kept in rows: under each key the indexes of the log's entries, and the hash of those
 * as its value. Rows are read and returned, never written here.
 *
 * A row has the part of the tree under some first bits of the keys, four more at each depth. It is a page of keys, or, where
 * those would be more than `PAGE_KEYS_MAX`, a branch with sixteen rows under it. So a lookup reads one row for each factor of
 * 16, and a new key changes as many. A row's id is a 1 bit followed by the bits that its keys share.
 */
import type { SignalError } from '../errors.ts'
import { equalHashes, type Hash } from './hash.ts'
import { indexValueOf } from './index-leaf.ts'
import { EMPTY_TREE, firstDifference, PatriciaProof } from './patricia.ts'
import { Branch, CHILD_BITS, CHILDREN, isBranch } from './patricia-branch.ts'
import { compareKeys, damagedRow, Page, type PageKey } from './patricia-page.ts'

/** Reads a row by its id; undefined where there is none. Its bytes are used before the next one is read. */
export type ReadRow = (id: number) => Uint8Array | undefined

/** An entry of the log under a key of 32 bytes. */
export interface IndexedEntry {
  readonly key: Uint8Array
  readonly index: number
}

/** The indexes under a key, and their proof in `mpt`'s octets. No indexes: the key is absent. */
export interface PatriciaLookup {
  readonly indexes: readonly number[]
  readonly proof: Uint8Array
}

export interface GrownTree {
  readonly root: Hash
  /** The rows that are new or changed, each once and behind those below it. */
  readonly rows: readonly (readonly [id: number, bytes: Uint8Array])[]
}

/** Throws `STORE_UNAVAILABLE` for a row that is damaged. */
export function patriciaRootOf(read: ReadRow): Hash {
  const row = read(ROOT_ID)
  if (row === undefined) return EMPTY_TREE
  return isBranch(row) ? Branch.read(row).top.slice() : new Page(row).top.slice()
}

/** Throws `STORE_UNAVAILABLE` for a row that is damaged or missing. */
export function lookUpIn(read: ReadRow, key: Uint8Array): PatriciaLookup {
  const proof = new PatriciaProof()
  let id = ROOT_ID
  let row = read(id)
  if (row === undefined) return { indexes: [], proof: proof.bytes }
  let bits = 0
  for (; isBranch(row); bits += CHILD_BITS) {
    if (bits === BITS_MAX) throw damagedRow(TOO_DEEP)
    id = childId(id, Branch.read(row).descend(key, bits, proof))
    row = read(id)
    if (row === undefined) throw missing(id)
  }
  const page = new Page(row)
  const at = page.descend(key, bits, proof)
  const end = { key: page.key(at), indexes: page.indexes(at) }
  if (compareKeys(end.key, key) === 0) return { indexes: end.indexes, proof: proof.bytes }
  proof.addOther({ key: end.key, value: indexValueOf(end.indexes) })
  return { indexes: [], proof: proof.bytes }
}

/**
 * Adds entries, in any order. Those that the tree has already change nothing, so a writer that stopped after some of the rows
 * grows it again. `pageKeysMax` is for tests; a tree is always grown with the same.
 */
export function growTree(
  read: ReadRow,
  entries: readonly IndexedEntry[],
  pageKeysMax = PAGE_KEYS_MAX,
): GrownTree {
  if (entries.length === 0) return { root: patriciaRootOf(read), rows: [] }
  return new Growth(read, pageKeysMax).grown(entries)
}

/**
 * The same for rows that have this root, which is signed: each row that the entries lead to is compared with the hash above it,
 * so that no damage gets into a new root. Throws `STORE_UNAVAILABLE` where one is another.
 */
export function growSoundTree(read: ReadRow, root: Hash, entries: readonly IndexedEntry[]): GrownTree {
  if (entries.length === 0) return { root, rows: [] }
  return new Growth(read, PAGE_KEYS_MAX).grown(entries, root)
}

class Growth {
  readonly #rows: [number, Uint8Array][] = []
  readonly #read: ReadRow
  readonly #pageKeysMax: number

  constructor(read: ReadRow, pageKeysMax: number) {
    this.#read = read
    this.#pageKeysMax = pageKeysMax
  }

  grown(entries: readonly IndexedEntry[], expected?: Hash): GrownTree {
    const sorted = entries.toSorted(
      (one, other) => compareKeys(one.key, other.key) || one.index - other.index,
    )
    const root = this.#growRow(ROOT_ID, this.#read(ROOT_ID), 0, sorted, expected)
    return { root: root.slice(), rows: this.#rows }
  }

  /**
   * Returns the hash of all under the row; its keys share their first `bits`. `expected` is what it has to be so far; left
   * out, that is not looked at.
   */
  #growRow(
    id: number,
    read: Uint8Array | undefined,
    bits: number,
    entries: readonly IndexedEntry[],
    expected: Hash | undefined,
  ): Hash {
    // The next read uses the same memory.
    const row = read?.slice()
    if (row !== undefined && isBranch(row))
      return this.#growBranch(id, bits, Branch.read(row), entries, expected)
    if (expected !== undefined)
      assertHash(row === undefined ? EMPTY_TREE : new Page(row).anew().top, expected)
    if (row === undefined) return this.#put(id, bits, merged([], entries))
    const page = new Page(row)
    const keys = merged(page.keys(), entries)
    // The first and the last part where any two do.
    if (keys.length > 1 && firstDifference(keys[0]!.key, keys.at(-1)!.key) < bits)
      throw damagedRow('has keys of another row')
    if (!keys.some(each => each.isChanged)) return page.top
    return this.#put(id, bits, keys)
  }

  #growBranch(
    id: number,
    bits: number,
    stored: Branch,
    entries: readonly IndexedEntry[],
    expected: Hash | undefined,
  ): Hash {
    if (bits === BITS_MAX) throw damagedRow(TOO_DEEP)
    const branch = expected === undefined ? stored : stored.anew(bits)
    if (expected !== undefined) assertHash(branch.top, expected)
    for (const [child, part] of partsOf(entries, bits)) {
      const row = this.#read(childId(id, child))
      if (row === undefined && branch.has(child)) throw missing(childId(id, child))
      const expectedChild = expected === undefined ? undefined : branch.child(child)
      branch.set(child, this.#growRow(childId(id, child), row, bits + CHILD_BITS, part, expectedChild))
    }
    return branch.isChanged ? this.#putBranch(id, bits, branch) : branch.top
  }

  #put(id: number, bits: number, keys: readonly PageKey[]): Hash {
    if (keys.length > this.#pageKeysMax && bits < BITS_MAX) {
      const branch = Branch.empty()
      for (const [child, part] of partsOf(keys, bits))
        branch.set(child, this.#put(childId(id, child), bits + CHILD_BITS, part))
      return this.#putBranch(id, bits, branch)
    }
    const page = Page.of(keys)
    this.#rows.push([id, page.bytes])
    return page.top
  }

  #putBranch(id: number, bits: number, branch: Branch): Hash {
    branch.settle(bits)
    this.#rows.push([id, branch.bytes])
    return branch.top
  }
}

function assertHash(hash: Hash, expected: Hash): void {
  if (!equalHashes(hash, expected)) throw damagedRow('has another hash than the one above it says')
}

/** The keys with the entries, both sorted. */
function merged(keys: readonly PageKey[], entries: readonly IndexedEntry[]): PageKey[] {
  const all: PageKey[] = []
  let at = 0
  for (const { key, index } of entries) {
    while (at < keys.length && compareKeys(keys[at]!.key, key) <= 0) all.push(keys[at++]!)
    const last = all.at(-1)
    if (last === undefined || compareKeys(last.key, key) !== 0)
      all.push({ key, indexes: [index], node: undefined, isChanged: true })
    else if (last.indexes.at(-1)! < index) {
      last.indexes.push(index)
      last.isChanged = true
    }
  }
  while (at < keys.length) all.push(keys[at++]!)
  return all
}

/** The parts of a sorted list that go to each child of a row. */
function* partsOf<Keyed extends { readonly key: Uint8Array }>(
  sorted: readonly Keyed[],
  bits: number,
): Generator<readonly [child: number, part: readonly Keyed[]]> {
  let start = 0
  while (start < sorted.length) {
    const child = childOf(sorted[start]!.key, bits)
    let end = start + 1
    while (end < sorted.length && childOf(sorted[end]!.key, bits) === child) end++
    yield [child, sorted.slice(start, end)]
    start = end
  }
}

/** The four bits of a key behind its first `bits`. */
function childOf(key: Uint8Array, bits: number): number {
  const octet = key[bits >> 3]!
  return bits % 8 === 0 ? octet >> 4 : octet & 15
}

function childId(id: number, child: number): number {
  return id * CHILDREN + child
}

function missing(id: number): SignalError {
  return damagedRow(`is missing: ${id.toString(16)}`)
}

/** No other id is as small: those of a depth follow those above. */
export const ROOT_ID = 1
/** A page of so many keys with an index each has 2.3 kB. */
const PAGE_KEYS_MAX = 32
/**
 * The ids of the lowest rows have 45 bits. SHA-256 never gives more keys there than a page should have; if it did, that page
 * would have them all.
 */
const BITS_MAX = 44
const TOO_DEEP = 'is a branch where only pages are'
