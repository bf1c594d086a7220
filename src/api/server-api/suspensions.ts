/** A moderator suspends a user, and lifts that. */

import type { Suspension } from '../../domain/accounts/account.ts'
import { lasts, type RevocationReason } from '../../domain/accounts/session.ts'
import type { UserId } from '../../domain/ids.ts'
import { readUserRef } from '../../domain/operators/user-ref.ts'
import { invalidMember } from '../../schema/check.ts'
import { SuspendRequest, SuspensionView } from '../../schema/suspension.ts'
import { optionalTimeText, timeText } from '../../schema/time.ts'
import type { Change } from '../../store/engine/store.ts'
import { type ServerOperation, serverOperation, serverOperationWithBody } from '../table/server-operation.ts'
import type { ServerApiDeps } from './deps.ts'

type Deps = Pick<
  ServerApiDeps,
  'devices' | 'notices' | 'serverUsers' | 'sessions' | 'suspensions' | 'waitingSignIns'
>

export const SUSPENSIONS: readonly ServerOperation<Deps>[] = [
  serverOperationWithBody(SuspendRequest, {
    id: 'suspendUser',
    method: 'POST',
    path: '/server/api/v1/users/{ref}/suspend',
    tag: 'moderation',
    summary:
      'Suspends a user: sessions and calls end at once, and no sign-in succeeds. Contacts see nothing of it',
    scope: 'users',
    replies: { 200: SuspensionView },
    codes: ['USER_NOT_FOUND'],
    handle(deps: Deps, { body, params: [ref = ''], nowMs, commit }) {
      const user = readUserRef(ref)
      const { reason, note, untilAt } = body
      const untilMs = untilAt === undefined ? undefined : Date.parse(untilAt)
      if (untilMs !== undefined && untilMs <= nowMs)
        throw invalidMember('/untilAt', 'PAST', 'is a time to come')
      return commit(change => {
        const userId = deps.serverUsers.userOf(change, user)
        const asked = {
          reason,
          ...(note !== undefined && { note }),
          ...(untilMs !== undefined && { untilMs }),
        }
        const suspension = suspend(change, deps, userId, asked)
        return { status: 200, body: suspensionView(userId, suspension), target: `id:${userId}` }
      })
    },
  }),
  serverOperation({
    id: 'unsuspendUser',
    method: 'POST',
    path: '/server/api/v1/users/{ref}/unsuspend',
    tag: 'moderation',
    summary: 'Lifts a suspension: the user may sign in again',
    scope: 'users',
    replies: { 204: null },
    codes: ['USER_NOT_FOUND'],
    handle({ serverUsers, suspensions }: Deps, { params: [ref = ''], commit }) {
      const user = readUserRef(ref)
      return commit(change => {
        const userId = serverUsers.userOf(change, user)
        const target = suspensions.lift(change, userId) ? `id:${userId}` : undefined
        return { status: 204, target }
      })
    },
  }),
]

/** Ends the user's sessions, and with them sockets, calls and pushes. */
function suspend(change: Change, deps: Deps, userId: UserId, asked: Omit<Suspension, 'atMs'>): Suspension {
  const { devices, notices, sessions, suspensions, waitingSignIns } = deps
  // Before its sessions end: its calls end for this reason, and not for a socket that is gone.
  change.happened({ kind: 'account-suspended', userId })
  const suspension = suspensions.begin(change, userId, asked)
  waitingSignIns.eraseOf(change, userId)
  const open = sessions.idsOf(change, userId).filter(id => lasts(sessions.read(change, id)))
  for (const sessionId of open) sessions.revoke(change, sessionId, SUSPENDED)
  // The last thing that is pushed: earlier pushes that wait find no token.
  if (open.length > 0) notices.tell(change, userId, { kind: 'session_revoked', reason: SUSPENDED })
  for (const { deviceId } of devices.activeDevicesOf(change, userId))
    devices.forgetPush(change, userId, deviceId)
  return suspension
}

function suspensionView(userId: UserId, { reason, note, atMs, untilMs }: Suspension): object {
  return { userId, reason, note, at: timeText(atMs), untilAt: optionalTimeText(untilMs) }
}

const SUSPENDED: RevocationReason = 'account_suspended'
