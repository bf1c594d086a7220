/**
 * The lookup table against the entries, by the layout of `lookup-index.ts`: every node has its form and stands where a
 * search finds it, and every row leads to an entry with its hash. A search for any hash ends at the newest entry under
 * it, unless the index still has that one in memory.
 */

import { messageOf } from '../../errors.ts'
import { LOG_TABLES } from '../../keyserver/log-store.ts'
import {
  childId,
  compareHashes,
  DEPTH_MAX,
  ENTRIES_PER_STEP,
  findRowAt,
  firstWaiting,
  INDEX_BYTES,
  INDEXED_HASH_BYTES,
  KIND_BYTES,
  LEAF,
  nodeIdAt,
  PARENT,
  ROW_BYTES,
  readState,
  rootId,
  STATE_ID,
} from '../../keyserver/lookup-index.ts'
import { parseEntry } from '../../log/entry.ts'
import { entryInBundle, TILE_WIDTH } from '../../log/tile.ts'
import { indexKey } from '../../store/engine/keys.ts'
import type { HashRange } from './entry-block.ts'
import type { Findings } from './fault.ts'
import type { LeafSet, NewestKeys } from './newest-keys.ts'
import type { RawLog } from './raw-log.ts'

interface Node {
  readonly id: number
  readonly depth: number
  readonly bytes: Buffer
}

/** The tables it reads. */
export type LookupTables = Pick<RawLog, 'lookupNode' | 'bundle' | 'keys'>

export class LookupCheck {
  readonly #raw: LookupTables
  readonly #treeSize: number
  readonly #unsound: LeafSet
  readonly #findings: Findings
  readonly #reached = new Set<number>([STATE_ID])
  readonly #firstWaiting: number
  /** Rows that were looked at. */
  rows = 0

  constructor(raw: LookupTables, treeSize: number, unsound: LeafSet, findings: Findings) {
    this.#raw = raw
    this.#treeSize = treeSize
    this.#unsound = unsound
    this.#findings = findings
    this.#firstWaiting = this.#checkState()
  }

  /** Checks the part of the table for a range of hashes. `newest` has every sound entry of that range. */
  checkRange({ from, to }: HashRange, newest: NewestKeys): void {
    for (let firstByte = from; firstByte < to; firstByte++) this.#walk(rootId(firstByte), 1, [], newest)
    for (const slot of newest.unmarked()) {
      if (newest.index(slot) >= this.#firstWaiting) continue
      this.#report(rootId(newest.firstByte(slot)), undefined, `entry ${newest.index(slot)} is not found`)
    }
  }

  /** Call it when all ranges have been checked. */
  finish(): void {
    for (const key of this.#raw.keys(LOG_TABLES.lookup)) {
      const bytes = Buffer.from(key)
      const id = bytes.length === INDEX_BYTES ? bytes.readUIntBE(0, INDEX_BYTES) : undefined
      if (id !== undefined && this.#reached.has(id)) continue
      this.#report(id ?? bytes.toString('hex'), undefined, 'no search comes to this node')
    }
  }

  /** The first leaf index that may have its row in memory only. Checks the state row against this tree. */
  #checkState(): number {
    const state = this.#raw.lookupNode(STATE_ID)
    const wanted = Math.floor(this.#treeSize / ENTRIES_PER_STEP)
    try {
      const size = readState(state === undefined ? undefined : Buffer.from(state))
      if (Math.floor(size / ENTRIES_PER_STEP) === wanted && size <= this.#treeSize) return firstWaiting(size)
      this.#report(
        STATE_ID,
        this.#firstWrongStateByte(state),
        `index was written down at size ${size}, which is not in the last step of ${this.#treeSize} entries`,
      )
    } catch (error) {
      this.#report(STATE_ID, 0, messageOf(error))
    }
    // From here on, the state that the tree implies is the measure.
    return firstWaiting(this.#treeSize)
  }

  /**
   * The first byte that puts the size outside the range from the last step's to the tree's. A missing row is wrong at
   * byte 0.
   */
  #firstWrongStateByte(state: Uint8Array | undefined): number {
    const smallest = indexKey(Math.floor(this.#treeSize / ENTRIES_PER_STEP) * ENTRIES_PER_STEP)
    const largest = indexKey(this.#treeSize)
    let at = 0
    while (smallest[at] === largest[at] && state?.[KIND_BYTES + at] === smallest[at]) at++
    return state === undefined ? 0 : KIND_BYTES + at
  }

  #walk(id: number, depth: number, above: readonly Node[], newest: NewestKeys): boolean {
    const value = this.#raw.lookupNode(id)
    if (value === undefined) return false
    this.#reached.add(id)
    const node = { id, depth, bytes: Buffer.from(value) }
    const isPartRow = (node.bytes.length - KIND_BYTES) % ROW_BYTES !== 0
    if (isPartRow) this.#report(id, node.bytes.length, 'node ends inside a row')
    this.#checkRows(node, above, newest)

    let hasChildren = false
    for (let nibble = 0; nibble < 16 && depth < DEPTH_MAX; nibble++) {
      hasChildren = this.#walk(childId(id, nibble), depth + 1, [...above, node], newest) || hasChildren
    }
    const kind = hasChildren ? PARENT : LEAF
    if (node.bytes[0] !== kind) this.#report(id, 0, `node is of kind ${node.bytes[0]}, not ${kind}`)
    return true
  }

  #checkRows(node: Node, above: readonly Node[], newest: NewestKeys): void {
    const { bytes } = node
    for (let at = KIND_BYTES; at + ROW_BYTES <= bytes.length; at += ROW_BYTES) {
      this.rows++
      const fault = this.#faultOfRow(node, at, above, newest)
      if (fault !== undefined) this.#report(node.id, fault.offset, fault.detail)
      else if (at > KIND_BYTES && compareHashes(bytes, at - ROW_BYTES, bytes, at) >= 0) {
        this.#report(node.id, at, 'row is not in its place among the others')
      }
    }
  }

  #faultOfRow(
    { id, depth, bytes }: Node,
    at: number,
    above: readonly Node[],
    newest: NewestKeys,
  ): { offset: number; detail: string } | undefined {
    const index = bytes.readUIntBE(at + INDEXED_HASH_BYTES, INDEX_BYTES)
    const slot = newest.find(bytes, at)
    if (this.#unsound.has(index)) {
      if (slot !== undefined) newest.mark(slot)
      return undefined
    }
    if (slot === undefined || index !== newest.index(slot)) {
      const fault = this.#misled(bytes, at, index, slot === undefined ? undefined : newest.index(slot))
      if (fault !== undefined) return fault
    }
    if (nodeIdAt(depth, bytes, at) !== id) return { offset: at, detail: 'row belongs to another node' }
    const isCovered = above.some(node => findRowAt(node.bytes, bytes, at) !== undefined)
    if (isCovered || slot === undefined) return undefined
    // A search ends here.
    newest.mark(slot)
    const newestIndex = newest.index(slot)
    if (index === newestIndex || newestIndex >= this.#firstWaiting) return undefined
    return {
      offset:
        at +
        INDEXED_HASH_BYTES +
        firstDifference(bytes, at + INDEXED_HASH_BYTES, indexKey(newestIndex), INDEX_BYTES),
      detail: `row leads to entry ${index}, which ${newestIndex} has replaced`,
    }
  }

  /** Why a row is neither its hash's newest nor an older row of it. */
  #misled(
    bytes: Buffer,
    at: number,
    index: number,
    newestIndex: number | undefined,
  ): { offset: number; detail: string } | undefined {
    const hash = index < this.#treeSize ? this.#hashOf(index) : undefined
    const equal = hash === undefined ? 0 : countEqual(bytes, at, hash)
    if (equal === INDEXED_HASH_BYTES) return undefined
    if (hash !== undefined && equal > INDEXED_HASH_BYTES / 2) {
      const offset = at + firstDifference(bytes, at, hash, INDEXED_HASH_BYTES)
      return { offset, detail: `row has not the VRF hash of entry ${index}` }
    }
    const wanted = newestIndex === undefined ? undefined : indexKey(newestIndex)
    const start = at + INDEXED_HASH_BYTES
    const offset = wanted === undefined ? start : start + firstDifference(bytes, start, wanted, INDEX_BYTES)
    const reason = hash === undefined ? 'the log does not have' : 'has another VRF hash'
    return { offset, detail: `row leads to entry ${index}, which ${reason}` }
  }

  #hashOf(index: number): Uint8Array | undefined {
    const bundle = this.#raw.bundle(Math.floor(index / TILE_WIDTH))
    if (bundle === undefined) return undefined
    return parseEntry(entryInBundle(bundle, index % TILE_WIDTH)).vrfHash
  }

  #report(id: number | string, offset: number | undefined, detail: string): void {
    this.#findings.report({
      check: 'lookup',
      table: LOG_TABLES.lookup,
      key: typeof id === 'number' ? id.toString(16) : id,
      ...(offset === undefined ? {} : { offset }),
      detail,
      isDerived: true,
    })
  }
}

function firstDifference(a: Uint8Array, aAt: number, b: Uint8Array, length: number): number {
  let at = 0
  while (at < length && a[aAt + at] === b[at]) at++
  return at
}

function countEqual(a: Uint8Array, aAt: number, b: Uint8Array): number {
  let equal = 0
  for (let at = 0; at < INDEXED_HASH_BYTES; at++) if (a[aAt + at] === b[at]) equal++
  return equal
}
