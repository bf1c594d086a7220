/**
 * What a device signs with its signing key besides device lists. Each message begins with a line of its own, and so does a
 * list, so that no signature can be taken for another.
 */

import { SignalError } from '../errors.ts'

/** For `register_device`: the device has the signing key. `challenge` is the session's, 32 octets. */
export function possessionMessage(challenge: Uint8Array): Uint8Array {
  return message('callsign possession v1\n', octets(challenge, POSSESSION_CHALLENGE_BYTES))
}

/** For `verify-login`: a listed device signs in again. `challengeId` is the one of the code, 16 octets. */
export function signInMessage(challengeId: Uint8Array): Uint8Array {
  return message('callsign sign-in v1\n', octets(challengeId, SIGN_IN_ID_BYTES))
}

/** A listed device's answer to a sign-in that waits. `id` is the waiting sign-in's, 16 octets. */
export function signInAnswerMessage(userId: bigint, id: Uint8Array, isApproved: boolean): Uint8Array {
  const answer = Uint8Array.of(Number(isApproved))
  return message('callsign sign-in answer v1\n', userOctets(userId), octets(id, SIGN_IN_ID_BYTES), answer)
}

/**
 * Beside a fresh proof of who the user is: the device that asks is a listed one. `proof` is SHA-256 of the text that the proof is
 * of: a code's challengeId, a passkey's challenge, an identity token.
 */
export function stepUpMessage(userId: bigint, proof: Uint8Array): Uint8Array {
  return message('callsign step-up v1\n', userOctets(userId), octets(proof, STEP_UP_PROOF_BYTES))
}

function message(line: string, ...parts: readonly Uint8Array[]): Uint8Array {
  return Uint8Array.from([...new TextEncoder().encode(line), ...parts.flatMap(part => [...part])])
}

function userOctets(userId: bigint): Uint8Array {
  const bytes = new Uint8Array(8)
  new DataView(bytes.buffer).setBigUint64(0, userId)
  return bytes
}

function octets(bytes: Uint8Array, length: number): Uint8Array {
  if (bytes.length === length) return bytes
  throw new SignalError('MALFORMED', `expected ${length} octets, not ${bytes.length}`)
}

const POSSESSION_CHALLENGE_BYTES = 32
const STEP_UP_PROOF_BYTES = 32
/** Octets of the id of a challenge, and of a waiting sign-in. */
const SIGN_IN_ID_BYTES = 16
