/**
 * How a call's key is sealed for a device with an RSA-2048 key: form 3 of docs/check/crypto.md. RSA has no agreement that would say who
 * sealed, so the sender signs with the key of its device list.
 */

import { hkdf } from '@noble/hashes/hkdf.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { decodeBase64 } from '../../log/base64.ts'
import { withLowS } from '../../log/device-list.ts'
import type { Bytes, DeviceKeys } from './device-keys.ts'
import { concat, isEqual } from './octets.ts'

/** SubjectPublicKeyInfo DER of an RSA-2048 key with the exponent 65537. */
export interface RsaKey {
  readonly kind: 'RSA-2048'
  readonly spki: Bytes
}

interface RsaSealContext {
  /** `info` of docs/check/crypto.md: the use that the key is for. */
  readonly info: Uint8Array
  readonly sender: Pick<DeviceKeys, 'signingKey' | 'sign'>
  readonly receiver: RsaKey
  /** SHA-256 of the receiver's public key, as logged. */
  readonly keyHash: Uint8Array
}

/** Undefined for a key of another kind. Both encodings of an RSA-2048 key are read: SPKI and PKCS#1. */
export function readRsaKey(octets: Uint8Array): RsaKey | undefined {
  const modulusAt = octets.length - MODULUS_BYTES - EXPONENT.length
  const [prefix, exponent] = [octets.subarray(0, Math.max(0, modulusAt)), octets.subarray(-EXPONENT.length)]
  if (!isEqual(exponent, EXPONENT)) return undefined
  if (isEqual(prefix, SPKI)) return { kind: 'RSA-2048', spki: Uint8Array.from(octets) }
  return isEqual(prefix, PKCS1) ? { kind: 'RSA-2048', spki: concat(SPKI_ALONE, octets) } : undefined
}

/** The form's number, and all that follows it. Rejects with `RangeError` for a receiver's key that can't be used. */
export async function sealForRsa(plaintext: Uint8Array, context: RsaSealContext): Promise<Bytes> {
  const { subtle } = globalThis.crypto
  const { info, sender, receiver, keyHash } = context
  const secret = globalThis.crypto.getRandomValues(new Uint8Array(SECRET_BYTES))
  const sealedSecret = await encryptFor(receiver, secret).catch(cause => {
    throw new RangeError('not a key to encrypt for', { cause })
  })

  const use = concat(KEY_PURPOSE, info, keyHash, decodeBase64(sender.signingKey))
  const derived = hkdf(sha256, secret, undefined, use, KEY_BYTES + IV_BYTES)
  const [raw, iv] = [derived.slice(0, KEY_BYTES), derived.slice(KEY_BYTES)]
  const key = await subtle.importKey('raw', raw, 'AES-GCM', false, ['encrypt'])
  const cipher = { name: 'AES-GCM', iv }
  const ciphertext = new Uint8Array(await subtle.encrypt(cipher, key, Uint8Array.from(plaintext)))

  const sealed = concat(Uint8Array.of(RSA_FORM), sealedSecret, ciphertext)
  return concat(sealed, withLowS(await sender.sign(concat(SIGNATURE_PURPOSE, info, sealed))))
}

async function encryptFor({ spki }: RsaKey, secret: Bytes): Promise<Bytes> {
  const { subtle } = globalThis.crypto
  const key = await subtle.importKey('spki', spki, OAEP, false, ['encrypt'])
  return new Uint8Array(await subtle.encrypt({ name: OAEP.name }, key, secret))
}

const RSA_FORM = 3
const KEY_PURPOSE = new TextEncoder().encode('callsign call key rsa v2\n')
const SIGNATURE_PURPOSE = new TextEncoder().encode('callsign call key rsa signature v2\n')
/** MGF1 takes the same hash; there is no label. */
const OAEP = { name: 'RSA-OAEP', hash: 'SHA-256' }
const [SECRET_BYTES, KEY_BYTES, IV_BYTES] = [32, 32, 12]

const MODULUS_BYTES = 256
/** The DER of 65537, which ends an RSAPublicKey. */
const EXPONENT = Uint8Array.of(2, 3, 1, 0, 1)
/** RSAPublicKey DER (RFC 8017, A.1.1) up to the modulus. */
const PKCS1 = Uint8Array.of(0x30, 0x82, 1, 10, 2, 0x82, 1, 1, 0)
/** SubjectPublicKeyInfo DER up to the RSAPublicKey in it. */
const SPKI_ALONE = Uint8Array.of(
  ...[
    0x30, 0x82, 1, 0x22, 0x30, 13, 6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 13, 1, 1, 1, 5, 0, 3, 0x82, 1, 15, 0,
  ],
)
const SPKI = concat(SPKI_ALONE, PKCS1)
