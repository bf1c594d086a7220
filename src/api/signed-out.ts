/** Devices that their user's wish leaves without a session: a logout, or the end of the account. */

import type { DeviceId, UserId } from '../domain/ids.ts'
import type { Database } from '../store/database.ts'
import type { DeviceStore } from '../store/device-store.ts'
import type { SessionStore } from '../store/session-store.ts'

export interface SignedOutWorld {
  readonly database: Pick<Database, 'afterCommit'>
  readonly devices: Pick<DeviceStore, 'activeDevicesOf'>
  readonly sessions: Pick<SessionStore, 'devicesOf'>
  /** Told of each of them. */
  readonly onSignedOut: (userId: UserId, deviceId: DeviceId) => void
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
