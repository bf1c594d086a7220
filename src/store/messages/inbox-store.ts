/**
 * The inbox of each device (contract 7.1): what it has to be told, in order, until it has settled it or its time is
 * over. Written in the change of what it tells of, so that neither is there without the other.
 *
 * An expired invitation is not shown any more. The room's last word then replaces it; without one, the inbox says
 * `call_missed` itself.
 */

import type { DeviceId, UserId } from '../../domain/ids.ts'
import { newEventId } from '../../domain/ids.ts'
import {
  callInvitedTo,
  INBOX_KEPT_MS,
  INBOX_MESSAGES_MAX,
  type InboxItem,
  isOutdatedBy,
  missedInsteadOf,
  queueOf,
} from '../../domain/messages/inbox.ts'
import { assert } from '../../errors.ts'
import { EXPIRY } from '../engine/expiries.ts'
import { idInKey, idsKey, keyBehind, rangeOf, userInKey } from '../engine/keys.ts'
import { RowCache } from '../engine/row-cache.ts'
import type { Change, Happening, View } from '../engine/store.ts'
import type { StoreDeps } from '../tables/deps.ts'

import { type GroupPlace, MessageGroups } from './message-groups.ts'
import { type Entry, type Head, INBOX, INBOX_HEADS, type InboxHead, rowKey } from './message-tables.ts'

export interface InboxMessage {
  readonly offset: number
  /** As it follows `/user/queue/`. */
  readonly queue: string
  readonly item: InboxItem
  /** When it was put here, milliseconds since 1970. */
  readonly atMs: number
  readonly expiresAtMs: number
}

/** At most `limit` messages behind `offset` as they wait at `nowMs`; of one queue, if it is given. */
export interface InboxRange {
  readonly offset: number
  readonly limit: number
  readonly nowMs: number
  readonly queue?: string | undefined
}

export interface InboxEntry {
  readonly item: InboxItem
  /** When it is of no use any more, milliseconds since 1970. */
  readonly expiresAtMs?: number | undefined
  /** The call to which the device's waiting invitation is taken back in the same step. */
  readonly replaces?: bigint | undefined
}

/** Why messages were dropped unsettled: for want of room, or after seven days. */
type DropReason = 'full' | 'expired'

export class InboxStore {
  readonly #deps: StoreDeps
  readonly #groups: MessageGroups
  /** Each message has its device's head read three times: to add it, to fetch it, to acknowledge it. */
  readonly #heads: RowCache<Head, Head | null>
  readonly #dropped: Record<DropReason, number> = { full: 0, expired: 0 }

  constructor(deps: StoreDeps) {
    this.#deps = deps
    this.#groups = new MessageGroups(deps)
    this.#heads = new RowCache(deps.database, INBOX_HEADS, head => head ?? null, HEADS_KEPT_MAX)
    deps.database.subscribe('inbox-dropped', ({ reason }) => {
      this.#dropped[reason] += 1
    })
    deps.expiries.define(EXPIRY.inbox, (change, device) => this.#look(change, device))
  }

  /** How many messages were dropped unsettled since the process started. */
  get dropped(): ReadonlyMap<string, number> {
    return new Map(Object.entries(this.#dropped))
  }

  head(view: View, userId: UserId, deviceId: DeviceId): InboxHead {
    const head = this.#read(view, idsKey(userId, deviceId))
    if (head === undefined) return NO_HEAD
    const { epoch, nextOffset, lostOffset, delivered } = head
    const count = head.rows + this.#waiting(view, head.entries).length
    return { epoch, nextOffset, lostOffset, count, ...(delivered && { delivered }) }
  }

  /** Unexpired messages, in order. */
  after(
    view: View,
    userId: UserId,
    deviceId: DeviceId,
    { offset, limit, nowMs, queue }: InboxRange,
  ): InboxMessage[] {
    const device = idsKey(userId, deviceId)
    const head = this.#read(view, device)
    const messages: InboxMessage[] = []
    if (head === undefined) return messages
    for (const message of this.#messages(view, device, head, offset)) {
      if (messages.length >= limit) break
      if (nowMs >= message.expiresAtMs) continue
      if (queue === undefined || message.queue === queue) messages.push(message)
    }
    return messages
  }

  /**
   * Puts an item at the end and returns its offset. It is kept until `expiresAtMs`, for seven days at
   * most, and the oldest goes where there is no room. A device has one invitation to a call: another replaces it. A
   * `contact_changed` replaces the one before of the same contact: a contact who renames themselves often pushes nothing out.
   */
  append(
    change: Change,
    userId: UserId,
    deviceId: DeviceId,
    { item, expiresAtMs = Number.POSITIVE_INFINITY, replaces }: InboxEntry,
  ): number {
    const { nowMs } = change
    const callId = callInvitedTo(item)
    const device = idsKey(userId, deviceId)
    const known = this.#read(change, device) ?? this.#newHead()
    const rung = this.#withdraw(change, known, callId ?? replaces) ?? known
    const current = this.#withoutOutdated(change, rung, item)
    const head = this.#makeRoom(change, device, this.#withoutSettled(change, current))
    const offset = head.nextOffset
    const endsAtMs = Math.min(expiresAtMs, nowMs + INBOX_KEPT_MS)
    const message = { offset, queue: queueOf(item), atMs: nowMs, expiresAtMs: endsAtMs }
    const entry = entryOf(message, callId, this.#groups.add(change, item))
    const looksAtMs = Math.min(head.looksAtMs, endOf(entry))
    if (looksAtMs < head.looksAtMs) this.#moveLook(change, device, head.looksAtMs, looksAtMs)
    const next = { ...head, nextOffset: offset + 1, looksAtMs, entries: [...head.entries, entry] }
    change.put(INBOX_HEADS, device, withFewEntries(change, device, next))
    change.happened({ kind: 'inbox-news', userId, deviceId })
    return offset
  }

  /** The device is done with these. Those that are gone already are passed over. */
  settle(change: Change, userId: UserId, deviceId: DeviceId, offsets: Iterable<number>): void {
    const device = idsKey(userId, deviceId)
    const head = this.#read(change, device)
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

  /**
   * Notes what a connection was given and has not settled, so that the next one is told that it gets
   * it again. `delivered` has the last offset of each queue.
   */
  markDelivered(
    change: Change,
    userId: UserId,
    deviceId: DeviceId,
    delivered: Readonly<Record<string, number>>,
  ): void {
    const device = idsKey(userId, deviceId)
    const head = this.#read(change, device)
    if (head === undefined) return
    const merged: Record<string, number> = { ...head.delivered }
    for (const [queue, offset] of Object.entries(delivered)) {
      merged[queue] = Math.max(merged[queue] ?? 0, offset)
    }
    const inOrder = Object.entries(merged).sort(([one], [other]) => (one < other ? -1 : 1))
    change.put(INBOX_HEADS, device, { ...head, delivered: Object.fromEntries(inOrder) })
  }

  /** Takes back the invitation to a call that waits for the device; false when none does. */
  dropInvitation(change: Change, userId: UserId, deviceId: DeviceId, callId: bigint): boolean {
    const device = idsKey(userId, deviceId)
    const head = this.#read(change, device)
    const changed = head && this.#withdraw(change, head, callId)
    if (changed !== undefined) change.put(INBOX_HEADS, device, changed)
    return changed !== undefined
  }

  /** Nothing remains of a device's inbox. */
  eraseDevice(change: Change, userId: UserId, deviceId: DeviceId): void {
    this.#eraseBelow(change, idsKey(userId, deviceId))
  }

  /** Nothing remains of the inboxes of a user's devices. */
  eraseOf(change: Change, userId: UserId): void {
    this.#eraseBelow(change, idsKey(userId))
  }

  /**
   * Every inbox goes on in a new epoch. For a store that was restored from a backup: devices have
   * seen offsets that it is about to give to other messages.
   */
  renewEpochs(change: Change): void {
    for (const { key, value } of [...change.range(INBOX_HEADS)]) {
      change.put(INBOX_HEADS, key, { ...value, epoch: this.#newEpoch() })
    }
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
  #look(change: Change, device: Uint8Array): number | undefined {
    const { nowMs } = change
    const head = this.#read(change, device)
    // One ending stands for the inbox, the head's; any other is left from an erased inbox.
    if (head === undefined || head.looksAtMs >= nowMs + 1) return undefined
    const entries = [...rowsOf(change, device, 0), ...this.#waiting(change, head.entries)]
    const due = entries.filter(entry => nowMs >= endOf(entry))
    const ends = entries.map(endOf).filter(endMs => nowMs < endMs)
    change.put(INBOX_HEADS, device, { ...head, looksAtMs: Math.min(...ends) })
    for (const entry of due.sort(byOffset)) this.#expire(change, device, entry)
    const { looksAtMs } = this.#read(change, device)!
    return looksAtMs === NEVER ? undefined : looksAtMs
  }

  #moveLook(change: Change, device: Uint8Array, fromMs: number, toMs: number): void {
    const { expiries } = this.#deps
    if (fromMs !== NEVER) expiries.remove(change, EXPIRY.inbox, fromMs, device)
    expiries.add(change, EXPIRY.inbox, toMs, device)
  }

  #expire(change: Change, device: Uint8Array, entry: Entry): void {
    const tombstone = this.#tombstoneOf(change, entry)
    const head = this.#remove(change, device, this.#read(change, device)!, entry)
    change.put(INBOX_HEADS, device, head)
    if (tombstone !== undefined) {
      const [userId, deviceId] = [idInKey(device, 0) as UserId, idInKey(device, 1) as DeviceId]
      this.append(change, userId, deviceId, { item: tombstone })
    } else if (entry.expiresAtMs - entry.atMs >= INBOX_KEPT_MS)
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

  #makeRoom(change: Change, device: Uint8Array, head: Head): Head {
    if (head.rows + head.entries.length < INBOX_MESSAGES_MAX) return head
    const [oldest] = [...rowsOf(change, device, 0, 1), ...head.entries].sort(byOffset)
    assert(oldest !== undefined, 'an inbox that is full has an oldest message')
    return lost(change, this.#remove(change, device, head, oldest), oldest.offset, 'full')
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

  /** The head without the invitation to a call that waits; undefined where none does. */
  #withdraw(change: Change, head: Head, callId: bigint | undefined): Head | undefined {
    if (callId === undefined) return undefined
    const found = head.entries.find(entry => entry.callId === callId && this.#groups.isWaiting(change, entry))
    if (found === undefined) return undefined
    this.#groups.settle(change, found)
    return { ...head, entries: head.entries.filter(entry => entry !== found) }
  }

  #withoutOutdated(change: Change, head: Head, item: InboxItem): Head {
    if (!isOutdatedBy(item, item)) return head
    const queue = queueOf(item)
    const outdated = head.entries.filter(entry => {
      if (entry.queue !== queue || !this.#groups.isWaiting(change, entry)) return false
      return isOutdatedBy(this.#groups.open(change, entry), item)
    })
    for (const entry of outdated) this.#groups.settle(change, entry)
    return { ...head, entries: head.entries.filter(entry => !outdated.includes(entry)) }
  }

  #waiting(view: View, entries: readonly Entry[]): readonly Entry[] {
    return entries.filter(entry => this.#groups.isWaiting(view, entry))
  }

  *#messages(view: View, device: Uint8Array, head: Head, offset: number): Iterable<InboxMessage> {
    const fresh = head.entries.filter(entry => entry.offset > offset)
    const entries = head.rows === 0 ? fresh : [...rowsOf(view, device, offset), ...fresh].sort(byOffset)
    for (const entry of entries) {
      const item = this.#groups.isWaiting(view, entry) ? this.#groups.open(view, entry) : undefined
      const { offset, queue, atMs, expiresAtMs } = entry
      // A message that another secret sealed can't be opened. The sweep removes it in its time.
      if (item !== undefined) yield { offset, queue, item, atMs, expiresAtMs }
    }
  }

  #read(view: View, device: Uint8Array): Head | undefined {
    return this.#heads.of(view, device) ?? undefined
  }

  #eraseBelow(change: Change, prefix: Uint8Array): void {
    const range = rangeOf(prefix)
    for (const { key, value } of [...change.range(INBOX_HEADS, range)]) {
      for (const entry of value.entries) this.#groups.settle(change, entry)
      for (const entry of rowsOf(change, key, 0)) this.#groups.settle(change, entry)
    }
    for (const table of [INBOX, INBOX_HEADS] as const) {
      for (const key of [...change.keys(table, range)]) change.remove(table, key)
    }
  }

  #newHead(): Head {
    const { nextOffset, lostOffset } = NO_HEAD
    return { epoch: this.#newEpoch(), nextOffset, lostOffset, looksAtMs: NEVER, rows: 0, entries: [] }
  }

  #newEpoch(): number {
    return Math.max(1, Buffer.from(this.#deps.randomBytes(4)).readUInt32BE())
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

/** Gives the oldest entries rows, so that the head stays small. Invitations stay: they are looked for by their call. */
function withFewEntries(change: Change, device: Uint8Array, head: Head): Head {
  const { entries } = head
  if (entries.length <= ENTRIES_MAX) return head
  const stays = (entry: Entry, at: number) =>
    at >= entries.length - ENTRIES_KEPT || entry.callId !== undefined
  const moved = entries.filter((entry, at) => !stays(entry, at))
  for (const entry of moved) change.put(INBOX, rowKey(device, entry.offset), entry)
  return { ...head, rows: head.rows + moved.length, entries: entries.filter(stays) }
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

/**
 * News of an inbox, where a row of this table and key has changed, for a process that hears of changes by their rows. A head
 * is also written when a message goes: then there is nothing to find.
 */
export function inboxNewsOf(table: string, key: Uint8Array): Happening | undefined {
  if (table !== INBOX_HEADS.name) return undefined
  return { kind: 'inbox-news', userId: userInKey(key), deviceId: idInKey(key, 1) as DeviceId }
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
const NO_HEAD: InboxHead = { epoch: 0, nextOffset: 1, lostOffset: 0, count: 0 }
