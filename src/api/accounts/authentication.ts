/**
 * Who asks: access tokens to their sessions (contract 2.3). It holds no session itself, so a session that is revoked
 * is refused at the next request.
 *
 * Departure from a plain check: tokens that were found genuine are remembered by the whole header, since their MAC takes
 * longer than the rest (`bench/token-check.ts`). Whether they are good is what their session says each time.
 */

import {
  lasts,
  type RevocationReason,
  refusalOfAccess,
  type Session,
  type TokenLifetimes,
} from '../../domain/accounts/session.ts'
import {
  type AccessToken,
  formatAccessToken,
  formatRefreshToken,
  parseAccessToken,
  parseRefreshToken,
  possessionChallenge,
  type RefreshToken,
} from '../../domain/accounts/token.ts'
import type { DeviceId, UserId } from '../../domain/ids.ts'
import type { Secrets } from '../../domain/secrets.ts'
import { type ErrorCode, SignalError } from '../../errors.ts'
import { TOKENS_KEPT_MAX } from '../../limits.ts'
import {
  type SessionStore,
  sessionIdOf,
  sessionIdText,
  sessionName,
} from '../../store/accounts/session-store.ts'
import { BoundedCache } from '../../store/engine/bounded-cache.ts'
import type { HttpRoute } from '../../transport/route.ts'

/** The session behind a request. */
export interface Requester {
  /** Its id, as `sessionIdOf` takes it. */
  readonly sessionName: string
  readonly session: Session
  readonly userId: UserId
  readonly deviceId?: DeviceId
}

/** A new or renewed pair, as login and refresh answer it. */
export interface TokenReply {
  readonly sessionId: string
  readonly accessToken: string
  readonly refreshToken: string
  readonly tokenType: 'Bearer'
  readonly expiresIn: number
  readonly refreshExpiresIn: number
  /** The session's, for `possession` of a signing key. */
  readonly challenge: string
}

export interface AuthenticationDeps {
  readonly secrets: Secrets
  readonly lifetimes: TokenLifetimes
  readonly nowMs: () => number
  /** Told of each request of a device. */
  readonly onSeen?: (userId: UserId, deviceId: DeviceId) => void
  readonly sessions: Pick<SessionStore, 'current'>
  /** Has it noted that a request has carried an access token of this generation. */
  readonly markPairUsed: (sessionId: Uint8Array, generation: number) => Promise<void>
}

/** A token that was found genuine, as it is remembered. */
interface GenuineToken extends Omit<AccessToken, 'sessionId'> {
  readonly sessionName: string
  /** Whether its session did not accept it lately, so that it counts as none (`table/admission.ts`). */
  isRefused: boolean
}

export class Authentication {
  readonly #deps: AuthenticationDeps
  /** By header. */
  readonly #genuine = new BoundedCache<string, GenuineToken>(TOKENS_KEPT_MAX)
  /** The last header of a token that is not genuine: its refusal is looked at by more than one part. */
  #lastFalse: string | undefined
  /** The last refresh token that was looked at, likewise. */
  #lastRefresh: { readonly text: string; readonly token: RefreshToken | undefined } | undefined

  constructor(deps: AuthenticationDeps) {
    this.#deps = deps
  }

  /**
   * The session of an `Authorization` header. Throws `TOKEN_MISSING`, `TOKEN_INVALID`, `TOKEN_EXPIRED` or
   * `SESSION_REVOKED`.
   */
  requesterOf(authorization: string): Requester {
    const token = this.#genuineToken(authorization)
    return this.#requesterBy(token, this.#deps.sessions.current(token.sessionName))
  }

  /** As `requesterOf`, but undefined where the token's session is over. */
  requesterUnlessOver(authorization: string): Requester | undefined {
    const token = this.#genuineToken(authorization)
    const session = this.#deps.sessions.current(token.sessionName)
    return lasts(session) ? this.#requesterBy(token, session) : undefined
  }

  /** Whether the session of an `Authorization` header accepts it now. Unlike `requesterOf` it notes no use of the token. */
  isGood(authorization: string): boolean {
    const token = this.tokenOf(authorization)
    if (token === undefined) return false
    const session = this.#deps.sessions.current(token.sessionName)
    if (refusalOfAccess(session, token, this.#deps.nowMs()) !== undefined) return false
    token.isRefused = false
    return true
  }

  /** The genuine token of an `Authorization` header, whatever its session says; undefined where there is none. */
  tokenOf(authorization: string): GenuineToken | undefined {
    const known = this.#genuine.get(authorization)
    if (known !== undefined) return known
    if (authorization === this.#lastFalse) return undefined
    const text = BEARER_FORM.test(authorization) ? authorization.slice(BEARER_CHARS).trim() : ''
    // Spellings with more blanks would take more room than their token: it is remembered by the usual one.
    const name = authorization.length === BEARER_CHARS + text.length ? authorization : `Bearer ${text}`
    const knownByName = this.#genuine.get(name)
    if (knownByName !== undefined) return knownByName
    const token = parseAccessToken(this.#deps.secrets.accessToken, text)
    if (token === undefined) {
      this.#lastFalse = authorization
      return undefined
    }
    const { sessionId, generation, expiresAtS } = token
    const genuine = { sessionName: sessionName(sessionId), generation, expiresAtS, isRefused: false }
    this.#genuine.set(name, genuine)
    return genuine
  }

  /** A genuine refresh token's content; undefined for anything else. */
  refreshTokenOf(text: string): RefreshToken | undefined {
    if (this.#lastRefresh?.text === text) return this.#lastRefresh.token
    const token = parseRefreshToken(this.#deps.secrets.refreshToken, text)
    this.#lastRefresh = { text, token }
    return token
  }

  /** A route that only signed-in users may use. */
  guard(route: HttpRoute): HttpRoute {
    return {
      ...route,
      countsFor: 'access-token',
      headers: [...(route.headers ?? []), 'authorization'],
      handle: request => {
        this.requesterOf(request.header('authorization'))
        return route.handle(request)
      },
    }
  }

  /** The session's current pair: the same texts each time, until it is refreshed. */
  tokensOf(sessionId: Uint8Array, session: Session): TokenReply {
    const { secrets, lifetimes, nowMs } = this.#deps
    const { generation, rotatedAtMs } = session
    const expiresAtS = Math.floor(rotatedAtMs / 1000) + lifetimes.accessS
    const nowS = Math.floor(nowMs() / 1000)
    return {
      sessionId: sessionIdText(sessionId),
      accessToken: formatAccessToken(secrets.accessToken, { sessionId, generation, expiresAtS }),
      refreshToken: formatRefreshToken(secrets.refreshToken, { sessionId, generation }),
      tokenType: 'Bearer',
      expiresIn: Math.max(0, expiresAtS - nowS),
      refreshExpiresIn: Math.min(lifetimes.refreshS, Math.floor(session.endsAtMs / 1000) - nowS),
      challenge: possessionChallenge(secrets.possession, sessionId),
    }
  }

  #genuineToken(authorization: string): GenuineToken {
    const token = this.tokenOf(authorization)
    if (token === undefined) throw refusalOfToken(authorization === '' ? 'TOKEN_MISSING' : 'TOKEN_INVALID')
    return token
  }

  #requesterBy(token: GenuineToken, session: Session | undefined): Requester {
    const code = refusalOfAccess(session, token, this.#deps.nowMs())
    if (code !== undefined || session === undefined)
      throw refusalOfToken(code ?? 'TOKEN_INVALID', session?.revokedBecause)
    token.isRefused = false
    if (!session.isPairUsed && token.generation === session.generation) this.#markPairUsed(token)
    const { userId, deviceId } = session
    const { sessionName } = token
    if (deviceId === undefined) return { sessionName, session, userId }
    this.#deps.onSeen?.(userId, deviceId)
    return { sessionName, session, userId, deviceId }
  }

  #markPairUsed({ sessionName, generation }: GenuineToken): void {
    // Lost in a crash, the previous refresh token stays good a little longer; a failed disk is told by other writes.
    this.#deps.markPairUsed(sessionIdOf(sessionName), generation).catch(() => undefined)
  }
}

/** In the change of a request that has waited: throws if its access token no longer holds. */
export function assertLasts(session: Session | undefined): asserts session is Session {
  const because = session?.revokedBecause
  if (!lasts(session))
    throw refusalOfToken(because === undefined ? 'TOKEN_INVALID' : 'SESSION_REVOKED', because)
}

/** The refusal of an access token; `reason` is why its session was ended. */
export function refusalOfToken(code: ErrorCode, reason?: RevocationReason): SignalError {
  const members = code === 'SESSION_REVOKED' && reason !== undefined ? { members: { reason } } : {}
  return new SignalError(code, SENTENCES[code] ?? 'the access token is not accepted', members)
}

const SENTENCES: Partial<Record<ErrorCode, string>> = {
  TOKEN_MISSING: 'send the access token as Authorization: Bearer',
  TOKEN_EXPIRED: 'the access token is over: refresh once and repeat',
  SESSION_REVOKED: 'the session was ended: sign in again',
}
const BEARER_FORM = /^bearer /i
const BEARER_CHARS = 'bearer '.length
