/** Why a commit failed: a full disk, after which the store goes on, or anything else, after which LMDB must not be used. */

import { closeSync, ftruncateSync, openSync, rmSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { SignalError } from '../../errors.ts'
import { NotInLedgerError } from './change-ledger.ts'

/**
 * True when a failed commit can mean that there was no room. `EIO` is among the reasons, because LMDB also says it of a
 * write that the disk took only in part.
 */
export function isOutOfSpace(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if ('commitError' in cause || ('code' in cause && OUT_OF_SPACE_CODES.has(cause.code))) return true
  }
  return false
}

/** Whether the ledger did not take the write, or may not have: another process writes from now on. */
export function isOfLostLease(error: unknown): boolean {
  if (!(error instanceof SignalError)) return false
  return error.code === 'OUTCOME_UNKNOWN' || error.cause instanceof NotInLedgerError
}

/** True when the reason alone does not say whether the disk was full or failed. */
export function isAmbiguous(error: unknown): boolean {
  return error instanceof Error && ('commitError' in error || ('code' in error && error.code === EIO))
}

/** True for what LMDB itself throws. */
export function isOfLmdb(error: unknown): error is Error & { readonly code: number } {
  // A `DOMException`, such as that of `structuredClone`, has a number, too.
  return (
    error instanceof Error &&
    !(error instanceof DOMException) &&
    'code' in error &&
    typeof error.code === 'number'
  )
}

/**
 * True for the rejections that lmdb-js leaves unhandled beside the one that `commit` reports: one for the failed
 * transaction and one for each write in it.
 */
export function isEchoOfFailedCommit(error: unknown): boolean {
  return isOutOfSpace(error) || (error instanceof Error && 'commitError' in error)
}

/** lmdb-js hands the reason of a failed commit as a promise that it rejects by the end of the same turn. */
export async function causeOf(error: unknown): Promise<unknown> {
  if (!(error instanceof Error) || !('commitError' in error)) return error
  const reason = Promise.resolve(error.commitError).catch((cause: unknown) => cause)
  return Promise.race([reason, setImmediate(error)])
}

/**
 * Whether the disk takes more bytes, and a file longer than the store's: tried with a file of its own beside the store.
 * A disk that fails in any other way has room.
 */
export function hasRoom(storeFolder: string): boolean {
  const path = join(storeFolder, 'room')
  try {
    const descriptor = openSync(path, 'w', 0o600)
    try {
      const written = writeSync(descriptor, Buffer.alloc(PROBE_BYTES, 1))
      ftruncateSync(descriptor, statSync(join(storeFolder, 'data.mdb')).size + PROBE_BYTES)
      return written === PROBE_BYTES
    } finally {
      closeSync(descriptor)
      rmSync(path)
    }
  } catch (error) {
    return !(error instanceof Error && 'code' in error && NO_ROOM_NAMES.has(error.code))
  }
}

const EIO = 5
/** ENOSPC, EDQUOT, EFBIG, MDB_MAP_FULL, and `EIO`. */
const OUT_OF_SPACE_CODES = new Set<unknown>([28, 122, 27, -30792, EIO])
const NO_ROOM_NAMES = new Set<unknown>(['ENOSPC', 'EDQUOT', 'EFBIG'])
/** The most that LMDB writes in one call. */
const PROBE_BYTES = 256 * 1024
