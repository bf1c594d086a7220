/**
 * The user as they see themselves (contract 2.4): `GET user`, and the `user` of every reply that signs in or changes it.
 *
 * Departure from making it for each `GET user`: the answer is kept until a row that it is made of changes. Reading and
 * writing it took a third of the request (`bench/user.ts`).
 */

import { profileAddress } from '../../domain/accounts/login-method.ts'
import type { DeviceId, UserId } from '../../domain/ids.ts'
import type { Badge } from '../../domain/messages/notice.ts'
import { SignalError } from '../../errors.ts'
import { UserView } from '../../schema/account.ts'
import { formatJson, type IdForm } from '../../schema/json.ts'
import { timeText } from '../../schema/time.ts'
import type { AccountStore } from '../../store/accounts/account-store.ts'
import type { DeviceStore } from '../../store/devices/device-store.ts'
import type { Store, View } from '../../store/engine/store.ts'
import type { WatchedCache } from '../../store/engine/watched-cache.ts'
import { type Operation, operation } from '../table/operation.ts'
import { loginMethodViews } from './login-methods.ts'

export interface UserViewWorld {
  readonly accounts: Pick<AccountStore, 'read' | 'methodsOf'>
  readonly devices: Pick<DeviceStore, 'active'>
  readonly badgeOf: (view: View, userId: UserId) => Badge
}

/** The JSON of a user's view by the device that asks, undefined for a session without one. */
export type UserViews = WatchedCache<UserId, Map<DeviceId | undefined, Uint8Array>>

/** The tables that a view is made of; each has a user's id at the beginning of its keys. */
export const USER_VIEW_TABLES = [
  { name: 'users' },
  { name: 'login-methods' },
  { name: 'devices' },
  { name: 'id-lists' },
  { name: 'call-history-figures' },
]

export interface UserOperationsWorld extends UserViewWorld {
  /** Over `USER_VIEW_TABLES`. */
  readonly userViews: Pick<UserViews, 'get' | 'set'>
  readonly idsAs: IdForm
  readonly database: Pick<Store, 'view'>
}

export function userOperations(world: UserOperationsWorld): readonly Operation[] {
  return [
    operation({
      id: 'getUser',
      method: 'GET',
      path: '/app/api/user',
      tag: 'user',
      summary: 'The user who is signed in',
      access: 'session',
      replies: { 200: UserView },
      codes: ['USER_NOT_FOUND'],
      handle: ({ caller }) => ({
        status: 200,
        body: viewBytes(world, caller.userId, caller.deviceId),
      }),
    }),
  ]
}

function viewBytes(world: UserOperationsWorld, userId: UserId, deviceId: DeviceId | undefined): Uint8Array {
  const { database, userViews, idsAs } = world
  const ofUser = userViews.get(userId)
  const kept = ofUser?.get(deviceId)
  if (kept !== undefined) return kept
  const user = database.view(view => userView(view, world, userId, deviceId))
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
  { accounts, devices, badgeOf }: UserViewWorld,
  userId: UserId,
  deviceId: DeviceId | undefined,
): { readonly badge: Badge; readonly [member: string]: unknown } {
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
