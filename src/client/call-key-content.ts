/**
 * What is sealed of a call's key (docs/check/crypto.md): with it go the hash of the set of devices that it is sealed for, the time,
 * and for a device on a device list the sender's newest checkpoint with the log's signature. A log that shows two people
 * different trees is found out when one calls the other, and nothing on the way can tell or strip it.
 *
 *     call key 32  set hash 32  sealed at u64, milliseconds since 1970  [ packed checkpoint 108 ]
 */
import { SignalError } from '../errors.ts'
import { packCheckpoint, readCheckpoint } from './packed-checkpoint.ts'
import type { SignedCheckpoint } from './signed-checkpoint.ts'

export interface CallKeyContent {
  /** 32 octets, as is the hash. */
  readonly callKey: Uint8Array
  readonly setHash: Uint8Array
  /** By the sender's clock. */
  readonly sealedAtMs: number
}

/** The opened octets, taken apart. */
export interface OpenedCallKey extends CallKeyContent {
  /** For `LogClient.compareWith`, which verifies it. Left out where none came. */
  readonly note?: string
}

/** The octets to seal. Throws `MALFORMED` for a key or a hash of another length. */
export function packCallKey(content: CallKeyContent, checkpoint?: SignedCheckpoint): Uint8Array {
  const { callKey, setHash, sealedAtMs } = content
  if (callKey.length !== KEY_BYTES || setHash.length !== HASH_BYTES)
    throw malformed(`a key of ${callKey.length} octets, with a hash of ${setHash.length}`)
  const packed = (checkpoint && packCheckpoint(checkpoint)) ?? new Uint8Array()
  const bytes = new Uint8Array(CONTENT_BYTES + packed.length)
  bytes.set(callKey)
  bytes.set(setHash, KEY_BYTES)
  new DataView(bytes.buffer).setBigUint64(TIME_AT, BigInt(sealedAtMs))
  bytes.set(packed, CONTENT_BYTES)
  return bytes
}

/** Takes apart the opened octets. `origin` is the name of the app's log. Throws `MALFORMED` for any other form. */
export function readCallKey(opened: Uint8Array, origin: string): OpenedCallKey {
  const note = opened.length > CONTENT_BYTES ? readCheckpoint(opened.slice(CONTENT_BYTES), origin) : undefined
  const isWhole = opened.length === CONTENT_BYTES || note !== undefined
  const view = new DataView(opened.buffer, opened.byteOffset, opened.length)
  const sealedAtMs = isWhole ? Number(view.getBigUint64(TIME_AT)) : Number.NaN
  if (!Number.isSafeInteger(sealedAtMs)) throw malformed(`a call key in ${opened.length} octets`)
  const content = { callKey: opened.slice(0, KEY_BYTES), setHash: opened.slice(KEY_BYTES, TIME_AT) }
  return { ...content, sealedAtMs, ...(note !== undefined && { note }) }
}

function malformed(what: string): SignalError {
  return new SignalError('MALFORMED', `what is sealed of a call's key has another form: ${what}`)
}

const [KEY_BYTES, HASH_BYTES] = [32, 32]
const TIME_AT = KEY_BYTES + HASH_BYTES
const CONTENT_BYTES = TIME_AT + 8
