/**
 * A device's public key as an app uploads it (contract 2.5): checked, and then stored and logged as it came, since
 * clients compare the bytes they get back with their own.
 *
 * Each of the four encodings has one length and one prefix, so a key is compared with a template: the form is
 * canonical DER by construction. Nothing goes to OpenSSL: a point at infinity in other DER makes Node 20 abort the
 * process when the key's details are read.
 */

import { assert } from '../../errors.ts'

export type KeyAlgorithm = 'P-256' | 'RSA-2048'

export interface AcceptedKey {
  readonly kind: 'accepted'
  readonly algorithm: KeyAlgorithm
  /** SubjectPublicKeyInfo DER, the uncompressed point of X9.63, or RSAPublicKey DER (RFC 8017, A.1.1). */
  readonly encoding: 'spki' | 'x963' | 'pkcs1'
}

export interface RefusedKey {
  readonly kind: 'refused'
  /** The member of the request at fault. */
  readonly field: 'publicKey' | 'keyAlgorithm'
  readonly reason: string
}

/** Judges a key in base64. `algorithm` is what the client says it is, if it says so. */
export function readPublicKey(text: string, algorithm?: string): AcceptedKey | RefusedKey {
  if (text.length > KEY_CHARS_MAX) return refused(`must have at most ${KEY_CHARS_MAX} characters`)
  const bytes = Buffer.from(text, 'base64')
  if (bytes.length === 0 || bytes.toString('base64') !== text) return refused('must be canonical base64')
  const form = FORMS.find(({ length, prefix }) => bytes.length === length && startsWith(bytes, prefix))
  if (form === undefined)
    return refused('must be a P-256 key (SPKI, X9.63) or an RSA-2048 key (SPKI, PKCS#1)')
  const body = bytes.subarray(form.prefix.length)
  const fault = form.algorithm === 'P-256' ? pointFault(body) : rsaFault(body)
  if (fault !== undefined) return refused(fault)
  if (algorithm !== undefined && algorithm !== form.algorithm) {
    return { kind: 'refused', field: 'keyAlgorithm', reason: `must be ${form.algorithm}, which the key is` }
  }
  return { kind: 'accepted', algorithm: form.algorithm, encoding: form.encoding }
}

/** The text of the same key in its other encoding: a key's owner must not depend on which of the two was sent. */
export function otherEncodingOf(text: string): string {
  const bytes = Buffer.from(text, 'base64')
  const form = FORMS.find(({ length }) => length === bytes.length)
  const other = FORMS.find(each => each.algorithm === form?.algorithm && each !== form)
  assert(form !== undefined && other !== undefined, 'a key that was accepted has two encodings')
  return Buffer.concat([other.prefix, bytes.subarray(form.prefix.length)]).toString('base64')
}

function refused(reason: string): RefusedKey {
  return { kind: 'refused', field: 'publicKey', reason }
}

function startsWith(bytes: Buffer, prefix: Buffer): boolean {
  return bytes.subarray(0, prefix.length).equals(prefix)
}

/**
 * What is wrong with the 64 bytes of x and y, if anything: coordinates below the prime that satisfy the equation (SEC 1,
 * 3.2.2.1). Every such point is a key, since the order of the curve is prime. OpenSSL says the same fifty times slower
 * (`bench -- register-device`).
 */
function pointFault(coordinates: Buffer): string | undefined {
  const x = unsignedOf(coordinates.subarray(0, 32))
  const y = unsignedOf(coordinates.subarray(32))
  const isOnCurve =
    x < P256_PRIME && y < P256_PRIME && (y * y - (x * x - 3n) * x - P256_B) % P256_PRIME === 0n
  return isOnCurve ? undefined : 'must be a point on the curve P-256'
}

function unsignedOf(bytes: Buffer): bigint {
  return BigInt(`0x${bytes.toString('hex')}`)
}

/** The fault in the 256 bytes of a modulus and the exponent after them, if any. */
function rsaFault(body: Buffer): string | undefined {
  if (!body.subarray(MODULUS_BYTES).equals(EXPONENT)) return 'must have the exponent 65537'
  if (body[0]! < 0x80) return 'must have a modulus of exactly 2048 bits'
  // A product of two large primes is odd; more than this takes a factorization.
  return body[MODULUS_BYTES - 1]! % 2 === 0 ? 'must have an odd modulus' : undefined
}

const KEY_CHARS_MAX = 1024
const MODULUS_BYTES = 256
/** The DER of 65537, which ends an RSAPublicKey. */
const EXPONENT = Buffer.from('0203010001', 'hex')
/** Each up to the first byte that differs between keys; 04 says that both coordinates follow. */
const P256_POINT = Buffer.from('04', 'hex')
const P256_SPKI = Buffer.from('3059301306072a8648ce3d020106082a8648ce3d03010703420004', 'hex')
/** FIPS 186-4, D.1.2.3; the coefficient of x is -3. */
const P256_PRIME = 0xffffffff00000001000000000000000000000000ffffffffffffffffffffffffn
const P256_B = 0x5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604bn
const RSA_PKCS1 = Buffer.from('3082010a0282010100', 'hex')
const RSA_SPKI = Buffer.from('30820122300d06092a864886f70d01010105000382010f003082010a0282010100', 'hex')

const FORMS = [
  { algorithm: 'P-256', encoding: 'spki', length: 91, prefix: P256_SPKI },
  { algorithm: 'P-256', encoding: 'x963', length: 65, prefix: P256_POINT },
  { algorithm: 'RSA-2048', encoding: 'spki', length: 294, prefix: RSA_SPKI },
  { algorithm: 'RSA-2048', encoding: 'pkcs1', length: 270, prefix: RSA_PKCS1 },
] as const
