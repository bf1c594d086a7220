/** Other users as a user may see them: their name, and the keys of their devices. */

import { type KeysShown, PRESENT_KEYS } from '../../domain/contacts/friend-request.ts'
import type { Device } from '../../domain/devices/device.ts'
import type { UserId } from '../../domain/ids.ts'
import { SignalError } from '../../errors.ts'
import { timeText } from '../../schema/time.ts'
import type { View } from '../../store/engine/store.ts'
import type { ListEntry } from '../../store/tables/id-lists.ts'
import type { ApiDeps, Reading } from '../deps.ts'
import { deviceListMembers } from '../devices/device-list-requests.ts'

/** Whether a new person may find the user: not once they have asked for their account to be erased. */
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

/** A contact of the user, by both names. */
export function contactOf(
  view: View,
  { accounts, contacts, devices }: Pick<ApiDeps, 'accounts' | 'devices'> & Pick<Reading, 'contacts'>,
  userId: UserId,
  { id, atMs }: ListEntry,
): object {
  const contactId = id as UserId
  // Not spread: V8 takes three times as long for a contact then (`user-growth` in `bench/`).
  return {
    userId: contactId,
    displayName: accounts.displayNameOf(view, contactId),
    alias: contacts.aliasOf(view, userId, contactId),
    since: timeText(atMs),
    devices: devices.countActive(view, contactId),
  }
}

/**
 * The devices that are shown of a user: those that the newest device list names, if there is one.
 *
 * Choice: the newest list is shown even where a viewer else sees the devices of an earlier moment, as after a block. The log
 * shows every viewer that there is a newer list, so an older one would give the block away.
 */
export function shownDevices(
  view: View,
  { devices, deviceLists }: Pick<ApiDeps, 'devices' | 'deviceLists'>,
  userId: UserId,
  shown: KeysShown,
): readonly Device[] {
  const list = deviceLists.newest(view, userId)
  if (list !== undefined) {
    return devices.activeDevicesOf(view, userId).filter(({ deviceId }) => list.deviceIds.includes(deviceId))
  }
  return shown.kind === 'present'
    ? devices.activeDevicesOf(view, userId)
    : devices.devicesAt(view, userId, shown.atMs)
}

/** `publicKeyHashs` and `devices` of a reply: what the client verifies through the log, and encrypts for. */
export function keysOf(
  view: View,
  deps: Pick<ApiDeps, 'devices' | 'deviceLists'>,
  userId: UserId,
  keysShown: KeysShown = PRESENT_KEYS,
): object {
  const shown = shownDevices(view, deps, userId, keysShown)
  return {
    publicKeyHashs: shown.map(({ publicKeyHash }) => publicKeyHash),
    devices: shown.map(({ deviceId, publicKeyHash, keyAlgorithm }) => ({
      deviceId,
      publicKeyHash,
      keyAlgorithm,
    })),
    ...deviceListMembers(view, deps, userId),
  }
}

/** Throws `CONTACTS_BY_SERVER` where users send no requests. */
export function assertByUsers({ contactsBy }: Pick<ApiDeps, 'contactsBy'>): void {
  if (contactsBy === 'users') return
  throw new SignalError('CONTACTS_BY_SERVER', 'the operator’s backend makes contacts: users send no requests')
}

export function userNotFound(): SignalError {
  return new SignalError('USER_NOT_FOUND', 'no such user')
}
