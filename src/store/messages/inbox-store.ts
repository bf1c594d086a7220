/**
 * The inbox of each device (contract 7.1): what it has to be told, in order, until it has settled it or its time is
 * over. Written in the change of what it tells of, so that neither is there without the other.
 *
 * A connected device is soon done with a message, which therefore stands in a row of its change alone and is live
 * (`live-inboxes.ts`). Messages that wait for longer, or for a device that is away, are kept (`kept-inboxes.ts`). The kept
 * ones of a device come before its live ones.
 *
 * An expired invitation is not shown any more. The room's last word then replaces it; without one, the inbox says
 * `call_missed` itself.
 */

import type { Presence } from '../../domain/devices/presence.ts'
import type { DeviceId, UserId } from '../../domain/ids.ts'
import {
  callInvitedTo,
  INBOX_KEPT_MS,
  INBOX_MESSAGES_MAX,
  type InboxItem,
  isOutdatedBy,
  queueOf,
} from '../../domain/messages/inbox.ts'
import { assert } from '../../errors.ts'
import { idInKey, idsKey, nameOfKey, rangeOf, userInKey } from '../engine/keys.ts'
import type { Change, Happening, Store, View } from '../engine/store.ts'
import type { StoreDeps } from '../tables/deps.ts'
import { type DropReason, type InboxMessage, KeptInboxes } from './kept-inboxes.ts'
import type { LiveMessage } from './live-groups.ts'
import { LiveInboxes } from './live-inboxes.ts'
import { recordsIn } from './live-rows.ts'
import { type Head, INBOX_HEADS, type InboxHead, LIVE_GROUPS } from './message-tables.ts'

export type { InboxMessage }

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

export class InboxStore {
  readonly #deps: StoreDeps & Partial<Presence>
  readonly #kept: KeptInboxes
  readonly #live: LiveInboxes
  readonly #dropped: Record<DropReason, number> = { full: 0, expired: 0 }

  /** A process that only reads gives no presence: no device counts as connected then. */
  constructor(deps: StoreDeps & Partial<Presence>) {
    this.#deps = deps
    this.#kept = new KeptInboxes(deps, (change, userId, deviceId, item) =>
      this.append(change, userId, deviceId, { item }),
    )
    this.#live = new LiveInboxes(deps)
    deps.database.subscribe('inbox-dropped', ({ reason }) => {
      this.#dropped[reason] += 1
    })
  }

  /** How many messages were dropped unsettled since the process started. */
  get dropped(): ReadonlyMap<string, number> {
    return new Map(Object.entries(this.#dropped))
  }

  head(view: View, userId: UserId, deviceId: DeviceId): InboxHead {
    const device = idsKey(userId, deviceId)
    const head = this.#kept.headOf(view, device)
    if (head === undefined) return NO_HEAD
    const { epoch, lostOffset, delivered } = head
    const name = nameOfKey(device)
    const count = this.#kept.countOf(view, head) + this.#liveOf(view, name, head).length
    const { nextOffset, givenBelow } = this.#live.boundsOf(view, name, head)
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
    const head = this.#kept.headOf(view, device)
    const messages: InboxMessage[] = []
    if (head === undefined) return messages
    const isWanted = (each: InboxMessage) =>
      nowMs < each.expiresAtMs && (queue === undefined || each.queue === queue)
    if (head.rows + head.entries.length > 0) {
      for (const message of this.#kept.messages(view, device, head, offset)) {
        if (messages.length >= limit) return messages
        if (isWanted(message)) messages.push(message)
      }
    }
    for (const live of this.#liveOf(view, nameOfKey(device), head)) {
      if (messages.length >= limit) break
      const item = live.offset > offset ? this.#live.open(view, live) : undefined
      if (item === undefined) continue
      const { atMs, expiresAtMs } = live
      const message = { offset: live.offset, queue: queueOf(item), item, atMs, expiresAtMs }
      if (isWanted(message)) messages.push(message)
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
    const device = idsKey(userId, deviceId)
    const name = nameOfKey(device)
    const known = this.#kept.headOf(change, device) ?? this.#newHead()
    const callId = callInvitedTo(item)
    const live = this.#liveWithout(change, name, known, item, callId ?? replaces)
    const head = this.#kept.without(change, known, item, callId ?? replaces)
    const endsAtMs = Math.min(expiresAtMs, change.nowMs + INBOX_KEPT_MS)
    const count = head.rows + head.entries.length + live.length
    const isLive = this.#isThere(userId, deviceId) && count < INBOX_MESSAGES_MAX
    const base = isLive && live.length < LIVE_MAX ? head : this.#withLive(change, device, head)
    const offset = isLive ? this.#live.nextOffset(change, name, base) : base.nextOffset
    const message = { offset, expiresAtMs: endsAtMs, callId, item }
    if (!isLive) {
      const room = this.#kept.withRoom(change, device, base)
      const placed = { ...message, queue: queueOf(item), atMs: change.nowMs }
      const next = this.#kept.with(change, device, room, placed)
      this.#kept.put(change, device, { ...next, reservedTo: next.nextOffset })
    } else {
      if (offset >= base.reservedTo)
        this.#kept.put(change, device, { ...base, reservedTo: offset + RESERVED_AT_ONCE })
      this.#live.add(change, name, message)
    }
    change.happened({ kind: 'inbox-news', userId, deviceId })
    return offset
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
    if (kept.length > 0) this.#kept.settle(change, device, kept)
  }

  /** Moves messages that have been live for a minute to those that are kept, a bounded number in each change. */
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
    const head = this.#kept.headOf(change, device)
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
    const head = this.#kept.headOf(change, device)
    if (head === undefined) return false
    const live = this.#liveOf(change, nameOfKey(device), head).find(message => message.callId === callId)
    if (live !== undefined) this.#live.settle(change, live)
    const changed = this.#kept.withoutInvitation(change, head, callId)
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
    this.#kept.assertConsistent(view)
    for (const { device, offset } of this.#live.assertConsistent(view)) {
      const head = view.get(INBOX_HEADS, Buffer.from(device, 'latin1'))
      assert(head !== undefined, 'what waits for a device has its head')
      assert(head.nextOffset <= offset && offset < head.reservedTo, 'what is live is behind what is kept')
    }
  }

  /** Whether messages for the device are live. */
  #isThere(userId: UserId, deviceId: DeviceId): boolean {
    const { isConnected } = this.#deps
    return isConnected !== undefined && !this.#live.isFull && isConnected(userId, deviceId)
  }

  /** Live messages of the device, in order. */
  #liveOf(view: View, device: string, { nextOffset }: Head): readonly LiveMessage[] {
    const live = this.#live.waiting(view, device)
    // A view may be ahead of the changes that this process has heard of, and have them kept already.
    const isAhead = live.length > 0 && live[0]!.offset < nextOffset
    return isAhead ? live.filter(({ offset }) => offset >= nextOffset) : live
  }

  /** Live messages but for those that the item replaces: the invitation to this call, older news of the same contact. */
  #liveWithout(
    change: Change,
    device: string,
    head: Head,
    item: InboxItem,
    replaced: bigint | undefined,
  ): readonly LiveMessage[] {
    const live = this.#liveOf(change, device, head)
    if (live.length === 0) return live
    const isOfContact = isOutdatedBy(item, item)
    return live.filter(message => {
      const isReplaced = isOfContact
        ? isOutdatedBy(this.#live.open(change, message), item)
        : replaced !== undefined && message.callId === replaced
      if (isReplaced) this.#live.settle(change, message)
      return !isReplaced
    })
  }

  /** The head with the live messages of the device, up to an offset or all, as kept ones. */
  #withLive(change: Change, device: Uint8Array, known: Head, upTo?: number): Head {
    const name = nameOfKey(device)
    const nextOffset = upTo === undefined ? this.#live.nextOffset(change, name, known) : upTo + 1
    let head = known
    for (const message of this.#liveOf(change, name, known)) {
      const { offset, atMs, expiresAtMs, callId } = message
      if (offset >= nextOffset) break
      const item = this.#live.open(change, message)
      this.#live.settle(change, message)
      // It can't be read any more, so that the device is to look for itself.
      if (item === undefined) head = { ...head, lostOffset: offset }
      else {
        const placed = { offset, queue: queueOf(item), item, atMs, expiresAtMs, callId }
        head = this.#kept.with(change, device, head, placed)
      }
    }
    return { ...head, nextOffset, reservedTo: upTo === undefined ? nextOffset : head.reservedTo }
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
      const head = this.#kept.headOf(change, device)
      assert(head !== undefined, 'what waits for a device has its head')
      this.#kept.put(change, device, this.#withLive(change, device, head, offset))
    }
  }

  #eraseBelow(change: Change, prefix: Uint8Array): void {
    for (const { key, value } of [...change.range(INBOX_HEADS, rangeOf(prefix))]) {
      for (const message of this.#live.waiting(change, nameOfKey(key))) this.#live.settle(change, message)
      this.#kept.erase(change, key, value)
    }
  }

  #newHead(): Head {
    return {
      epoch: this.#newEpoch(),
      nextOffset: NO_HEAD.nextOffset,
      reservedTo: NO_HEAD.nextOffset,
      lostOffset: NO_HEAD.lostOffset,
      looksAtMs: Number.POSITIVE_INFINITY,
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
  // Without the row all devices are done with their messages, or heads have them.
  const row = view.get(LIVE_GROUPS, key)
  for (const { device } of row === undefined ? [] : recordsIn(row))
    yield newsOf(Buffer.from(device, 'latin1'))
}

function newsOf(device: Uint8Array): Happening {
  return { kind: 'inbox-news', userId: userInKey(device), deviceId: idInKey(device, 1) as DeviceId }
}

/** A device that is awake has fewer open. */
const LIVE_MAX = 32
/** A head is written once for so many messages that are live. */
const RESERVED_AT_ONCE = 64
/** Messages that are kept in one change: a few milliseconds. */
const KEPT_AT_ONCE = 256
const NO_HEAD: InboxHead = { epoch: 0, nextOffset: 1, givenBelow: 1, lostOffset: 0, count: 0 }
