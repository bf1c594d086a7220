/**
 * The lookup index: from a VRF hash to the newest leaf index logged under it.
 *
 * VRF hashes are uniform, so a B-tree row per entry would dirty one random page each. Here recent rows wait in
 * memory, in 256 partitions by the first byte of the hash; each time the log has grown by `ENTRIES_PER_STEP`, the next
 * partition in turn is written down into its node, and a node that would overflow pushes all its rows to its 16
 * children. A row is so rewritten a few times, but always together with its neighbours (a buffered trie; `append` in
 * `bench/` has its cost).
 *
 * The entry bundles are the truth and this index is derived from them: after a restart the entries from `nextIndex`
 * on are added again, and over an emptied table that is the whole log. Rows hold 16 bytes of the hash, so an answer is
 * a candidate that the caller checks against the entry itself.
 *
 * Layout of the table. A node's id is a 1 bit followed by the hash bits its rows share: 8 at depth 1, 4 more at each
 * depth below. Its key is the id in 6 bytes, its value one byte for its kind and then its rows, sorted, each 16 bytes
 * of hash and 6 bytes of leaf index. Key 0 holds the layout's version and the size of the log at the last step.
 */

import { assert, SignalError } from '../errors.ts'
import { LOOKUPS_KEPT_MAX } from '../limits.ts'
import { VRF_HASH_BYTES } from '../log/entry.ts'
import { BoundedCache } from '../store/engine/bounded-cache.ts'
import { indexKey } from '../store/engine/keys.ts'
import type { ReadStore, View } from '../store/engine/store.ts'
import type { Table } from '../store/engine/table.ts'
import type { PendingWrites } from './identity-table.ts'

/**
 * One writer adds batches in the order of the log and commits them in that order; several may be under way. After a
 * failed commit the object is thrown away and a new one made from the table.
 */
export class LookupIndex {
  readonly #store: Pick<ReadStore, 'view'>
  readonly #table: Table<Uint8Array>
  readonly #nodeRowsMax: number
  readonly #entriesPerStep: number
  /** Rows that were read from nodes. A newer row waits in its partition first, and takes its place when written down. */
  readonly #found = new BoundedCache<string, number>(LOOKUPS_KEPT_MAX)
  readonly #partitions: Map<string, number>[] = []
  /** Nodes by id, of batches that reads of the table do not see yet. */
  readonly #unwritten = new Map<number, Buffer>()
  #size: number
  #sizeAtLastStep: number

  /**
   * Throws `STORE_UNAVAILABLE` when the table is not of this layout. The options are for tests; a table must always be
   * opened with the same `entriesPerStep`.
   */
  constructor(
    store: Pick<ReadStore, 'view'>,
    table: Table<Uint8Array>,
    { nodeRowsMax = NODE_ROWS_MAX, entriesPerStep = ENTRIES_PER_STEP } = {},
  ) {
    this.#store = store
    this.#table = table
    this.#nodeRowsMax = nodeRowsMax
    this.#entriesPerStep = entriesPerStep
    for (let i = 0; i < PARTITIONS; i++) this.#partitions.push(new Map())
    this.#sizeAtLastStep = store.view(view => readState(view.getVolatile(table, indexKey(STATE_ID))))
    this.#size = firstWaiting(this.#sizeAtLastStep, entriesPerStep)
  }

  /**
   * The leaf index of the entry that `add` expects next. After opening it lies before the log's end: everything from
   * there on must be added again (about 65,000 entries) before the first `newest`.
   */
  get nextIndex(): number {
    return this.#size
  }

  /** The log size up to which every entry is indexed, on disk or in memory. */
  get coveredSize(): number {
    return Math.max(this.#size, this.#sizeAtLastStep)
  }

  /**
   * The newest leaf index under this VRF hash among all that was added, committed or not. Undefined when there is
   * none. The caller checks the entry, which may belong to another hash that starts with the same 16 bytes.
   * Throws `STORE_UNAVAILABLE` when a node is damaged.
   */
  newest(vrfHash: Uint8Array): number | undefined {
    assert(this.#size >= this.#sizeAtLastStep, 'entries since the last step are still to be added')
    const name = rowName(vrfHash)
    const known = this.#partitionOf(vrfHash).get(name) ?? this.#found.get(name)
    if (known !== undefined) return known
    const index = this.#findWritten(vrfHash)
    if (index !== undefined) this.#found.set(name, index)
    return index
  }

  /** Apart, because a closure costs its memory also where it is not called. */
  #findWritten(vrfHash: Uint8Array): number | undefined {
    return this.#store.view(view => this.#findIn(view, vrfHash))
  }

  #findIn(view: View, vrfHash: Uint8Array): number | undefined {
    let id = rootId(vrfHash[0]!)
    for (let depth = 1; depth <= DEPTH_MAX; depth++) {
      const node = this.#readNode(view, id)
      if (node === undefined) return undefined
      const index = findRow(node, vrfHash)
      if (index !== undefined || node[0] === LEAF) return index
      id = childId(id, nibbleBelow(depth, vrfHash, 0))
    }
    return undefined
  }

  /**
   * Adds the VRF hashes of the entries from `firstIndex` on, which must be `nextIndex`; their memory is not kept.
   * Entries that the table holds already (after a restart) cause no writes.
   */
  add(firstIndex: number, vrfHashes: readonly Uint8Array[]): PendingWrites {
    assert(firstIndex === this.#size, 'lookup rows must be added in the order of the log')
    for (const vrfHash of vrfHashes) this.#partitionOf(vrfHash).set(rowName(vrfHash), this.#size++)
    const changed = new Map<number, Buffer>()
    const stepNow = this.#stepAt(this.#size)
    const stepBefore = this.#stepAt(Math.max(firstIndex, this.#sizeAtLastStep))
    if (stepNow > stepBefore) {
      const stepFirst = Math.max(stepBefore + 1, stepNow - PARTITIONS + 1)
      this.#takeSteps(stepFirst, stepNow, changed)
      this.#sizeAtLastStep = this.#size
      changed.set(STATE_ID, formatState(this.#size))
    }
    const writes = [...changed].map(([id, value]) => ({ key: indexKey(id), value }))
    return { writes, release: () => this.#release(changed) }
  }

  #stepAt(size: number): number {
    return Math.floor(size / this.#entriesPerStep)
  }

  #partitionOf(vrfHash: Uint8Array): Map<string, number> {
    return this.#partitions[vrfHash[0]!]!
  }

  #release(changed: ReadonlyMap<number, Buffer>): void {
    for (const [id, value] of changed) {
      // A later batch may have changed the node again; its bytes stay until that batch is released.
      if (this.#unwritten.get(id) === value) this.#unwritten.delete(id)
    }
  }

  #takeSteps(first: number, last: number, changed: Map<number, Buffer>): void {
    this.#store.view(view => {
      for (let step = first; step <= last; step++) this.#writeDown(view, step % PARTITIONS, changed)
    })
  }

  #writeDown(view: View, partition: number, changed: Map<number, Buffer>): void {
    const waiting = this.#partitions[partition]!
    if (waiting.size === 0) return
    this.#mergeInto(view, rootId(partition), 1, packRows(waiting), changed)
    for (const name of waiting.keys()) this.#found.delete(name)
    waiting.clear()
  }

  /** Merges packed sorted rows into a node, and on into its children when they do not fit. */
  #mergeInto(view: View, id: number, depth: number, rows: Buffer, changed: Map<number, Buffer>): void {
    const merged = mergeRows(this.#readNode(view, id), rows)
    if (rowCount(merged) <= this.#nodeRowsMax || depth === DEPTH_MAX) {
      this.#change(id, merged, changed)
      return
    }
    // Each time new bytes, because `#release` tells the batches' values apart by identity.
    this.#change(id, Buffer.from([PARENT]), changed)
    let start = KIND_BYTES
    while (start < merged.length) {
      const nibble = nibbleBelow(depth, merged, start)
      let end = start + ROW_BYTES
      while (end < merged.length && nibbleBelow(depth, merged, end) === nibble) end += ROW_BYTES
      this.#mergeInto(view, childId(id, nibble), depth + 1, merged.subarray(start, end), changed)
      start = end
    }
  }

  #change(id: number, value: Buffer, changed: Map<number, Buffer>): void {
    changed.set(id, value)
    this.#unwritten.set(id, value)
  }

  #readNode(view: View, id: number): Buffer | undefined {
    const unwritten = this.#unwritten.get(id)
    if (unwritten !== undefined) return unwritten
    const node = view.getVolatile(this.#table, indexKey(id))
    if (node !== undefined) checkNode(id, node)
    return node
  }
}

/**
 * The hash's first 16 bytes as a string of as many characters, to be a Map's key. Departure from a Buffer over its memory,
 * which takes three times as long and, for the 65,000 that an opened log takes in, leaves 9 MB behind.
 */
function rowName(h: Uint8Array): string {
  assert(h.length === VRF_HASH_BYTES, 'a VRF hash has 64 bytes')
  // biome-ignore format: each of the sixteen would have a line
  return String.fromCharCode(
    h[0]!, h[1]!, h[2]!, h[3]!, h[4]!, h[5]!, h[6]!, h[7]!,
    h[8]!, h[9]!, h[10]!, h[11]!, h[12]!, h[13]!, h[14]!, h[15]!,
  )
}

/**
 * The first leaf index whose row may be in memory only, given the state row. In the last 256 steps each partition had
 * its turn, so older rows are all in the table.
 */
export function firstWaiting(sizeAtLastStep: number, entriesPerStep = ENTRIES_PER_STEP): number {
  return Math.max(0, Math.floor(sizeAtLastStep / entriesPerStep) - PARTITIONS + 1) * entriesPerStep
}

/** The id of the node at a depth that a row belongs to, whose hash begins at `offset`. */
export function nodeIdAt(depth: number, bytes: Uint8Array, offset: number): number {
  let id = rootId(bytes[offset]!)
  for (let above = 1; above < depth; above++) id = childId(id, nibbleBelow(above, bytes, offset))
  return id
}

export function rootId(firstByte: number): number {
  return PARTITIONS + firstByte
}

export function childId(id: number, nibble: number): number {
  return id * 16 + nibble
}

/** The four hash bits that choose among the children of a node at `depth`, of the hash that begins at `offset`. */
function nibbleBelow(depth: number, bytes: Uint8Array, offset: number): number {
  const byte = bytes[offset + ((depth + 1) >> 1)]!
  return depth % 2 === 1 ? byte >> 4 : byte & 15
}

function packRows(waiting: ReadonlyMap<string, number>): Buffer {
  const rows = Buffer.allocUnsafe(waiting.size * ROW_BYTES)
  let at = 0
  for (const name of [...waiting.keys()].sort()) {
    rows.write(name, at, INDEXED_HASH_BYTES, 'latin1')
    rows.writeUIntBE(waiting.get(name)!, at + INDEXED_HASH_BYTES, INDEX_BYTES)
    at += ROW_BYTES
  }
  return rows
}

/** A node's value with `rows` merged in. Of two rows for one hash the new one stays: later rows are newer. */
function mergeRows(node: Buffer | undefined, rows: Buffer): Buffer {
  const nodeLength = node === undefined ? KIND_BYTES : node.length
  const merged = Buffer.allocUnsafe(nodeLength + rows.length)
  merged[0] = node === undefined ? LEAF : node[0]!
  let at = KIND_BYTES
  let nodeAt = KIND_BYTES
  for (let rowsAt = 0; rowsAt < rows.length; rowsAt += ROW_BYTES) {
    while (nodeAt < nodeLength) {
      const order = compareHashes(node!, nodeAt, rows, rowsAt)
      if (order > 0) break
      if (order < 0) {
        copyRow(node!, nodeAt, merged, at)
        at += ROW_BYTES
      }
      nodeAt += ROW_BYTES
    }
    copyRow(rows, rowsAt, merged, at)
    at += ROW_BYTES
  }
  for (; nodeAt < nodeLength; nodeAt += ROW_BYTES, at += ROW_BYTES) copyRow(node!, nodeAt, merged, at)
  return merged.subarray(0, at)
}

function copyRow(from: Uint8Array, fromAt: number, to: Uint8Array, toAt: number): void {
  for (let i = 0; i < ROW_BYTES; i++) to[toAt + i] = from[fromAt + i]!
}

function findRow(node: Buffer, vrfHash: Uint8Array): number | undefined {
  const at = findRowAt(node, vrfHash, 0)
  return at === undefined ? undefined : node.readUIntBE(at + INDEXED_HASH_BYTES, INDEX_BYTES)
}

/** Where in a node the row of the hash is that begins at `offset` of `bytes`. */
export function findRowAt(node: Uint8Array, bytes: Uint8Array, offset: number): number | undefined {
  let low = 0
  let high = rowCount(node)
  while (low < high) {
    const middle = (low + high) >>> 1
    const at = KIND_BYTES + middle * ROW_BYTES
    const order = compareHashes(node, at, bytes, offset)
    if (order === 0) return at
    if (order < 0) low = middle + 1
    else high = middle
  }
  return undefined
}

/** Negative, 0 or positive, as the first of the two 16-byte hashes sorts before, with or after the second. */
export function compareHashes(a: Uint8Array, aAt: number, b: Uint8Array, bAt: number): number {
  for (let i = 0; i < INDEXED_HASH_BYTES; i++) {
    const difference = a[aAt + i]! - b[bAt + i]!
    if (difference !== 0) return difference
  }
  return 0
}

function rowCount(node: Uint8Array): number {
  return (node.length - KIND_BYTES) / ROW_BYTES
}

function checkNode(id: number, node: Uint8Array): void {
  const isWhole = node.length >= KIND_BYTES && (node.length - KIND_BYTES) % ROW_BYTES === 0
  if (isWhole && (node[0] === LEAF || node[0] === PARENT)) return
  throw new SignalError(
    'STORE_UNAVAILABLE',
    `lookup node ${id.toString(16)} of ${node.length} bytes is damaged`,
  )
}

function formatState(sizeAtLastStep: number): Buffer {
  const state = Buffer.allocUnsafe(1 + INDEX_BYTES)
  state[0] = LAYOUT_VERSION
  state.writeUIntBE(sizeAtLastStep, 1, INDEX_BYTES)
  return state
}

/** The size of the log at the last step, from the state row. Throws `STORE_UNAVAILABLE` for another layout. */
export function readState(state: Buffer | undefined): number {
  if (state === undefined) return 0
  if (state.length === 1 + INDEX_BYTES && state[0] === LAYOUT_VERSION) return state.readUIntBE(1, INDEX_BYTES)
  throw new SignalError('STORE_UNAVAILABLE', `lookup table is of layout ${state[0]}, not ${LAYOUT_VERSION}`)
}

/** Values of the hash's first byte. */
const PARTITIONS = 256
/**
 * A row: the front of a VRF hash, which is all of it that the index knows, and a leaf index. Before the first one a node
 * has a byte for its kind.
 */
export const INDEXED_HASH_BYTES = 16
export const INDEX_BYTES = 6
export const ROW_BYTES = INDEXED_HASH_BYTES + INDEX_BYTES
export const KIND_BYTES = 1

/** Kinds of node: one that never had children, so that a search ends here, and one that has pushed rows to them. */
export const LEAF = 1
export const PARENT = 2
/** No node has this id. */
export const STATE_ID = 0
/** The order of steps is part of the layout: another `ENTRIES_PER_STEP` is another version. */
const LAYOUT_VERSION = 1
export const ENTRIES_PER_STEP = 256
/** As many rows as fill four LMDB pages of 4,096 bytes, after a header of 16 in the first. */
const NODE_ROWS_MAX = Math.floor((4 * 4096 - 16 - KIND_BYTES) / ROW_BYTES)
/** The deepest id has 45 bits. Uniform hashes never fill a node here; if they did, it would grow past its bound. */
export const DEPTH_MAX = 10
