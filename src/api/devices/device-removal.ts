/**
 * The end of a device (contract 2.5), by its user's wish or because a new device replaces it; and of its last session,
 * by a logout, a theft of tokens, or the end of the account.
 */

import { type Device, deviceName } from '../../domain/devices/device.ts'
import { mayEndDevice, restrictionError } from '../../domain/devices/restriction.ts'
import type { DeviceId, UserId } from '../../domain/ids.ts'
import type { Change, View } from '../../store/engine/store.ts'
import type { ApiDeps } from '../deps.ts'

type Deps = Pick<ApiDeps, 'devices' | 'inbox' | 'notices' | 'sessions'>

export interface DeviceRemoval {
  readonly userId: UserId
  readonly deviceId: DeviceId
  /** The session that asks. If it is the device's own, this is its logout, and its token is simply over. */
  readonly sessionId?: Uint8Array
  /** Another device that needs no notice. */
  readonly exceptDeviceId?: DeviceId
}

/**
 * Removes the device with its push tokens and inbox, ends its sessions and tells the user's other devices. Its key stays
 * in the log. Returns false, with nothing done, where the user has no such device.
 */
export function removeDevice(change: Change, deps: Deps, removal: DeviceRemoval): boolean {
  const { userId, deviceId, exceptDeviceId } = removal
  const device = deps.devices.remove(change, userId, deviceId)
  if (device === undefined) return false
  deps.inbox.eraseDevice(change, userId, deviceId)
  endSessions(change, deps.sessions, removal)
  change.happened({ kind: 'device-removed', userId, deviceId })
  deps.notices.tell(change, userId, { kind: 'device_removed', ...noticeOf(device) }, exceptDeviceId)
  return true
}

/** The end that a session wants of a device. */
interface DeviceEnd {
  readonly userId: UserId
  readonly deviceId: DeviceId
  /** The device that the session is bound to. */
  readonly by: DeviceId | undefined
  readonly nowMs: number
  readonly isReplaced?: boolean
}

/** Throws its restriction to a session that may not end the device. Asked in the change that ends it. */
export function assertMayEnd(
  view: View,
  { devices, restrictions }: Pick<ApiDeps, 'devices' | 'restrictions'>,
  { userId, deviceId, by, nowMs, isReplaced = false }: DeviceEnd,
): void {
  const restriction = restrictions.of(view, userId, by)
  const device = devices.active(view, userId, deviceId)
  if (restriction === undefined || device === undefined || deviceId === by) return
  const activeCount = devices.countActive(view, userId)
  if (mayEndDevice(restriction, device, { nowMs, isReplaced, activeCount })) return
  throw restrictionError(restriction)
}

/** The facts about a device that other devices get. */
export function noticeOf({ deviceId, info, publicKeyHash }: Device) {
  return { deviceId, name: deviceName(info), platform: info.platform, publicKeyHash }
}

/** After its session ended, the device leaves its call and gets no pushes, unless it has another session. */
export function signOut(
  change: Change,
  deps: Pick<ApiDeps, 'devices' | 'sessions'>,
  userId: UserId,
  deviceId: DeviceId | undefined,
): void {
  if (deviceId !== undefined && !deps.sessions.devicesOf(change, userId).has(deviceId)) {
    deps.devices.forgetPush(change, userId, deviceId)
  }
  tellSignedOut(change, deps, userId)
}

/** Says of each device that the change leaves without a session that it is signed out. */
export function tellSignedOut(
  change: Change,
  { devices, sessions }: Pick<ApiDeps, 'devices' | 'sessions'>,
  userId: UserId,
): void {
  change.atEnd(() => {
    const signedIn = sessions.devicesOf(change, userId)
    for (const { deviceId } of devices.activeDevicesOf(change, userId)) {
      if (!signedIn.has(deviceId)) change.happened({ kind: 'signed-out', userId, deviceId })
    }
  })
}

function endSessions(change: Change, sessions: Deps['sessions'], removal: DeviceRemoval): void {
  const { userId, deviceId, sessionId = NO_SESSION } = removal
  for (const id of sessions.idsOf(change, userId)) {
    if (sessions.read(change, id)?.deviceId !== deviceId) continue
    if (Buffer.from(sessionId).equals(id)) sessions.remove(change, id)
    else sessions.revoke(change, id, 'device_removed')
  }
}

const NO_SESSION = new Uint8Array(0)
