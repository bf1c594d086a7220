/**
 * The end of a device (contract 2.5), by its user's wish or because another one takes its place; and of its last session,
 * by a logout, a theft of tokens, or the end of the account.
 */

import { type Device, deviceName } from '../../domain/devices/device.ts'
import type { DeviceId, UserId } from '../../domain/ids.ts'
import type { SessionStore } from '../../store/accounts/session-store.ts'
import type { DeviceStore } from '../../store/devices/device-store.ts'
import type { Database } from '../../store/engine/database.ts'
import type { InboxStore } from '../../store/messages/inbox-store.ts'
import type { Notices } from '../../store/messages/notices.ts'

export interface DeviceRemovalWorld {
  readonly devices: Pick<DeviceStore, 'remove'>
  readonly sessions: Pick<SessionStore, 'idsOf' | 'read' | 'remove' | 'revoke'>
  readonly notices: Pick<Notices, 'tell'>
  readonly inbox: Pick<InboxStore, 'eraseDevice'>
  readonly database: Pick<Database, 'ambient'>
}

export interface SignedOutWorld {
  readonly database: Pick<Database, 'ambient'>
  readonly devices: Pick<DeviceStore, 'activeDevicesOf' | 'forgetPush'>
  readonly sessions: Pick<SessionStore, 'devicesOf'>
}

export interface DeviceRemoval {
  readonly userId: UserId
  readonly deviceId: DeviceId
  readonly nowMs: number
  /** The session that asks. If it is the device's own, this is its logout, and its token is simply over. */
  readonly sessionId?: Uint8Array
  /** Another device that needs no notice. */
  readonly exceptDeviceId?: DeviceId
}

/**
 * In a transaction: the device is removed, its sessions are ended, its push tokens and inbox gone, the others told. Its key
 * stays in the log. Returns false, with nothing done, where the user has no such device.
 */
export function removeDevice(world: DeviceRemovalWorld, removal: DeviceRemoval): boolean {
  const { userId, deviceId, nowMs, exceptDeviceId } = removal
  const device = world.devices.remove(userId, deviceId, nowMs)
  if (device === undefined) return false
  world.inbox.eraseDevice(userId, deviceId)
  endSessions(world.sessions, removal)
  world.database.ambient.happened({ kind: 'device-removed', userId, deviceId })
  world.notices.tell(userId, { kind: 'device_removed', ...noticeOf(device) }, nowMs, exceptDeviceId)
  return true
}

/** What other devices are told of a device. */
export function noticeOf({ deviceId, info, publicKeyHash }: Device) {
  return { deviceId, name: deviceName(info), platform: info.platform, publicKeyHash }
}

/** In a transaction that has ended a session: its device leaves its call and gets no pushes, unless another one is on it. */
export function signOut(world: SignedOutWorld, userId: UserId, deviceId: DeviceId | undefined): void {
  if (deviceId !== undefined && !world.sessions.devicesOf(userId).has(deviceId)) {
    world.devices.forgetPush(userId, deviceId)
  }
  tellSignedOut(world, userId)
}

/** Says of each device that the change leaves without a session that it is signed out. */
export function tellSignedOut({ database, devices, sessions }: SignedOutWorld, userId: UserId): void {
  const change = database.ambient
  change.atEnd(() => {
    const signedIn = sessions.devicesOf(userId)
    for (const { deviceId } of devices.activeDevicesOf(userId)) {
      if (!signedIn.has(deviceId)) change.happened({ kind: 'signed-out', userId, deviceId })
    }
  })
}

function endSessions(sessions: DeviceRemovalWorld['sessions'], removal: DeviceRemoval): void {
  const { userId, deviceId, nowMs, sessionId = NO_SESSION } = removal
  for (const id of sessions.idsOf(userId)) {
    if (sessions.read(id)?.deviceId !== deviceId) continue
    if (Buffer.from(sessionId).equals(id)) sessions.remove(id)
    else sessions.revoke(id, 'device_removed', nowMs)
  }
}

const NO_SESSION = new Uint8Array(0)
