/**
 * Checkpoints as clients keep and exchange them: what one says, with the signed note that proves it. All members are
 * plain JSON, so that a store can keep them as they are.
 */
import { decodeBase64, encodeBase64 } from '#primitives'
import { SignalError } from '../errors.ts'
import { parseCheckpoint } from '../log/checkpoint.ts'
import { EMPTY_ROOT, equalHashes, HASH_BYTES } from '../log/hash.ts'
import { openNote, type VerifierKey } from '../log/note.ts'
import type { CheckpointKeys } from './log-keys.ts'
import type { TreeHead } from './tile-consistency.ts'
import { CheckFailed, during, type Refusal, settle } from './verdict.ts'

/** A checkpoint that the log signed. `rootHash` is base64, `note` the signed text as it came. */
export interface SignedCheckpoint {
  readonly origin: string
  readonly treeSize: number
  readonly rootHash: string
  readonly note: string
}

export interface VerifiedCheckpoint {
  readonly kind: 'verified'
  readonly checkpoint: SignedCheckpoint
}

/** How a second checkpoint's tree relates to the first one's. */
export interface SizeComparison {
  readonly kind: 'same' | 'smaller' | 'larger'
}

/** The checkpoint in a note from anywhere. Refused at `origin`, `checkpoint` or `signature`. */
export function verifyCheckpoint(keys: CheckpointKeys, note: string): VerifiedCheckpoint | Refusal {
  return settle(() => ({ kind: 'verified', checkpoint: openSignedCheckpoint(keys, note) }))
}

/** As `verifyCheckpoint`, for use under `settle`: throws `CheckFailed`. */
export function openSignedCheckpoint(keys: CheckpointKeys, note: string): SignedCheckpoint {
  const opened = lastOpened.get(keys) ?? []
  const known = opened.find(each => each.note === note)
  if (known !== undefined) return known
  const checkpoint = openUnknown(keys, note)
  lastOpened.set(keys, [checkpoint, ...opened.slice(0, OPENED_MAX - 1)])
  return checkpoint
}

/**
 * Each result of an answer carries the same note, and one more in the index's newest leaf, so the last notes that held are
 * remembered: in plain JavaScript a signature takes 2.3 ms of the 5 that a lookup takes.
 */
const lastOpened = new WeakMap<CheckpointKeys, readonly SignedCheckpoint[]>()
const OPENED_MAX = 4

function openUnknown({ verifier, verifiers }: CheckpointKeys, note: string): SignedCheckpoint {
  // Another app's message can bring anything.
  if (typeof note !== 'string') throw new CheckFailed('checkpoint', 'the note is not a text')
  const [origin] = note.split('\n', 1)
  if (origin !== verifier.name) {
    const named = JSON.stringify(origin?.slice(0, 80))
    throw new CheckFailed('origin', `checkpoint is of ${named}, not of ${verifier.name}`)
  }
  const text = openLogNote(note, verifiers)
  const { treeSize, rootHash } = during('checkpoint', () => parseCheckpoint(text))
  if (treeSize === 0 && !equalHashes(rootHash, EMPTY_ROOT)) {
    throw new CheckFailed('checkpoint', 'the tree without entries has another root')
  }
  return { origin, treeSize, rootHash: encodeBase64(rootHash), note }
}

/**
 * Holds a checkpoint against one known before, of the same log. One size with two roots is a `fork`, with both notes
 * as evidence; whether a larger tree begins with the smaller one is for `consistencyFromTiles` to say.
 */
export function compareCheckpoints(
  known: SignedCheckpoint,
  seen: SignedCheckpoint,
): SizeComparison | Refusal {
  return settle(() => {
    const evidence = [known.note, seen.note] as const
    if (seen.origin !== known.origin) {
      throw new CheckFailed('origin', `checkpoints of ${known.origin} and of ${seen.origin}`)
    }
    if (seen.treeSize !== known.treeSize) {
      return { kind: seen.treeSize < known.treeSize ? 'smaller' : 'larger' }
    }
    if (seen.rootHash === known.rootHash) return { kind: 'same' }
    throw new CheckFailed('fork', `tree size ${seen.treeSize} was signed with two roots`, evidence)
  })
}

/** Throws `MALFORMED` unless the root hash is base64 of 32 bytes. */
export function treeHeadOf({ treeSize, rootHash }: SignedCheckpoint): TreeHead {
  const bytes = decodeBase64(rootHash)
  if (bytes.length !== HASH_BYTES) throw new SignalError('MALFORMED', 'root hash is not 32 bytes')
  return { treeSize, rootHash: bytes }
}

function openLogNote(note: string, verifiers: readonly VerifierKey[]): string {
  try {
    return openNote(note, verifiers).text
  } catch (error) {
    if (!(error instanceof SignalError)) throw error
    throw new CheckFailed(error.code === 'SIGNATURE_INVALID' ? 'signature' : 'checkpoint', error.message)
  }
}
