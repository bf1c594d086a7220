/**
 * The VRF of `vrf.ts` (c2sp.org/vrf-r255) as the server runs it: the same steps on libsodium's ristretto255, compiled
 * to WebAssembly; nine times as fast as the reference, which is its oracle in the tests.
 *
 * Choice: libsodium's documented wrapper, which throws on every refusal of the C code. Calling the C functions on one
 * buffer of our own saves the copies in and out, and with them 2 % of a proof; that is not worth an undocumented
 * interface. The wrapper leaves copies of the scalar in freed WebAssembly memory, where only this process can read.
 */
import assert from 'node:assert'
import sodium from 'libsodium-wrappers-sumo'
import { sha512 } from '#primitives'

import { type ProvenHash, VRF_DOMAIN, VRF_KEY_BYTES, VRF_PROOF_BYTES, VRF_SUITE } from './vrf-suite.ts'

/** A key of the VRF, in the encodings of `vrf.ts`, 32 bytes each. */
export interface VrfKey {
  readonly secret: Uint8Array
  /** Computed from the secret by the reference, `vrfPublicKey`. */
  readonly publicKey: Uint8Array
}

/** The VRF under a key, ready to use. The reference has judged the secret when it made the public key. */
export async function createFastVrf({ secret, publicKey }: VrfKey): Promise<FastVrf> {
  await sodium.ready
  const vrf = new FastVrf(Uint8Array.from(secret))
  // This key's hashes are published for good, so the two implementations must agree before one is used alone.
  assert(Buffer.compare(vrf.publicKey, publicKey) === 0, 'the two vrf implementations disagree')
  return vrf
}

/** One key's VRF. Made by `createFastVrf`, because libsodium has to be loaded first. */
export class FastVrf {
  readonly publicKey: Uint8Array
  readonly #secret: Uint8Array
  readonly #encodeToGroupFront: Uint8Array
  readonly #nonceFront: Uint8Array
  readonly #challengeFront: Uint8Array

  constructor(secret: Uint8Array) {
    this.publicKey = sodium.crypto_scalarmult_ristretto255_base(secret)
    this.#secret = secret
    this.#encodeToGroupFront = suiteFront(VRF_DOMAIN.encodeToGroup, this.publicKey)
    this.#nonceFront = suiteFront(VRF_DOMAIN.nonce, secret)
    this.#challengeFront = suiteFront(VRF_DOMAIN.challenge, this.publicKey)
  }

  /** The VRF hash of `input`, 64 bytes: one map to the group and one multiplication. */
  hash(input: Uint8Array): Uint8Array {
    return gammaToHash(this.#gamma(this.#encodeToGroup(input)))
  }

  /** The VRF hash of `input` and its proof, 80 bytes (ECVRF_prove, RFC 9381, section 5.1; numbers as in `vrf.ts`). */
  prove(input: Uint8Array): ProvenHash {
    // 2. to 4.
    const H = this.#encodeToGroup(input)
    const gamma = this.#gamma(H)
    // 5.
    const k = sodium.crypto_core_ristretto255_scalar_reduce(hashParts(this.#nonceFront, H))
    // 6.
    const U = sodium.crypto_scalarmult_ristretto255_base(k)
    const V = sodium.crypto_scalarmult_ristretto255(k, H)
    const c = hashParts(this.#challengeFront, H, gamma, U, V, BACK).subarray(0, 16)
    // 7.
    const cScalar = new Uint8Array(VRF_KEY_BYTES)
    cScalar.set(c)
    const cx = sodium.crypto_core_ristretto255_scalar_mul(cScalar, this.#secret)
    const s = sodium.crypto_core_ristretto255_scalar_add(k, cx)
    // 8., 9.
    const vrfProof = new Uint8Array(VRF_PROOF_BYTES)
    vrfProof.set(gamma, 0)
    vrfProof.set(c, 32)
    vrfProof.set(s, 48)
    return { vrfHash: gammaToHash(gamma), vrfProof }
  }

  #encodeToGroup(input: Uint8Array): Uint8Array {
    return sodium.crypto_core_ristretto255_from_hash(hashParts(this.#encodeToGroupFront, input))
  }

  #gamma(H: Uint8Array): Uint8Array {
    return sodium.crypto_scalarmult_ristretto255(this.#secret, H)
  }
}

const HASH_FRONT = suiteFront(VRF_DOMAIN.proofToHash)
const BACK = Uint8Array.of(VRF_DOMAIN.back)

function gammaToHash(gamma: Uint8Array): Uint8Array {
  return hashParts(HASH_FRONT, gamma, BACK)
}

function hashParts(...parts: readonly Uint8Array[]): Uint8Array {
  return sha512(Buffer.concat(parts))
}

function suiteFront(domain: number, ...parts: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat([VRF_SUITE, Uint8Array.of(domain), ...parts])
}
