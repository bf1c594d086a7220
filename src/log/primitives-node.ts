/**
 * Hashes, Ed25519, P-256 and base64 from Node's own library: what `#primitives` means in a Node process.
 * `primitives-portable.ts` does the same elsewhere, answer for answer; `test/log/primitives.test.ts` holds them together.
 */
import {
  createPrivateKey,
  createPublicKey,
  hash,
  type KeyObject,
  sign as signWithKey,
  verify as verifyWithKey,
} from 'node:crypto'
import { SignalError } from '../errors.ts'

export { decodeBase64, isCanonicalBase64 } from './base64.ts'

/** SHA-256 of `bytes`: 32 bytes. */
export function sha256(bytes: Uint8Array): Uint8Array {
  // A digest taken as text and copied costs 0.24 us, one taken as a Buffer 0.55 us: every such Buffer brings memory
  // outside the heap (for 65 bytes).
  const digest = hash('sha256', bytes, 'binary')
  const copy = new Uint8Array(32)
  for (let at = 0; at < 32; at++) copy[at] = digest.charCodeAt(at)
  return copy
}

/** SHA-512 of `bytes`: 64 bytes. */
export function sha512(bytes: Uint8Array): Uint8Array {
  const digest = hash('sha512', bytes, 'binary')
  const copy = new Uint8Array(64)
  for (let at = 0; at < 64; at++) copy[at] = digest.charCodeAt(at)
  return copy
}

/** The 32-byte Ed25519 public key of a 32-byte seed (RFC 8032). Throws `KEY_INVALID` for another length. */
export function ed25519PublicKey(seed: Uint8Array): Uint8Array {
  const encoded = createPublicKey(privateKey(seed)).export({ format: 'der', type: 'spki' })
  return new Uint8Array(encoded.subarray(SPKI_PREFIX.length))
}

/** The 64-byte Ed25519 signature of `message`. Throws `KEY_INVALID` for a seed that is not 32 bytes. */
export function ed25519Sign(seed: Uint8Array, message: Uint8Array): Uint8Array {
  return new Uint8Array(signWithKey(null, message, privateKey(seed)))
}

/**
 * Whether `signature` is one of `message` by the key (RFC 8032, without the cofactor). False, never an error, for
 * any odd input: wrong lengths, a point that is not one or not canonical, a key of small order.
 */
export function ed25519Verify(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  if (publicKey.length !== 32 || signature.length !== 64) return false
  let key = find(publicKeys, publicKey)
  if (key === undefined) {
    if (!isStrictPoint(publicKey)) return false
    key = createPublicKey({ key: Buffer.concat([SPKI_PREFIX, publicKey]), format: 'der', type: 'spki' })
    keep(publicKeys, publicKey, key)
  }
  return verifyWithKey(null, message, key, signature)
}

/**
 * Whether the 64 bytes r || s are an ECDSA signature with SHA-256 of `message` by the uncompressed P-256 point. False,
 * never an error, for any odd input. Both values of s are taken.
 */
export function p256Verify(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  if (publicKey.length !== 65 || publicKey[0] !== 4 || signature.length !== 64) return false
  let key: KeyObject
  try {
    key = createPublicKey({ key: Buffer.concat([P256_SPKI_PREFIX, publicKey]), format: 'der', type: 'spki' })
  } catch {
    return false
  }
  return verifyWithKey('sha256', message, { key, dsaEncoding: 'ieee-p1363' }, signature)
}

/** The canonical base64 of `bytes` (RFC 4648 section 4). */
export function encodeBase64(bytes: Uint8Array): string {
  const buffer = Buffer.isBuffer(bytes)
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return buffer.toString('base64')
}

function privateKey(seed: Uint8Array): KeyObject {
  if (seed.length !== 32) throw new SignalError('KEY_INVALID', `seed has ${seed.length} bytes, not 32`)
  const known = find(privateKeys, seed)
  if (known !== undefined) return known
  const key = createPrivateKey({ key: Buffer.concat([PKCS8_PREFIX, seed]), format: 'der', type: 'pkcs8' })
  keep(privateKeys, seed, key)
  return key
}

/**
 * OpenSSL takes encodings of y at or above the field prime and keys of small order, which RFC 8032 and other
 * libraries refuse. A client and a server that disagree about one signature are a split view, so: the strict side.
 */
function isStrictPoint(publicKey: Uint8Array): boolean {
  const y = Buffer.from(publicKey)
  y[31]! &= 0x7f
  const text = y.reverse().toString('hex')
  return text < FIELD_PRIME && !SMALL_ORDER_Y.has(text)
}

/** Key objects take 20 to 50 us to build, so those of the last few keys are kept. */
interface KeptKey {
  readonly bytes: Uint8Array
  readonly key: KeyObject
}

function find(kept: readonly KeptKey[], bytes: Uint8Array): KeyObject | undefined {
  for (const candidate of kept) {
    if (isSame(candidate.bytes, bytes)) return candidate.key
  }
  return undefined
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  for (let at = 0; at < 32; at++) {
    if (a[at] !== b[at]) return false
  }
  return true
}

function keep(kept: KeptKey[], bytes: Uint8Array, key: KeyObject): void {
  if (kept.length === KEYS_KEPT) kept.shift()
  kept.push({ bytes: Uint8Array.from(bytes), key })
}

const KEYS_KEPT = 4
const publicKeys: KeptKey[] = []
const privateKeys: KeptKey[] = []

/** Everything of an RFC 8410 SubjectPublicKeyInfo and PKCS #8 PrivateKeyInfo before the 32 key bytes. */
const SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex')
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex')

/** Everything of an RFC 5480 SubjectPublicKeyInfo before the 65 bytes of a point of P-256. */
const P256_SPKI_PREFIX = Buffer.from('3059301306072a8648ce3d020106082a8648ce3d030107034200', 'hex')

/** 2^255 - 19, and the y coordinates of the eight points whose order divides 8, big-endian. */
const FIELD_PRIME = '7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffed'
const SMALL_ORDER_Y = new Set([
  '0000000000000000000000000000000000000000000000000000000000000000',
  '0000000000000000000000000000000000000000000000000000000000000001',
  '05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826',
  '7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7',
  '7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffec',
])
