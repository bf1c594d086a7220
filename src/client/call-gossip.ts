/**
 * Checkpoints that travel with call keys: behind the 32 octets of the key, inside what is sealed, stands the sender's
 * newest checkpoint with the log's signature. A log that shows two people different trees is found out when one calls
 * the other, and nothing on the way can tell or strip it.
 *
 *     key 32  version 1 (01)  packed checkpoint 108
 *
 * A receiver that was built before it takes keys of 32 octets alone: only devices of a device list are sent more.
 */
import { SignalError } from '../errors.ts'
import { packCheckpoint, readCheckpoint } from './packed-checkpoint.ts'
import type { SignedCheckpoint } from './signed-checkpoint.ts'

/** An opened call key, taken apart. */
export interface CallKeyWithNote {
  /** 32 octets. */
  readonly callKey: Uint8Array
  /** For `LogClient.compareWith`, which verifies it. Left out where none came. */
  readonly note?: string
}

/** The octets to seal for a device of a device list. Throws `MALFORMED` for a key that is not 32 octets. */
export function withCheckpoint(callKey: Uint8Array, checkpoint: SignedCheckpoint | undefined): Uint8Array {
  if (callKey.length !== KEY_BYTES) throw malformed(`a call key has 32 octets, not ${callKey.length}`)
  const packed = checkpoint && packCheckpoint(checkpoint)
  return packed === undefined ? callKey : Uint8Array.of(...callKey, VERSION, ...packed)
}

/**
 * Takes apart what was opened. `origin` is the name of the app's log. A form that is not known gives the key alone: later
 * versions may put other things behind it. Throws `MALFORMED` for less than a key.
 */
export function readCallKey(opened: Uint8Array, origin: string): CallKeyWithNote {
  if (opened.length < KEY_BYTES) throw malformed(`an opened call key has ${opened.length} octets`)
  const callKey = opened.slice(0, KEY_BYTES)
  const note = opened[KEY_BYTES] === VERSION ? readCheckpoint(opened.slice(KEY_BYTES + 1), origin) : undefined
  return { callKey, ...(note !== undefined && { note }) }
}

function malformed(message: string): SignalError {
  return new SignalError('MALFORMED', message)
}

const KEY_BYTES = 32
const VERSION = 1
