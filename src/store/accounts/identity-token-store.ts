/**
 * Identity tokens that signed somebody in, known by their digest until no verification accepts them any more: a token
 * that leaks from a log or a proxy signs in nobody (contract 2.6). For a request that is repeated because its reply was
 * lost, what came of it is kept with the token, sealed (contract 2.7).
 */

import { decode, encode } from 'msgpackr'
import { EXPIRY, type Expiries } from '../engine/expiries.ts'
import { textKey } from '../engine/keys.ts'
import type { Change, View } from '../engine/store.ts'
import type { StoreDeps } from '../tables/deps.ts'
import { Sealed } from '../tables/sealed.ts'
import { IDENTITY_TOKENS } from './account-tables.ts'

/** One use of a token: `attempt` is the request's `Idempotency-Key`, undefined for a request that is not repeated. */
export interface TokenUse {
  /** Hexadecimal, as `ProvenIdentity` has it. */
  readonly tokenDigest: string
  readonly attempt: string | undefined
}

export class IdentityTokenStore {
  readonly #expiries: Expiries
  readonly #outcomes: Sealed

  constructor({ expiries, secrets, randomBytes }: Pick<StoreDeps, 'expiries' | 'secrets' | 'randomBytes'>) {
    this.#expiries = expiries
    this.#outcomes = new Sealed(secrets, randomBytes, 'identity-token')
    expiries.define(EXPIRY.identityToken, (change, key) => void change.remove(IDENTITY_TOKENS, key))
  }

  /** Whether the token was used before; with what came of it, when this is the same attempt again. */
  find(view: View, { tokenDigest, attempt }: TokenUse): { readonly outcome?: unknown } | undefined {
    const row = view.get(IDENTITY_TOKENS, Buffer.from(tokenDigest, 'hex'))
    if (row === undefined) return undefined
    if (row.sealedOutcome === undefined || row.attempt === undefined || attempt === undefined) return {}
    if (!Buffer.from(row.attempt).equals(textKey(attempt))) return {}
    const plain = this.#outcomes.open(row.sealedOutcome)
    return plain === undefined ? {} : { outcome: decode(plain) }
  }

  /**
   * The token is used, and `outcome`, a plain value, is what its use came to. `expiresAtMs` is when
   * the token is no longer accepted.
   */
  keep(change: Change, { tokenDigest, attempt }: TokenUse, outcome: unknown, expiresAtMs: number): void {
    const key = Buffer.from(tokenDigest, 'hex')
    const sealed =
      attempt === undefined
        ? {}
        : { attempt: textKey(attempt), sealedOutcome: this.#outcomes.seal(encode(outcome)) }
    change.put(IDENTITY_TOKENS, key, sealed)
    this.#expiries.add(change, EXPIRY.identityToken, expiresAtMs + UNDER_WAY_MS, key)
  }
}

/** A token that was accepted in its last moment is still on its way here. */
const UNDER_WAY_MS = 60_000
