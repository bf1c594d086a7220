/** The sessions of a user: listed, so that an owner finds an intruder's, and ended from any of them. */

import { expiryOf, lasts, type Session } from '../../domain/accounts/session.ts'
import { shownAgent } from '../../domain/accounts/sign-in-place.ts'
import { deviceName } from '../../domain/devices/device.ts'
import type { UserId } from '../../domain/ids.ts'
import { SignalError } from '../../errors.ts'
import { SessionList } from '../../schema/account.ts'
import { timeText } from '../../schema/time.ts'
import { parseSessionId, sessionIdOf, sessionIdText } from '../../store/accounts/session-store.ts'
import type { Change, View } from '../../store/engine/store.ts'
import type { ApiDeps, Reading } from '../deps.ts'
import { signOut, tellSignedOut } from '../devices/device-removal.ts'
import { type Operation, operation, type RateRule, read } from '../table/operation.ts'
import { assertLasts, type Requester } from './authentication.ts'
import { assertMayEndOthers, endOthers, endOwn } from './session.ts'

type ListDeps = Pick<ApiDeps, 'devices' | 'lifetimes' | 'restrictions' | 'sessionNetworks' | 'sessions'> &
  Pick<Reading, 'database'>

/**
 * Counted by session, where other changes of a profile are counted by user: an intruder could use that up, and the owner
 * could end nothing.
 */
const END_RATE: RateRule = { name: 'profile', by: 'session' }

type EndDeps = Pick<ApiDeps, 'devices' | 'notices' | 'restrictions' | 'sessions' | 'waitingSignIns'>

export const listSessions = read({
  id: 'listSessions',
  method: 'GET',
  path: '/app/api/user/sessions',
  tag: 'user',
  summary:
    'Where the user is signed in: the sessions that last, newest first. A restricted session sees itself alone',
  access: 'restricted',
  replies: { 200: SessionList },
  codes: [],
  handle: (deps: ListDeps, { requester: { userId, deviceId, sessionName }, nowMs }) => ({
    status: 200,
    body: {
      items: deps.database.view(view => {
        const all = sessionViews(view, deps, userId, sessionIdOf(sessionName), nowMs)
        const isAlone = deps.restrictions.of(view, userId, deviceId) !== undefined
        return isAlone ? all.filter(({ isCurrent }) => isCurrent) : all
      }),
    },
  }),
})

const endSession = operation({
  id: 'endSession',
  method: 'DELETE',
  path: '/app/api/user/sessions/{id}',
  tag: 'user',
  summary: 'End a session of the user; ending the current one is a logout',
  access: 'restricted',
  replies: { 204: null },
  codes: ['SESSION_NOT_FOUND'],
  rates: [END_RATE],
  handle: (deps: EndDeps, { requester, params: [text = ''], commit }) => {
    const sessionId = parseSessionId(text)
    if (sessionId === undefined) throw sessionNotFound()
    return commit(change => {
      const own = ownSession(change, deps, requester)
      if (Buffer.compare(sessionId, own.sessionId) === 0) endOwn(change, deps, own)
      else {
        assertMayEndOthers(change, deps, own)
        endOther(change, deps, requester, sessionId)
      }
      return { status: 204 }
    })
  },
})

const endOtherSessions = operation({
  id: 'endOtherSessions',
  method: 'DELETE',
  path: '/app/api/user/sessions',
  tag: 'user',
  summary: 'End every session of the user but the current one',
  access: 'session',
  replies: { 204: null },
  codes: [],
  rates: [END_RATE],
  handle: (deps: EndDeps, { requester, commit }) =>
    commit(change => {
      endOthers(change, deps, ownSession(change, deps, requester), ENDED_BY_USER)
      tellSignedOut(change, deps, requester.userId)
      return { status: 204 }
    }),
})

export const USER_SESSIONS: readonly Operation<ListDeps & EndDeps & Pick<ApiDeps, 'database'>>[] = [
  listSessions,
  endSession,
  endOtherSessions,
]

/** The sessions that last, newest first; `currentId` is of the one that asks, where one does. */
export function sessionViews(
  view: View,
  deps: Omit<ListDeps, 'restrictions' | 'database'>,
  userId: UserId,
  currentId: Uint8Array | undefined,
  nowMs: number,
): readonly { readonly isCurrent: boolean }[] {
  const { sessions, lifetimes } = deps
  return sessions
    .idsOf(view, userId)
    .map(id => ({ id, session: sessions.read(view, id) }))
    .filter((each): each is { id: Uint8Array; session: Session } => lasts(each.session))
    .filter(({ session }) => nowMs < expiryOf(session, lifetimes))
    .sort((one, other) => other.session.createdAtMs - one.session.createdAtMs)
    .map(({ id, session }) => ({
      ...sessionView(view, deps, session),
      id: sessionIdText(id),
      isCurrent: currentId !== undefined && Buffer.compare(id, currentId) === 0,
    }))
}

function sessionView(
  view: View,
  { devices, lifetimes, sessionNetworks }: Pick<ListDeps, 'devices' | 'lifetimes' | 'sessionNetworks'>,
  session: Session,
): object {
  const { userId, deviceId, createdAtMs, lastUsedAtMs, methods, userAgent } = session
  const device = deviceId === undefined ? undefined : devices.active(view, userId, deviceId)
  return {
    createdAt: timeText(createdAtMs),
    lastUsedAt: timeText(lastUsedAtMs),
    endsAt: timeText(expiryOf(session, lifetimes)),
    network: sessionNetworks.prefixIn(session),
    userAgent: shownAgent(userAgent),
    proof: methods[0],
    device: device && {
      deviceId: device.deviceId,
      name: deviceName(device.info),
      platform: device.info.platform,
    },
  }
}

/** Throws where it was ended while the request was on its way: a thief's last request ends nothing. */
function ownSession(change: Change, { sessions }: EndDeps, { sessionName, userId, deviceId }: Requester) {
  const sessionId = sessionIdOf(sessionName)
  assertLasts(sessions.read(change, sessionId))
  return { sessionId, userId, deviceId }
}

/** A device left without a session hears why, and gets no push after that. Throws `SESSION_NOT_FOUND`. */
function endOther(change: Change, deps: EndDeps, { userId }: Requester, sessionId: Uint8Array): void {
  const { sessions, notices } = deps
  const session = sessions.read(change, sessionId)
  if (!lasts(session) || session.userId !== userId) throw sessionNotFound()
  const { deviceId } = session
  sessions.revoke(change, sessionId, ENDED_BY_USER)
  if (deviceId !== undefined && !sessions.devicesOf(change, userId).has(deviceId))
    notices.tellOnly(change, userId, { kind: 'session_revoked', reason: ENDED_BY_USER }, deviceId)
  signOut(change, deps, userId, deviceId)
}

function sessionNotFound(): SignalError {
  return new SignalError('SESSION_NOT_FOUND', 'you have no such session, or it has ended')
}

const ENDED_BY_USER = 'ended_by_user'
