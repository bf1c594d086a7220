/** The restrictions of sessions by the stored lists and devices, from a cache: they are asked for at each request. */

import { type Restriction, restrictionOf, type UserDevices } from '../../domain/devices/restriction.ts'
import type { DeviceId, UserId } from '../../domain/ids.ts'
import { PEOPLE_KEPT_MAX } from '../../limits.ts'
import { userInKey } from '../engine/keys.ts'
import type { ReadStore, View } from '../engine/store.ts'
import { WatchedCache } from '../engine/watched-cache.ts'
import type { DeviceListStore } from './device-list-store.ts'
import type { DeviceStore } from './device-store.ts'
import { DEVICE_LISTS, DEVICES } from './device-tables.ts'

/** The user of a session, and its device if it has one. */
export interface SessionOwner {
  readonly userId: UserId
  readonly deviceId?: DeviceId
}

export class Restrictions {
  readonly #database: ReadStore
  readonly #devices: Pick<DeviceStore, 'countActive'>
  readonly #deviceLists: Pick<DeviceListStore, 'newest'>
  readonly #kept: WatchedCache<UserId, UserDevices>

  constructor(
    database: ReadStore,
    devices: Pick<DeviceStore, 'countActive'>,
    deviceLists: Pick<DeviceListStore, 'newest'>,
  ) {
    this.#database = database
    this.#devices = devices
    this.#deviceLists = deviceLists
    this.#kept = new WatchedCache(database, [DEVICES, DEVICE_LISTS], userInKey, PEOPLE_KEPT_MAX)
  }

  /** The one of a session that is bound to the device, or to none. */
  of(view: View, userId: UserId, deviceId: DeviceId | undefined): Restriction | undefined {
    return restrictionOf(this.#kept.get(userId) ?? this.#read(view, userId), deviceId)
  }

  /** The same outside of a view. */
  readonly current = ({ userId, deviceId }: SessionOwner): Restriction | undefined => {
    const kept = this.#kept.get(userId)
    if (kept !== undefined) return restrictionOf(kept, deviceId)
    return this.#database.view(view => this.of(view, userId, deviceId))
  }

  #read(view: View, userId: UserId): UserDevices {
    return this.#kept.of(userId, () => {
      const list = this.#deviceLists.newest(view, userId)
      return {
        listed: list && new Set(list.deviceIds),
        activeCount: this.#devices.countActive(view, userId),
      }
    })
  }
}
