/**
 * One-time codes (contract 2.2): six digits from a cryptographic generator, kept as a keyed hash. The key is not in the
 * store, so a stolen store does not tell which of a million codes it was.
 */

import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import { assert } from '../../errors.ts'

/** Digits of a code. */
export const OTP_LENGTH = 6

/** Uniform over all codes, with leading zeros. `randomBytes` gives that many bytes of a cryptographic generator. */
export function newOtp(randomBytes: (length: number) => Uint8Array): string {
  for (let tries = 0; tries < DRAWS_MAX; tries++) {
    const bytes = randomBytes(3)
    assert(bytes.length === 3, 'the generator gave as many bytes as asked')
    // 20 of the 24 bits; a number beyond the last code is drawn again, since a remainder would favour some codes.
    const drawn = (bytes[0]! % 16) * 65_536 + bytes[1]! * 256 + bytes[2]!
    if (drawn < CODE_COUNT) return String(drawn).padStart(OTP_LENGTH, '0')
  }
  throw new Error('the random generator is broken')
}

/** A code's stored form: HMAC-SHA256(pepper, codeId ‖ code), 32 bytes. `codeId` has 16 bytes, new for each code. */
export function hashOtp(pepper: KeyObject, codeId: Uint8Array, otp: string): Uint8Array {
  assert(codeId.length === CODE_ID_BYTES, 'a code id has 16 bytes')
  return createHmac('sha256', pepper).update(codeId).update(otp).digest()
}

/** Whether this is the code that was hashed, in a time that tells nothing of how close it is. */
export function isOtp(pepper: KeyObject, codeId: Uint8Array, hash: Uint8Array, otp: string): boolean {
  return timingSafeEqual(hashOtp(pepper, codeId, otp), hash)
}

export const CODE_ID_BYTES = 16
const CODE_COUNT = 1_000_000
/** One draw in twenty is beyond the last code; this many in a row are not. */
const DRAWS_MAX = 64
