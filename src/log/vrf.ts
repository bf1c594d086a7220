/**
 * The verifiable random function that turns a user and device into the hash the log publishes: c2sp.org/vrf-r255,
 * which is ECVRF-RISTRETTO255-SHA512 in the terms of RFC 9381. Written to be read beside the specification and used
 * as the oracle for `vrf-fast.ts`, which the server runs; clients verify its proofs with `vrf-verify.ts`.
 *
 * Names are the specification's: x is the secret scalar, Y = x*B the public key, alpha the input, H the group element
 * it maps to, Gamma = x*H, pi the proof and beta the hash. All integers are little-endian.
 */

import { ristretto255, ristretto255_hasher } from '@noble/curves/ed25519.js'
import { bytesToNumberLE, concatBytes } from '@noble/curves/utils.js'
import { SignalError } from '../errors.ts'
import { VRF_HASH_BYTES } from './entry.ts'
import { VRF_DOMAIN, VRF_KEY_BYTES, VRF_PROOF_BYTES, vrfInput } from './vrf-suite.ts'
import { vrfChallenge, vrfHashFromGamma, vrfKeyBytes, vrfMapInput, vrfSuiteHash } from './vrf-verify.ts'

export { VRF_HASH_BYTES, VRF_PROOF_BYTES, vrfInput }

export type GroupElement = InstanceType<typeof ristretto255.Point>

const { Point } = ristretto255
const { Fn } = Point

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
  const secret = vrfKeyBytes(base64, 'vrf secret')
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
  return vrfHashFromGamma(encodeToGroup(Point.BASE.multiply(x).toBytes(), input).multiply(x).toBytes())
}

/**
 * H: all 64 bytes of SHA-512(suite || 0x82 || Y || alpha) through the one-way map of RFC 9496, section 4.3.4
 * (ECVRF_encode_to_curve, the salt being the encoded public key).
 */
export function encodeToGroup(publicKey: Uint8Array, alpha: Uint8Array): GroupElement {
  return ristretto255_hasher.deriveToCurve!(vrfMapInput(publicKey, alpha))
}

/** k = SHA-512(suite || 0x81 || x || H) mod q (ECVRF_nonce_generation). */
export function generateNonce(secret: Uint8Array, H: GroupElement): bigint {
  return reduce(vrfSuiteHash(VRF_DOMAIN.nonce, secret, H.toBytes()))
}

/** c over H, Gamma, U and V: see `vrfChallenge`. */
export function generateChallenge(publicKey: Uint8Array, elements: readonly GroupElement[]): Uint8Array {
  return vrfChallenge(
    publicKey,
    elements.map(element => element.toBytes()),
  )
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

function reduce(bytes: Uint8Array): bigint {
  return Fn.create(bytesToNumberLE(bytes))
}
