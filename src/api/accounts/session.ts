/**
 * The session after sign-in (contract 2.3): `refresh-token` gives a new pair of tokens for the last one, `logout` ends
 * the session. The rules of a refresh are in `src/domain/accounts/session.ts`.
 */

import type { Static } from 'typebox'
import {
  decideRefresh,
  lasts,
  type RefreshDecision,
  type RevocationReason,
} from '../../domain/accounts/session.ts'
import type { RefreshToken } from '../../domain/accounts/token.ts'
import { restrictionError } from '../../domain/devices/restriction.ts'
import type { DeviceId, UserId } from '../../domain/ids.ts'
import { type ErrorCode, SignalError } from '../../errors.ts'
import { LogoutRequest, RefreshTokenRequest, TokenPair } from '../../schema/account.ts'
import { sessionIdOf, sessionName } from '../../store/accounts/session-store.ts'
import type { Change, View } from '../../store/engine/store.ts'
import type { ApiDeps } from '../deps.ts'
import { signOut } from '../devices/device-removal.ts'
import { type Operation, type OperationRequest, operationWithBody, type Reply } from '../table/operation.ts'

type Deps = Pick<
  ApiDeps,
  | 'authentication'
  | 'database'
  | 'deviceLists'
  | 'devices'
  | 'knownSignIns'
  | 'lifetimes'
  | 'notices'
  | 'onTokenReused'
  | 'requestRates'
  | 'restrictions'
  | 'sessions'
  | 'waitingSignIns'
>

type CheckedRefresh = OperationRequest<Static<typeof RefreshTokenRequest>, undefined, 'public'>
type CheckedLogout = OperationRequest<Static<typeof LogoutRequest>, undefined, 'ended'>

export const SESSIONS: readonly Operation<Deps>[] = [
  operationWithBody(RefreshTokenRequest, {
    id: 'refreshToken',
    method: 'POST',
    path: '/app/api/refresh-token',
    tag: 'sign-in',
    summary: 'A new pair of tokens for the last one',
    access: 'public',
    replies: { 200: TokenPair },
    codes: ['REFRESH_TOKEN_INVALID', 'REFRESH_TOKEN_REUSED'],
    countsFor: 'refresh-token',
    handle: (deps: Deps, request) => refresh(deps, request),
  }),
  operationWithBody(LogoutRequest, {
    id: 'logout',
    method: 'POST',
    path: '/app/api/logout',
    tag: 'sign-in',
    summary: 'Ends the session; its device leaves the call it is in, and nothing is pushed to it any more',
    access: 'ended',
    isBodyOptional: true,
    replies: { 204: null },
    codes: ['DEVICE_NOT_LISTED', 'DEVICE_REQUIRED'],
    handle: (deps: Deps, request) => logout(deps, request),
  }),
]

async function refresh(deps: Deps, request: CheckedRefresh): Promise<Reply> {
  // Garbage is refused before it costs a look into the store.
  const { requestRates } = deps
  const token = deps.authentication.refreshTokenOf(request.body.refreshToken)
  if (token === undefined) {
    requestRates?.takeByNetwork('refresh-token', request.network)
    throw refusal('REFRESH_TOKEN_INVALID')
  }
  const session = sessionName(token.sessionId)
  requestRates?.takeSignedIn('refresh-token', 'refresh-token-session', session, request.network)
  const decision = await deps.database.change(change => rotate(change, deps, token, request), request.nowMs)
  switch (decision.kind) {
    case 'rotate':
    case 'repeat':
      return { status: 200, body: deps.authentication.tokensOf(token.sessionId, decision.session) }
    case 'reused':
      deps.onTokenReused(decision.session.userId, request.requestId)
      throw refusal('REFRESH_TOKEN_REUSED')
    case 'refused':
      throw refusal('REFRESH_TOKEN_INVALID', decision.because)
  }
}

/** The change that the token makes to its session. */
function rotate(
  change: Change,
  deps: Deps,
  { sessionId, generation }: RefreshToken,
  { network, nowMs }: Pick<CheckedRefresh, 'network' | 'nowMs'>,
): RefreshDecision {
  const { sessions, knownSignIns, devices, deviceLists, notices, lifetimes } = deps
  const before = sessions.read(change, sessionId)
  const isListed = before !== undefined && deviceLists.names(change, before)
  const decision = decideRefresh(before, { generation, nowMs, isListed }, lifetimes)
  const isPair = decision.kind === 'rotate' || decision.kind === 'repeat'
  if (isPair && decision.session !== before) {
    const { userId, deviceId } = decision.session
    sessions.put(change, sessionId, decision.session)
    knownSignIns.note(change, userId, network, sessionId)
    if (deviceId !== undefined) devices.touch(change, userId, deviceId)
  }
  if (decision.kind === 'reused') {
    const { userId, deviceId } = decision.session
    sessions.revoke(change, sessionId, REUSED)
    notices.tell(change, userId, { kind: 'session_revoked', reason: REUSED })
    // A thief may have put tokens of their own in the place of the device's.
    signOut(change, deps, userId, deviceId)
  }
  return decision
}

async function logout(deps: Deps, request: CheckedLogout): Promise<Reply> {
  if (request.requester === undefined) return { status: 204 }
  const { sessionName, userId, deviceId } = request.requester
  const own = { sessionId: sessionIdOf(sessionName), userId, deviceId }
  return request.commit(change => {
    if (request.body.allDevices === true) endOthers(change, deps, own, 'logged_out_everywhere')
    endOwn(change, deps, own)
    return { status: 204 }
  })
}

/** The session that asks. */
interface OwnSession {
  readonly sessionId: Uint8Array
  readonly userId: UserId
  readonly deviceId: DeviceId | undefined
}

type EndingDeps = Pick<ApiDeps, 'devices' | 'notices' | 'sessions'>
type EndingOthersDeps = EndingDeps & Pick<ApiDeps, 'restrictions' | 'waitingSignIns'>

/** The session logs out. */
export function endOwn(change: Change, deps: EndingDeps, own: OwnSession): void {
  endEarlier(change, deps, own)
  deps.sessions.remove(change, own.sessionId)
  // One who has signed in on it again since goes on being rung.
  signOut(change, deps, own.userId, own.deviceId)
}

/**
 * Ends sessions that the device had before this one. They are of an app that lost its tokens, as one
 * that was installed anew, and nobody else would end them.
 */
function endEarlier(
  change: Change,
  { sessions }: EndingDeps,
  { sessionId, userId, deviceId }: OwnSession,
): void {
  const own = sessions.read(change, sessionId)
  if (deviceId === undefined || !lasts(own)) return
  for (const id of sessions.idsOf(change, userId)) {
    const other = sessions.read(change, id)
    const isOfDevice = lasts(other) && other.deviceId === deviceId
    if (isOfDevice && other.createdAtMs < own.createdAtMs) sessions.remove(change, id)
  }
}

/** A restricted session ends no other. */
export function assertMayEndOthers(
  view: View,
  { restrictions, sessions }: Pick<ApiDeps, 'restrictions' | 'sessions'>,
  { userId, sessionId }: OwnSession,
): void {
  const restriction = restrictions.of(view, userId, sessions.read(view, sessionId)?.deviceId)
  if (restriction !== undefined) throw restrictionError(restriction)
}

/** Ends the user's other sessions; see `endAll`. */
export function endOthers(
  change: Change,
  deps: EndingOthersDeps,
  own: OwnSession,
  reason: RevocationReason,
): void {
  assertMayEndOthers(change, deps, own)
  endAll(change, deps, own.userId, reason, own)
}

/**
 * Ends a user's sessions, but for their own one, and the waiting sign-ins that are let in and have not come. Their tokens hear
 * why for a while; their devices get one last message.
 */
export function endAll(
  change: Change,
  deps: Omit<EndingOthersDeps, 'restrictions'>,
  userId: UserId,
  reason: RevocationReason,
  own?: OwnSession,
): void {
  const { sessions, devices, notices, waitingSignIns } = deps
  for (const id of sessions.idsOf(change, userId)) {
    if (own === undefined || Buffer.compare(id, own.sessionId) !== 0) sessions.revoke(change, id, reason)
  }
  waitingSignIns.dropLetIn(change, userId)
  notices.tell(change, userId, { kind: 'session_revoked', reason }, own?.deviceId)
  for (const { deviceId } of devices.activeDevicesOf(change, userId)) {
    if (own === undefined || deviceId !== own.deviceId) devices.forgetPush(change, userId, deviceId)
  }
}

function refusal(code: ErrorCode, reason?: RevocationReason): SignalError {
  const members = reason === undefined ? {} : { members: { reason } }
  return new SignalError(code, 'the refresh token is not accepted: sign in again', members)
}

const REUSED = 'refresh_token_reused'
