/**
 * Lists of ids that belong to somebody, in order of time: contacts, requests, blocks, share tokens. One table, whose
 * keys say everything; a list is counted and paged without reading what the ids stand for.
 */

import { ID, TIME, untold } from '../engine/key-parts.ts'
import { idsKey } from '../engine/keys.ts'
import { oneOf } from '../engine/row-form.ts'
import type { Change, View } from '../engine/store.ts'
import { rowTable } from '../engine/table.ts'

export const ID_LISTS = rowTable(
  'id-lists',
  { owner: ID, list: untold(1), since: untold(TIME.bytes), id: untold(ID.bytes) },
  oneOf(0),
  {
    holds: 'nothing: what is in which list since when',
    remedy: 'it counts against a limit of the user, and may be shown: restore a backup',
  },
)

/** A place in a list. */
export interface ListEntry {
  /** Milliseconds since 1970. */
  readonly atMs: number
  readonly id: bigint
}

export interface ListRange {
  readonly limit: number
  /** Only what comes behind this entry, which need not be in the list any more. */
  readonly after?: ListEntry | undefined
  /** Only entries of this time and newer ones. */
  readonly sinceMs?: number
}

export class IdLists {
  add(change: Change, ownerId: bigint, list: List, entry: ListEntry): void {
    change.put(ID_LISTS, entryKey(ownerId, list, entry), 0)
  }

  remove(change: Change, ownerId: bigint, list: List, entry: ListEntry): void {
    change.remove(ID_LISTS, entryKey(ownerId, list, entry))
  }

  /** How many entries there are of that time and later. */
  count(view: View, ownerId: bigint, list: List, sinceMs = 0): number {
    return view.count(ID_LISTS, {
      start: timeKey(ownerId, list, sinceMs),
      end: endOf(ownerId, list),
    })
  }

  /** Entries, newest first, at most `limit`. */
  read(view: View, ownerId: bigint, list: List, { limit, after, sinceMs = 0 }: ListRange): ListEntry[] {
    // Read backwards, the start belongs to the range: it may be the entry itself, and one more makes up for it.
    const start = after === undefined ? endOf(ownerId, list) : entryKey(ownerId, list, after)
    const end = timeKey(ownerId, list, sinceMs)
    const keys = view.keys(ID_LISTS, { start, end, reverse: true, limit: limit + 1 })
    const entries = [...keys].map(entryOf)
    const isBehind = ({ atMs, id }: ListEntry) => atMs !== after?.atMs || id !== after.id
    return entries.filter(isBehind).slice(0, limit)
  }

  /** All entries of a list, oldest first. */
  all(view: View, ownerId: bigint, list: List): ListEntry[] {
    const range = { start: timeKey(ownerId, list, 0), end: endOf(ownerId, list) }
    return [...view.keys(ID_LISTS, range)].map(entryOf)
  }
}

/** The lists. A number is never given to another: entries of it may be in a store. */
export const LIST = {
  contacts: 1,
  blocks: 2,
  /** Open requests that have reached their receiver. */
  incoming: 3,
  /** Open requests that their sender knows of. */
  outgoing: 4,
  /** Open requests that their sender does not know of. */
  unshown: 5,
  /** Requests that are over for this side, or never reached it. */
  closedRequests: 6,
  shareTokens: 7,
} as const

export type List = (typeof LIST)[keyof typeof LIST]

/** A key of the table `id-lists`. */
export function entryKey(ownerId: bigint, list: List, { atMs, id }: ListEntry): Uint8Array {
  return Buffer.concat([timeKey(ownerId, list, atMs), idsKey(id)])
}

/** The beginning of the keys of all entries of a time. */
function timeKey(ownerId: bigint, list: List, atMs: number): Uint8Array {
  const key = Buffer.allocUnsafe(TIME_AT + 6)
  key.writeBigUInt64BE(ownerId)
  key[TIME_AT - 1] = list
  key.writeUIntBE(Math.max(0, Math.floor(atMs)), TIME_AT, 6)
  return key
}

/** Behind every entry of a list: where the next one would begin. */
function endOf(ownerId: bigint, list: List): Uint8Array {
  const key = Buffer.allocUnsafe(TIME_AT)
  key.writeBigUInt64BE(ownerId)
  key[TIME_AT - 1] = list + 1
  return key
}

/** The place that a key of `id-lists` says. */
export function entryOf(key: Uint8Array): ListEntry {
  const bytes = Buffer.from(key.buffer, key.byteOffset, key.length)
  return { atMs: bytes.readUIntBE(TIME_AT, 6), id: bytes.readBigUInt64BE(TIME_AT + 6) }
}

export function listInKey(key: Uint8Array): number {
  return key[TIME_AT - 1]!
}

/** Behind the owner and the list. */
const TIME_AT = 9
