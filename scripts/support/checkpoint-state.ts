/**
 * The state file of a program that checks a log from outside: the checkpoints it has found good, the highest last.
 * Losing or lowering it would make a rewritten log look new, so it is replaced in one durable step, and a file that
 * is not understood is left as it is and refused.
 *
 * One program at a time writes a file; `program` keeps one from going on where another, which checks less, stopped.
 */

import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, resolve } from 'node:path'
import { SignalError } from '../../src/errors.ts'
import { encodeBase64 } from '../../src/log/base64.ts'
import { type Checkpoint, openCheckpoint } from '../../src/log/checkpoint.ts'
import type { VerifierKey } from '../../src/log/note.ts'

/** A checkpoint that held: the root in base64, the signed note as it was, the time in RFC 3339. */
export interface KnownCheckpoint {
  readonly treeSize: number
  readonly rootHash: string
  readonly note: string
  readonly verifiedAt: string
}

export interface CheckpointState {
  readonly program: string
  readonly origin: string
  /** By size, the highest last; never empty. */
  readonly checkpoints: readonly KnownCheckpoint[]
}

/** The file is there but of no use: not readable, not of this form, or of another log or program. */
export class StateFileError extends Error {
  constructor(file: string, reason: string, options?: ErrorOptions) {
    super(`state file ${file} ${reason}`, options)
    this.name = 'StateFileError'
  }
}

/**
 * The state that `program` left in `file`, or undefined when there is no file. Throws `StateFileError` when it is no
 * use, also when the log of these keys did not sign its highest checkpoint.
 */
export function readCheckpointState(
  file: string,
  { program, verifiers }: { readonly program: string; readonly verifiers: readonly VerifierKey[] },
): CheckpointState | undefined {
  const text = readText(file)
  if (text === undefined) return undefined
  const state = parseState(file, text)
  if (state.program !== program) throw new StateFileError(file, `belongs to ${state.program}`)
  if (state.origin !== verifiers[0]?.name) throw new StateFileError(file, `is of the log ${state.origin}`)
  const highest = highestCheckpoint(state)
  try {
    const { treeSize, rootHash } = openLogCheckpoint(highest.note, verifiers)
    if (treeSize === highest.treeSize && encodeBase64(rootHash) === highest.rootHash) return state
  } catch (cause) {
    throw new StateFileError(file, 'has a checkpoint that this log did not sign', { cause })
  }
  throw new StateFileError(file, 'has a checkpoint unlike the note it came from')
}

/** The checkpoint in a note that one of the log's keys signed. Throws as `openCheckpoint` does. */
export function openLogCheckpoint(note: string | Uint8Array, verifiers: readonly VerifierKey[]): Checkpoint {
  let failure: unknown
  for (const verifier of verifiers) {
    try {
      return openCheckpoint(note, verifier)
    } catch (error) {
      if (!(error instanceof SignalError)) throw error
      failure ??= error
    }
  }
  throw failure
}

export function highestCheckpoint({ checkpoints }: CheckpointState): KnownCheckpoint {
  return checkpoints.at(-1)!
}

/**
 * The state with one more checkpoint, not below its highest. The oldest are forgotten beyond `CHECKPOINTS_KEPT`; one
 * of the same size takes the place of its equal.
 */
export function addCheckpoint(state: CheckpointState, checkpoint: KnownCheckpoint): CheckpointState {
  const below = state.checkpoints.filter(({ treeSize }) => treeSize < checkpoint.treeSize)
  return { ...state, checkpoints: [...below, checkpoint].slice(-CHECKPOINTS_KEPT) }
}

/** Puts the state in place of what `file` held; when this returns it survives a loss of power. */
export function writeCheckpointState(file: string, state: CheckpointState): void {
  replaceDurably(file, `${JSON.stringify(state, null, 2)}\n`)
}

/** Writes beside the file, syncs, renames over it and syncs the folder: a crash leaves the old content or the new one. */
export function replaceDurably(file: string, content: string | Iterable<Uint8Array>): void {
  const target = existsSync(file) ? realpathSync(file) : resolve(file)
  const draft = `${target}.${process.pid}.tmp`
  try {
    const descriptor = openSync(draft, 'w')
    try {
      for (const part of typeof content === 'string' ? [content] : content) writeFileSync(descriptor, part)
      fsyncSync(descriptor)
    } finally {
      closeSync(descriptor)
    }
    renameSync(draft, target)
  } catch (error) {
    rmSync(draft, { force: true })
    throw error
  }
  syncFolder(dirname(target))
}

function syncFolder(folder: string): void {
  const descriptor = openSync(folder, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

function readText(file: string): string | undefined {
  try {
    if (statSync(file).size > STATE_BYTES_MAX) throw new StateFileError(file, 'is too large to be one')
    return readFileSync(file, 'utf8')
  } catch (cause) {
    if (cause instanceof StateFileError) throw cause
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new StateFileError(file, 'cannot be read', { cause })
  }
}

function parseState(file: string, text: string): CheckpointState {
  let state: unknown
  try {
    state = JSON.parse(text)
  } catch (cause) {
    throw new StateFileError(file, 'is not JSON', { cause })
  }
  if (!isState(state)) throw new StateFileError(file, 'is not of the form that was written')
  return state
}

function isState(value: unknown): value is CheckpointState {
  if (!isRecord(value) || typeof value.program !== 'string' || typeof value.origin !== 'string') return false
  const { checkpoints } = value
  if (!Array.isArray(checkpoints) || checkpoints.length === 0 || !checkpoints.every(isCheckpoint))
    return false
  return checkpoints.every(({ treeSize }, at) => at === 0 || treeSize > checkpoints[at - 1]!.treeSize)
}

function isCheckpoint(value: unknown): value is KnownCheckpoint {
  if (!isRecord(value) || !Number.isSafeInteger(value.treeSize)) return false
  const { rootHash, note, verifiedAt } = value
  if (typeof rootHash !== 'string' || typeof note !== 'string') return false
  return typeof verifiedAt === 'string' && !Number.isNaN(Date.parse(verifiedAt))
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

/** A third of a megabyte; enough to show what an auditor saw, and when, for some days of growth. */
const CHECKPOINTS_KEPT = 1_000
const STATE_BYTES_MAX = 64 * 1024 * 1024
