/**
 * What Apple must be asked to forget: the refresh token of each user who signed in with Apple, kept sealed on their
 * login method until the method or the account goes (contract 2.7, 2.10).
 */

import type { SocialMethod } from '../../domain/accounts/account.ts'
import type { Change } from '../engine/store.ts'
import type { OutboxStore } from '../messages/outbox-store.ts'
import type { StoreDeps } from '../tables/deps.ts'
import { Sealed } from '../tables/sealed.ts'

export class AppleConsents {
  readonly #outbox: Pick<OutboxStore, 'add'>
  readonly #sealed: Sealed

  constructor({
    outbox,
    secrets,
    randomBytes,
  }: Pick<StoreDeps, 'secrets' | 'randomBytes'> & { readonly outbox: Pick<OutboxStore, 'add'> }) {
    this.#outbox = outbox
    this.#sealed = new Sealed(secrets, randomBytes, 'apple-refresh-token')
  }

  /** A refresh token as `SocialMethod` keeps it. */
  seal(refreshToken: string): Uint8Array {
    return this.#sealed.seal(Buffer.from(refreshToken))
  }

  /** Has Apple forget the consent behind a method, if it is one of Apple's with a token. */
  revoke(change: Change, { sealedRefreshToken, clientId }: SocialMethod): void {
    if (sealedRefreshToken === undefined || clientId === undefined) return
    const plain = this.#sealed.open(sealedRefreshToken)
    // Sealed by another secret: the operator has changed it, and Apple keeps a consent that nobody uses.
    if (plain === undefined) return
    const refreshToken = Buffer.from(plain).toString('utf8')
    const expiresAtMs = change.nowMs + REVOKED_WITHIN_MS
    this.#outbox.add(change, { channel: 'apple', clientId, refreshToken, expiresAtMs })
  }
}

/** Apple may be out of reach for long, and must be told nevertheless. */
const REVOKED_WITHIN_MS = 30 * 86_400_000
