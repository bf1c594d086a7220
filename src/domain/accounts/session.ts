/**
 * The rules of a session (contract 2.3): accepted tokens, refreshes, and its end. A session has one current
 * generation of tokens; the one before stays good for requests and replies under way.
 */

import type { ErrorCode } from '../../errors.ts'
import type { DeviceId, UserId } from '../ids.ts'
import type { AccessToken } from './token.ts'

export interface Session {
  readonly userId: UserId
  readonly deviceId?: DeviceId
  /** The current pair's number; the first is 1. */
  readonly generation: number
  /** When the current pair was made: the pair is a function of the session row. */
  readonly rotatedAtMs: number
  /** Whether a request has carried an access token of the current pair. */
  readonly isPairUsed: boolean
  readonly createdAtMs: number
  /** When the user last proved who they are. */
  readonly authenticatedAtMs: number
  readonly lastUsedAtMs: number
  /** The session ends then, however often it is refreshed. */
  readonly endsAtMs: number
  /** How the user proved it (RFC 8176 calls it amr). */
  readonly methods: readonly Proof[]
  readonly userAgent: string
  /** Sealed: the prefix of the network that it was opened from, where that is known. */
  readonly network?: Uint8Array
  /** Why the session was ended from elsewhere; the row is then kept so that its tokens hear of it. */
  readonly revokedBecause?: RevocationReason
}

/** A one-time code, an identity provider, or Apple. */
export type Proof = 'otp' | 'social' | 'apple'

export type RevocationReason =
  | 'refresh_token_reused'
  | 'device_removed'
  | 'logged_out_everywhere'
  | 'account_deleted'
  | 'replaced'
  | 'ended_by_user'

export interface TokenLifetimes {
  /** An access token's lifetime, seconds. */
  readonly accessS: number
  /** A refresh token's lifetime since it was made, seconds. */
  readonly refreshS: number
  /** A session's lifetime since it began, seconds. */
  readonly sessionS: number
}

/** Whether the session stands, not ended by an act. It may have expired all the same. */
export function lasts(session: Session | undefined): session is Session {
  return session !== undefined && session.revokedBecause === undefined
}

/** Why an access token is refused, or undefined when the session accepts it. */
export function refusalOfAccess(
  session: Session | undefined,
  token: Omit<AccessToken, 'sessionId'>,
  nowMs: number,
): ErrorCode | undefined {
  if (session === undefined) return 'TOKEN_INVALID'
  if (session.revokedBecause !== undefined) return 'SESSION_REVOKED'
  if (token.generation > session.generation) return 'TOKEN_INVALID'
  // An older pair than the previous one has been replaced twice: its holder has a newer one, or refreshes in vain.
  if (token.generation < session.generation - 1) return 'TOKEN_EXPIRED'
  if (nowMs >= token.expiresAtS * 1000 || nowMs >= session.endsAtMs) return 'TOKEN_EXPIRED'
  return undefined
}

export type RefreshDecision =
  | { readonly kind: 'rotate'; readonly session: Session }
  /**
   * The current pair once more: the reply to the last refresh was lost, or two were sent at once. It has a new access
   * token where the old one had expired.
   */
  | { readonly kind: 'repeat'; readonly session: Session }
  /** Genuine, but replaced by a pair that is in use: theft, or a restored backup. */
  | { readonly kind: 'reused'; readonly session: Session }
  | { readonly kind: 'refused' }

/** The effect of a genuine refresh token of this generation on its session. */
export function decideRefresh(
  session: Session | undefined,
  generation: number,
  nowMs: number,
  lifetimes: TokenLifetimes,
): RefreshDecision {
  if (!lasts(session)) return { kind: 'refused' }
  const isOver = nowMs >= expiryOf(session, lifetimes)
  if (isOver || generation > session.generation) return { kind: 'refused' }
  if (generation === session.generation) {
    const rotated = { generation: generation + 1, rotatedAtMs: nowMs, lastUsedAtMs: nowMs, isPairUsed: false }
    return { kind: 'rotate', session: { ...session, ...rotated } }
  }
  // Ahead of now it was made by a clock that has been set back since, and every old token would be a retry till then.
  const isRetry = !session.isPairUsed || Math.abs(nowMs - session.rotatedAtMs) < REUSE_INTERVAL_MS
  if (generation === session.generation - 1 && isRetry) {
    return { kind: 'repeat', session: withLivingPair(session, nowMs, lifetimes) }
  }
  return { kind: 'reused', session: { ...session, revokedBecause: 'refresh_token_reused' } }
}

/** A phone that was off for hours after losing its reply would get an expired token. */
function withLivingPair(session: Session, nowMs: number, { accessS }: TokenLifetimes): Session {
  const isOver = nowMs >= session.rotatedAtMs + accessS * 1000
  return isOver ? { ...session, rotatedAtMs: nowMs, lastUsedAtMs: nowMs } : session
}

/** When the session ends if unused, milliseconds since 1970. */
export function expiryOf(session: Session, { refreshS }: TokenLifetimes): number {
  return Math.min(session.endsAtMs, session.lastUsedAtMs + refreshS * 1000)
}

/** When the user hears of the coming end of a session, milliseconds since 1970. */
export function endingToldAtMs({ endsAtMs }: Session): number {
  return endsAtMs - ENDING_TOLD_MS
}

/** 14 days. */
const ENDING_TOLD_MS = 14 * 86_400_000
/** Within it a token of the previous pair is taken for a retry, even when the new pair is in use. */
const REUSE_INTERVAL_MS = 30_000
