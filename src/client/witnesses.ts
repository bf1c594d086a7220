/**
 * Whether independent witnesses have seen a checkpoint, and how lately. Without them the log's server can show each client
 * a tree of its own, or an old one for ever, until two clients compare.
 */
import { cosignedAtSeconds } from '../log/cosignature.ts'
import { readNote } from '../log/note.ts'
import { quorumSeconds, type Witness } from '../log/policy.ts'
import type { CheckpointKeys } from './log-keys.ts'
import { openSignedCheckpoint } from './signed-checkpoint.ts'
import { CheckFailed, type Refusal, settle } from './verdict.ts'

/** The newest time at which the quorum had seen the checkpoint; undefined where none is asked for. */
export interface Witnessed {
  readonly kind: 'witnessed'
  readonly atMs: number | undefined
}

export interface Freshness {
  readonly nowMs: number
  /** How old `Witnessed.atMs` may be. */
  readonly maxAgeMs?: number | undefined
}

/**
 * Holds the cosignatures of a checkpoint against the app's policy. Refused at `witnesses` or `stale`, and where
 * `verifyCheckpoint` refuses it.
 */
export function verifyWitnesses(
  keys: CheckpointKeys,
  note: string,
  { nowMs, maxAgeMs }: Freshness,
): Witnessed | Refusal {
  return settle(() => {
    if (keys.quorum === undefined) return { kind: 'witnessed', atMs: undefined }
    const atMs = witnessedAtMs(keys, note)
    if (atMs === undefined)
      throw new CheckFailed('witnesses', `checkpoint has no cosignatures of the quorum ${keys.quorum.name}`)
    if (maxAgeMs !== undefined && nowMs - atMs > maxAgeMs) {
      const seconds = Math.round((nowMs - atMs) / 1_000)
      throw new CheckFailed('stale', `the quorum ${keys.quorum.name} saw the checkpoint ${seconds} s ago`)
    }
    return { kind: 'witnessed', atMs }
  })
}

/** The last note that was looked at: see `openSignedCheckpoint`. */
const lastWitnessed = new WeakMap<
  CheckpointKeys,
  { readonly note: string; readonly atMs: number | undefined }
>()

function witnessedAtMs(keys: CheckpointKeys, note: string): number | undefined {
  const last = lastWitnessed.get(keys)
  if (last?.note === note) return last.atMs
  openSignedCheckpoint(keys, note)
  const { text, signatures } = readNote(note)
  const secondsOf = ({ key }: Witness) => {
    const times = signatures
      .filter(({ name, keyId }) => name === key.name && keyId === key.keyId)
      .map(({ signature }) => cosignedAtSeconds(text, key, signature))
      .filter(seconds => seconds !== undefined)
    return times.length === 0 ? undefined : Math.max(...times)
  }
  const seconds = keys.quorum && quorumSeconds(keys.quorum, secondsOf)
  const atMs = seconds === undefined ? undefined : seconds * 1_000
  lastWitnessed.set(keys, { note, atMs })
  return atMs
}
