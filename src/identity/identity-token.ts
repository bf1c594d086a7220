/**
 * ID tokens of OpenID Connect providers, verified (contract 2.6; OpenID Connect Core 1.0, section 3.1.3.7; RFC 8725).
 * Google and any other issuer are configuration. Whether a token was used before, and whose account it opens, is
 * decided elsewhere.
 */

import { createHash, timingSafeEqual } from 'node:crypto'
import type { JWTPayload } from 'jose'
import { JOSEError, JWTClaimValidationFailed, JWTExpired } from 'jose/errors'
import { assert, SignalError } from '../errors.ts'
import { claimedIssuer, isTemplate } from './issuer.ts'
import { ProviderKeys, type ProviderKeysOptions } from './provider-keys.ts'
import type { ProviderDeps } from './provider-request.ts'

export interface ProviderOptions extends ProviderKeysOptions {
  /** How requests name the provider, such as `google`. */
  readonly name: string
  /** Our apps' ids at the provider; a token must be meant for one of them. */
  readonly clientIds: readonly string[]
}

/** An identity that a provider's signature proves. */
export interface ProvenIdentity {
  readonly provider: string
  /** Its own of the tenant where settings name a template, so that no two tenants share an identity. */
  readonly issuer: string
  /** The account at the issuer: 1 to 255 printable ASCII characters, never given to another account. */
  readonly subject: string
  /** The one of our client ids that the token is meant for. */
  readonly audience: string
  /** As in the token, not normalized. */
  readonly email?: string
  readonly isEmailVerified: boolean
  /** A forwarding address made for us, as Apple's relay does. */
  readonly isPrivateEmail: boolean
  readonly name?: string
  readonly issuedAtMs: number
  /** From this time on no verification accepts the token: its `exp` and the leeway. */
  readonly expiresAtMs: number
  /**
   * SHA-256 of the signed part, in hexadecimal, to recognise a replay. The whole text would not do, since other
   * signatures over the same claims can be made from an ES256 signature, and written in more than one way.
   */
  readonly tokenDigest: string
}

export class IdentityProvider {
  readonly name: string
  readonly #options: ProviderOptions
  readonly #deps: ProviderDeps
  readonly #keys: ProviderKeys

  constructor(options: ProviderOptions, deps: ProviderDeps) {
    assert(options.clientIds.length > 0, 'a provider without client ids would accept nobody')
    assert(!options.clientIds.includes(''), 'a client id is empty')
    this.name = options.name
    this.#options = options
    this.#deps = deps
    this.#keys = new ProviderKeys(options, deps)
  }

  /**
   * What an ID token that a client hands over proves. `nonce` is what the token must repeat. A token that has a nonce is
   * refused without it: the client that asked for the token knows the nonce, a thief who sees only the token does not.
   * Rejects with `PROVIDER_TOKEN_INVALID` for whatever is wrong with the token, `PROVIDER_UNAVAILABLE` when the
   * provider's keys can not be had.
   */
  async verify(idToken: string, { nonce }: { readonly nonce?: string } = {}): Promise<ProvenIdentity> {
    const claims = await this.#signedClaims(idToken)
    const fault = nonceFault(nonce, claims.nonce)
    if (fault !== undefined) throw invalid(fault)
    return this.#identityOf(claims, idToken)
  }

  /**
   * What an ID token proves that the provider itself gave us in exchange for a code. The code binds it to the request, so
   * its nonce is not compared. Rejects as `verify`.
   */
  async verifyGranted(idToken: string): Promise<ProvenIdentity> {
    return this.#identityOf(await this.#signedClaims(idToken), idToken)
  }

  #identityOf(claims: JWTPayload, idToken: string): ProvenIdentity {
    const expiresAtMs = this.#acceptedUntilMs(claims)
    const person = personOf(claims)
    return {
      provider: this.name,
      issuer: this.#issuerOf(claims),
      subject: subjectOf(claims),
      audience: this.#audienceOf(claims),
      ...person,
      // Administrators of any tenant choose its users' addresses.
      isEmailVerified: person.isEmailVerified && !isTemplate(this.#options.issuer),
      issuedAtMs: Math.floor((claims.iat ?? 0) * 1000),
      expiresAtMs,
      tokenDigest: sha256(idToken.slice(0, idToken.lastIndexOf('.'))).toString('hex'),
    }
  }

  /** The claims, once signature, issuer, audience and expiry hold. */
  async #signedClaims(idToken: string): Promise<JWTPayload> {
    if (idToken.length > TOKEN_CHARACTERS_MAX)
      throw invalid(`it is longer than ${TOKEN_CHARACTERS_MAX} characters`)
    const { jwtVerify } = await import('jose/jwt/verify')
    try {
      const find = this.#keys.find.bind(this.#keys)
      const { payload, protectedHeader } = await jwtVerify(idToken, find, {
        algorithms: ['RS256', 'ES256'],
        audience: [...this.#options.clientIds],
        requiredClaims: ['iss', 'aud', 'sub', 'exp', 'iat'],
        clockTolerance: LEEWAY_SECONDS,
        currentDate: new Date(this.#deps.nowMs()),
      })
      // An access token of the same issuer may carry the same claims; its type tells it apart (RFC 9068, section 2.1).
      if (!isIdTokenType(protectedHeader.typ)) throw invalid('it is a token of another type')
      this.#assertKeyOfIssuer(protectedHeader.kid, payload)
      return payload
    } catch (error) {
      throw error instanceof SignalError ? error : invalid(faultOf(error))
    }
  }

  #issuerOf(claims: JWTPayload): string {
    const issuer = claimedIssuer(this.#options.issuer, claims)
    if (issuer === undefined) throw invalid('its iss is missing or another one')
    return issuer
  }

  /** Microsoft's keys say whose tokens each may sign: all tenants' by the template, or one tenant's. */
  #assertKeyOfIssuer(keyId: string | undefined, claims: JWTPayload): void {
    const issuer = this.#issuerOf(claims)
    if (!isTemplate(this.#options.issuer)) return
    for (const keyIssuer of this.#keys.issuersOf(keyId)) {
      if (claimedIssuer(keyIssuer, claims) !== issuer) throw invalid('its key signs for another issuer')
    }
  }

  #acceptedUntilMs({ exp, iat }: JWTPayload): number {
    const nowSeconds = Math.floor(this.#deps.nowMs() / 1000)
    if (iat === undefined || iat > nowSeconds + LEEWAY_SECONDS) throw invalid('it is issued in the future')
    const untilMs = exp === undefined ? Number.NaN : (Math.ceil(exp) + LEEWAY_SECONDS) * 1000
    if (!Number.isSafeInteger(untilMs)) throw invalid('its exp is not a time')
    return untilMs
  }

  #audienceOf({ aud, azp }: JWTPayload): string {
    const { clientIds } = this.#options
    const audience = (Array.isArray(aud) ? aud : [aud]).find(each => clientIds.includes(each ?? ''))
    if (audience === undefined) throw invalid('its aud is none of ours')
    // Section 3.1.3.7, step 5: the party that the token was issued to.
    if (azp !== undefined && !(typeof azp === 'string' && clientIds.includes(azp)))
      throw invalid('its azp is none of ours')
    return audience
  }
}

/** Section 2: at most 255 ASCII characters. Other characters would give one subject several spellings. */
function subjectOf({ sub }: JWTPayload): string {
  if (typeof sub !== 'string' || !/^[\x20-\x7e]{1,255}$/.test(sub))
    throw invalid('its sub is not 1 to 255 ASCII characters')
  return sub
}

function personOf(
  claims: JWTPayload,
): Pick<ProvenIdentity, 'email' | 'isEmailVerified' | 'isPrivateEmail' | 'name'> {
  const email = textOf(claims.email)
  const name = textOf(claims.name)
  return {
    ...(email === undefined ? {} : { email }),
    isEmailVerified: email !== undefined && isTrue(claims.email_verified),
    isPrivateEmail: email !== undefined && isTrue(claims.is_private_email),
    ...(name === undefined ? {} : { name }),
  }
}

function textOf(claim: unknown): string | undefined {
  return typeof claim === 'string' && claim !== '' ? claim : undefined
}

/** Apple writes either type. */
function isTrue(claim: unknown): boolean {
  return claim === true || claim === 'true'
}

function isIdTokenType(type: string | undefined): boolean {
  return type === undefined || /^(application\/)?jwt$/i.test(type)
}

/** The fault in a token's nonce, if any: token and request name the same one, or neither has one. */
function nonceFault(sent: string | undefined, claim: unknown): string | undefined {
  if (sent === undefined) return claim === undefined ? undefined : 'it has a nonce, and the request has none'
  return isSameNonce(sent, claim) ? undefined : 'its nonce is another one'
}

/** Compares digests, so that neither length nor content shows in the time it takes. */
function isSameNonce(expected: string, claim: unknown): boolean {
  return typeof claim === 'string' && timingSafeEqual(sha256(expected), sha256(claim))
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

/** No cause is kept: the errors of jose carry the claims. */
function invalid(fault: string): SignalError {
  return new SignalError('PROVIDER_TOKEN_INVALID', `the identity token is not accepted: ${fault}`)
}

function faultOf(error: unknown): string {
  if (error instanceof JWTExpired) return 'it has expired'
  if (error instanceof JWTClaimValidationFailed) return `its ${error.claim} is missing or another one`
  const code = error instanceof JOSEError ? error.code : ''
  return FAULTS[code] ?? 'it can not be read or its key can not be used'
}

const FAULTS: Readonly<Record<string, string>> = {
  ERR_JOSE_ALG_NOT_ALLOWED: 'it is signed with neither RS256 nor ES256',
  ERR_JWKS_NO_MATCHING_KEY: 'the provider has no such key',
  ERR_JWKS_MULTIPLE_MATCHING_KEYS: 'it does not say which key signed it',
  ERR_JWS_SIGNATURE_VERIFICATION_FAILED: 'it is not signed by the provider',
}

/** The longest tokens seen, with groups and pictures in them, have 4 kB. */
const TOKEN_CHARACTERS_MAX = 8 * 1024
/** How far the provider's clock and ours may be apart (contract 2.6). */
const LEEWAY_SECONDS = 60
