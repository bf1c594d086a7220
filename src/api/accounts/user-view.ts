/**
 * The user as they see themselves (contract 2.4): `GET user`, and the `user` of every reply that signs in or changes it. A
 * restricted session sees little more than the name.
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
  { name: 'device-lists' },
  { name: 'id-lists' },
  { name: 'call-history' },
]

/** The parts that a view is made of. */
export type UserViewDeps = Pick<ApiDeps, 'accounts' | 'badgeOf' | 'devices' | 'restrictions'>

type Deps = UserViewDeps & Pick<ApiDeps, 'idsAs' | 'userViews'> & Pick<Reading, 'database'>

export const getUser = read({
  id: 'getUser',
  method: 'GET',
  path: '/app/api/user',
  tag: 'user',
  summary: 'The user who is signed in',
  access: 'restricted',
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
  if ((user.badge?.friendRequests ?? 0) > 0) return bytes
  if (ofUser === undefined) userViews.set(userId, new Map([[deviceId, bytes]]))
  else ofUser.set(deviceId, bytes)
  return bytes
}

/** The user, with the device that asks if it is one. Throws `USER_NOT_FOUND` when the account was erased. */
export function userView(view: View, deps: UserViewDeps, userId: UserId, deviceId: DeviceId | undefined) {
  const restriction = deps.restrictions.of(view, userId, deviceId)
  const whole = wholeUserView(view, deps, userId, deviceId)
  const { displayName, device } = whole
  return restriction === undefined ? whole : { ...NOT_TOLD, userId, displayName, device, restriction }
}

/** The same for one who may see all of it. */
export function wholeUserView(
  view: View,
  { accounts, devices, badgeOf }: Omit<UserViewDeps, 'restrictions'>,
  userId: UserId,
  deviceId: DeviceId | undefined,
) {
  const user = accounts.read(view, userId)
  if (user === undefined) throw new SignalError('USER_NOT_FOUND', 'there is no such user')
  const { displayName, primaryMethodId, createdAtMs, settings } = user
  const active = deviceId === undefined ? undefined : devices.active(view, userId, deviceId)
  const device = active && { deviceId: active.deviceId, publicKeyHash: active.publicKeyHash }
  const held = { methods: accounts.methodsOf(view, userId), primaryMethodId }
  const email = profileAddress(held, 'email')?.shown
  const phone = profileAddress(held, 'phone')?.shown
  return {
    userId,
    displayName,
    email,
    phone,
    emailVerified: email !== undefined,
    phoneVerified: phone !== undefined,
    primaryMethodId,
    loginMethods: loginMethodViews(held),
    device,
    badge: badgeOf(view, userId),
    createdAt: timeText(createdAtMs),
    settings,
    restriction: undefined,
  }
}

/** A restricted session sees none of these. */
const NOT_TOLD = {
  email: undefined,
  phone: undefined,
  emailVerified: undefined,
  phoneVerified: undefined,
  primaryMethodId: undefined,
  loginMethods: undefined,
  badge: undefined,
  createdAt: undefined,
  settings: undefined,
}

const UTF_8 = new TextEncoder()
