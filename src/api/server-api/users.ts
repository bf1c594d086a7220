/** Users of the server API: made and changed, found, followed, and erased. */

import type { Static } from 'typebox'
import type { UserId } from '../../domain/ids.ts'
import { suspensionAt } from '../../domain/operators/suspension.ts'
import { readUserRef } from '../../domain/operators/user-ref.ts'
import { invalidMember } from '../../schema/check.ts'
import {
  DeleteServerUserQuery,
  DeleteServerUserReply,
  PutServerUserRequest,
  ServerUserPage,
  ServerUsersQuery,
  ServerUserView,
  UserChangesQuery,
  UserChangesReply,
} from '../../schema/server-user.ts'
import { optionalTimeText, timeText } from '../../schema/time.ts'
import type { View } from '../../store/engine/store.ts'
import { endAccount } from '../accounts/account-erasure.ts'
import { loginMethodViews } from '../accounts/login-methods.ts'
import { pageOf, rangeOf } from '../table/page.ts'
import {
  type ServerOperation,
  serverOperationWithBody,
  serverOperationWithQuery,
  serverRead,
  serverReadWithQuery,
} from '../table/server-operation.ts'
import type { ServerApiDeps } from './deps.ts'
import { readSaid } from './said-of-user.ts'

type Deps = Pick<
  ServerApiDeps,
  | 'accounts'
  | 'addresses'
  | 'database'
  | 'devices'
  | 'erasure'
  | 'serverUsers'
  | 'sessions'
  | 'userChanges'
  | 'waitingSignIns'
>

const PATH = '/server/api/v1/users'
const USERS_RULES = { tag: 'users', scope: 'users' } as const

const putUser = serverOperationWithBody(PutServerUserRequest, {
  ...USERS_RULES,
  id: 'putUser',
  method: 'PUT',
  path: `${PATH}/{ref}`,
  summary: 'Make a user, named by your own id, or change one. Their login methods stay as they are',
  replies: { 200: ServerUserView, 201: ServerUserView },
  codes: ['USER_NOT_FOUND', 'METHOD_IN_USE', 'EXTERNAL_ID_IN_USE', 'BLOCKED_COUNTRY'],
  handle(deps: Deps, { params: [text = ''], body, nowMs, commit }) {
    const ref = readUserRef(text)
    const said = readSaid(deps, ref, body)
    return commit(change => {
      const { userId, outcome } = deps.serverUsers.put(change, ref, said)
      const status = outcome === 'created' ? 201 : 200
      const target = outcome === 'unchanged' ? undefined : `id:${userId}`
      return { status, body: serverUserView(change, deps, userId, nowMs), target }
    })
  },
})

const getUser = serverRead({
  ...USERS_RULES,
  id: 'getUser',
  method: 'GET',
  path: `${PATH}/{ref}`,
  summary: 'One user',
  replies: { 200: ServerUserView },
  codes: ['USER_NOT_FOUND', 'VALIDATION_FAILED'],
  handle(deps: Deps, { params: [text = ''], nowMs }) {
    const ref = readUserRef(text)
    const body = deps.database.view(view =>
      serverUserView(view, deps, deps.serverUsers.userOf(view, ref), nowMs),
    )
    return { status: 200, body }
  },
})

const listUsers = serverReadWithQuery(ServerUsersQuery, {
  ...USERS_RULES,
  id: 'listUsers',
  method: 'GET',
  path: PATH,
  summary: 'Users with an address, or all, a page at a time in the order of their ids',
  replies: { 200: ServerUserPage },
  codes: ['BLOCKED_COUNTRY'],
  handle(deps: Deps, { query, nowMs }) {
    const address = readAddress(deps, query)
    const { limit, after } = rangeOf(query)
    const range = { limit, after: after?.id as UserId | undefined }
    return deps.database.view(view => {
      const found =
        address === undefined
          ? deps.accounts.list(view, range)
          : deps.serverUsers.usersAt(view, address, range)
      // In the order of ids, a place has no time.
      const entryOf = (id: UserId) => ({ atMs: 0, id })
      return { status: 200, body: pageOf(query, found, entryOf, id => serverUserView(view, deps, id, nowMs)) }
    })
  },
})

const listUserChanges = serverReadWithQuery(UserChangesQuery, {
  ...USERS_RULES,
  id: 'listUserChanges',
  method: 'GET',
  path: `${PATH}/changes`,
  summary: 'Users who were made, changed or erased since the last time, for a list of your own',
  replies: { 200: UserChangesReply },
  codes: [],
  handle: (deps: Deps, { query, nowMs }) => ({
    status: 200,
    body: deps.database.view(view => changesBody(view, deps, query, nowMs)),
  }),
})

const deleteUser = serverOperationWithQuery(DeleteServerUserQuery, {
  ...USERS_RULES,
  id: 'deleteUser',
  method: 'DELETE',
  path: `${PATH}/{ref}`,
  summary:
    'Sign a user out and have the account erased: in seven days, unless they sign in before, or at once',
  replies: { 202: DeleteServerUserReply },
  codes: ['USER_NOT_FOUND'],
  handle(deps: Deps, { params: [text = ''], query: { now: isAtOnce = false }, commit }) {
    const ref = readUserRef(text)
    return commit(change => {
      const userId = deps.serverUsers.userOf(change, ref)
      const planned = deps.accounts.read(change, userId)?.erasesAtMs
      // Asked for again, it stays as it was.
      if (planned !== undefined && (!isAtOnce || planned <= change.nowMs))
        return { status: 202, body: { erasesAt: timeText(planned) }, target: undefined }
      const erasesAtMs = endAccount(change, deps, userId, { isAtOnce })
      return { status: 202, body: { erasesAt: timeText(erasesAtMs) }, target: `id:${userId}` }
    })
  },
})

export const USERS: readonly ServerOperation<Deps>[] = [
  putUser,
  listUsers,
  listUserChanges,
  getUser,
  deleteUser,
]

/** The one address that a query asks for, if any. */
function readAddress({ addresses }: Deps, { email, phone }: Static<typeof ServerUsersQuery>) {
  if (email !== undefined && phone !== undefined)
    throw invalidMember('', 'REQUIRED', 'names one address at most', 'the query')
  if (email !== undefined) return addresses.read('email', email, undefined, '/email')
  return phone === undefined ? undefined : addresses.read('phone', phone, undefined, '/phone')
}

function changesBody(
  view: View,
  deps: Deps,
  { since = 0, limit = CHANGES }: Static<typeof UserChangesQuery>,
  nowMs: number,
): object {
  const { userChanges } = deps
  if (since > userChanges.last(view))
    throw invalidMember('/since', 'AHEAD', 'is behind the last change: begin again without it', 'the query')
  const found = userChanges.list(view, since, limit + 1)
  const told = found.slice(0, limit)
  return {
    items: told.map(({ userId, atMs, isErased }) => {
      const changedAt = timeText(atMs)
      if (isErased) return { userId, changedAt, state: 'erased' }
      const user = serverUserView(view, deps, userId, nowMs)
      return { userId, changedAt, state: user.state, user }
    }),
    next: told.at(-1)?.number ?? since,
    hasMore: found.length > limit,
  }
}

/** The user as `ServerUserView` has them, who is there. */
function serverUserView(view: View, { accounts }: Pick<Deps, 'accounts'>, userId: UserId, nowMs: number) {
  const user = accounts.read(view, userId)!
  const { displayName, createdAtMs, settings, erasesAtMs, contactData = {} } = user
  const suspension = suspensionAt(user, nowMs)
  const isEnding = erasesAtMs !== undefined
  const methods = accounts.methodsOf(view, userId)
  return {
    userId,
    externalId: user.externalId,
    displayName,
    state: isEnding ? 'ending' : suspension === undefined ? 'active' : 'suspended',
    erasesAt: optionalTimeText(erasesAtMs),
    suspension: suspension && {
      reason: suspension.reason,
      note: suspension.note,
      at: timeText(suspension.atMs),
      untilAt: optionalTimeText(suspension.untilMs),
    },
    reachable: settings.callsFromContactsOnly ? 'contacts' : 'all',
    email: contactData.email,
    phone: contactData.phone,
    ownsSignIn: user.isMadeByServer !== true,
    loginMethods: loginMethodViews({ methods, primaryMethodId: user.primaryMethodId }),
    createdAt: timeText(createdAtMs),
  }
}

const CHANGES = 50
