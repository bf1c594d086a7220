/**
 * What an app hands over of a person whom an identity provider has signed in, proven: the ID token first, then Apple's
 * authorization code, which must be of the same person (contract 2.6, 2.7). Whose account it opens is decided elsewhere.
 */

import type { SocialIdentity } from '../../domain/accounts/challenge.ts'
import { SignalError } from '../../errors.ts'
import type { AppleConsents } from '../../store/accounts/apple-consents.ts'

/** What a provider's signature vouches for; `IdentityProvider.verify` of `src/identity` returns it. */
export interface VerifiedToken {
  readonly provider: string
  readonly issuer: string
  readonly subject: string
  /** Which of our apps the token is for. */
  readonly audience: string
  readonly email?: string
  readonly isEmailVerified: boolean
  readonly name?: string
  readonly issuedAtMs: number
  /** When no verification accepts the token any more. */
  readonly expiresAtMs: number
  /** Hexadecimal; the same for every way to write the token. */
  readonly tokenDigest: string
}

export interface Provider {
  verify(idToken: string, bound: { readonly nonce?: string }): Promise<VerifiedToken>
}

export interface Apple {
  /** Whether there is a key to exchange codes with. */
  readonly canExchange: boolean
  verify(identityToken: string, bound: { readonly rawNonce?: string }): Promise<VerifiedToken>
  exchange(
    code: string,
    clientId: string,
  ): Promise<{ readonly subject: string; readonly refreshToken?: string }>
}

/** A request's claim of a social identity. */
export interface SocialClaim {
  readonly provider?: string | undefined
  readonly idToken?: string | undefined
  readonly nonce?: string | undefined
  readonly authorizationCode?: string | undefined
}

export class SocialIdentities {
  /** By the name that requests give. */
  readonly #providers: ReadonlyMap<string, Provider>
  readonly #apple: Apple | undefined
  readonly #appleConsents: Pick<AppleConsents, 'seal'>
  readonly #isDevelopment: boolean

  constructor(
    providers: ReadonlyMap<string, Provider>,
    apple: Apple | undefined,
    appleConsents: Pick<AppleConsents, 'seal'>,
    isDevelopment: boolean,
  ) {
    this.#providers = providers
    this.#apple = apple
    this.#appleConsents = appleConsents
    this.#isDevelopment = isDevelopment
  }

  /**
   * What the token proves. Rejects with `PROVIDER_TOKEN_REQUIRED` when there is none, `PROVIDER_TOKEN_INVALID` or
   * `PROVIDER_UNAVAILABLE`.
   */
  async verify({ provider: name, idToken, nonce }: SocialClaim): Promise<VerifiedToken> {
    if (!name || !idToken) {
      throw new SignalError(
        'PROVIDER_TOKEN_REQUIRED',
        'name the provider and send the ID token that it signed',
      )
    }
    if (name === APPLE && this.#apple !== undefined) {
      return this.#apple.verify(idToken, nonce === undefined ? {} : { rawNonce: nonce })
    }
    const provider = this.#providers.get(name)
    if (provider === undefined) {
      throw new SignalError('PROVIDER_TOKEN_INVALID', 'tokens of this provider are not accepted')
    }
    return provider.verify(idToken, nonce === undefined ? {} : { nonce })
  }

  /**
   * The identity behind a verified token, to be kept. Of Apple it takes the authorization code too: the refresh token
   * had for it is what account deletion revokes. Rejects with `AUTH_CODE_INVALID` when the code is missing, used or
   * of somebody else, `PROVIDER_UNAVAILABLE` when Apple can't be asked.
   */
  async complete(token: VerifiedToken, { authorizationCode }: SocialClaim): Promise<SocialIdentity> {
    const { provider, issuer, subject, email, audience } = token
    const named = email === undefined ? {} : { shown: email }
    const identity = { kind: 'social', provider, issuer, subject, ...named } as const
    if (provider !== APPLE || this.#apple === undefined) return identity
    const refreshToken = await this.#exchange(this.#apple, token, authorizationCode)
    if (refreshToken === undefined) return identity
    return {
      ...identity,
      clientId: audience,
      sealedRefreshToken: this.#appleConsents.seal(refreshToken),
    }
  }

  async #exchange(
    apple: Apple,
    { audience, subject }: VerifiedToken,
    code: string | undefined,
  ): Promise<string | undefined> {
    if (!apple.canExchange) {
      if (this.#isDevelopment) return undefined
      throw new SignalError('PROVIDER_UNAVAILABLE', 'the server has no key to exchange codes of Apple with')
    }
    if (!code)
      throw new SignalError('AUTH_CODE_INVALID', 'send the authorization code beside the token of Apple')
    const grant = await apple.exchange(code, audience)
    if (grant.subject !== subject) {
      throw new SignalError('AUTH_CODE_INVALID', 'the authorization code is of another person')
    }
    return grant.refreshToken
  }
}

/** The refusal of a token that has done what a token does once. */
export function tokenUsed(): SignalError {
  return new SignalError('PROVIDER_TOKEN_INVALID', 'the identity token was used before')
}

/** How requests name Sign in with Apple, whose nonces and codes are a matter of their own. */
export const APPLE = 'apple'
