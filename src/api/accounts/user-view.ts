/**
 * The user as they see themselves (contract 2.4): `GET user`, and the `user` of every reply that signs in or changes it.
 *
 * Departure from making it for each `GET user`: the answer is kept until a row that it is made of changes. Reading and
 * writing it took a third of the request (`bench/user.ts`).
 */

import { profileAddress } from '../../domain/accounts/login-method.ts'
import type { DeviceId, UserId } from '../../domain/ids.ts'
import { SignalError } from '../../errors.ts'
import { UserView } from '../../schema/account.ts'
import { formatJson } from '../../schema/json.ts'
import { timeText } from '../../schema/time.ts'
import type { View } from '../../store/engine/store.ts'
import type { ApiDeps, Reading } from '../deps.ts'
import { read } from '../table/operation.ts'
import { loginMethodViews } from './login-methods.ts'

/** The tables that a view is made of; each has a user's id at the beginning of its keys. */
export const USER_VIEW_TABLES = [
  { name: 'users' },
  { name: 'login-methods' },
  { name: 'devices' },
  { name: 'id-lists' },
  { name: 'call-history-figures' },
]

type Deps = Pick<ApiDeps, 'accounts' | 'badgeOf' | 'devices' | 'idsAs' | 'userViews'> &
  Pick<Reading, 'database'>

export const getUser = read({
  id: 'getUser',
  method: 'GET',
  path: '/app/api/user',
  tag: 'user',
  summary: 'The user who is signed in',
  access: 'session',
  replies: { 200: UserView },
  codes: ['USER_NOT_FOUND'],
  handle: (deps: Deps, { requester }) => ({
    status: 200,
    body: viewBytes(deps, requester.userId, requester.deviceId),
  }),
})

function viewBytes(deps: Deps, userId: UserId, deviceId: DeviceId | undefined): Uint8Array {
  const { database, userViews, idsAs } = deps
  const ofUser = userViews.get(userId)
  const kept = ofUser?.get(deviceId)
  if (kept !== undefined) return kept
  const user = database.view(view => userView(view, deps, userId, deviceId))
  const bytes = UTF_8.encode(formatJson(user, idsAs))
  // Friend requests end by time alone, before any row says so.
  if (user.badge.friendRequests > 0) return bytes
  if (ofUser === undefined) userViews.set(userId, new Map([[deviceId, bytes]]))
  else ofUser.set(deviceId, bytes)
  return bytes
}

/** The user, with the device that asks if it is one. Throws `USER_NOT_FOUND` when the account was erased. */
export function userView(
  view: View,
  { accounts, devices, badgeOf }: Pick<ApiDeps, 'accounts' | 'badgeOf' | 'devices'>,
  userId: UserId,
  deviceId: DeviceId | undefined,
) {
  const user = accounts.read(view, userId)
  if (user === undefined) throw new SignalError('USER_NOT_FOUND', 'there is no such user')
  const { displayName, primaryMethodId, createdAtMs, settings } = user
  const held = { methods: accounts.methodsOf(view, userId), primaryMethodId }
  const email = profileAddress(held, 'email')?.shown
  const phone = profileAddress(held, 'phone')?.shown
  const device = deviceId === undefined ? undefined : devices.active(view, userId, deviceId)
  return {
    userId,
    displayName,
    email,
    phone,
    emailVerified: email !== undefined,
    phoneVerified: phone !== undefined,
    primaryMethodId,
    loginMethods: loginMethodViews(held),
    device: device && { deviceId: device.deviceId, publicKeyHash: device.publicKeyHash },
    badge: badgeOf(view, userId),
    createdAt: timeText(createdAtMs),
    settings,
  }
}

const UTF_8 = new TextEncoder()
