/** Devices that are left without a session: by a logout, a theft of tokens, or the end of the account. */

import type { DeviceId, UserId } from '../../domain/ids.ts'
import type { SessionStore } from '../../store/accounts/session-store.ts'
import type { DeviceStore } from '../../store/devices/device-store.ts'
import type { Database } from '../../store/engine/database.ts'

export interface SignedOutWorld {
  readonly database: Pick<Database, 'afterCommit'>
  readonly devices: Pick<DeviceStore, 'activeDevicesOf' | 'forgetPush'>
  readonly sessions: Pick<SessionStore, 'devicesOf'>
  /** Told of each of them. */
  readonly onSignedOut: (userId: UserId, deviceId: DeviceId) => void
}

/** In a transaction that has ended a session: its device leaves its call and gets no pushes, unless another one is on it. */
export function signOut(world: SignedOutWorld, userId: UserId, deviceId: DeviceId | undefined): void {
  if (deviceId !== undefined && !world.sessions.devicesOf(userId).has(deviceId)) {
    world.devices.forgetPush(userId, deviceId)
  }
  tellSignedOut(world, userId)
}

/** In a transaction that ends sessions: has them told of once it is durable. */
export function tellSignedOut(
  { database, devices, sessions, onSignedOut }: SignedOutWorld,
  userId: UserId,
): void {
  database.afterCommit(() => {
    const signedIn = sessions.devicesOf(userId)
    for (const { deviceId } of devices.activeDevicesOf(userId)) {
      if (!signedIn.has(deviceId)) onSignedOut(userId, deviceId)
    }
  })
}
