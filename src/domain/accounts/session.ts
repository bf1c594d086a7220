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
  /** When the user last proved who they are, beyond a sign-in that a stolen code could have opened. */
  readonly provenAtMs?: number
  /** A device of the device list signed that proof. */
  readonly isProofSigned?: true
  readonly lastUsedAtMs: number
  /** The session ends then, however often it is refreshed; on a listed device each refresh puts it off. */
  readonly endsAtMs: number
  /** How the user proved it (RFC 8176 calls it amr). */
  readonly methods: readonly Proof[]
  readonly userAgent: string
  /** It waited for the owner's devices, and none of them answered: it may start over with a device list of its own. */
  readonly isUnanswered?: true
  /** Sealed: the prefix of the network that it was opened from, where that is known. */
  readonly network?: Uint8Array
  /** Why the session was ended from elsewhere; the row is then kept so that its tokens hear of it. */
  readonly revokedBecause?: RevocationReason
}

/** A one-time code, an identity provider, Apple, a passkey, or a token that the operator's backend asked for. */
export type Proof = 'otp' | 'social' | 'apple' | 'passkey' | 'server'

export type RevocationReason =
  | 'refresh_token_reused'
  | 'device_removed'
  | 'logged_out_everywhere'
  | 'account_deleted'
  | 'account_suspended'
  | 'replaced'
  | 'ended_by_user'

export interface TokenLifetimes {
  /** An access token's lifetime, seconds. */
  readonly accessS: number
  /** A refresh token's lifetime since it was made, seconds. */
  readonly refreshS: number
  /** A session's lifetime, seconds: since it began, or on a listed device since the last refresh. */
  readonly sessionS: number
}

/** Whether the session stands, not ended by an act. It may have expired all the same. */
export function lasts(session: Session | undefined): session is Session {
  return session !== undefined && session.revokedBecause === undefined
}

/** Whether the session's user has proven lately who they are; a listed device must have signed the proof. */
export function isFreshlyProven(
  { provenAtMs, isProofSigned }: Session,
  {
    nowMs,
    withinS,
    isListed,
  }: { readonly nowMs: number; readonly withinS: number; readonly isListed: boolean },
): boolean {
  if (provenAtMs === undefined || (isListed && isProofSigned !== true)) return false
  // A proof far ahead of now is of a clock that has been set back since, and would be fresh till then.
  return Math.abs(nowMs - provenAtMs) <= withinS * 1000
}

/** The session with a proof of now. */
export function withProof(
  session: Session,
  { nowMs, isSigned }: { readonly nowMs: number; readonly isSigned: boolean },
): Session {
  const { isProofSigned: _, ...unproven } = session
  return { ...unproven, provenAtMs: nowMs, ...(isSigned && { isProofSigned: true }) }
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
  | { readonly kind: 'refused'; readonly because?: RevocationReason | undefined }

/** A refresh token that is genuine. */
export interface Refresh {
  readonly generation: number
  readonly nowMs: number
  /** Whether the session's device stands in the user's device list: the session then begins its time anew. */
  readonly isListed: boolean
}

/** The effect of a refresh on its session. */
export function decideRefresh(
  session: Session | undefined,
  refresh: Refresh,
  lifetimes: TokenLifetimes,
): RefreshDecision {
  const { generation, nowMs } = refresh
  const because = session?.revokedBecause
  if (!lasts(session)) return { kind: 'refused', because }
  const isOver = nowMs >= expiryOf(session, lifetimes)
  if (isOver || generation > session.generation) return { kind: 'refused' }
  if (generation === session.generation) {
    const rotated = {
      ...withNewPair(session, refresh, lifetimes),
      generation: generation + 1,
      isPairUsed: false,
    }
    return { kind: 'rotate', session: rotated }
  }
  // Ahead of now it was made by a clock that has been set back since, and every old token would be a retry till then.
  const isRetry = !session.isPairUsed || Math.abs(nowMs - session.rotatedAtMs) < REUSE_INTERVAL_MS
  if (generation === session.generation - 1 && isRetry) {
    return { kind: 'repeat', session: withLivingPair(session, refresh, lifetimes) }
  }
  return { kind: 'reused', session: { ...session, revokedBecause: 'refresh_token_reused' } }
}

/** A phone that was off for hours after losing its reply would get an expired token. */
function withLivingPair(session: Session, refresh: Refresh, lifetimes: TokenLifetimes): Session {
  const isOver = refresh.nowMs >= session.rotatedAtMs + lifetimes.accessS * 1000
  return isOver ? withNewPair(session, refresh, lifetimes) : session
}

function withNewPair(session: Session, { nowMs, isListed }: Refresh, { sessionS }: TokenLifetimes): Session {
  const endsAtMs = isListed ? nowMs + sessionS * 1000 : session.endsAtMs
  return { ...session, rotatedAtMs: nowMs, lastUsedAtMs: nowMs, endsAtMs }
}

/** When the session ends if unused, milliseconds since 1970. */
export function expiryOf(session: Session, { refreshS }: TokenLifetimes): number {
  return Math.min(session.endsAtMs, session.lastUsedAtMs + refreshS * 1000)
}

/** Whether the session ends soon, however often it is used, so that its user should hear of it. */
export function isEnding({ endsAtMs }: Session, nowMs: number): boolean {
  return nowMs >= endsAtMs - ENDING_TOLD_MS && nowMs < endsAtMs
}

/** When a session that is not ending may be, or may be gone, milliseconds since 1970. */
export function endingLookedForAtMs(session: Session, nowMs: number, lifetimes: TokenLifetimes): number {
  const endingAtMs = session.endsAtMs - ENDING_TOLD_MS
  const goneAtMs = expiryOf(session, lifetimes)
  return nowMs < endingAtMs ? Math.min(endingAtMs, goneAtMs) : goneAtMs
}

/** 14 days. */
const ENDING_TOLD_MS = 14 * 86_400_000
/** Within it a token of the previous pair is taken for a retry, even when the new pair is in use. */
const REUSE_INTERVAL_MS = 30_000
