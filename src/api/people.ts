/** Other users as a user may see them: their name, and the keys of their devices. */

import type { UserId } from '../domain/ids.ts'
import { SignalError } from '../errors.ts'
import type { AccountStore } from '../store/account-store.ts'
import type { DeviceStore } from '../store/device-store.ts'

export interface PeopleWorld {
  readonly accounts: Pick<AccountStore, 'read' | 'displayNameOf'>
  readonly devices: Pick<DeviceStore, 'activeDevicesOf'>
}

/** Whether somebody new may find the user: not once they have asked for their account to be erased. */
export function isReachable({ accounts }: Pick<PeopleWorld, 'accounts'>, userId: UserId): boolean {
  const user = accounts.read(userId)
  return user !== undefined && user.erasesAtMs === undefined
}

export function personOf(
  { accounts }: Pick<PeopleWorld, 'accounts'>,
  userId: UserId,
): { readonly userId: UserId; readonly displayName: string } {
  return { userId, displayName: accounts.displayNameOf(userId) }
}

/** `publicKeyHashs` and `devices` of a reply: what the client verifies through the log, and encrypts for. */
export function keysOf({ devices }: Pick<PeopleWorld, 'devices'>, userId: UserId): object {
  const active = devices.activeDevicesOf(userId)
  return {
    publicKeyHashs: active.map(({ publicKeyHash }) => publicKeyHash),
    devices: active.map(({ deviceId, publicKeyHash, keyAlgorithm }) => ({
      deviceId,
      publicKeyHash,
      keyAlgorithm,
    })),
  }
}

export function userNotFound(): SignalError {
  return new SignalError('USER_NOT_FOUND', 'no such user')
}
