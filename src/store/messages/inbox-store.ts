/**
 * The inbox of each device (contract 7.1): what it has to be told, in order, until it has settled it or its time is
 * over. Written in the change of what it tells of, so that neither is there without the other.
 *
 * A device that is there soon settles what it gets, so that waits in a row of its change alone (`live-inboxes.ts`). What
 * waits for longer, or for a device that is away, is kept: in the device's head, or behind it in rows of its own. All that
 * is kept comes before all that is live.
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
import { idInKey, idsKey, nameOfKey, rangeOf, userInKey } from '../engine/keys.ts'
import { RowCache } from '../engine/row-cache.ts'
import type { Change, Happening, Store, View } from '../engine/store.ts'
import type { StoreDeps } from '../tables/deps.ts'
import {
  byOffset,
  type DropReason,
  ENTRIES_MAX,
  endOf,
  entryOf,
  lost,
  rowsOf,
  withFewEntries,
} from './kept-entries.ts'
import { LiveInboxes, type LiveMessage } from './live-inboxes.ts'
import { recordsIn } from './live-rows.ts'
import { MessageGroups } from './message-groups.ts'
import {
  type Entry,
  type Head,
  INBOX,
  INBOX_HEADS,
  type InboxHead,
  LIVE_GROUPS,
  rowKey,
} from './message-tables.ts'

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

export interface InboxStoreDeps extends StoreDeps {
  /** Whether the device has a socket at this moment; left out where it can't be known: nobody is there then. */
  readonly isConnected?: (userId: UserId, deviceId: DeviceId) => boolean
}

export class InboxStore {
  readonly #deps: InboxStoreDeps
  readonly #groups: MessageGroups
  readonly #live: LiveInboxes
  /** Each message has its device's head read three times: to add it, to fetch it, to acknowledge it. */
  readonly #heads: RowCache<Head, Head | null>
  readonly #dropped: Record<DropReason, number> = { full: 0, expired: 0 }

  constructor(deps: InboxStoreDeps) {
    this.#deps = deps
    this.#groups = new MessageGroups(deps)
    this.#live = new LiveInboxes(deps)
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
    const device = idsKey(userId, deviceId)
    const head = this.#read(view, device)
    if (head === undefined) return NO_HEAD
    const { epoch, lostOffset, delivered } = head
    const live = this.#liveOf(view, device, head)
    const [nextOffset, givenBelow] = this.#live.offsetBounds(view, nameOfKey(device), head)
    const count = head.rows + this.#waiting(view, head.entries).length + live.length
    return { epoch, nextOffset, givenBelow, lostOffset, count, ...(delivered && { delivered }) }
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
  append(change: Change, userId: UserId, deviceId: DeviceId, entry: InboxEntry): number {
    const device = idsKey(userId, deviceId)
    const head = this.#read(change, device) ?? this.#newHead()
    const isThere = this.#deps.isConnected?.(userId, deviceId) ?? false
    change.happened({ kind: 'inbox-news', userId, deviceId })
    const live = this.#liveWithout(change, device, head, entry)
    const count = head.rows + head.entries.length + live.length
    if (!isThere || this.#live.isFull || count >= INBOX_MESSAGES_MAX)
      return this.#appendKept(change, device, head, entry)
    return this.#appendLive(
      change,
      device,
      live.length < LIVE_MAX ? head : this.#kept(change, device, head),
      entry,
    )
  }

  /** The device is done with these. Those that are gone already are passed over. */
  settle(change: Change, userId: UserId, deviceId: DeviceId, offsets: Iterable<number>): void {
    const device = idsKey(userId, deviceId)
    const live = this.#live.waiting(change, nameOfKey(device))
    const kept: number[] = []
    for (const offset of offsets) {
      const message = live.find(each => each.offset === offset)
      if (message === undefined) kept.push(offset)
      else this.#live.settle(change, message)
    }
    const head = kept.length === 0 ? undefined : this.#read(change, device)
    if (head === undefined) return
    let { rows } = head
    for (const offset of kept) {
      // Its head is not written for that: the next write of the head leaves out settled messages.
      const entry = head.entries.find(entry => entry.offset === offset)
      if (entry !== undefined) this.#groups.settle(change, entry)
      else if (rows > 0 && this.#removeRow(change, device, offset)) rows -= 1
    }
    if (rows !== head.rows) change.put(INBOX_HEADS, device, { ...head, rows })
  }

  /** Keeps what has been live for a minute, so many messages in a change. */
  async keepLong(database: Store, nowMs: number): Promise<void> {
    const isDue = (view: View) => !this.#live.waitingLong(view, nowMs)[Symbol.iterator]().next().done
    while (database.view(isDue)) await database.change(change => this.#keepLong(change), nowMs)
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
    if (head === undefined) return false
    const live = this.#liveOf(change, device, head).find(message => message.callId === callId)
    if (live !== undefined) this.#live.settle(change, live)
    const changed = this.#withdraw(change, head, callId)
    if (changed !== undefined) change.put(INBOX_HEADS, device, changed)
    return live !== undefined || changed !== undefined
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
    for (const { device, offset } of this.#live.assertConsistent(view)) {
      const head = view.get(INBOX_HEADS, Buffer.from(device, 'latin1'))
      assert(head !== undefined, 'what waits for a device has its head')
      assert(head.nextOffset <= offset && offset < head.reservedTo, 'what is live is behind what is kept')
    }
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

  /** The offset is taken from those that the head has reserved, so that the head is seldom written. */
  #appendLive(
    change: Change,
    device: Uint8Array,
    known: Head,
    { item, expiresAtMs = NEVER, replaces }: InboxEntry,
  ): number {
    const name = nameOfKey(device)
    const offset = this.#live.nextOffset(change, name, known)
    if (offset >= known.reservedTo) {
      const head = { ...known, reservedTo: offset + RESERVED_AT_ONCE }
      change.put(INBOX_HEADS, device, withFewEntries(change, device, head))
    }
    const endsAtMs = Math.min(expiresAtMs, change.nowMs + INBOX_KEPT_MS)
    const callId = callInvitedTo(item)
    // The head is not written for what is replaced.
    this.#withdraw(change, known, callId ?? replaces)
    this.#withoutOutdated(change, known, item)
    this.#live.add(change, { device: name, offset, expiresAtMs: endsAtMs, callId, item })
    return offset
  }

  #appendKept(
    change: Change,
    device: Uint8Array,
    known: Head,
    { item, expiresAtMs = NEVER, replaces }: InboxEntry,
  ): number {
    const { nowMs } = change
    const callId = callInvitedTo(item)
    const kept = this.#kept(change, device, known)
    const rung = this.#withdraw(change, kept, callId ?? replaces) ?? kept
    const current = this.#withoutOutdated(change, rung, item)
    const head = this.#makeRoom(change, device, this.#withoutSettled(change, current))
    const offset = head.nextOffset
    const endsAtMs = Math.min(expiresAtMs, nowMs + INBOX_KEPT_MS)
    const message = { offset, queue: queueOf(item), atMs: nowMs, expiresAtMs: endsAtMs }
    const entry = entryOf(message, callId, this.#groups.add(change, item))
    const looksAtMs = this.#lookedAt(change, device, head.looksAtMs, endOf(entry))
    const entries = [...head.entries, entry]
    const next = { ...head, nextOffset: offset + 1, reservedTo: offset + 1, looksAtMs, entries }
    change.put(INBOX_HEADS, device, withFewEntries(change, device, next))
    return offset
  }

  /** The head as it is to be written where it holds what was live, up to an offset or all. */
  #kept(change: Change, device: Uint8Array, head: Head, upTo?: number): Head {
    const name = nameOfKey(device)
    const nextOffset = upTo === undefined ? this.#live.nextOffset(change, name, head) : upTo + 1
    const entries = [...head.entries]
    let { looksAtMs, lostOffset } = head
    for (const message of this.#liveOf(change, device, head)) {
      const { offset, atMs, expiresAtMs, callId } = message
      if (offset >= nextOffset) break
      const item = this.#live.open(change, message)
      this.#live.settle(change, message)
      if (item === undefined) {
        lostOffset = offset
        continue
      }
      const place = this.#groups.add(change, item)
      const entry = entryOf({ offset, queue: queueOf(item), atMs, expiresAtMs }, callId, place)
      looksAtMs = this.#lookedAt(change, device, looksAtMs, endOf(entry))
      entries.push(entry)
    }
    const reservedTo = upTo === undefined ? nextOffset : head.reservedTo
    return { ...head, nextOffset, reservedTo, lostOffset, looksAtMs, entries }
  }

  #keepLong(change: Change): void {
    /** By device. */
    const upTo = new Map<string, number>()
    let count = 0
    for (const { device, offset } of this.#live.waitingLong(change, change.nowMs)) {
      upTo.set(device, Math.max(offset, upTo.get(device) ?? 0))
      if (++count === KEPT_AT_ONCE) break
    }
    for (const [name, offset] of upTo) {
      const device = Buffer.from(name, 'latin1')
      const head = this.#read(change, device)
      assert(head !== undefined, 'what waits for a device has its head')
      change.put(
        INBOX_HEADS,
        device,
        withFewEntries(change, device, this.#kept(change, device, head, offset)),
      )
    }
  }

  #liveOf(view: View, device: Uint8Array, { nextOffset }: Head): readonly LiveMessage[] {
    const live = this.#live.waiting(view, nameOfKey(device))
    // In a view that is ahead of what this process has heard, they may be kept already.
    return live.length === 0 || live[0]!.offset >= nextOffset
      ? live
      : live.filter(({ offset }) => offset >= nextOffset)
  }

  /** What is live without what an item that comes replaces. */
  #liveWithout(
    change: Change,
    device: Uint8Array,
    head: Head,
    { item, replaces }: InboxEntry,
  ): readonly LiveMessage[] {
    const live = this.#liveOf(change, device, head)
    const callId = callInvitedTo(item) ?? replaces
    const isReplaced = (message: LiveMessage) =>
      callId === undefined
        ? isOutdatedBy(item, item) && isOutdatedBy(this.#live.open(change, message), item)
        : message.callId === callId
    const replaced = live.filter(isReplaced)
    for (const message of replaced) this.#live.settle(change, message)
    return replaced.length === 0 ? live : live.filter(message => !replaced.includes(message))
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

  /** When the sweep looks, where it is to do so at `toMs` at the latest. */
  #lookedAt(change: Change, device: Uint8Array, fromMs: number, toMs: number): number {
    if (fromMs <= toMs) return fromMs
    const { expiries } = this.#deps
    if (fromMs !== NEVER) expiries.remove(change, EXPIRY.inbox, fromMs, device)
    expiries.add(change, EXPIRY.inbox, toMs, device)
    return toMs
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
    for (const message of this.#liveOf(view, device, head)) {
      const item = message.offset > offset ? this.#live.open(view, message) : undefined
      const { atMs, expiresAtMs } = message
      if (item !== undefined) yield { offset: message.offset, queue: queueOf(item), item, atMs, expiresAtMs }
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
      for (const message of this.#live.waiting(change, nameOfKey(key))) this.#live.settle(change, message)
    }
    for (const table of [INBOX, INBOX_HEADS] as const) {
      for (const key of [...change.keys(table, range)]) change.remove(table, key)
    }
  }

  #newHead(): Head {
    const { nextOffset, lostOffset } = NO_HEAD
    return {
      epoch: this.#newEpoch(),
      nextOffset,
      reservedTo: nextOffset,
      lostOffset,
      looksAtMs: NEVER,
      rows: 0,
      entries: [],
    }
  }

  #newEpoch(): number {
    return Math.max(1, Buffer.from(this.#deps.randomBytes(4)).readUInt32BE())
  }
}

/**
 * News of inboxes, where a row of this table and key has changed, for a process that hears of changes by their rows. A head
 * is also written when a message goes, and for messages to come: then there is nothing to find.
 */
export function* inboxNewsOf(view: View, table: string, key: Uint8Array): Iterable<Happening> {
  if (table === INBOX_HEADS.name) yield newsOf(key)
  if (table !== LIVE_GROUPS.name) return
  // Where it is gone by now, all are done with it, or heads have it.
  const row = view.get(LIVE_GROUPS, key)
  for (const { device } of row === undefined ? [] : recordsIn(row))
    yield newsOf(Buffer.from(device, 'latin1'))
}

function newsOf(device: Uint8Array): Happening {
  return { kind: 'inbox-news', userId: userInKey(device), deviceId: idInKey(device, 1) as DeviceId }
}

const LOOKED_THROUGH_AT: ReadonlySet<number> = new Set([4, 8])
/** A device that is awake has fewer open. */
const LIVE_MAX = 32
/** A head is written once for so many messages that are live. */
const RESERVED_AT_ONCE = 64
/** Messages that are kept in one change: a few milliseconds. */
const KEPT_AT_ONCE = 256
/** Half a kilobyte each. */
const HEADS_KEPT_MAX = 4_096
const NEVER = Number.POSITIVE_INFINITY
const NO_HEAD: InboxHead = { epoch: 0, nextOffset: 1, givenBelow: 1, lostOffset: 0, count: 0 }
