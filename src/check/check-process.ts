/**
 * Checks a stored log in a process of its own: a damaged or truncated file can kill the process that reads it through
 * LMDB (SIGBUS, SIGSEGV, a failed assertion). The caller survives that, and gets a refusal.
 */

import { type ChildProcess, fork } from 'node:child_process'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type ErrorCode, SignalError } from '../errors.ts'
import type { LogReport } from './log/fault.ts'
import type { RowReport } from './rows/row-check.ts'

export interface CheckRequest {
  readonly dataFolder: string
  /** The log's verifier key, when it is known from outside. */
  readonly vkey?: string
  /** The VRF secret in base64, and how many entries at most are to be hashed again. */
  readonly vrf?: { readonly secret: string; readonly sampleMax: number }
  /** Whether all other tables are to be checked too. */
  readonly withRows?: boolean
}

export interface StoreReport {
  readonly log: LogReport
  /** On the other tables; undefined where they were not checked. */
  readonly rows: RowReport | undefined
}

export type CheckMessage =
  | { readonly kind: 'progress'; readonly done: number }
  | { readonly kind: 'report'; readonly report: StoreReport }
  | { readonly kind: 'refusal'; readonly code: ErrorCode; readonly message: string }

/**
 * The report on the store below a data folder, which may be in use. Rejects with `CHECKPOINT_INVALID` when the file is
 * too damaged to read its tables, and with `STORE_UNAVAILABLE` when it can't be checked. `onProgress` gets the share
 * done, from 0 to 1: of the log, then of the other tables.
 */
export async function checkInProcess(
  request: CheckRequest,
  onProgress: (done: number) => void = () => {},
): Promise<StoreReport> {
  const child = fork(fileURLToPath(PROGRAM), {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    serialization: 'advanced',
  })
  child.send(request)
  const answer = await lastMessage(child, onProgress)
  if (answer.kind === 'report') return answer.report
  throw new SignalError(answer.code, answer.message)
}

function lastMessage(
  child: ChildProcess,
  onProgress: (done: number) => void,
): Promise<Exclude<CheckMessage, { kind: 'progress' }>> {
  return new Promise((resolve, reject) => {
    child.on('message', (message: CheckMessage) => {
      if (message.kind === 'progress') onProgress(message.done)
      else resolve(message)
    })
    child.once('error', reject)
    // After an answer this changes nothing.
    child.once('close', (code, signal) => resolve(refusalOf(code, signal)))
  })
}

function refusalOf(
  code: number | null,
  signal: NodeJS.Signals | null,
): Extract<CheckMessage, { kind: 'refusal' }> {
  if (signal !== null && DAMAGE_SIGNALS.has(signal)) {
    const message = `reading the store ended the process that did it (${signal}): its file is damaged or cut short`
    return { kind: 'refusal', code: 'CHECKPOINT_INVALID', message }
  }
  return { kind: 'refusal', code: 'STORE_UNAVAILABLE', message: `the check was ended (${signal ?? code})` }
}

/**
 * How a process ends that follows a broken LMDB page: it reads beyond the file, beyond memory, or fails an assertion.
 */
const DAMAGE_SIGNALS = new Set<NodeJS.Signals>(['SIGBUS', 'SIGSEGV', 'SIGABRT', 'SIGILL'])
const PROGRAM = new URL(`./check-program${extname(import.meta.filename)}`, import.meta.url)
