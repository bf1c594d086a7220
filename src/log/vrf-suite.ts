/**
 * What all implementations of the VRF (c2sp.org/vrf-r255) share: lengths, domains, and the input made of a device. No
 * curve is needed for it, so that the threads of `vrf-worker.ts` load none but libsodium's.
 */

/** Bytes of an encoded secret scalar and of an encoded group element (qLen and ptLen). */
export const VRF_KEY_BYTES = 32

/** Bytes of pi: Gamma (32), c (16), s (32). */
export const VRF_PROOF_BYTES = 80

/** The suite string every hash of this VRF begins with: the byte 0xff and the specification's name. */
export const VRF_SUITE: Uint8Array = Uint8Array.of(0xff, ...ascii('c2sp.org/vrf-r255'))

/** Bytes after the suite string in each hash (RFC 9381, section 5); `back` ends the last two. */
export const VRF_DOMAIN = {
  encodeToGroup: 0x82,
  nonce: 0x81,
  challenge: 0x02,
  proofToHash: 0x03,
  back: 0x00,
} as const

/** A VRF hash (64 bytes) with the proof of it (80 bytes). */
export interface ProvenHash {
  readonly vrfHash: Uint8Array
  readonly vrfProof: Uint8Array
}

const UINT64_MAX = 2n ** 64n - 1n

/**
 * The VRF input of one device: ASCII `<userID>_<deviceID>`, both decimal without leading zeros. Digits hold no
 * underscore, so two pairs never share an input. Throws `RangeError` when an id is not a uint64.
 */
export function vrfInput(userId: bigint, deviceId: bigint): Uint8Array {
  assertUint64('user id', userId)
  assertUint64('device id', deviceId)
  return ascii(`${userId}_${deviceId}`)
}

function ascii(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}

function assertUint64(name: string, value: bigint): void {
  if (value < 0n || value > UINT64_MAX) throw new RangeError(`${name} ${value} is not a uint64`)
}
