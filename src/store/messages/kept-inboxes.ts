/**
 * Messages that are kept: for devices that are away, and for connected ones that leave them unacknowledged. Each device has a
 * head, a row with its newest messages and its offsets, and behind it rows of its own for older messages. All
 * messages of a change stand together (`message-groups.ts`).
 */

import type { DeviceId, UserId } from '../../domain/ids.ts'
import { newEventId } from '../../domain/ids.ts'
import {
  INBOX_KEPT_MS,
  INBOX_MESSAGES_MAX,
  type InboxItem,
  isOutdatedBy,
  missedInsteadOf,
  queueOf,
} from '../../domain/messages/inbox.ts'
import { assert } from '../../errors.ts'
import { EXPIRY } from '../engine/expiries.ts'
import { idInKey, keyBehind } from '../engine/keys.ts'
import { RowCache } from '../engine/row-cache.ts'
import type { Change, View } from '../engine/store.ts'
import type { StoreDeps } from '../tables/deps.ts'
import { type GroupPlace, MessageGroups } from './message-groups.ts'
import { type Entry, type Head, INBOX, INBOX_HEADS, rowKey } from './message-tables.ts'

export interface InboxMessage {
  readonly offset: number
  /** As it follows `/user/queue/`. */
  readonly queue: string
  readonly item: InboxItem
  /** When it was put here, milliseconds since 1970. */
  readonly atMs: number
  readonly expiresAtMs: number
}

/** Why messages were dropped unsettled: for want of room, or after seven days. */
export type DropReason = 'full' | 'expired'

export class KeptInboxes {
  readonly #deps: StoreDeps
  readonly #groups: MessageGroups
  /** Each message has its device's head read three times: to add it, to fetch it, to acknowledge it. */
  readonly #heads: RowCache<Head, Head | null>

  /** `append` puts an item at the end of an inbox. */
  constructor(
    deps: StoreDeps,
    append: (change: Change, userId: UserId, deviceId: DeviceId, item: InboxItem) => void,
  ) {
    this.#deps = deps
    this.#groups = new MessageGroups(deps)
    this.#heads = new RowCache(deps.database, INBOX_HEADS, head => head ?? null, HEADS_KEPT_MAX)
    deps.expiries.define(EXPIRY.inbox, (change, device) =>
      this.#look(change, device, item =>
        append(change, idInKey(device, 0) as UserId, idInKey(device, 1) as DeviceId, item),
      ),
    )
  }

  headOf(view: View, device: Uint8Array): Head | undefined {
    return this.#heads.of(view, device) ?? undefined
  }

  /** Gives the oldest entries rows, so that the head stays small. Invitations stay: they are looked for by their call. */
  put(change: Change, device: Uint8Array, head: Head): void {
    if (head.entries.length <= ENTRIES_MAX) return change.put(INBOX_HEADS, device, head)
    const entries = this.#waiting(change, head.entries)
    const stays = (entry: Entry, at: number) =>
      entries.length <= ENTRIES_MAX || at >= entries.length - ENTRIES_KEPT || entry.callId !== undefined
    const moved = entries.filter((entry, at) => !stays(entry, at))
    for (const entry of moved) change.put(INBOX, rowKey(device, entry.offset), entry)
    const rows = head.rows + moved.length
    change.put(INBOX_HEADS, device, { ...head, rows, entries: entries.filter(stays) })
  }

  /** How many messages wait. */
  countOf(view: View, { rows, entries }: Head): number {
    return rows + this.#waiting(view, entries).length
  }

  /** The messages behind `offset`, in order. */
  *messages(view: View, device: Uint8Array, head: Head, offset: number): Iterable<InboxMessage> {
    const fresh = head.entries.filter(entry => entry.offset > offset)
    const entries = head.rows === 0 ? fresh : [...rowsOf(view, device, offset), ...fresh].sort(byOffset)
    for (const entry of entries) {
      const item = this.#groups.isWaiting(view, entry) ? this.#groups.open(view, entry) : undefined
      const { offset, queue, atMs, expiresAtMs } = entry
      // A message that another secret sealed can't be opened. The sweep removes it in its time.
      if (item !== undefined) yield { offset, queue, item, atMs, expiresAtMs }
    }
  }

  /** The head with one more message, which is its last. It is not put yet, and need not have room. */
  with(
    change: Change,
    device: Uint8Array,
    head: Head,
    message: InboxMessage & { readonly callId: bigint | undefined },
  ): Head {
    const { item, callId, ...place } = message
    const entry = entryOf({ ...place, queue: queueOf(item) }, callId, this.#groups.add(change, item))
    const looksAtMs = Math.min(head.looksAtMs, endOf(entry))
    if (looksAtMs < head.looksAtMs) this.#moveLook(change, device, head.looksAtMs, looksAtMs)
    return { ...head, nextOffset: message.offset + 1, looksAtMs, entries: [...head.entries, entry] }
  }

  /** The head with room for one more message. */
  withRoom(change: Change, device: Uint8Array, full: Head): Head {
    const head = this.#withoutSettled(change, full)
    if (head.rows + head.entries.length < INBOX_MESSAGES_MAX) return head
    const [oldest] = [...rowsOf(change, device, 0, 1), ...head.entries].sort(byOffset)
    assert(oldest !== undefined, 'an inbox that is full has an oldest message')
    return lost(change, this.#remove(change, device, head, oldest), oldest.offset, 'full')
  }

  /** The head but for messages that an item replaces: the invitation to this call, older news of the same contact. */
  without(change: Change, head: Head, item: InboxItem, callId: bigint | undefined): Head {
    const rung = this.withoutInvitation(change, head, callId) ?? head
    if (!isOutdatedBy(item, item)) return rung
    const queue = queueOf(item)
    const outdated = rung.entries.filter(entry => {
      if (entry.queue !== queue || !this.#groups.isWaiting(change, entry)) return false
      return isOutdatedBy(this.#groups.open(change, entry), item)
    })
    for (const entry of outdated) this.#groups.settle(change, entry)
    return { ...rung, entries: rung.entries.filter(entry => !outdated.includes(entry)) }
  }

  /** The head without the invitation to a call that waits; undefined where none does. */
  withoutInvitation(change: Change, head: Head, callId: bigint | undefined): Head | undefined {
    if (callId === undefined) return undefined
    const found = head.entries.find(entry => entry.callId === callId && this.#groups.isWaiting(change, entry))
    if (found === undefined) return undefined
    this.#groups.settle(change, found)
    return { ...head, entries: head.entries.filter(entry => entry !== found) }
  }

  /** The device is done with these. Those that are gone already are passed over. */
  settle(change: Change, device: Uint8Array, offsets: readonly number[]): void {
    const head = this.headOf(change, device)
    if (head === undefined) return
    let { rows } = head
    for (const offset of offsets) {
      // Its head is not written for that: the next write of the head leaves out settled messages.
      const entry = head.entries.find(entry => entry.offset === offset)
      if (entry !== undefined) this.#groups.settle(change, entry)
      else if (rows > 0 && this.#removeRow(change, device, offset)) rows -= 1
    }
    if (rows !== head.rows) change.put(INBOX_HEADS, device, { ...head, rows })
  }

  /** Nothing remains of the inbox. */
  erase(change: Change, device: Uint8Array, { entries }: Head): void {
    for (const entry of entries) this.#groups.settle(change, entry)
    for (const entry of rowsOf(change, device, 0)) this.#removeRow(change, device, entry.offset)
    change.remove(INBOX_HEADS, device)
  }

  /** Fails unless counts, places and endings agree with the rows. For tests: it reads everything. */
  assertConsistent(view: View): void {
    let rows = 0
    const groups = new Set<string>()
    for (const { key, value } of view.range(INBOX_HEADS)) {
      rows += value.rows
      for (const entry of this.#assertInbox(view, key, value))
        groups.add(Buffer.from(entry.group).toString('hex'))
    }
    assert(view.count(INBOX) === rows, 'every row is counted by a head')
    assert(this.#groups.countOf(view) === groups.size, 'every group has a message that waits')
  }

  #assertInbox(view: View, device: Uint8Array, head: Head): readonly Entry[] {
    const { epoch, nextOffset, looksAtMs } = head
    const rows = rowsOf(view, device, 0)
    const waiting = [...rows, ...this.#waiting(view, head.entries)]
    assert(rows.length === head.rows, 'the rows are counted')
    assert(
      rows.every(entry => this.#groups.isWaiting(view, entry)),
      'what is settled has no row',
    )
    assert(waiting.length <= INBOX_MESSAGES_MAX, 'the messages are few enough')
    assert(epoch !== 0, 'an inbox that was used has an epoch')
    assert(
      waiting.every(entry => entry.offset < nextOffset && endOf(entry) >= looksAtMs),
      'no message is ahead of the head or of the sweep',
    )
    return waiting
  }

  /** Ends invitations of an inbox whose time has run out; returns when to look again. */
  #look(change: Change, device: Uint8Array, append: (item: InboxItem) => void): number | undefined {
    const { nowMs } = change
    const head = this.headOf(change, device)
    // One ending stands for the inbox, the head's; any other is left from an erased inbox.
    if (head === undefined || head.looksAtMs >= nowMs + 1) return undefined
    const entries = [...rowsOf(change, device, 0), ...this.#waiting(change, head.entries)]
    const due = entries.filter(entry => nowMs >= endOf(entry))
    const ends = entries.map(endOf).filter(endMs => nowMs < endMs)
    change.put(INBOX_HEADS, device, { ...head, looksAtMs: Math.min(...ends) })
    for (const entry of due.sort(byOffset)) this.#expire(change, device, entry, append)
    const { looksAtMs } = this.headOf(change, device)!
    return looksAtMs === NEVER ? undefined : looksAtMs
  }

  #moveLook(change: Change, device: Uint8Array, fromMs: number, toMs: number): void {
    const { expiries } = this.#deps
    if (fromMs !== NEVER) expiries.remove(change, EXPIRY.inbox, fromMs, device)
    expiries.add(change, EXPIRY.inbox, toMs, device)
  }

  #expire(change: Change, device: Uint8Array, entry: Entry, append: (item: InboxItem) => void): void {
    const tombstone = this.#tombstoneOf(change, entry)
    const head = this.#remove(change, device, this.headOf(change, device)!, entry)
    change.put(INBOX_HEADS, device, head)
    if (tombstone !== undefined) append(tombstone)
    else if (entry.expiresAtMs - entry.atMs >= INBOX_KEPT_MS)
      change.put(INBOX_HEADS, device, lost(change, head, entry.offset, 'expired'))
  }

  /** The item in the place of an invitation on which its room has said nothing. */
  #tombstoneOf(change: Change, entry: Entry): InboxItem | undefined {
    const item = entry.callId === undefined ? undefined : this.#groups.open(change, entry)
    if (item?.kind !== 'notice') return undefined
    const body = missedInsteadOf(item.body)
    const eventId = newEventId(this.#deps.randomBytes)
    return body && { kind: 'notice', body, encryptedAESKey: undefined, eventId, sentAtMs: change.nowMs }
  }

  /** Looked for where the entries have doubled in number: to look costs two reads for each. */
  #withoutSettled(change: Change, head: Head): Head {
    const { rows, entries } = head
    const mayMove = entries.length >= ENTRIES_MAX || rows + entries.length >= INBOX_MESSAGES_MAX
    const isLookedThrough = mayMove || LOOKED_THROUGH_AT.has(entries.length)
    return isLookedThrough ? { ...head, entries: this.#waiting(change, entries) } : head
  }

  /** Returns the head as it is to be written then. */
  #remove(change: Change, device: Uint8Array, head: Head, entry: Entry): Head {
    const entries = head.entries.filter(({ offset }) => offset !== entry.offset)
    if (entries.length === head.entries.length) {
      this.#removeRow(change, device, entry.offset)
      return { ...head, rows: head.rows - 1 }
    }
    this.#groups.settle(change, entry)
    return { ...head, entries }
  }

  #removeRow(change: Change, device: Uint8Array, offset: number): boolean {
    const key = rowKey(device, offset)
    const entry = change.get(INBOX, key)
    if (entry === undefined) return false
    change.remove(INBOX, key)
    this.#groups.settle(change, entry)
    return true
  }

  #waiting(view: View, entries: readonly Entry[]): readonly Entry[] {
    return entries.filter(entry => this.#groups.isWaiting(view, entry))
  }
}

/** In the order of their shapes. */
function entryOf(
  { offset, queue, atMs, expiresAtMs }: Omit<InboxMessage, 'item'>,
  callId: bigint | undefined,
  { group, at }: GroupPlace,
): Entry {
  if (callId === undefined) return { offset, queue, atMs, expiresAtMs, group, at }
  return { offset, queue, atMs, expiresAtMs, callId, group, at }
}

function lost(change: Change, head: Head, offset: number, reason: DropReason): Head {
  change.happened({ kind: 'inbox-dropped', reason })
  return { ...head, lostOffset: Math.max(head.lostOffset, offset) }
}

function byOffset(one: Entry, other: Entry): number {
  return one.offset - other.offset
}

/** Those that have rows, behind `offset`. */
function rowsOf(view: View, device: Uint8Array, offset: number, limit?: number): Entry[] {
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
const ENTRIES_MAX = 16
const ENTRIES_KEPT = 8
const LOOKED_THROUGH_AT: ReadonlySet<number> = new Set([4, 8])
/** Half a kilobyte each. */
const HEADS_KEPT_MAX = 4_096
const NEVER = Number.POSITIVE_INFINITY
