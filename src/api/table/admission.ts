/**
 * Who may ask how often, before a request is read any further (contract 8). One with a genuine token counts for the token's
 * session, and for its address only in a bucket that the signed-in share (`domain/signed-in-buckets.ts`); any other counts for
 * its address.
 *
 * A token is genuine by its MAC alone. Whether it is good shows later: one that was refused is as good as none from then on, so
 * an old token that is sent again and again uses up the rate of strangers. The first refusal is always told, since
 * the app of a user whose token has expired has to hear of it to refresh.
 */

import { networksOfUnknown } from '../../domain/network.ts'
import { NetworkBuckets } from '../../domain/network-buckets.ts'
import type { SignalError } from '../../errors.ts'
import { RATE_KEYS_MAX } from '../../limits.ts'
import { sessionName } from '../../store/accounts/session-store.ts'
import type { AdmissionScope, RequestAdmission } from '../../transport/route.ts'
import { type Authentication, refusalOfToken } from '../accounts/authentication.ts'
import { type RequestRates, rateLimited } from './request-rates.ts'

type Tokens = Pick<Authentication, 'isGood' | 'tokenOf' | 'refreshTokenOf'>

export class Admission implements RequestAdmission {
  readonly #rates: RequestRates
  readonly #tokens: Tokens
  /** Counts WebSockets until their CONNECT, which shows whether their user is signed in. */
  readonly #handshakes: NetworkBuckets

  constructor(rates: RequestRates, tokens: Tokens) {
    this.#rates = rates
    this.#tokens = tokens
    this.#handshakes = new NetworkBuckets(rates.limits.request, RATE_KEYS_MAX)
  }

  admit(network: string, scope: AdmissionScope, authorization: string): void {
    if (authorization === '') return this.#rates.takeByNetwork(scope, network)
    const token = this.#tokens.tokenOf(authorization)
    if (token !== undefined && !token.isRefused) {
      return this.#rates.takeSignedIn(scope, OWN[scope], token.sessionName, network)
    }
    this.#rates.takeByNetwork(scope, network)
    // Now, so that its MAC is not computed again.
    if (token === undefined) throw refusalOfToken('TOKEN_INVALID')
  }

  isGood(authorization: string): boolean {
    return authorization !== '' && this.#tokens.isGood(authorization)
  }

  admitRefresh(network: string, body: Uint8Array): void {
    const [text] =
      REFRESH_TOKEN_FORM.exec(Buffer.from(body.buffer, body.byteOffset, body.length).toString('latin1')) ?? []
    const token = text === undefined ? undefined : this.#tokens.refreshTokenOf(text)
    if (token === undefined) return this.#rates.takeByNetwork('request', network)
    this.#rates.takeSignedIn('request', OWN.request, sessionName(token.sessionId), network)
  }

  onTokenRefused(network: string, authorization: string): void {
    this.#isNewlyRefused(network, authorization)
  }

  admitSocket(network: string): SignalError | undefined {
    const missingMs = this.#handshakes.take(networksOfUnknown(network), this.#rates.monotonicMs())
    return missingMs > 0 ? rateLimited(missingMs, 'address', this.#rates.limits.request) : undefined
  }

  /**
   * A CONNECT with a good token. Returns how many milliseconds its session has to wait; 0 when it is let in. The handshake
   * counts for the address no more; one over plain TCP never did, and gives back to a full bucket.
   */
  connected(network: string, session: string): number {
    this.#handshakes.giveBack(networksOfUnknown(network), this.#rates.monotonicMs())
    return this.#rates.shortageOf('request', OWN.request, session, network)?.missingMs ?? 0
  }

  /** A CONNECT with a bad token. Returns how many milliseconds to wait; 0 when it may hear why. */
  failedConnect(network: string, authorization: string): number {
    const missingMs = this.#rates.missingByNetwork('failed-connect', network)
    return this.#isNewlyRefused(network, authorization) ? 0 : missingMs
  }

  /** Forgets counts of the past. */
  sweep(): void {
    this.#rates.sweep()
    this.#handshakes.sweep(this.#rates.monotonicMs())
  }

  /** Counts the refusal for the address, once: later ones are counted when they come. */
  #isNewlyRefused(network: string, authorization: string): boolean {
    const token = this.#tokens.tokenOf(authorization)
    if (token === undefined || token.isRefused) return false
    token.isRefused = true
    this.#rates.missingByNetwork('request', network)
    return true
  }
}

/** The rate of a session by itself. */
const OWN = { request: 'authenticated', lookup: 'lookup', 'log-files': 'log-files' } as const
const REFRESH_TOKEN_FORM = /krt_[\w-]+/
