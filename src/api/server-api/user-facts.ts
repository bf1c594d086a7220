/** A user's sessions, devices and calls, for a support desk; and the end of all sessions. */

import type { UserId } from '../../domain/ids.ts'
import { readUserRef } from '../../domain/operators/user-ref.ts'
import { PageQuery } from '../../schema/page.ts'
import { ServerCallPage, ServerDeviceList, ServerSessionList } from '../../schema/server-user.ts'
import type { View } from '../../store/engine/store.ts'
import { endAll } from '../accounts/session.ts'
import { sessionViews } from '../accounts/user-sessions.ts'
import { historyPage } from '../calls/call-history.ts'
import { tellSignedOut } from '../devices/device-removal.ts'
import { deviceViews } from '../devices/devices.ts'
import {
  type ServerOperation,
  serverOperation,
  serverRead,
  serverReadWithQuery,
} from '../table/server-operation.ts'
import type { ServerApiDeps } from './deps.ts'

type Deps = Pick<
  ServerApiDeps,
  | 'accounts'
  | 'callIndex'
  | 'calls'
  | 'database'
  | 'devices'
  | 'history'
  | 'lifetimes'
  | 'notices'
  | 'serverUsers'
  | 'sessionNetworks'
  | 'sessions'
  | 'waitingSignIns'
>

const PATH = '/server/api/v1/users/{ref}'
const READ = {
  tag: 'users',
  scope: 'users',
  method: 'GET',
  codes: ['USER_NOT_FOUND', 'VALIDATION_FAILED'],
} as const

const listSessions = serverRead({
  ...READ,
  id: 'listUserSessions',
  path: `${PATH}/sessions`,
  summary: 'Where a user is signed in, newest first',
  replies: { 200: ServerSessionList },
  handle: (deps: Deps, { params, nowMs }) =>
    ofUser(deps, params, (view, userId) => ({
      items: sessionViews(view, deps, userId, undefined, nowMs).map(({ isCurrent: _, ...shown }) => shown),
    })),
})

const listDevices = serverRead({
  ...READ,
  id: 'listUserDevices',
  path: `${PATH}/devices`,
  summary: 'The devices of a user, newest first',
  replies: { 200: ServerDeviceList },
  handle: (deps: Deps, { params }) =>
    ofUser(deps, params, (view, userId) => ({
      items: deviceViews(view, deps.devices, userId, undefined).map(({ current: _, ...shown }) => shown),
    })),
})

const listCalls = serverReadWithQuery(PageQuery, {
  ...READ,
  id: 'listUserCalls',
  path: `${PATH}/calls`,
  summary: 'The calls that a user remembers, newest first',
  replies: { 200: ServerCallPage },
  handle: (deps: Deps, { params, query, nowMs }) =>
    ofUser(deps, params, (view, userId) =>
      historyPage(view, { ...deps, contacts: WITHOUT_ALIASES }, userId, query, nowMs),
    ),
})

const signOut = serverOperation({
  id: 'signOutUser',
  method: 'POST',
  path: `${PATH}/sign-out`,
  tag: 'users',
  scope: 'users',
  summary: 'End all sessions of a user: their devices leave calls, and nothing is pushed to them any more',
  replies: { 204: null },
  codes: ['USER_NOT_FOUND', 'VALIDATION_FAILED'],
  handle(deps: Deps, { params: [text = ''], commit }) {
    const ref = readUserRef(text)
    return commit(change => {
      const userId = deps.serverUsers.userOf(change, ref)
      endAll(change, deps, userId, 'logged_out_everywhere')
      tellSignedOut(change, deps, userId)
      return { status: 204, target: `id:${userId}` }
    })
  },
})

/** The names that a user gives to contacts are private. */
const WITHOUT_ALIASES = { aliasOf: () => undefined }

export const USER_FACTS: readonly ServerOperation<Deps>[] = [listSessions, listDevices, listCalls, signOut]

/** Throws `VALIDATION_FAILED`, `USER_NOT_FOUND`. */
function ofUser(
  { database, serverUsers }: Deps,
  [text = '']: readonly string[],
  bodyOf: (view: View, userId: UserId) => object,
) {
  const ref = readUserRef(text)
  const body = database.view(view => bodyOf(view, serverUsers.userOf(view, ref)))
  return { status: 200, body } as const
}
