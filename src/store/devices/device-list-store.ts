/**
 * Each user's newest device list, as `src/log/device-list.ts` has it, the lists that it follows, and a list on its way into
 * the log. A list is kept as pending before it is logged. So a crash, or a log that answers too late, leaves a list that the next request
 * or start logs again, and no entry without its list.
 */

import type { DeviceId, UserId } from '../../domain/ids.ts'
import { idsKey, rangeOf, userInKey } from '../engine/keys.ts'
import type { Change, View } from '../engine/store.ts'
import {
  DEVICE_LIST_CHAINS,
  DEVICE_LISTS,
  DEVICE_LISTS_PENDING,
  type LoggedDeviceList,
} from './device-tables.ts'

export class DeviceListStore {
  /** Undefined for a user without a list. */
  newest(view: View, userId: UserId): LoggedDeviceList | undefined {
    return view.get(DEVICE_LISTS, idsKey(userId))
  }

  /** Whether the user's newest list names the device. */
  names(
    view: View,
    { userId, deviceId }: { readonly userId: UserId; readonly deviceId?: DeviceId },
  ): boolean {
    return deviceId !== undefined && this.newest(view, userId)?.deviceIds.includes(deviceId) === true
  }

  /** The lists from the last one of seq 0 on, in their order. `after` is a seq; undefined for all. */
  chain(view: View, userId: UserId, after: number | undefined, limit: number): Uint8Array[] {
    const { start, end } = rangeOf(idsKey(userId))
    const from = after === undefined ? start : idsKey(userId, BigInt(after) + 1n)
    return [...view.range(DEVICE_LIST_CHAINS, { start: from, end, limit })].map(({ value }) => value.list)
  }

  pending(view: View, userId: UserId): Uint8Array | undefined {
    return view.get(DEVICE_LISTS_PENDING, idsKey(userId))?.list
  }

  /** Users with a pending list. */
  allPending(view: View): UserId[] {
    return [...view.keys(DEVICE_LISTS_PENDING)].map(userInKey)
  }

  /** The list is to be logged. */
  begin(change: Change, userId: UserId, list: Uint8Array): void {
    change.put(DEVICE_LISTS_PENDING, idsKey(userId), { list })
  }

  /** The pending list is logged. */
  finish(change: Change, userId: UserId, logged: LoggedDeviceList): void {
    change.remove(DEVICE_LISTS_PENDING, idsKey(userId))
    if (logged.seq === 0) removeChain(change, userId)
    change.put(DEVICE_LIST_CHAINS, idsKey(userId, BigInt(logged.seq)), { list: logged.list })
    change.put(DEVICE_LISTS, idsKey(userId), logged)
  }

  /** The log has refused the pending list for good. */
  abandon(change: Change, userId: UserId): void {
    change.remove(DEVICE_LISTS_PENDING, idsKey(userId))
  }

  eraseOf(change: Change, userId: UserId): void {
    change.remove(DEVICE_LISTS_PENDING, idsKey(userId))
    change.remove(DEVICE_LISTS, idsKey(userId))
    removeChain(change, userId)
  }
}

/** Bound: the log takes a limited number of keys under one hash. */
function removeChain(change: Change, userId: UserId): void {
  for (const key of [...change.keys(DEVICE_LIST_CHAINS, rangeOf(idsKey(userId)))])
    change.remove(DEVICE_LIST_CHAINS, key)
}
