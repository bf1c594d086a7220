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
  const user = new Uint8Array(8)
  new DataView(user.buffer).setBigUint64(0, userId)
  const answer = Uint8Array.of(Number(isApproved))
  return message('callsign sign-in answer v1\n', user, octets(id, SIGN_IN_ID_BYTES), answer)
}

function message(line: string, ...parts: readonly Uint8Array[]): Uint8Array {
  return Uint8Array.from([...new TextEncoder().encode(line), ...parts.flatMap(part => [...part])])
}

function octets(bytes: Uint8Array, length: number): Uint8Array {
  if (bytes.length === length) return bytes
  throw new SignalError('MALFORMED', `expected ${length} octets, not ${bytes.length}`)
}

const POSSESSION_CHALLENGE_BYTES = 32
/** Octets of the id of a challenge, and of a waiting sign-in. */
const SIGN_IN_ID_BYTES = 16
