/** What the head of an inbox and its older rows hold: entries, each of which says where its message is. */

import { keyBehind } from '../engine/keys.ts'
import type { Change, View } from '../engine/store.ts'
import type { GroupPlace } from './message-groups.ts'
import { type Entry, type Head, INBOX, rowKey } from './message-tables.ts'

/** Why messages were dropped unsettled: for want of room, or after seven days. */
export type DropReason = 'full' | 'expired'

/** In the order of their shapes. */
export function entryOf(
  { offset, queue, atMs, expiresAtMs }: Pick<Entry, 'offset' | 'queue' | 'atMs' | 'expiresAtMs'>,
  callId: bigint | undefined,
  { group, at }: GroupPlace,
): Entry {
  if (callId === undefined) return { offset, queue, atMs, expiresAtMs, group, at }
  return { offset, queue, atMs, expiresAtMs, callId, group, at }
}

/** Gives the oldest entries rows, so that the head stays small. Invitations stay: they are looked for by their call. */
export function withFewEntries(change: Change, device: Uint8Array, head: Head): Head {
  const { entries } = head
  if (entries.length <= ENTRIES_MAX) return head
  const stays = (entry: Entry, at: number) =>
    at >= entries.length - ENTRIES_KEPT || entry.callId !== undefined
  const moved = entries.filter((entry, at) => !stays(entry, at))
  for (const entry of moved) change.put(INBOX, rowKey(device, entry.offset), entry)
  return { ...head, rows: head.rows + moved.length, entries: entries.filter(stays) }
}

export function lost(change: Change, head: Head, offset: number, reason: DropReason): Head {
  change.happened({ kind: 'inbox-dropped', reason })
  return { ...head, lostOffset: Math.max(head.lostOffset, offset) }
}

export function byOffset(one: Entry, other: Entry): number {
  return one.offset - other.offset
}

/** Those that have rows, behind `offset`. */
export function rowsOf(view: View, device: Uint8Array, offset: number, limit?: number): Entry[] {
  const range = {
    start: rowKey(device, offset + 1),
    end: keyBehind(device),
    ...(limit !== undefined && { limit }),
  }
  return [...view.range(INBOX, range)].map(({ value }) => value)
}

/** When the sweep ends a message: an invitation some time after it is no longer shown. */
export function endOf({ expiresAtMs, callId }: Pick<Entry, 'expiresAtMs' | 'callId'>): number {
  return callId === undefined ? expiresAtMs : expiresAtMs + LAST_WORD_WITHIN_MS
}

/** A room speaks five seconds after the ring; the rest is for a process that was down for a while. */
const LAST_WORD_WITHIN_MS = 60_000
/** Beyond it, the oldest move into rows of their own, all but a few. */
export const ENTRIES_MAX = 16
const ENTRIES_KEPT = 8
