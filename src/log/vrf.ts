/**
 * The verifiable random function that turns a user and device into the hash the log publishes: c2sp.org/vrf-r255,
 * which is ECVRF-RISTRETTO255-SHA512 in the terms of RFC 9381. Written to be read beside the specification and used
 * as the oracle for `vrf-fast.ts`, which the server runs; clients verify with this one, so it needs no Node built-in.
 *
 * Names are the specification's: x is the secret scalar, Y = x*B the public key, alpha the input, H the group element
 * it maps to, Gamma = x*H, pi the proof and beta the hash. All integers are little-endian.
 */

import { ristretto255, ristretto255_hasher } from '@noble/curves/ed25519.js'
import { bytesToNumberLE, concatBytes, equalBytes } from '@noble/curves/utils.js'
import { decodeBase64, sha512 } from '#primitives'

import { SignalError } from '../errors.ts'
import { VRF_HASH_BYTES } from './entry.ts'
import { VRF_DOMAIN, VRF_KEY_BYTES, VRF_PROOF_BYTES, VRF_SUITE, vrfInput } from './vrf-suite.ts'

export { VRF_HASH_BYTES, VRF_PROOF_BYTES, vrfInput }

export type GroupElement = InstanceType<typeof ristretto255.Point>

const { Point } = ristretto255
const { Fn } = Point
const CHALLENGE_BYTES = 16

/**
 * A new secret key: 64 uniformly random bytes reduced mod q, as 32 bytes. The caller brings the randomness. Throws
 * `KEY_INVALID` for the zero scalar, which uniform bytes give once in 2^252 times.
 */
export function generateVrfSecret(random64: Uint8Array): Uint8Array {
  if (random64.length !== 64)
    throw new RangeError(`vrf secret made of ${random64.length} random bytes, not 64`)
  const secret = Fn.toBytes(reduce(random64))
  decodeSecret(secret)
  return secret
}

/**
 * The secret key in standard base64. Throws `KEY_INVALID` unless it is the canonical encoding of a scalar in
 * [1, q-1]; the error says nothing about the value.
 */
export function parseVrfSecret(base64: string): Uint8Array {
  const secret = keyBytes(base64, 'vrf secret')
  decodeSecret(secret)
  return secret
}

/** Y = x*B, 32 bytes. Throws `KEY_INVALID` for a secret that `parseVrfSecret` would refuse. */
export function vrfPublicKey(secret: Uint8Array): Uint8Array {
  const x = decodeSecret(secret)
  // Not `BASE` itself, for which the library makes tables at its first use: for one product they take longer than it.
  return Point.fromBytes(Point.BASE.toBytes()).multiply(x).toBytes()
}

/**
 * The public key in standard base64. Throws `KEY_INVALID` unless it is the canonical encoding of a group element other
 * than the identity, under which anyone can make proofs.
 */
export function parseVrfPublicKey(base64: string): Uint8Array {
  const publicKey = keyBytes(base64, 'vrf public key')
  decodePublicKey(publicKey)
  return publicKey
}

/**
 * The proof pi of `input`, 80 bytes (ECVRF_prove, RFC 9381, section 5.1). Deterministic: one key and input have one
 * proof. Throws `KEY_INVALID` for a bad secret.
 */
export function proveVrf(secret: Uint8Array, input: Uint8Array): Uint8Array {
  // 1. x and Y from the secret key.
  const x = decodeSecret(secret)
  const publicKey = Point.BASE.multiply(x).toBytes()
  // 2., 3. H, and its encoding h_string.
  const H = encodeToGroup(publicKey, input)
  // 4. Gamma = x*H.
  const gamma = H.multiply(x)
  // 5. The nonce k.
  const k = generateNonce(secret, H)
  // 6. c over Y, H, Gamma, U = k*B, V = k*H.
  const c = generateChallenge(publicKey, [H, gamma, Point.BASE.multiply(k), H.multiply(k)])
  // 7. s = (k + c*x) mod q.
  const s = Fn.add(k, Fn.mul(bytesToNumberLE(c), x))
  // 8., 9. pi = Gamma || c || s.
  return concatBytes(gamma.toBytes(), c, Fn.toBytes(s))
}

/** The VRF hash beta of `input`, 64 bytes, without making its proof. Throws `KEY_INVALID` for a bad secret. */
export function hashVrf(secret: Uint8Array, input: Uint8Array): Uint8Array {
  const x = decodeSecret(secret)
  return gammaToHash(encodeToGroup(Point.BASE.multiply(x).toBytes(), input).multiply(x))
}

/**
 * The VRF hash beta that `proof` would prove, 64 bytes (ECVRF_proof_to_hash, RFC 9381, section 5.2). It says nothing
 * about whether the proof holds: that is `verifyVrf`. Throws `PROOF_INVALID` when the proof does not decode.
 */
export function vrfHashFromProof(proof: Uint8Array): Uint8Array {
  return gammaToHash(decodeProof(proof).gamma)
}

/**
 * The VRF hash beta of `input` under `publicKey`, 64 bytes, once `proof` shows it (ECVRF_verify with validate_key,
 * RFC 9381, section 5.3). Throws `KEY_INVALID` when the key is not a canonical element or is the identity, under which
 * anyone can make proofs, and `PROOF_INVALID` when the proof has another length, does not decode or does not hold.
 */
export function verifyVrf(publicKey: Uint8Array, input: Uint8Array, proof: Uint8Array): Uint8Array {
  // 1. to 3. Y, which validate_key refuses when it is the identity.
  const Y = decodePublicKey(publicKey)
  // 4. to 6. Gamma, c and s.
  const { gamma, c, s } = decodeProof(proof)
  // 7. H.
  const H = encodeToGroup(publicKey, input)
  // 8., 9. U = s*B - c*Y, V = s*H - c*Gamma. Nothing here is secret, so the time may depend on the values.
  const challenge = bytesToNumberLE(c)
  const U = Point.BASE.multiplyUnsafe(s).subtract(Y.multiplyUnsafe(challenge))
  const V = H.multiplyUnsafe(s).subtract(gamma.multiplyUnsafe(challenge))
  // 10., 11. c' must be c.
  if (!equalBytes(generateChallenge(publicKey, [H, gamma, U, V]), c)) {
    throw new SignalError('PROOF_INVALID', 'vrf proof does not hold for this key and input')
  }
  return gammaToHash(gamma)
}

/**
 * Whether two proofs for one input, the first already verified, have the same hash. Gamma fixes the hash, so the
 * second need not be verified.
 */
export function isOfSameHash(proof: Uint8Array, other: Uint8Array): boolean {
  const isOfLength = other.length === proof.length
  return isOfLength && equalBytes(proof.subarray(0, GAMMA_BYTES), other.subarray(0, GAMMA_BYTES))
}

/**
 * H: all 64 bytes of SHA-512(suite || 0x82 || Y || alpha) through the one-way map of RFC 9496, section 4.3.4
 * (ECVRF_encode_to_curve, the salt being the encoded public key).
 */
export function encodeToGroup(publicKey: Uint8Array, alpha: Uint8Array): GroupElement {
  return ristretto255_hasher.deriveToCurve!(suiteHash(VRF_DOMAIN.encodeToGroup, publicKey, alpha))
}

/** k = SHA-512(suite || 0x81 || x || H) mod q (ECVRF_nonce_generation). */
export function generateNonce(secret: Uint8Array, H: GroupElement): bigint {
  return reduce(suiteHash(VRF_DOMAIN.nonce, secret, H.toBytes()))
}

/**
 * c: the first 16 bytes of SHA-512(suite || 0x02 || Y || H || Gamma || U || V || 0x00) (ECVRF_challenge_generation,
 * RFC 9381, section 5.4.3). `elements` are H, Gamma, U and V.
 */
export function generateChallenge(publicKey: Uint8Array, elements: readonly GroupElement[]): Uint8Array {
  const encoded = elements.map(element => element.toBytes())
  const back = Uint8Array.of(VRF_DOMAIN.back)
  return suiteHash(VRF_DOMAIN.challenge, publicKey, ...encoded, back).subarray(0, CHALLENGE_BYTES)
}

/** beta = SHA-512(suite || 0x03 || Gamma || 0x00). */
function gammaToHash(gamma: GroupElement): Uint8Array {
  return suiteHash(VRF_DOMAIN.proofToHash, gamma.toBytes(), Uint8Array.of(VRF_DOMAIN.back))
}

function suiteHash(domain: number, ...parts: readonly Uint8Array[]): Uint8Array {
  return sha512(concatBytes(VRF_SUITE, Uint8Array.of(domain), ...parts))
}

function decodeProof(proof: Uint8Array): { gamma: GroupElement; c: Uint8Array; s: bigint } {
  if (proof.length !== VRF_PROOF_BYTES) {
    throw new SignalError('PROOF_INVALID', `vrf proof of ${proof.length} bytes, not ${VRF_PROOF_BYTES}`)
  }
  const gamma = decodeElement(proof.subarray(0, 32))
  if (gamma === undefined) throw new SignalError('PROOF_INVALID', 'vrf proof holds no group element')
  // s + q satisfies the same equations; letting it pass would give one input two proofs.
  const s = bytesToNumberLE(proof.subarray(48))
  if (s >= Fn.ORDER) throw new SignalError('PROOF_INVALID', 'vrf proof holds a scalar that is not reduced')
  return { gamma, c: proof.subarray(32, 48), s }
}

function decodePublicKey(publicKey: Uint8Array): GroupElement {
  const Y = decodeElement(publicKey)
  if (Y === undefined) throw new SignalError('KEY_INVALID', 'vrf public key is no group element')
  if (Y.is0()) throw new SignalError('KEY_INVALID', 'vrf public key is the identity')
  return Y
}

function decodeElement(bytes: Uint8Array): GroupElement | undefined {
  try {
    return Point.fromBytes(bytes)
  } catch {
    return undefined
  }
}

function decodeSecret(secret: Uint8Array): bigint {
  if (secret.length !== VRF_KEY_BYTES) {
    throw new SignalError('KEY_INVALID', `vrf secret of ${secret.length} bytes, not ${VRF_KEY_BYTES}`)
  }
  const x = bytesToNumberLE(secret)
  if (x === 0n || x >= Fn.ORDER)
    throw new SignalError('KEY_INVALID', 'vrf secret is not a scalar in [1, q-1]')
  return x
}

function keyBytes(base64: string, name: string): Uint8Array {
  try {
    return decodeBase64(base64)
  } catch {
    // The decoder's own error may quote what it was given, so it is not kept as the cause.
    throw new SignalError('KEY_INVALID', `${name} is not base64`)
  }
}

function reduce(bytes: Uint8Array): bigint {
  return Fn.create(bytesToNumberLE(bytes))
}

const GAMMA_BYTES = 32
