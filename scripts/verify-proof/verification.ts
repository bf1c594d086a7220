/** The verdict of `verify-proof` on one lookup result, step by step. */

import { judgeCompleteness, verifyIndex } from '../../src/client/index-proof.ts'
import { type IndexKeys, type LogKeys, parseLogKeys } from '../../src/client/log-keys.ts'
import {
  inputOf,
  type LookupClaim,
  type LookupResult,
  type VerifiedKey,
  verifyLookup,
} from '../../src/client/lookup.ts'
import type { SignedCheckpoint } from '../../src/client/signed-checkpoint.ts'
import type { Refusal } from '../../src/client/verdict.ts'
import { messageOf } from '../../src/errors.ts'
import { isCanonicalBase64 } from '../../src/log/base64.ts'
import { parseProof } from '../../src/log/proof.ts'
import {
  addCheckpoint,
  type CheckpointState,
  highestCheckpoint,
  readCheckpointState,
  writeCheckpointState,
} from '../support/checkpoint-state.ts'
import { given, parseOptions, UsageError } from '../support/command.ts'

export type ExitCode = 0 | 1 | 2

/** One line of the account. `ok` is null for a check that was not possible. */
export interface Step {
  readonly check: string
  readonly ok: boolean | null
  readonly detail: string
  /** The leaf at fault, in decimal. */
  readonly index?: string
  /** Signed notes that contradict each other. */
  readonly notes?: readonly string[]
}

type Tell = (step: Step) => void

export interface Settings {
  readonly keys: LogKeys
  readonly claim: LookupClaim
  readonly stateFile: string | undefined
}

type SavedResult = LookupResult & { readonly indexProof: unknown }

/** Input that is no lookup result. */
class InputError extends Error {}

/** The settings, or undefined when only the usage was asked for. Throws `UsageError`. */
export function readSettings(
  argv: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Settings | undefined {
  const values = parseOptions(OPTIONS, argv)
  if (values.help) return undefined
  const vkey = given('--vkey or KT_PUBLIC_KEY', values.vkey ?? environment.KT_PUBLIC_KEY)
  const vrfPublicKey = given('--vrf-key or VRF_PUBLIC_KEY', values['vrf-key'] ?? environment.VRF_PUBLIC_KEY)
  const userId = given('--user', values.user)
  const deviceId = given('--device', values.device)
  const publicKey = given('--public-key', values['public-key'])
  const claim = { userId, deviceId, publicKey }
  try {
    inputOf(claim)
    if (!isCanonicalBase64(publicKey)) throw new UsageError('--public-key is not base64')
    const indexVkey = values['index-vkey']
    const keys = parseLogKeys({ vkey, vrfPublicKey, ...(indexVkey !== undefined && { indexVkey }) })
    return { keys, claim, stateFile: values.state }
  } catch (error) {
    throw new UsageError(messageOf(error))
  }
}

/** Resolves with the exit code. */
export async function verify(
  { keys, claim, stateFile }: Settings,
  input: AsyncIterable<Buffer>,
  tell: Tell,
): Promise<ExitCode> {
  let result: SavedResult
  try {
    result = readResult(await readAll(input))
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    tell({ check: 'input', ok: null, detail: error.message })
    return 2
  }
  const verdict = verifyLookup(keys, claim, result, ({ check, detail }) =>
    tell({ check: nameOf(check), ok: true, detail }),
  )
  if (verdict.kind === 'refused') {
    tell(stepOf(verdict, result))
    return 1
  }
  const unproved =
    keys.index === undefined ? 0 : newestStep({ ...keys, index: keys.index }, verdict, result, tell)
  if (unproved === 1 || stateFile === undefined) return unproved
  return holdAgainstState(stateFile, keys, verdict.checkpoint, tell) || unproved
}

/** Tells whether the result's proof from the index shows that it is the newest. Nothing is fetched: the tail stays unread. */
function newestStep(
  keys: LogKeys & { readonly index: IndexKeys },
  { vrfHash, index, checkpoint }: VerifiedKey,
  { indexProof }: SavedResult,
  tell: Tell,
): ExitCode {
  const step = { check: 'completeness', index: `${index}` }
  if (indexProof === undefined) {
    tell({ ...step, ok: null, detail: 'the result has no indexProof: ask for one with "index": true' })
    return 2
  }
  const found = verifyIndex(keys, vrfHash, indexProof, { nowMs: Date.now() })
  if (found.kind === 'refused') {
    tell({ ...step, check: nameOf(found.check), ok: false, detail: found.detail })
    return 1
  }
  const { input } = found
  const [from, to] = [input.treeSize, checkpoint.treeSize]
  if (from === to && input.rootHash !== checkpoint.rootHash) {
    const detail = `the log signed tree size ${to} with two roots: its index is of another tree`
    tell({ ...step, ok: false, detail, notes: [input.note, checkpoint.note] })
    return 1
  }
  const shown = { index, treeSize: to }
  const judged = judgeCompleteness({ isProved: false, index: found }, from >= to ? [] : 'unread', shown)
  if (judged.kind === 'refused') {
    tell({ ...step, ok: false, detail: judged.detail })
    return 1
  }
  const isComplete = judged.kind === 'judged' && judged.completeness.complete === true
  const unread =
    judged.kind === 'judged' ? `the index knows nothing of entries ${from} to ${to - 1}` : judged.detail
  tell({ ...step, ok: isComplete || null, detail: isComplete ? 'it is the newest, by the index' : unread })
  return isComplete ? 0 : 2
}

/** Compares with what the file remembers, and remembers a larger tree. A refusal leaves the file as it is. */
function holdAgainstState(file: string, keys: LogKeys, seen: SignedCheckpoint, tell: Tell): ExitCode {
  let state: CheckpointState | undefined
  try {
    state = readCheckpointState(file, { program: PROGRAM, verifiers: [keys.verifier] })
    const objection = state === undefined ? undefined : objectionOf(state, seen)
    if (objection !== undefined) {
      tell(objection)
      return objection.ok === false ? 1 : 2
    }
    tell({ check: 'state', ok: true, detail: remember(file, state, seen) })
    return 0
  } catch (error) {
    tell({ check: 'state', ok: null, detail: messageOf(error) })
    return 2
  }
}

/** A size that was seen with another root, or a size below the highest, which a late cache shows, too. */
function objectionOf(state: CheckpointState, seen: SignedCheckpoint): Step | undefined {
  const { treeSize, rootHash, note } = seen
  const twin = state.checkpoints.find(known => known.treeSize === treeSize && known.rootHash !== rootHash)
  if (twin !== undefined) {
    const detail = `the log signed tree size ${treeSize} with two roots: it shows different trees`
    return { check: 'consistency', ok: false, detail, notes: [twin.note, note] }
  }
  const highest = highestCheckpoint(state)
  if (treeSize >= highest.treeSize) return undefined
  const detail = `tree size ${treeSize} is below ${highest.treeSize}, which was seen before: an old answer, or another history`
  return { check: 'stale', ok: null, detail }
}

/** Writes the state unless it knows the checkpoint; reports the known checkpoint. */
function remember(file: string, state: CheckpointState | undefined, seen: SignedCheckpoint): string {
  const { origin, treeSize, rootHash, note } = seen
  const known = state === undefined ? undefined : highestCheckpoint(state)
  if (known?.treeSize === treeSize) return `tree size ${treeSize} is the highest seen, with the same root`
  const before = state ?? { program: PROGRAM, origin, checkpoints: [] }
  const checkpoint = { treeSize, rootHash, note, verifiedAt: new Date().toISOString() }
  writeCheckpointState(file, addCheckpoint(before, checkpoint))
  if (known === undefined) return `tree size ${treeSize} is remembered as the first one seen`
  return `tree size ${treeSize} is remembered; audit proves that it begins with that of ${known.treeSize}`
}

/** All of it. Throws `InputError` above `INPUT_BYTES_MAX`. */
async function readAll(input: AsyncIterable<Buffer>): Promise<Uint8Array> {
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of input) {
    pieces.push(piece)
    bytes += piece.length
    if (bytes > INPUT_BYTES_MAX) throw new InputError(`the input has more than ${INPUT_BYTES_MAX} bytes`)
  }
  return Buffer.concat(pieces)
}

/** Throws `InputError` unless the input is one result, or an answer with one; whether its texts hold comes later. */
function readResult(input: Uint8Array): SavedResult {
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(input))
  } catch (error) {
    throw new InputError(`the input is not JSON: ${messageOf(error)}`)
  }
  const { results }: Partial<Record<string, unknown>> = { ...(value as object) }
  const result: unknown = Array.isArray(results) && results.length === 1 ? results[0] : value
  const { publicKey, vrfHash, proof, indexProof }: Partial<Record<string, unknown>> = {
    ...(result as object),
  }
  if (typeof publicKey !== 'string' || typeof vrfHash !== 'string' || typeof proof !== 'string') {
    throw new InputError('the input is not a result {"publicKey", "vrfHash", "proof"}; pass one of results')
  }
  return { publicKey, vrfHash, proof, indexProof }
}

function stepOf({ check, detail }: Refusal, { proof }: LookupResult): Step {
  const step = { check: nameOf(check), ok: false, detail }
  return CHECKS_OF_A_LEAF.has(check) ? { ...step, index: `${parseProof(proof).index}` } : step
}

/** The contract's names: whatever is wrong with a signed note is the check `checkpoint`. */
function nameOf(check: string): string {
  return check === 'signature' || check === 'origin' ? 'checkpoint' : check
}

const OPTIONS = {
  user: { type: 'string' },
  device: { type: 'string' },
  'public-key': { type: 'string' },
  vkey: { type: 'string' },
  'vrf-key': { type: 'string' },
  'index-vkey': { type: 'string' },
  state: { type: 'string' },
  help: { type: 'boolean' },
} as const
const PROGRAM = 'verify-proof'
/** The longest note has a million bytes; the rest of a result a few thousand. */
const INPUT_BYTES_MAX = 4_000_000
const CHECKS_OF_A_LEAF: ReadonlySet<string> = new Set(['index', 'vrf', 'vrfHash', 'inclusion', 'publicKey'])
