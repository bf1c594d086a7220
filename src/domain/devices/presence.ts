/** Which devices are connected to this node. A port: `actors/presence.ts` knows. */

import type { DeviceId, UserId } from '../ids.ts'

export interface Presence {
  /** Whether the device has a signed-in connection at this moment. */
  isConnected(userId: UserId, deviceId: DeviceId): boolean
  /** Whether a device is connected that may do little, so that no call rings there. */
  hasRestricted(userId: UserId): boolean
}
