/**
 * A page of a Merkle Patricia tree that is kept in rows: sorted keys, the indexes under each, and the hashes of the nodes
 * between them. The layout of its octets stands in `patricia-rows.ts`.
 */
import { sha256 } from '#primitives'
import { assert, SignalError } from '../errors.ts'
import { HASH_BYTES, type Hash } from './hash.ts'
import { firstDifference, keyBit, type PatriciaStep, patriciaLeafHash, patriciaNodeHash } from './patricia.ts'

/** A key, and the indexes under it. */
export interface KeyRecord {
  readonly key: Uint8Array
  readonly indexes: number[]
}

/** Sorted keys, of which a tree is made. */
interface Page {
  readonly keys: readonly KeyRecord[]
  /** The hash of the inner node that parts key `at` from the next one. */
  readonly nodes: readonly Hash[]
}

/** The value under a key: SHA-256 over its indexes, ascending, each as u64 big-endian. */
export function indexValueOf(indexes: readonly number[]): Hash {
  const bytes = new Uint8Array(8 * indexes.length)
  const view = new DataView(bytes.buffer)
  for (const [at, index] of indexes.entries()) view.setBigUint64(8 * at, BigInt(index))
  return sha256(bytes)
}

/** The hash over the keys from `start` to before `end`; puts those of the inner nodes into `nodes`, each where its keys part. */
export function hashRange(keys: readonly KeyRecord[], start: number, end: number, nodes: Hash[]): Hash {
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
export function descendPage(
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

/** As the page's hashes say, without a look at its keys. */
export function pageHash({ keys, nodes }: Page): Hash {
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

/** Keys are views of `row`. */
export function readPage(row: Uint8Array): Page {
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

export function formatPage({ keys, nodes }: Page): Uint8Array {
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
    assert(record.indexes.length < 2 ** 16, 'the log keeps fewer keys for each device')
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

export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

export function compareKeys(one: Uint8Array, other: Uint8Array): number {
  const at = firstUnequal(one, other)
  return at === HASH_BYTES ? 0 : one[at]! - other[at]!
}

export function firstUnequal(one: Uint8Array, other: Uint8Array): number {
  let at = 0
  while (at < HASH_BYTES && one[at] === other[at]) at++
  return at
}

export function damaged(id: number | undefined, what: string): SignalError {
  const which = id === undefined ? 'a row' : `row ${id.toString(16)}`
  return new SignalError('STORE_UNAVAILABLE', `${which} of the index ${what}`)
}

export const KIND_BYTES = 1
const PAGE = 1
const COUNT_BYTES = 2
const INDEX_BYTES = 6
const PAGE_KEYS_AT = KIND_BYTES + COUNT_BYTES
