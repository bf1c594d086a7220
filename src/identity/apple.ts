/**
 * Sign in with Apple (contract 2.7): verifies identity tokens, exchanges authorization codes, revokes refresh tokens.
 * The caller checks that token and code belong to one person.
 */

import { createHash } from 'node:crypto'
import { assert, SignalError } from '../errors.ts'
import { AppleClientSecrets, type AppleKey } from './apple-client-secret.ts'
import { IdentityProvider, type ProvenIdentity } from './identity-token.ts'
import { askProvider, membersOf, type ProviderDeps, REQUEST_TIMEOUT_MS } from './provider-request.ts'

export interface AppleOptions extends Partial<AppleKey> {
  /** Bundle ids and services ids. */
  readonly clientIds: readonly string[]
  /** These four are Apple's own when left out; another issuer's keys are found by discovery. */
  readonly issuer?: string
  readonly jwksUri?: string
  readonly tokenUrl?: string
  readonly revokeUrl?: string
  /** For each request. */
  readonly timeoutMs?: number
}

/** Apple's answer to an authorization code. */
export interface AppleGrant {
  readonly subject: string
  /** Revokes the sign-in when the account is deleted. A secret. */
  readonly refreshToken?: string
}

export class AppleSignIn {
  readonly #provider: IdentityProvider
  readonly #clientIds: readonly string[]
  readonly #secrets: AppleClientSecrets | undefined
  readonly #deps: ProviderDeps
  readonly #tokenUrl: string
  readonly #revokeUrl: string
  readonly #timeoutMs: number

  /** Throws when the key is incomplete or not one that Apple issues. */
  constructor(options: AppleOptions, deps: ProviderDeps) {
    const { clientIds, issuer = ISSUER, jwksUri = issuer === ISSUER ? JWKS_URI : undefined } = options
    this.#timeoutMs = options.timeoutMs ?? REQUEST_TIMEOUT_MS
    const keys = jwksUri === undefined ? {} : { jwksUri }
    const provider = { name: 'apple', clientIds, issuer, timeoutMs: this.#timeoutMs, ...keys }
    this.#provider = new IdentityProvider(provider, deps)
    this.#clientIds = clientIds
    const key = completeKey(options)
    this.#secrets = key === undefined ? undefined : new AppleClientSecrets(key, issuer, () => deps.nowMs())
    this.#deps = deps
    this.#tokenUrl = options.tokenUrl ?? `${issuer}/auth/token`
    this.#revokeUrl = options.revokeUrl ?? `${issuer}/auth/revoke`
  }

  /** Whether codes can be exchanged and tokens revoked, which takes a key of the developer team. */
  get canExchange(): boolean {
    return this.#secrets !== undefined
  }

  /**
   * Returns the facts that an identity token proves. The app gave Apple only the hexadecimal SHA-256 of `rawNonce`,
   * and gave us the nonce itself, so a thief of the token can't use it. Rejects as `IdentityProvider.verify`.
   */
  verify(identityToken: string, { rawNonce }: { readonly rawNonce?: string } = {}): Promise<ProvenIdentity> {
    if (rawNonce === undefined) return this.#provider.verify(identityToken)
    return this.#provider.verify(identityToken, {
      nonce: createHash('sha256').update(rawNonce).digest('hex'),
    })
  }

  /**
   * Exchanges the authorization code of a native app, which Apple allows once within five minutes. `clientId` is the
   * app it was issued to: the audience of the identity token beside it. Rejects with `AUTH_CODE_INVALID` when the
   * code is not, or no longer, good; `PROVIDER_TOKEN_INVALID` when Apple's answer is for another app;
   * `PROVIDER_UNAVAILABLE` when Apple gives no usable answer.
   */
  async exchange(code: string, clientId: string): Promise<AppleGrant> {
    assert(this.#clientIds.includes(clientId), 'a code is exchanged for an app of ours')
    const form = { grant_type: 'authorization_code', code }
    const { status, json } = await this.#post(this.#tokenUrl, clientId, form).catch(error => {
      throw error instanceof SignalError ? unavailable(error) : error
    })
    const { error, id_token: idToken, refresh_token: refreshToken } = membersOf(json)
    if (error === 'invalid_grant')
      throw new SignalError(
        'AUTH_CODE_INVALID',
        'the authorization code is used, expired or not for this app',
      )
    if (status !== 200 || typeof idToken !== 'string')
      throw unavailable(new Error(`${this.#tokenUrl} answers ${status}${named(error)}`))
    const { subject, audience } = await this.#provider.verifyGranted(idToken)
    if (audience !== clientId)
      throw new SignalError('PROVIDER_TOKEN_INVALID', 'the authorization code is of another app')
    const hasRefreshToken = typeof refreshToken === 'string' && refreshToken !== ''
    return hasRefreshToken ? { subject, refreshToken } : { subject }
  }

  /**
   * Ends the sign-in that a refresh token stands for. `revoked`: it has ended, now or before; `retry`: Apple could
   * not be asked; `refused`: Apple will not do it for our key, and asking again would not help. Rejects for none of
   * them.
   */
  async revoke(refreshToken: string, clientId: string): Promise<'revoked' | 'retry' | 'refused'> {
    const form = { token: refreshToken, token_type_hint: 'refresh_token' }
    const status = await this.#post(this.#revokeUrl, clientId, form).then(
      answer => answer.status,
      error => statusOfFailure(error),
    )
    if (status === 200) return 'revoked'
    return status >= 500 || status === 429 || status === 408 ? 'retry' : 'refused'
  }

  async #post(url: string, clientId: string, members: Readonly<Record<string, string>>) {
    assert(this.#secrets !== undefined, 'Sign in with Apple has no key to ask Apple with')
    const form = { client_id: clientId, client_secret: await this.#secrets.secretOf(clientId), ...members }
    const signal = AbortSignal.timeout(this.#timeoutMs)
    return askProvider(url, { method: 'POST', form, signal }, this.#deps.fetch)
  }
}

function completeKey({ teamId, keyId, privateKey }: AppleOptions): AppleKey | undefined {
  if (teamId === undefined && keyId === undefined && privateKey === undefined) return undefined
  if (teamId === undefined || keyId === undefined || privateKey === undefined)
    throw new Error('Sign in with Apple needs team id, key id and private key together')
  return { teamId, keyId, privateKey }
}

/** Users need not know which host the server asks; the cause has it. */
function unavailable(cause: Error): SignalError {
  return new SignalError('PROVIDER_UNAVAILABLE', 'Apple did not exchange the authorization code', { cause })
}

/** An answer that never came counts as the one a gateway would have given; a fault of ours is none. */
function statusOfFailure(error: unknown): number {
  if (error instanceof SignalError && error.code === 'PROVIDER_UNAVAILABLE') return 504
  throw error
}

/** The error code of RFC 6749, section 5.2, for our log. */
function named(error: unknown): string {
  return typeof error === 'string' && /^[a-z_]{1,40}$/.test(error) ? ` ${error}` : ''
}

const ISSUER = 'https://appleid.apple.com'
/** Apple's discovery document has named another issuer than its tokens do (supabase/auth#2051), so it is not asked. */
const JWKS_URI = 'https://appleid.apple.com/auth/keys'
