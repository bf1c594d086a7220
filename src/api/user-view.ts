/** The user as they see themselves (contract 2.4): `GET user`, and the `user` of every reply that signs in or changes it. */

import type { DeviceId, UserId } from '../domain/ids.ts'
import { profileAddress } from '../domain/login-method.ts'
import type { Badge } from '../domain/notice.ts'
import { SignalError } from '../errors.ts'
import { UserView } from '../schema/account.ts'
import type { AccountStore } from '../store/account-store.ts'
import type { DeviceStore } from '../store/device-store.ts'
import { loginMethodViews } from './login-methods.ts'
import { type Operation, operation } from './operation.ts'

export interface UserViewWorld {
  readonly accounts: Pick<AccountStore, 'read' | 'methodsOf'>
  readonly devices: Pick<DeviceStore, 'active'>
  readonly badgeOf: (userId: UserId) => Badge
}

export function userOperations(world: UserViewWorld): readonly Operation[] {
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
      handle: ({ caller }) => ({ status: 200, body: userView(world, caller.userId, caller.deviceId) }),
    }),
  ]
}

/** The user, with the device that asks if it is one. Throws `USER_NOT_FOUND` when the account was erased. */
export function userView(
  { accounts, devices, badgeOf }: UserViewWorld,
  userId: UserId,
  deviceId: DeviceId | undefined,
): object {
  const user = accounts.read(userId)
  if (user === undefined) throw new SignalError('USER_NOT_FOUND', 'there is no such user')
  const { displayName, primaryMethodId, createdAtMs, settings } = user
  const held = { methods: accounts.methodsOf(userId), primaryMethodId }
  const email = profileAddress(held, 'email')?.shown
  const phone = profileAddress(held, 'phone')?.shown
  const device = deviceId === undefined ? undefined : devices.active(userId, deviceId)
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
    badge: badgeOf(userId),
    createdAt: new Date(createdAtMs).toISOString(),
    settings,
  }
}
