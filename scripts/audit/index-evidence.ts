/**
 * Evidence against the owner of an index's key, in one file that needs nothing else to be checked: a checkpoint of the output log,
 * a wrong leaf of it, and a proof that the leaf is wrong. `proof` is null where the entries were too many for a file.
 */

import { SignalError } from '../../src/errors.ts'
import { decodeBase64, encodeBase64 } from '../../src/log/base64.ts'
import { parseCheckpoint } from '../../src/log/checkpoint.ts'
import { verifyConsistency } from '../../src/log/consistency.ts'
import { parseDecimal } from '../../src/log/decimal.ts'
import { VRF_HASH_CHARS } from '../../src/log/entry.ts'
import { equalHashes, type Hash, hashLeaf } from '../../src/log/hash.ts'
import { verifyInclusion } from '../../src/log/inclusion.ts'
import {
  type IndexLeaf,
  indexKeyOfEntry,
  indexOriginOf,
  indexValueOf,
  parseIndexLeaf,
} from '../../src/log/index-leaf.ts'
import { formatVerifierKey, parseVerifierKey, readNote, type VerifierKey } from '../../src/log/note.ts'
import { verifyPatricia } from '../../src/log/patricia.ts'
import { growTree } from '../../src/log/patricia-rows.ts'
import { parseBundle } from '../../src/log/tile.ts'
import { RightEdge } from '../../src/log/tree.ts'
import { openLogCheckpoint } from '../support/checkpoint-state.ts'

/** A leaf with the way to the root of its tree. */
export interface IncludedLeaf {
  readonly index: number
  readonly leaf: Uint8Array
  readonly path: readonly Hash[]
}

/**
 * - `leaf`: it is not of its form, or of another log
 * - `earlier`: a leaf before it is of a larger tree
 * - `tree`: the log signed a tree that begins otherwise than the one that the leaf names
 * - `entries`: all entries of the tree that it names; the map over them has another root
 * - `lookup`: under its root a key has not the entry that is in the tree under it, or one that is not
 */
export type IndexProof =
  | { readonly kind: 'leaf' }
  | ({ readonly kind: 'earlier' } & IncludedLeaf)
  | {
      readonly kind: 'tree'
      readonly note: string
      readonly oldRoot: Hash
      readonly hashes: readonly Hash[]
    }
  | { readonly kind: 'entries'; readonly bundles: readonly Uint8Array[] }
  | ({
      readonly kind: 'lookup'
      readonly key: Uint8Array
      readonly value: readonly number[]
      readonly proof: Uint8Array
    } & IncludedLeaf)

export interface IndexEvidence extends IncludedLeaf {
  /** Keys of the log, and those of its index. */
  readonly verifiers: readonly VerifierKey[]
  readonly indexVerifiers: readonly VerifierKey[]
  /** The checkpoint of the output log. */
  readonly note: string
  readonly proof: IndexProof | null
  /** How it was found, for people. */
  readonly time: string
  readonly detail: string
}

export const INDEX_EVIDENCE_FORMAT = 'callsign index evidence v1'

export function formatIndexEvidence({
  verifiers,
  indexVerifiers,
  note,
  index,
  leaf,
  path,
  proof,
  time,
  detail,
}: IndexEvidence): string {
  const whole = {
    format: INDEX_EVIDENCE_FORMAT,
    vkey: verifiers.map(formatVerifierKey),
    indexVkey: indexVerifiers.map(formatVerifierKey),
    note,
    leaf: { index: String(index), leaf: encodeBase64(leaf), path: path.map(encodeBase64) },
    proof: proof === null ? null : inBase64(proof),
    time,
    detail,
  }
  return `${JSON.stringify(whole, null, 2)}\n`
}

/**
 * Whether the file proves by its own content that the owner of the index's key cheats; adds what it shows to `lines`, as sentences.
 * Throws `SignalError` where it is none. `known` are the keys that the reader knows the log and its index by.
 */
export function judgeIndexEvidence(
  file: Readonly<Record<string, unknown>>,
  known: readonly VerifierKey[] | undefined,
  lines: string[],
): boolean {
  const [verifiers, indexVerifiers] = [file.vkey, file.indexVkey].map(keysIn) as [
    readonly VerifierKey[],
    readonly VerifierKey[],
  ]
  const [{ name: origin }] = verifiers as [VerifierKey]
  const owners = [
    ...verifiers.map(key => `The log is ${key.name}, with the key ${formatVerifierKey(key)}.`),
    ...indexVerifiers.map(key => `Its index is ${key.name}, with the key ${formatVerifierKey(key)}.`),
  ]
  lines.push(...owners)
  if (indexVerifiers.some(({ name }) => name !== indexOriginOf(origin)))
    throw malformed('its second key is not of the index of the log')
  const knownTexts = known?.map(formatVerifierKey)
  const proof = file.proof === null || file.proof === undefined ? null : recordIn(file.proof)
  // The log's own keys matter only by their name, unless one signed a tree.
  const accusing = proof?.kind === 'tree' ? [...verifiers, ...indexVerifiers] : indexVerifiers
  if (knownTexts && !accusing.every(key => knownTexts.includes(formatVerifierKey(key)))) {
    lines.push('That is not a key that you named.')
    return false
  }
  const output = openLogCheckpoint(textIn(file.note), indexVerifiers)
  const accused = leafIn(file.leaf)
  assertIncluded(accused, output)
  lines.push(`The index signed a tree of ${output.treeSize} leaves, and leaf ${accused.index} is in it.`)
  const said = faultIn(accused, proof, { origin, verifiers, output })
  lines.push(said.detail)
  if (!said.isFault) return false
  const whose = known === undefined ? ' Compare the keys with those that you know.' : ''
  lines.push(`Proven: the owner of the index's key signed what is not so.${whose}`)
  return true
}

interface Context {
  readonly origin: string
  readonly verifiers: readonly VerifierKey[]
  readonly output: { readonly treeSize: number; readonly rootHash: Hash }
}

interface Said {
  readonly isFault: boolean
  readonly detail: string
}

function faultIn(accused: IncludedLeaf, proof: Record<string, unknown> | null, context: Context): Said {
  if (proof === null)
    return {
      isFault: false,
      detail:
        'Not proven by this file alone: the entries are too many for it. An auditor with --index and a new state file rebuilds the map from them and compares this leaf.',
    }
  if (proof.kind === 'leaf') return faultOfLeaf(accused, context.origin)
  const leaf = parseIndexLeaf(accused.leaf)
  const input = inputOf(leaf)
  switch (proof.kind) {
    case 'earlier':
      return faultOfEarlier(accused, input.treeSize, leafIn(proof), context)
    case 'tree':
      return faultOfTree(input, proof, context.verifiers)
    case 'entries':
      return faultOfEntries(leaf, input, listIn(proof.bundles, BUNDLES_MAX).map(bytesIn))
    case 'lookup':
      return faultOfLookup(leaf, input, proof)
    default:
      throw malformed('its proof is of no known kind')
  }
}

function faultOfLeaf({ leaf }: IncludedLeaf, origin: string): Said {
  try {
    const named = inputOf(parseIndexLeaf(leaf))
    if (named.origin === origin)
      return { isFault: false, detail: 'The leaf is of its form, and of this log.' }
    return { isFault: true, detail: `The leaf is of another log, ${JSON.stringify(named.origin)}.` }
  } catch (error) {
    if (!(error instanceof SignalError)) throw error
    return { isFault: true, detail: `The leaf is not of its form: ${error.message}.` }
  }
}

function faultOfEarlier(
  accused: IncludedLeaf,
  size: number,
  earlier: IncludedLeaf,
  { output }: Context,
): Said {
  assertIncluded(earlier, output)
  const before = inputOf(parseIndexLeaf(earlier.leaf)).treeSize
  const isFault = earlier.index < accused.index && before > size
  const detail = `Leaf ${earlier.index} is of a tree of ${before} entries, and leaf ${accused.index} of one of ${size}.`
  return { isFault, detail }
}

function faultOfTree(input: Named, proof: Record<string, unknown>, verifiers: readonly VerifierKey[]): Said {
  const log = openLogCheckpoint(textIn(proof.note), verifiers)
  const oldRoot = bytesIn(proof.oldRoot)
  const hashes = listIn(proof.hashes, PROOF_HASHES_MAX).map(bytesIn)
  const [oldSize, newSize] = [input.treeSize, log.treeSize]
  verifyConsistency({ oldSize, oldRoot, newSize, newRoot: log.rootHash, proof: hashes })
  const detail = `The leaf names a tree of ${oldSize} entries with the root ${encodeBase64(input.rootHash)}. The tree of ${newSize} entries that the log signed begins with the root ${encodeBase64(oldRoot)}.`
  return { isFault: !equalHashes(oldRoot, input.rootHash), detail }
}

function faultOfEntries(leaf: IndexLeaf, input: Named, bundles: readonly Uint8Array[]): Said {
  const entries = bundles.flatMap(bundle => parseBundle(bundle))
  const edge = new RightEdge(0, [])
  for (const entry of entries) edge.append(hashLeaf(entry))
  if (entries.length !== input.treeSize || !equalHashes(edge.rootHash(), input.rootHash))
    throw malformed('its entries are not those of the tree that the leaf names')
  const keyed = entries.map((entry, index) => ({ key: indexKeyOfEntry(entry), index }))
  const { root } = growTree(() => undefined, keyed)
  const detail = `The leaf is of ${entries.length} entries, which are all in this file: they have the root that it names. The map over them has the root ${encodeBase64(root)}, and the leaf says ${encodeBase64(leaf.root)}.`
  return { isFault: !equalHashes(root, leaf.root), detail }
}

function faultOfLookup(leaf: IndexLeaf, input: Named, proof: Record<string, unknown>): Said {
  const key = bytesIn(proof.key)
  const value = listIn(proof.value, INDEXES_MAX).map(Number)
  if (!value.every(index => Number.isSafeInteger(index) && index >= 0)) throw malformed('its value is none')
  verifyPatricia({
    root: leaf.root,
    key,
    value: value.length === 0 ? undefined : indexValueOf(value),
    proof: bytesIn(proof.proof),
  })
  const { index, leaf: entry, path } = leafIn(proof)
  assertIncluded({ index, leaf: entry, path }, input)
  const isOwn = equalHashes(indexKeyOfEntry(entry), key)
  const isListed = value.includes(index)
  const hash = new TextDecoder().decode(entry.subarray(0, VRF_HASH_CHARS))
  const detail = `Entry ${index} of the tree that the leaf names is of the hash ${hash}. Under the leaf's root ${isOwn ? 'that hash' : 'another hash'} has ${isListed ? '' : 'not '}entry ${index}.`
  return { isFault: isOwn !== isListed, detail }
}

interface Named {
  readonly origin: string
  readonly treeSize: number
  readonly rootHash: Hash
}

/** The tree that a leaf names. Its signature is not looked at. */
function inputOf({ inputCheckpoint }: IndexLeaf): Named {
  return parseCheckpoint(readNote(inputCheckpoint).text)
}

/** Throws `PROOF_INVALID`. */
function assertIncluded(
  { index, leaf, path }: IncludedLeaf,
  { treeSize, rootHash }: { readonly treeSize: number; readonly rootHash: Hash },
): void {
  verifyInclusion({ leafHash: hashLeaf(leaf), index, treeSize, path, rootHash })
}

/** Octets as base64, numbers of the log as decimal texts. */
function inBase64(proof: IndexProof): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(proof).map(([name, value]) => {
      if (value instanceof Uint8Array) return [name, encodeBase64(value)]
      if (name === 'index') return [name, String(value)]
      const isOctets = Array.isArray(value) && value[0] instanceof Uint8Array
      return [name, isOctets ? value.map(encodeBase64) : value]
    }),
  )
}

function keysIn(value: unknown): readonly VerifierKey[] {
  const keys = listIn(value, KEYS_MAX).map(each => parseVerifierKey(textIn(each)))
  if (new Set(keys.map(({ name }) => name)).size !== 1) throw malformed('its keys are of several logs')
  return keys
}

function leafIn(value: unknown): IncludedLeaf {
  const { index, leaf, path } = recordIn(value)
  return {
    index: parseDecimal(textIn(index)),
    leaf: bytesIn(leaf),
    path: listIn(path, PROOF_HASHES_MAX).map(bytesIn),
  }
}

function recordIn(value: unknown): Record<string, unknown> {
  if (typeof value === 'object' && value !== null) return value as Record<string, unknown>
  throw malformed('a part of it is missing')
}

function listIn(value: unknown, max: number): readonly unknown[] {
  if (Array.isArray(value) && value.length <= max) return value
  throw malformed('a list of it is missing, or too long')
}

function bytesIn(value: unknown): Uint8Array {
  return decodeBase64(textIn(value))
}

function textIn(value: unknown): string {
  if (typeof value === 'string') return value
  throw malformed('a text of it is missing')
}

function malformed(reason: string): SignalError {
  return new SignalError('MALFORMED', reason)
}

const KEYS_MAX = 8
const PROOF_HASHES_MAX = 64
const BUNDLES_MAX = 65_536
const INDEXES_MAX = 65_535
