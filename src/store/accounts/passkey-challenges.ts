/** Challenges that passkeys have answered, by their SHA-256, until they are over: each is good once. */

import { EXPIRY, type Expiries } from '../engine/expiries.ts'
import { textKey } from '../engine/keys.ts'
import type { Change } from '../engine/store.ts'
import { PASSKEY_CHALLENGES } from './account-tables.ts'

export class PasskeyChallengeStore {
  readonly #expiries: Expiries

  constructor(expiries: Expiries) {
    this.#expiries = expiries
    expiries.define(EXPIRY.passkeyChallenge, (change, key) => void change.remove(PASSKEY_CHALLENGES, key))
  }

  /** Uses the challenge up; false where it was used before. */
  use(change: Change, challenge: string, endsAtMs: number): boolean {
    const key = textKey(challenge)
    if (change.get(PASSKEY_CHALLENGES, key) !== undefined) return false
    change.put(PASSKEY_CHALLENGES, key, 0)
    this.#expiries.add(change, EXPIRY.passkeyChallenge, endsAtMs, key)
    return true
  }
}
