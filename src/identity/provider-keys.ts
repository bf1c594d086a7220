/**
 * The public keys an identity provider signs with: its JWK Set (RFC 7517), fetched when a token needs it and kept.
 *
 * Choice: not `createRemoteJWKSet` of jose. It forgets an old set before it has a new one, so sign-in would fail
 * while the provider is down; it pauses only after fetches that succeeded; and it reads the process's clock.
 */

import type {
  CompactJWSHeaderParameters,
  CryptoKey,
  FlattenedJWSInput,
  JSONWebKeySet,
  LocalJWKSet,
} from 'jose'
import { JWKSNoMatchingKey } from 'jose/errors'
import { SignalError } from '../errors.ts'
import { discoveryUrlOf, isSameIssuer } from './issuer.ts'
import { askProvider, membersOf, type ProviderDeps, REQUEST_TIMEOUT_MS } from './provider-request.ts'

export interface ProviderKeysOptions {
  /** See `isIssuer`. */
  readonly issuer: string
  /** Where the key set is; left out: what the issuer's discovery document says (OpenID Connect Discovery 1.0). */
  readonly jwksUri?: string
  /** For the discovery document and the key set together. */
  readonly timeoutMs?: number
}

export class ProviderKeys {
  readonly #options: ProviderKeysOptions
  readonly #deps: ProviderDeps
  /** The last good set. It stays in use until there is a newer one, however long that takes. */
  #keys: LocalJWKSet | undefined
  /** The set behind it. */
  #set: JSONWebKeySet = { keys: [] }
  #fetchedAtMs = Number.NEGATIVE_INFINITY
  #triedAtMs = Number.NEGATIVE_INFINITY
  #soughtAtMs = Number.NEGATIVE_INFINITY
  #fetching: Promise<void> | undefined
  /** Why the last fetch brought no keys, undefined when it did. */
  #failure: unknown

  constructor(options: ProviderKeysOptions, deps: ProviderDeps) {
    this.#options = options
    this.#deps = deps
  }

  /**
   * The key that a token's header names. Rejects with `PROVIDER_UNAVAILABLE` when it could not be looked for, with an
   * error of jose when the provider has no such key or one that is not fit for signatures.
   */
  async find(header: CompactJWSHeaderParameters, token: FlattenedJWSInput): Promise<CryptoKey> {
    const before = this.#keys
    const keys = await this.#current()
    try {
      return await keys(header, token)
    } catch (error) {
      if (!(error instanceof JWKSNoMatchingKey)) throw error
      // A set that was fetched for this very token need not be fetched again.
      const newer = keys === before ? await this.#newerThan(keys) : keys
      if (newer !== keys) return newer(header, token)
      throw this.#failure === undefined ? error : this.#unavailable()
    }
  }

  /** The issuers that the published keys of this name, or all keys without one, say that they sign for. */
  issuersOf(keyId: string | undefined): readonly string[] {
    return this.#set.keys
      .filter(({ kid }) => keyId === undefined || kid === keyId)
      .map(key => membersOf(key).issuer)
      .filter(issuer => typeof issuer === 'string')
  }

  /** The set, fetched again when it is old; an old one when the provider does not answer. */
  async #current(): Promise<LocalJWKSet> {
    const isFresh = this.#keys !== undefined && !this.#hasPassed(FRESH_MS, this.#fetchedAtMs)
    const mayTry = this.#keys === undefined || this.#hasPassed(PAUSE_MS, this.#triedAtMs)
    if (!isFresh && (mayTry || this.#fetching !== undefined)) await this.#fetch()
    if (this.#keys === undefined) throw this.#unavailable()
    return this.#keys
  }

  /**
   * The set after looking for a key that `keys` lacks; `keys` itself when nothing newer was had, or when the last
   * such look was too short ago. So made-up key ids can't make us ask the provider more often.
   */
  async #newerThan(keys: LocalJWKSet): Promise<LocalJWKSet> {
    if (this.#keys === keys && this.#fetching === undefined) {
      const isProviderDown = this.#failure !== undefined && !this.#hasPassed(PAUSE_MS, this.#triedAtMs)
      if (isProviderDown || !this.#hasPassed(PAUSE_MS, this.#soughtAtMs)) return keys
      this.#soughtAtMs = this.#deps.nowMs()
    }
    if (this.#keys === keys) await this.#fetch()
    return this.#keys ?? keys
  }

  /** Fetches the set, or waits for the fetch under way. Never rejects. */
  #fetch(): Promise<void> {
    if (this.#fetching !== undefined) return this.#fetching
    this.#triedAtMs = this.#deps.nowMs()
    this.#fetching = this.#load()
      .then(
        ({ set, keys }) => {
          this.#set = set
          this.#keys = keys
          this.#fetchedAtMs = this.#deps.nowMs()
          this.#failure = undefined
        },
        error => {
          this.#failure = error
        },
      )
      .finally(() => {
        this.#fetching = undefined
      })
    return this.#fetching
  }

  async #load(): Promise<{ readonly set: JSONWebKeySet; readonly keys: LocalJWKSet }> {
    const signal = AbortSignal.timeout(this.#options.timeoutMs ?? REQUEST_TIMEOUT_MS)
    const url = this.#options.jwksUri ?? (await this.#discover(signal))
    const set = await this.#get(url, signal)
    if (!isKeySet(set)) throw new SignalError('PROVIDER_UNAVAILABLE', `${url} is not a set of public keys`)
    const { createLocalJWKSet } = await import('jose/jwks/local')
    return { set, keys: createLocalJWKSet(set) }
  }

  /** The `jwks_uri` of the issuer's discovery document, which must be the issuer's own (Discovery 1.0, section 4.3). */
  async #discover(signal: AbortSignal): Promise<string> {
    const { issuer } = this.#options
    const url = discoveryUrlOf(issuer)
    const { issuer: named, jwks_uri: jwksUri } = membersOf(await this.#get(url, signal))
    if (!isSameIssuer(named, issuer))
      throw new SignalError('PROVIDER_UNAVAILABLE', `${url} is of another issuer`)
    if (typeof jwksUri !== 'string' || !isAsSafe(jwksUri, url))
      throw new SignalError('PROVIDER_UNAVAILABLE', `${url} names no usable jwks_uri`)
    return jwksUri
  }

  async #get(url: string, signal: AbortSignal): Promise<unknown> {
    const { status, json } = await askProvider(url, { method: 'GET', signal }, this.#deps.fetch)
    if (status === 200) return json
    throw new SignalError('PROVIDER_UNAVAILABLE', `${url} answers ${status}`)
  }

  #unavailable(): SignalError {
    const message = `the keys of ${this.#options.issuer} can not be fetched`
    return new SignalError('PROVIDER_UNAVAILABLE', message, { cause: this.#failure })
  }

  /** Whether `ms` have passed since a time; a clock that was set back counts as having passed it. */
  #hasPassed(ms: number, sinceMs: number): boolean {
    const elapsedMs = this.#deps.nowMs() - sinceMs
    return elapsedMs >= ms || elapsedMs < 0
  }
}

/** A set without a single key to verify with is no answer either: the keys from before serve better. */
function isKeySet(value: unknown): value is JSONWebKeySet {
  const { keys } = membersOf(value)
  return Array.isArray(keys) && keys.some(key => ['RSA', 'EC'].includes(String(membersOf(key).kty)))
}

/** Keys come over TLS, unless the document that names them does not, as of a stand-in on this machine. */
function isAsSafe(url: string, named: string): boolean {
  return url.startsWith('https://') || (named.startsWith('http://') && url.startsWith('http://'))
}

/** How long a key that the provider has withdrawn may still be accepted while the provider can be reached. */
const FRESH_MS = 10 * 60_000
/** Between two looks for an unknown key, and between two tries to replace an old set (contract 2.6). */
const PAUSE_MS = 30_000
