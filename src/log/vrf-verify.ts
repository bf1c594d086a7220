/**
 * Verification of the VRF that names a device in the log, for clients: `vrf.ts` makes its proofs. c2sp.org/vrf-r255, which is
 * ECVRF-RISTRETTO255-SHA512 in the terms of RFC 9381, and names are its own. All integers are little-endian.
 */

import { concatBytes } from '@noble/hashes/utils.js'
import { decodeBase64, sha512 } from '#primitives'
import { SignalError } from '../errors.ts'
import {
  BASE,
  decodeElement,
  type EdwardsPoint,
  elementOf,
  encodeElement,
  isIdentity,
  L,
  negated,
  numberOf,
  sumOfMultiples,
} from './edwards25519.ts'
import { equalHashes } from './hash.ts'
import { VRF_DOMAIN, VRF_PROOF_BYTES, VRF_SUITE } from './vrf-suite.ts'

/**
 * The public key in standard base64. Throws `KEY_INVALID` unless it is the canonical encoding of a group element other
 * than the identity, under which anyone can make proofs.
 */
export function parseVrfPublicKey(base64: string): Uint8Array {
  const publicKey = vrfKeyBytes(base64, 'vrf public key')
  decodePublicKey(publicKey)
  return publicKey
}

/** Throws `KEY_INVALID`. */
export function vrfKeyBytes(base64: string, name: string): Uint8Array {
  try {
    return decodeBase64(base64)
  } catch {
    // The decoder's own error may quote what it was given, so it is not kept as the cause.
    throw new SignalError('KEY_INVALID', `${name} is not base64`)
  }
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
  const H = elementOf(vrfMapInput(publicKey, input))
  // 8., 9. U = s*B - c*Y, V = s*H - c*Gamma.
  const challenge = numberOf(c)
  const U = sumOfMultiples(s, BASE, challenge, negated(Y))
  const V = sumOfMultiples(s, H, challenge, negated(gamma))
  // 10., 11. c' must be c.
  const encoded = [encodeElement(H), proof.subarray(0, GAMMA_BYTES), encodeElement(U), encodeElement(V)]
  if (!equalHashes(vrfChallenge(publicKey, encoded), c)) {
    throw new SignalError('PROOF_INVALID', 'vrf proof does not hold for this key and input')
  }
  return vrfHashFromGamma(proof.subarray(0, GAMMA_BYTES))
}

/**
 * The VRF hash beta that `proof` would prove, 64 bytes (ECVRF_proof_to_hash, RFC 9381, section 5.2). It says nothing
 * about whether the proof holds: that is `verifyVrf`. Throws `PROOF_INVALID` when the proof does not decode.
 */
export function vrfHashFromProof(proof: Uint8Array): Uint8Array {
  decodeProof(proof)
  return vrfHashFromGamma(proof.subarray(0, GAMMA_BYTES))
}

/**
 * Whether two proofs for one input, the first already verified, have the same hash. Gamma fixes the hash, so the
 * second need not be verified.
 */
export function isOfSameHash(proof: Uint8Array, other: Uint8Array): boolean {
  const isOfLength = other.length === proof.length
  return isOfLength && equalHashes(proof.subarray(0, GAMMA_BYTES), other.subarray(0, GAMMA_BYTES))
}

/** SHA-512(suite || 0x82 || Y || alpha), which is mapped to H (ECVRF_encode_to_curve, the salt being the encoded key). */
export function vrfMapInput(publicKey: Uint8Array, alpha: Uint8Array): Uint8Array {
  return vrfSuiteHash(VRF_DOMAIN.encodeToGroup, publicKey, alpha)
}

/**
 * c: the first 16 bytes of SHA-512(suite || 0x02 || Y || H || Gamma || U || V || 0x00) (ECVRF_challenge_generation,
 * RFC 9381, section 5.4.3). `encoded` are H, Gamma, U and V.
 */
export function vrfChallenge(publicKey: Uint8Array, encoded: readonly Uint8Array[]): Uint8Array {
  const back = Uint8Array.of(VRF_DOMAIN.back)
  return vrfSuiteHash(VRF_DOMAIN.challenge, publicKey, ...encoded, back).subarray(0, CHALLENGE_BYTES)
}

/** beta = SHA-512(suite || 0x03 || Gamma || 0x00). */
export function vrfHashFromGamma(gamma: Uint8Array): Uint8Array {
  return vrfSuiteHash(VRF_DOMAIN.proofToHash, gamma, Uint8Array.of(VRF_DOMAIN.back))
}

export function vrfSuiteHash(domain: number, ...parts: readonly Uint8Array[]): Uint8Array {
  return sha512(concatBytes(VRF_SUITE, Uint8Array.of(domain), ...parts))
}

function decodeProof(proof: Uint8Array): { gamma: EdwardsPoint; c: Uint8Array; s: bigint } {
  if (proof.length !== VRF_PROOF_BYTES) {
    throw new SignalError('PROOF_INVALID', `vrf proof of ${proof.length} bytes, not ${VRF_PROOF_BYTES}`)
  }
  const gamma = decodeElement(proof.subarray(0, GAMMA_BYTES))
  if (gamma === undefined) throw new SignalError('PROOF_INVALID', 'vrf proof holds no group element')
  // s + q satisfies the same equations; letting it pass would give one input two proofs.
  const s = numberOf(proof.subarray(GAMMA_BYTES + CHALLENGE_BYTES))
  if (s >= L) throw new SignalError('PROOF_INVALID', 'vrf proof holds a scalar that is not reduced')
  return { gamma, c: proof.subarray(GAMMA_BYTES, GAMMA_BYTES + CHALLENGE_BYTES), s }
}

function decodePublicKey(publicKey: Uint8Array): EdwardsPoint {
  const Y = decodeElement(publicKey)
  if (Y === undefined) throw new SignalError('KEY_INVALID', 'vrf public key is no group element')
  if (isIdentity(Y)) throw new SignalError('KEY_INVALID', 'vrf public key is the identity')
  return Y
}

const GAMMA_BYTES = 32
const CHALLENGE_BYTES = 16
