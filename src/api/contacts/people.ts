/** Other users as a user may see them: their name, and the keys of their devices. */

import { type KeysShown, PRESENT_KEYS } from '../../domain/contacts/friend-request.ts'
import type { Device } from '../../domain/devices/device.ts'
import type { UserId } from '../../domain/ids.ts'
import { SignalError } from '../../errors.ts'
import type { DeviceStore } from '../../store/devices/device-store.ts'
import type { View } from '../../store/engine/store.ts'
import type { ApiDeps } from '../deps.ts'

/** Whether somebody new may find the user: not once they have asked for their account to be erased. */
export function isReachable(view: View, { accounts }: Pick<ApiDeps, 'accounts'>, userId: UserId): boolean {
  const user = accounts.read(view, userId)
  return user !== undefined && user.erasesAtMs === undefined
}

export function personOf(
  view: View,
  { accounts }: Pick<ApiDeps, 'accounts'>,
  userId: UserId,
): { readonly userId: UserId; readonly displayName: string } {
  return { userId, displayName: accounts.displayNameOf(view, userId) }
}

/** The devices that are shown of a user. */
export function shownDevices(
  view: View,
  devices: DeviceStore,
  userId: UserId,
  shown: KeysShown,
): readonly Device[] {
  return shown.kind === 'present'
    ? devices.activeDevicesOf(view, userId)
    : devices.devicesAt(view, userId, shown.atMs)
}

/** `publicKeyHashs` and `devices` of a reply: what the client verifies through the log, and encrypts for. */
export function keysOf(
  view: View,
  { devices }: Pick<ApiDeps, 'devices'>,
  userId: UserId,
  keysShown: KeysShown = PRESENT_KEYS,
): object {
  const shown = shownDevices(view, devices, userId, keysShown)
  return {
    publicKeyHashs: shown.map(({ publicKeyHash }) => publicKeyHash),
    devices: shown.map(({ deviceId, publicKeyHash, keyAlgorithm }) => ({
      deviceId,
      publicKeyHash,
      keyAlgorithm,
    })),
  }
}

export function userNotFound(): SignalError {
  return new SignalError('USER_NOT_FOUND', 'no such user')
}
