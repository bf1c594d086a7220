/**
 * Evidence against a log in one file that needs nothing else to be checked: two notes that the log signed. Where their
 * sizes differ, a consistency proof shows that the larger tree does not begin with the smaller one. A file with a null
 * proof is pending: the log has not answered with the tiles that decide it.
 */

import { messageOf, SignalError } from '../../src/errors.ts'
import { decodeBase64, encodeBase64 } from '../../src/log/base64.ts'
import { verifyConsistency } from '../../src/log/consistency.ts'
import { EMPTY_ROOT, equalHashes, HASH_BYTES, type Hash } from '../../src/log/hash.ts'
import { formatVerifierKey, parseVerifierKey, type VerifierKey } from '../../src/log/note.ts'
import { openLogCheckpoint } from '../support/checkpoint-state.ts'
import { INDEX_EVIDENCE_FORMAT, judgeIndexEvidence } from './index-evidence.ts'

/** The larger tree begins with `oldRoot`. The hashes lead from there to its root. All base64. */
export interface ConsistencyEvidence {
  readonly oldRoot: string
  readonly hashes: readonly string[]
}

export interface Evidence {
  /** Keys of the log that signed the notes; more than one only while a log changes its key. */
  readonly verifiers: readonly VerifierKey[]
  readonly notes: readonly string[]
  readonly proof: ConsistencyEvidence | null
  /** How it was found, for people. */
  readonly time: string
  readonly check: string
  readonly url?: string | undefined
  readonly detail: string
}

/** `lines` are sentences for people. */
export interface Judgement {
  readonly kind: 'proven' | 'unproven'
  readonly lines: readonly string[]
}

export function formatEvidence({ verifiers, ...found }: Evidence): string {
  const [vkey, ...more] = verifiers.map(formatVerifierKey)
  return `${JSON.stringify({ format: FORMAT, vkey: more.length === 0 ? vkey : [vkey, ...more], ...found }, null, 2)}\n`
}

/**
 * What the text of an evidence file proves, by its own content. `known` are the keys that the reader knows the log by; without
 * them the reader has to compare the key that is named.
 */
export function judgeEvidence(text: string, known?: readonly VerifierKey[]): Judgement {
  const lines: string[] = []
  try {
    const file = parseFile(text)
    if (file.format === INDEX_EVIDENCE_FORMAT)
      return { kind: judgeIndexEvidence(file, known, lines) ? 'proven' : 'unproven', lines }
    const { verifiers, notes, proof } = parseEvidence(file)
    lines.push(...verifiers.map(key => `The log is ${key.name}, with the key ${formatVerifierKey(key)}.`))
    if (known !== undefined && !verifiers.every(key => known.some(other => isSameKey(key, other))))
      return { kind: 'unproven', lines: [...lines, 'That is not the key of the log that you named.'] }
    const [older, newer] = notes
      .map((note, at) => openNumbered(note, at, verifiers))
      .sort((one, other) => one.treeSize - other.treeSize) as [Opened, Opened]
    for (const { treeSize, rootHash } of [older, newer])
      lines.push(`It signed tree size ${treeSize} with the root ${encodeBase64(rootHash)}.`)
    const reason = contradictionIn(older, newer, proof)
    if (reason.kind === 'none') return { kind: 'unproven', lines: [...lines, reason.detail] }
    const whose = known === undefined ? ' Compare the key with the one that you know the log by.' : ''
    const verdict = `Proven: the owner of this key signed two histories that exclude each other.${whose}`
    return { kind: 'proven', lines: [...lines, reason.detail, verdict] }
  } catch (error) {
    if (!(error instanceof SignalError)) throw error
    return { kind: 'unproven', lines: [...lines, `The file proves nothing: ${messageOf(error)}.`] }
  }
}

interface Opened {
  readonly treeSize: number
  readonly rootHash: Hash
}

type Contradiction = { readonly kind: 'contradiction' | 'none'; readonly detail: string }

function contradictionIn(older: Opened, newer: Opened, proof: ConsistencyEvidence | null): Contradiction {
  const [oldSize, newSize] = [older.treeSize, newer.treeSize]
  if (oldSize === 0 && !equalHashes(older.rootHash, EMPTY_ROOT))
    return {
      kind: 'contradiction',
      detail: 'The tree without entries has one root only, and this is another.',
    }
  if (oldSize === newSize) {
    return equalHashes(older.rootHash, newer.rootHash)
      ? { kind: 'none', detail: 'Not proven: both notes are of the same tree.' }
      : { kind: 'contradiction', detail: 'One size has one root only, and the log signed two.' }
  }
  if (proof === null) {
    const detail = `Not proven: sizes ${oldSize} and ${newSize} contradict each other only if the larger tree does not begin with the smaller, which takes tiles of the log. Give this file to an auditor with --notes.`
    return { kind: 'none', detail }
  }
  const oldRoot = hashOf(proof.oldRoot)
  const hashes = proof.hashes.map(hashOf)
  verifyConsistency({ oldSize, oldRoot, newSize, newRoot: newer.rootHash, proof: hashes })
  if (equalHashes(oldRoot, older.rootHash))
    return { kind: 'none', detail: 'Not proven: the larger tree begins with the smaller, as it should.' }
  const detail = `The tree of size ${newSize} begins with a tree of size ${oldSize} whose root is ${proof.oldRoot}, by a consistency proof of ${hashes.length} hashes that leads to the signed root. The log signed another root for that size.`
  return { kind: 'contradiction', detail }
}

function parseFile(text: string): Record<string, unknown> {
  if (text.length > EVIDENCE_LENGTH_MAX) throw malformed('it is too long to be evidence')
  return parseObject(text)
}

function parseEvidence({
  format,
  vkey,
  notes,
  proof,
}: Readonly<Record<string, unknown>>): Pick<Evidence, 'verifiers' | 'notes' | 'proof'> {
  if (format !== FORMAT) throw malformed(`its format is neither "${FORMAT}" nor that of the index`)
  const vkeys: readonly unknown[] = Array.isArray(vkey) ? vkey : [vkey]
  if (vkeys.length < 1 || vkeys.length > KEYS_MAX || !vkeys.every(isText)) throw malformed('it has no vkey')
  const verifiers = vkeys.map(parseVerifierKey)
  if (new Set(verifiers.map(({ name }) => name)).size > 1) throw malformed('its keys are of several logs')
  if (!Array.isArray(notes) || notes.length !== 2 || !notes.every(isText))
    throw malformed('it has not two notes')
  return { verifiers, notes, proof: parseProof(proof) }
}

function parseProof(proof: unknown): ConsistencyEvidence | null {
  if (proof === null || proof === undefined) return null
  const { oldRoot, hashes } = typeof proof === 'object' ? (proof as Record<string, unknown>) : {}
  if (!isText(oldRoot) || !Array.isArray(hashes) || hashes.length > PROOF_HASHES_MAX || !hashes.every(isText))
    throw malformed('its proof is not one')
  return { oldRoot, hashes }
}

function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>
  } catch {
    // Said below, as for other JSON.
  }
  throw malformed('it is not a JSON object')
}

function openNumbered(note: string, at: number, verifiers: readonly VerifierKey[]): Opened {
  try {
    return openLogCheckpoint(note, verifiers)
  } catch (error) {
    throw malformed(`note ${at + 1}: ${messageOf(error)}`)
  }
}

function hashOf(text: string): Hash {
  const bytes = decodeBase64(text)
  if (bytes.length !== HASH_BYTES) throw malformed(`a hash of its proof has ${bytes.length} bytes, not 32`)
  return bytes
}

function isSameKey(one: VerifierKey, other: VerifierKey): boolean {
  return formatVerifierKey(one) === formatVerifierKey(other)
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}

function malformed(reason: string): SignalError {
  return new SignalError('MALFORMED', reason)
}

const FORMAT = 'callsign evidence v1'
/** Two notes of the largest size, each character escaped. */
export const EVIDENCE_LENGTH_MAX = 16 * 1024 * 1024
const KEYS_MAX = 8
/** Trees of 2^53 entries have no longer ones. */
const PROOF_HASHES_MAX = 64
