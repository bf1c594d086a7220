/**
 * Each user's newest device list, as `src/log/device-list.ts` has it, and a list that is on its way into the log. A list
 * is kept as pending before it is logged. So a crash, or a log that answers too late, leaves a list that the next request
 * or start logs again, and no entry without its list.
 */

import type { DeviceId, UserId } from '../../domain/ids.ts'
import { idsKey, userInKey } from '../engine/keys.ts'
import { type Change, recordTable, type View } from '../engine/store.ts'

/** A list whose hash is in the log. */
export interface LoggedDeviceList {
  readonly list: Uint8Array
  readonly seq: number
  /** In ascending order. Some may have been removed since. */
  readonly deviceIds: readonly DeviceId[]
  /** The index of the log entry that has the list's hash. */
  readonly index: number
  /** The entry's hash, 64 bytes. */
  readonly vrfHash: Uint8Array
}

export interface PendingDeviceList {
  readonly list: Uint8Array
}

const LISTS = recordTable<LoggedDeviceList>('device-lists')
const PENDING = recordTable<PendingDeviceList>('device-lists-pending')

export class DeviceListStore {
  /** Undefined for a user without a list. */
  newest(view: View, userId: UserId): LoggedDeviceList | undefined {
    return view.get(LISTS, idsKey(userId))
  }

  pending(view: View, userId: UserId): Uint8Array | undefined {
    return view.get(PENDING, idsKey(userId))?.list
  }

  /** Users with a pending list. */
  allPending(view: View): UserId[] {
    return [...view.keys(PENDING)].map(userInKey)
  }

  /** The list is to be logged. */
  begin(change: Change, userId: UserId, list: Uint8Array): void {
    change.put(PENDING, idsKey(userId), { list })
  }

  /** The pending list is logged. */
  finish(change: Change, userId: UserId, logged: LoggedDeviceList): void {
    change.remove(PENDING, idsKey(userId))
    change.put(LISTS, idsKey(userId), logged)
  }

  /** The log has refused the pending list for good. */
  abandon(change: Change, userId: UserId): void {
    change.remove(PENDING, idsKey(userId))
  }

  eraseOf(change: Change, userId: UserId): void {
    change.remove(PENDING, idsKey(userId))
    change.remove(LISTS, idsKey(userId))
  }
}
