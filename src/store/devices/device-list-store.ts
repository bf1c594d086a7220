/**
 * Each user's newest device list, as `src/log/device-list.ts` has it, the lists that it follows, and a list on its way into
 * the log. A list is kept as pending before it is logged. So a crash, or a log that answers too late, leaves a list that the next request
 * or start logs again, and no entry without its list.
 */

import type { DeviceId, UserId } from '../../domain/ids.ts'
import { idsKey, rangeOf, userInKey } from '../engine/keys.ts'
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

/** A list between the last one of seq 0 and the newest, both included. Its key has the seq. */
export interface ChainedDeviceList {
  readonly list: Uint8Array
}

const LISTS = recordTable<LoggedDeviceList>('device-lists')
const CHAIN = recordTable<ChainedDeviceList>('device-list-chains')
const PENDING = recordTable<PendingDeviceList>('device-lists-pending')

export class DeviceListStore {
  /** Undefined for a user without a list. */
  newest(view: View, userId: UserId): LoggedDeviceList | undefined {
    return view.get(LISTS, idsKey(userId))
  }

  /** The lists from the last one of seq 0 on, in their order. `after` is a seq; undefined for all. */
  chain(view: View, userId: UserId, after: number | undefined, limit: number): Uint8Array[] {
    const { start, end } = rangeOf(idsKey(userId))
    const from = after === undefined ? start : idsKey(userId, BigInt(after) + 1n)
    return [...view.range(CHAIN, { start: from, end, limit })].map(({ value }) => value.list)
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
    if (logged.seq === 0) removeChain(change, userId)
    change.put(CHAIN, idsKey(userId, BigInt(logged.seq)), { list: logged.list })
    change.put(LISTS, idsKey(userId), logged)
  }

  /** The log has refused the pending list for good. */
  abandon(change: Change, userId: UserId): void {
    change.remove(PENDING, idsKey(userId))
  }

  eraseOf(change: Change, userId: UserId): void {
    change.remove(PENDING, idsKey(userId))
    change.remove(LISTS, idsKey(userId))
    removeChain(change, userId)
  }
}

/** Bound: the log takes a limited number of keys under one hash. */
function removeChain(change: Change, userId: UserId): void {
  for (const key of [...change.keys(CHAIN, rangeOf(idsKey(userId)))]) change.remove(CHAIN, key)
}
