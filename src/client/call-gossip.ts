/**
 * Checkpoints that travel with call keys: behind the 32 octets of the key, inside what is sealed, stands the sender's
 * newest checkpoint with the log's signature. A log that shows two people different trees is found out when one calls
 * the other, and nothing on the way can tell or strip it.
 *
 *     key 32  version 1 (01)  tree size u64  root hash 32  key id and signature of the log 68
 *
 * A receiver that was built before it takes keys of 32 octets alone: only devices of a device list are sent more.
 */
import { decodeBase64, encodeBase64 } from '#primitives'
import { SignalError } from '../errors.ts'
import { HASH_BYTES } from '../log/hash.ts'
import type { SignedCheckpoint } from './signed-checkpoint.ts'

/** An opened call key, taken apart. */
export interface CallKeyWithNote {
  /** 32 octets. */
  readonly callKey: Uint8Array
  /** For `LogClient.compareWith`: a note of the log with this origin, unless it is none. Left out where none came. */
  readonly note?: string
}

/** The octets to seal for a device of a device list. Throws `MALFORMED` for a key that is not 32 octets. */
export function withCheckpoint(callKey: Uint8Array, checkpoint: SignedCheckpoint | undefined): Uint8Array {
  if (callKey.length !== KEY_BYTES) throw malformed(`a call key has 32 octets, not ${callKey.length}`)
  const signature = checkpoint && signatureIn(checkpoint)
  if (checkpoint === undefined || signature === undefined) return callKey
  const bytes = new Uint8Array(WHOLE_BYTES)
  bytes.set(callKey)
  bytes[KEY_BYTES] = VERSION
  new DataView(bytes.buffer).setBigUint64(SIZE_AT, BigInt(checkpoint.treeSize))
  bytes.set(decodeBase64(checkpoint.rootHash), ROOT_AT)
  bytes.set(signature, SIGNATURE_AT)
  return bytes
}

/**
 * Takes apart what was opened. `origin` is the name of the app's log. A form that is not known gives the key alone: later
 * versions may put other things behind it. Throws `MALFORMED` for less than a key.
 */
export function readCallKey(opened: Uint8Array, origin: string): CallKeyWithNote {
  if (opened.length < KEY_BYTES) throw malformed(`an opened call key has ${opened.length} octets`)
  const callKey = opened.slice(0, KEY_BYTES)
  if (opened.length !== WHOLE_BYTES || opened[KEY_BYTES] !== VERSION) return { callKey }
  const treeSize = new DataView(opened.buffer, opened.byteOffset).getBigUint64(SIZE_AT)
  const root = encodeBase64(opened.slice(ROOT_AT, SIGNATURE_AT))
  const signature = encodeBase64(opened.slice(SIGNATURE_AT))
  return { callKey, note: `${origin}\n${treeSize}\n${root}\n\n${lineOf(origin)}${signature}\n` }
}

/** The signature in the note that the log itself has made: the note may have more, as of witnesses. */
function signatureIn({ origin, note }: SignedCheckpoint): Uint8Array | undefined {
  const begin = lineOf(origin)
  for (const line of note.split('\n')) {
    if (!line.startsWith(begin)) continue
    const signature = decodeBase64(line.slice(begin.length))
    if (signature.length === SIGNATURE_BYTES) return signature
  }
  return undefined
}

function lineOf(origin: string): string {
  return `— ${origin} `
}

function malformed(message: string): SignalError {
  return new SignalError('MALFORMED', message)
}

const KEY_BYTES = 32
const VERSION = 1
const SIZE_AT = KEY_BYTES + 1
const ROOT_AT = SIZE_AT + 8
const SIGNATURE_AT = ROOT_AT + HASH_BYTES
/** In a signed note's line, for an Ed25519 key: 4 octets of key id, and the signature. */
const SIGNATURE_BYTES = 68
const WHOLE_BYTES = SIGNATURE_AT + SIGNATURE_BYTES
