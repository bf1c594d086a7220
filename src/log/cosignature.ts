/**
 * Cosignatures of witnesses (c2sp.org/tlog-cosignature), Ed25519 with a time (type 0x04): the witness has seen that this
 * checkpoint extends every one of the log that it had cosigned before. Other types are signatures of unknown keys.
 */
import { ed25519PublicKey, ed25519Sign, ed25519Verify } from '#primitives'
import { SignalError } from '../errors.ts'
import {
  ED25519_TYPE,
  formatSignature,
  formatTypedKey,
  isKeyName,
  keyId,
  parseTypedKey,
  type SignerKey,
  type VerifierKey,
} from './note.ts'

const COSIGNATURE_TYPE = 0x04

/**
 * Reads a witness's vkey. One of type 0x01 is taken as well, as Go's libraries do: the same key, under the id that its
 * cosignatures have. Throws `KEY_INVALID`.
 */
export function parseWitnessKey(vkey: string): VerifierKey {
  const { name, publicKey } = parseTypedKey(vkey, [COSIGNATURE_TYPE, ED25519_TYPE])
  return { name, keyId: keyId(name, COSIGNATURE_TYPE, publicKey), publicKey }
}

/** The vkey of a witness, for policies. */
export function formatWitnessKey(key: VerifierKey): string {
  return formatTypedKey(key, COSIGNATURE_TYPE)
}

/** The cosigning key of that name and 32-byte seed. Throws `KEY_INVALID` for a name that notes cannot carry. */
export function witnessKeyFromSeed(name: string, seed: Uint8Array): SignerKey {
  if (!isKeyName(name))
    throw new SignalError('KEY_INVALID', 'a witness has a name without spaces and plus signs')
  const publicKey = ed25519PublicKey(seed)
  return { name, keyId: keyId(name, COSIGNATURE_TYPE, publicKey), publicKey, seed }
}

/** The signature line for the text of a checkpoint, which ends in a newline. `seconds` is POSIX time. */
export function cosignatureLine(text: string, { name, keyId, seed }: SignerKey, seconds: number): string {
  const signature = new Uint8Array(TIME_BYTES + SIGNATURE_BYTES)
  new DataView(signature.buffer).setBigUint64(0, BigInt(seconds))
  signature.set(ed25519Sign(seed, messageOf(text, seconds)), TIME_BYTES)
  return formatSignature({ name, keyId, signature })
}

/**
 * The time at which the witness cosigned this text, in POSIX seconds, by what follows the key id in its signature line;
 * undefined where it did not.
 */
export function cosignedAtSeconds(
  text: string,
  { publicKey }: VerifierKey,
  cosignature: Uint8Array,
): number | undefined {
  if (cosignature.length !== TIME_BYTES + SIGNATURE_BYTES) return undefined
  const view = new DataView(cosignature.buffer, cosignature.byteOffset)
  const seconds = Number(view.getBigUint64(0))
  if (!Number.isSafeInteger(seconds)) return undefined
  const isGood = ed25519Verify(publicKey, messageOf(text, seconds), cosignature.subarray(TIME_BYTES))
  return isGood ? seconds : undefined
}

function messageOf(text: string, seconds: number): Uint8Array {
  return new TextEncoder().encode(`cosignature/v1\ntime ${seconds}\n${text}`)
}

const TIME_BYTES = 8
const SIGNATURE_BYTES = 64
