/**
 * Whether an answer of the log is complete: the newest entry under its hash, or that there is none. The log's index is a map
 * from each hash to its entries. The leaves of a second log, the output log, hold its root, each with the *input checkpoint*:
 * the map has all entries of that tree. A proof shows one lookup in the map of the output log's newest leaf. The entries that
 * the log has appended since are the *tail*; `index-tail.ts` reads it.
 */
import { decodeBase64 } from '#primitives'
import { HASH_BYTES, type Hash, hashLeaf } from '../log/hash.ts'
import { verifyInclusion } from '../log/inclusion.ts'
import { indexKeyOf, indexValueOf, parseIndexLeaf } from '../log/index-leaf.ts'
import { verifyPatricia } from '../log/patricia.ts'
import { decodeUtf8 } from '../log/utf8.ts'
import type { IndexKeys, LogKeys } from './log-keys.ts'
import { openSignedCheckpoint, type SignedCheckpoint, treeHeadOf } from './signed-checkpoint.ts'
import { CheckFailed, during, type Refusal, settle, type Unanswered } from './verdict.ts'
import { type Freshness, verifyWitnesses } from './witnesses.ts'

/** As an answer carries it; all base64 but for the numbers. */
export interface IndexProof {
  readonly output_log_cp: string
  readonly output_log_leaf: string
  /** Proves that the leaf is the output log's last one: hashes of 32 numbers each. */
  readonly output_log_proof: readonly (readonly number[])[]
  /** The entries under the hash, ascending. */
  readonly index_value: readonly number[]
  readonly index_proof: string
}

/** The lookup that a proof shows. */
export interface VerifiedIndex {
  readonly kind: 'verified'
  /** The output log's checkpoint. */
  readonly output: SignedCheckpoint
  /** The log's checkpoint: the map has all entries of its tree. */
  readonly input: SignedCheckpoint
  /** The entries under the hash, ascending. */
  readonly indexes: readonly number[]
  readonly ageMs: number | 'unknown'
}

/**
 * What an answer proves of the entries that it does not show.
 *
 * - `true`: its hash has exactly the entries `indexes`, up to its checkpoint. `isProved` where cosigners that rebuild the index
 *   vouch for that; else auditors find an index out that lies
 * - `tail-unread`: the log has grown too far since the index's newest leaf
 * - `unindexed`: no index was asked, or none was offered
 */
export type Completeness =
  | {
      readonly complete: true
      readonly indexes: readonly number[]
      /** Since when the quorum had seen the index's newest leaf; unknown without a quorum. */
      readonly indexAgeMs: number | 'unknown'
      readonly isProved: boolean
    }
  | { readonly complete: 'tail-unread' | 'unindexed' }

export const UNINDEXED: Completeness = { complete: 'unindexed' }

/** The least of what several answers prove. */
export interface LeastProved {
  readonly complete: Completeness['complete']
  readonly isProved: boolean
}

export function leastOf(proved: readonly Completeness[]): LeastProved {
  const isProved = proved.every(each => each.complete === true && each.isProved)
  for (const complete of ['unindexed', 'tail-unread'] as const)
    if (proved.some(each => each.complete === complete)) return { complete, isProved }
  return { complete: true, isProved }
}

/**
 * Checks a proof by itself, in this order: form, output checkpoint, its last leaf with the input checkpoint, the way in the
 * map, and last the cosignatures of the index's quorum and how old they are. Refused at `completeness` or as a checkpoint.
 */
export function verifyIndex(
  keys: LogKeys & { readonly index: IndexKeys },
  vrfHash: string,
  indexProof: unknown,
  freshness: Freshness,
): VerifiedIndex | Refusal {
  const verdict = settle(() => {
    const proof = readIndexProof(indexProof)
    const output = openSignedCheckpoint(keys.index, proof.outputNote)
    if (output.treeSize === 0) throw incomplete('the index has no leaf yet')
    const { inputCheckpoint, root } = during('completeness', () => {
      const [index, leafHash] = [output.treeSize - 1, hashLeaf(proof.leaf)]
      verifyInclusion({ leafHash, index, path: proof.path, ...treeHeadOf(output) })
      return parseIndexLeaf(proof.leaf)
    })
    const input = openSignedCheckpoint(keys, inputCheckpoint)
    const { indexes, steps } = proof
    if (indexes.some(index => index >= input.treeSize))
      throw incomplete(`the index has an entry beyond tree size ${input.treeSize}`)
    const value = indexes.length === 0 ? undefined : indexValueOf(indexes)
    during('completeness', () => verifyPatricia({ root, key: indexKeyOf(vrfHash), value, proof: steps }))
    const witnessed = verifyWitnesses(keys.index, output.note, freshness)
    if (witnessed.kind === 'refused') throw new CheckFailed(witnessed.check, witnessed.detail)
    const ageMs = witnessed.atMs === undefined ? 'unknown' : Math.max(0, freshness.nowMs - witnessed.atMs)
    return { kind: 'verified', output, input, indexes, ageMs } as const
  })
  // An answer has two logs' checkpoints and paths, and the checks of both have the same sentences.
  return verdict.kind === 'refused' ? { ...verdict, detail: `the index: ${verdict.detail}` } : verdict
}

/** The entry that was shown for a hash, and the size of the tree that it was shown in. */
export interface ShownEntry {
  readonly index: number
  readonly treeSize: number
}

/**
 * Holds the shown entry against the index and the tail. `shown` is left out where the hash is said to have none. `tail`
 * has the entries under the hash from the input checkpoint to the answer's, or is `unread`. An answer from before the index's
 * newest leaf, which has a newer entry, is unanswered at `stale`.
 */
export function judgeCompleteness(
  { isProved, index }: { readonly isProved: boolean; readonly index: VerifiedIndex },
  tail: readonly number[] | 'unread',
  shown: ShownEntry | undefined,
): { readonly kind: 'judged'; readonly completeness: Completeness } | Refusal | Unanswered {
  const found = tail === 'unread' ? index.indexes : [...index.indexes, ...tail]
  if (shown === undefined) {
    if (found.length > 0) return refusedAs(`entry ${found.at(-1)} is under a hash that is said to have none`)
  } else {
    // The shown entry is the only one that is known of an unread tail.
    const isInTail = tail === 'unread' && shown.index >= index.input.treeSize
    const newest = isInTail ? shown.index : found.filter(each => each < shown.treeSize).at(-1)
    if (newest !== shown.index)
      return refusedAs(
        newest === undefined || newest < shown.index
          ? `the index leaves out entry ${shown.index}`
          : `entry ${newest} is newer under this hash than entry ${shown.index}`,
      )
    if (found.at(-1)! >= shown.treeSize) {
      const detail = `entry ${found.at(-1)} is newer than the answer's tree size ${shown.treeSize}`
      return { kind: 'unanswered', check: 'stale', detail }
    }
  }
  if (tail === 'unread') return { kind: 'judged', completeness: { complete: 'tail-unread' } }
  const completeness = { complete: true, indexes: found, indexAgeMs: index.ageMs, isProved } as const
  return { kind: 'judged', completeness }
}

interface ReadProof {
  readonly outputNote: string
  readonly leaf: Uint8Array
  readonly path: readonly Hash[]
  readonly indexes: readonly number[]
  readonly steps: Uint8Array
}

/** Throws `CheckFailed` for whatever is not of its form: it comes from a stranger's JSON. */
function readIndexProof(indexProof: unknown): ReadProof {
  const {
    output_log_cp: note,
    output_log_leaf: leaf,
    output_log_proof: path,
    index_value: indexes,
    index_proof: steps,
  }: Partial<Record<keyof IndexProof, unknown>> = { ...(indexProof as object) }
  if (!Array.isArray(path) || path.length > PATH_HASHES_MAX || !path.every(isHash))
    throw incomplete('the proof has no path in the output log')
  if (!Array.isArray(indexes) || indexes.length > INDEXES_MAX || !areAscending(indexes))
    throw incomplete('the proof has no ascending list of entries')
  return during('completeness', () => ({
    outputNote: decodeUtf8(octetsOf(note, NOTE_BYTES_MAX)),
    leaf: octetsOf(leaf, LEAF_BYTES_MAX),
    path: path.map(hash => Uint8Array.from(hash)),
    indexes: [...indexes],
    steps: octetsOf(steps, STEPS_BYTES_MAX),
  }))
}

function octetsOf(text: unknown, bytesMax: number): Uint8Array {
  if (typeof text !== 'string' || text.length > 4 * Math.ceil(bytesMax / 3))
    throw incomplete('the proof lacks a member, or has one that is too long')
  return decodeBase64(text)
}

function isHash(hash: unknown): hash is readonly number[] {
  const isOctet = (octet: unknown) =>
    Number.isInteger(octet) && (octet as number) >= 0 && (octet as number) < 256
  return Array.isArray(hash) && hash.length === HASH_BYTES && hash.every(isOctet)
}

function areAscending(indexes: readonly unknown[]): indexes is readonly number[] {
  let previous = -1
  for (const index of indexes) {
    if (!Number.isSafeInteger(index) || (index as number) <= previous) return false
    previous = index as number
  }
  return true
}

function incomplete(detail: string): CheckFailed {
  return new CheckFailed('completeness', detail)
}

function refusedAs(detail: string): Refusal {
  return { kind: 'refused', check: 'completeness', detail }
}

/** A path in a tree of 2^53 leaves has 53. */
const PATH_HASHES_MAX = 63
/** An index keeps the number of entries of a hash in 16 bits. */
const INDEXES_MAX = 65_535
const NOTE_BYTES_MAX = 1_000_000
/** As an entry bundle's entry. */
const LEAF_BYTES_MAX = 65_535
const STEPS_BYTES_MAX = 65_536
