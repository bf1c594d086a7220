/**
 * Hashes, Ed25519, P-256 and base64 in plain JavaScript: what `#primitives` means in browsers and wherever there is no
 * `node:crypto`. Signatures are judged exactly as `primitives-node.ts` judges them.
 */
import { ed25519 } from '@noble/curves/ed25519.js'
import { sha256 as nobleSha256, sha512 as nobleSha512 } from '@noble/hashes/sha2.js'
import { concatBytes } from '@noble/hashes/utils.js'
import { SignalError } from '../errors.ts'
import {
  BASE,
  decodePoint,
  encodePoint,
  isSmallOrder,
  L,
  negated,
  numberOf,
  sumOfMultiples,
} from './edwards25519.ts'
import { verifyP256 } from './p256.ts'

export { decodeBase64, encodeBase64, isCanonicalBase64 } from './base64.ts'

/** SHA-256 of `bytes`: 32 bytes. */
export function sha256(bytes: Uint8Array): Uint8Array {
  return nobleSha256(bytes)
}

/** SHA-512 of `bytes`: 64 bytes. */
export function sha512(bytes: Uint8Array): Uint8Array {
  return nobleSha512(bytes)
}

/** The 32-byte Ed25519 public key of a 32-byte seed (RFC 8032). Throws `KEY_INVALID` for another length. */
export function ed25519PublicKey(seed: Uint8Array): Uint8Array {
  return ed25519.getPublicKey(assertSeed(seed))
}

/** The 64-byte Ed25519 signature of `message`. Throws `KEY_INVALID` for a seed that is not 32 bytes. */
export function ed25519Sign(seed: Uint8Array, message: Uint8Array): Uint8Array {
  return ed25519.sign(message, assertSeed(seed))
}

/**
 * Whether `signature` is one of `message` by the key (RFC 8032, without the cofactor). False, never an error, for
 * any odd input: wrong lengths, a point that is not one or not canonical, a key of small order.
 */
export function ed25519Verify(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  if (publicKey.length !== 32 || signature.length !== 64) return false
  const key = decodePoint(publicKey)
  const s = numberOf(signature.subarray(32))
  if (key === undefined || isSmallOrder(key) || s >= L) return false
  const r = signature.subarray(0, 32)
  const k = numberOf(sha512(concatBytes(r, publicKey, message))) % L
  // R = sB - kA, compared byte by byte: with the cofactor, signatures would hold that OpenSSL refuses.
  return encodePoint(sumOfMultiples(s, BASE, k, negated(key))).every((byte, at) => byte === r[at])
}

/**
 * Whether the 64 bytes r || s are an ECDSA signature with SHA-256 of `message` by the uncompressed P-256 point. False,
 * never an error, for any odd input. Both values of s are taken.
 */
export function p256Verify(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  return verifyP256(publicKey, sha256(message), signature)
}

function assertSeed(seed: Uint8Array): Uint8Array {
  if (seed.length !== 32) throw new SignalError('KEY_INVALID', `seed has ${seed.length} bytes, not 32`)
  return seed
}
