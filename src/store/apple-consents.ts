/**
 * What Apple must be asked to forget: the refresh token of each user who signed in with Apple, kept sealed on their
 * login method until the method or the account goes (contract 2.7, 2.10).
 */

import type { SocialMethod } from '../domain/account.ts'
import { IV_BYTES, openSealed, type Secrets, seal } from '../domain/secrets.ts'
import type { OutboxStore } from './outbox-store.ts'

export interface AppleConsentsParts {
  readonly outbox: Pick<OutboxStore, 'add'>
  readonly secrets: Pick<Secrets, 'seal'>
  readonly randomBytes: (length: number) => Uint8Array
}

export class AppleConsents {
  readonly #parts: AppleConsentsParts

  constructor(parts: AppleConsentsParts) {
    this.#parts = parts
  }

  /** A refresh token as `SocialMethod` keeps it. */
  seal(refreshToken: string): Uint8Array {
    const { secrets, randomBytes } = this.#parts
    return seal(secrets.seal, SEALED_FOR, randomBytes(IV_BYTES), Buffer.from(refreshToken))
  }

  /** In a transaction: has Apple forget the consent behind a method, if it is one of Apple's with a token. */
  revoke({ sealedRefreshToken, clientId }: SocialMethod, nowMs: number): void {
    if (sealedRefreshToken === undefined || clientId === undefined) return
    const { outbox, secrets } = this.#parts
    const plain = openSealed(secrets.seal, SEALED_FOR, sealedRefreshToken)
    // Sealed by another secret: the operator has changed it, and Apple keeps a consent that nobody uses.
    if (plain === undefined) return
    const refreshToken = Buffer.from(plain).toString('utf8')
    outbox.add({ channel: 'apple', clientId, refreshToken, expiresAtMs: nowMs + REVOKED_WITHIN_MS }, nowMs)
  }
}

const SEALED_FOR = 'apple-refresh-token'
/** Apple may be out of reach for long, and must be told nevertheless. */
const REVOKED_WITHIN_MS = 30 * 86_400_000
