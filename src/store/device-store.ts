/** The devices of the users, removed ones too, and whose each public key is. */

import type { Device } from '../domain/device.ts'
import type { DeviceId, UserId } from '../domain/ids.ts'
import type { Database, Table } from './database.ts'
import { idsKey, keyBehind } from './keys.ts'

export class DeviceStore {
  readonly #devices: Table<Device>

  constructor(database: Database) {
    this.#devices = database.table('devices')
  }

  /** The device, also a removed one. */
  read(userId: UserId, deviceId: DeviceId): Device | undefined {
    return this.#devices.get(idsKey(userId, deviceId))
  }

  /** The user's devices that are not removed, by id. */
  activeDevicesOf(userId: UserId): Device[] {
    const start = idsKey(userId)
    const rows = [...this.#devices.getRange({ start, end: keyBehind(start) })]
    return rows.map(({ value }) => value).filter(({ removedAtMs }) => removedAtMs === undefined)
  }

  /** In a transaction. */
  put(userId: UserId, device: Device): void {
    this.#devices.put(idsKey(userId, device.deviceId), device)
  }
}
