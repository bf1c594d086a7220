/** The end of a process by a fault. */

import { messageOf, SignalError } from '../../errors.ts'
import type { Logger } from '../../operations/log.ts'
import { isLmdbWriting } from '../../store/engine/lmdb-writes.ts'
import { ConfigError } from '../settings/config.ts'

/** Ends the process at once, with code 1; by SIGKILL where LMDB writes, since an exit would wait for its thread. */
export function endProcess(): never {
  if (isLmdbWriting()) process.kill(process.pid, 'SIGKILL')
  process.exit(1)
}

/** Ends a process that can't say what its state is any more. */
export function endByFault(logger: Logger, error: unknown): never {
  logger.fatal({ event: 'fatal', err: error })
  logger.flush()
  process.stderr.write(`callsign: ${messageOf(error)}\n`)
  endProcess()
}

/** One sentence for a fault that an operator can mend; anything else is ours, with its stack. */
export function sentenceOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  // The runtime says only that a commit failed; the store or the head file says why.
  if (error.cause instanceof SignalError && error.cause.code === 'STORE_UNAVAILABLE')
    return error.cause.message
  const isTheirs = error instanceof ConfigError || error instanceof SignalError || 'syscall' in error
  return isTheirs ? error.message : (error.stack ?? error.message)
}
