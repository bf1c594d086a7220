/**
 * The inbox of each device (contract 7.1): what it has to be told, in order, until it has settled it or its time is
 * over. Written in the change of what it tells of, so that neither is there without the other.
 *
 * An invitation whose time is over is not shown any more. The room then has the last word on it, which takes its place;
 * where no word comes the inbox says `call_missed` itself.
 */

import { isDeepStrictEqual } from 'node:util'
import type { DeviceId, UserId } from '../../domain/ids.ts'
import {
  callInvitedTo,
  INBOX_KEPT_MS,
  INBOX_MESSAGES_MAX,
  type InboxItem,
  missedInsteadOf,
  queueOf,
} from '../../domain/messages/inbox.ts'
import { newEventId } from '../../domain/messages/notice.ts'
import { assert } from '../../errors.ts'
import type { StoreDeps } from '../engine/deps.ts'
import { EXPIRY } from '../engine/expiries.ts'
import { idInKey, idsKey, keyBehind, rangeOf } from '../engine/keys.ts'
import { type Change, recordTable, type View } from '../engine/store.ts'
import {
  endOf,
  HEAD_SHAPES,
  type Head,
  type InboxHead,
  type Invitation,
  invitationsAmong,
  offsetIn,
  ROW_SHAPES,
  type Row,
  rowKey,
  rowOf,
  type StoredRow,
  withoutFirst,
} from './inbox-records.ts'
import { SealedItems } from './sealed-items.ts'

export interface InboxMessage {
  readonly offset: number
  /** As it follows `/user/queue/`. */
  readonly queue: string
  readonly item: InboxItem
  /** When it was put here, milliseconds since 1970. */
  readonly atMs: number
  readonly expiresAtMs: number
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
  readonly #items: SealedItems
  readonly #dropped: Record<DropReason, number> = { full: 0, expired: 0 }

  constructor(deps: StoreDeps) {
    this.#deps = deps
    this.#items = new SealedItems(deps.secrets, deps.randomBytes)
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
    return view.get(INBOX_HEADS, idsKey(userId, deviceId)) ?? NO_HEAD
  }

  /** Messages behind `offset` whose time is not over, in order, at most `limit`; of one queue, if it is given. */
  after(
    view: View,
    userId: UserId,
    deviceId: DeviceId,
    offset: number,
    limit: number,
    nowMs: number,
    queue?: string,
  ): InboxMessage[] {
    const messages: InboxMessage[] = []
    for (const { offset: at, row } of behind(view, idsKey(userId, deviceId), offset)) {
      if (messages.length >= limit) break
      if (nowMs >= row.expiresAtMs || (queue !== undefined && row.queue !== queue)) continue
      const { sealed, queue: itsQueue, atMs, expiresAtMs } = row
      const item = this.#items.open(sealed)
      // Sealed by another secret, it is of no use to anyone, and goes when its time is over.
      if (item !== undefined) messages.push({ offset: at, queue: itsQueue, item, atMs, expiresAtMs })
    }
    return messages
  }

  /**
   * Puts an item at the end and returns its offset. It is kept until `expiresAtMs`, for seven days at
   * most, and the oldest goes where there is no room. A device has one invitation to a call: another replaces it.
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
    const known = change.get(INBOX_HEADS, device) ?? this.#newHead()
    const head = this.#makeRoom(change, device, this.#withdraw(change, device, known, callId ?? replaces))
    const before = this.#invitationsOf(change, device, head)
    const offset = head.nextOffset
    const times = { atMs: nowMs, expiresAtMs: Math.min(expiresAtMs, nowMs + INBOX_KEPT_MS) }
    const row = rowOf(queueOf(item), times, callId, this.#items.seal(change, item))
    const isFirst = head.count === 0 && row.sealed.length <= FIRST_BYTES_MAX
    if (!isFirst) change.put(INBOX, rowKey(device, offset), row)
    const looksAtMs = Math.min(head.looksAtMs, endOf(row))
    if (looksAtMs < head.looksAtMs) this.#moveLook(change, device, head.looksAtMs, looksAtMs)
    const invitations: readonly Invitation[] = callId === undefined ? before : [...before, [callId, offset]]
    const next = { ...head, nextOffset: offset + 1, count: head.count + 1, looksAtMs, invitations }
    change.put(INBOX_HEADS, device, isFirst ? { ...next, first: { offset, row } } : next)
    change.happened({ kind: 'inbox-news', userId, deviceId })
    return offset
  }

  /** The device is done with these. What is gone already is passed over. */
  settle(change: Change, userId: UserId, deviceId: DeviceId, offsets: Iterable<number>): void {
    const device = idsKey(userId, deviceId)
    const head = change.get(INBOX_HEADS, device)
    if (head === undefined) return
    let changed = head
    for (const offset of offsets) changed = this.#remove(change, device, changed, offset)
    if (changed !== head) change.put(INBOX_HEADS, device, changed)
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
    const head = change.get(INBOX_HEADS, device)
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
    const head = change.get(INBOX_HEADS, device)
    if (head === undefined) return false
    const changed = this.#withdraw(change, device, head, callId)
    if (changed !== head) change.put(INBOX_HEADS, device, changed)
    return changed !== head
  }

  /** Nothing remains of a device's inbox. */
  eraseDevice(change: Change, userId: UserId, deviceId: DeviceId): void {
    eraseBelow(change, idsKey(userId, deviceId))
  }

  /** Nothing remains of the inboxes of a user's devices. */
  eraseOf(change: Change, userId: UserId): void {
    eraseBelow(change, idsKey(userId))
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

  /** Fails unless counts, invitations and endings agree with what is stored. For tests: it reads everything. */
  assertConsistent(view: View): void {
    const heads = [...view.range(INBOX_HEADS)]
    for (const { key, value } of heads) this.#assertInbox(view, key, value)
    const messages = heads.reduce((sum, { value }) => sum + value.count, 0)
    const withoutRow = heads.filter(({ value }) => value.first !== undefined).length
    assert(view.count(INBOX) === messages - withoutRow, 'every message is counted by a head')
  }

  #assertInbox(view: View, device: Uint8Array, head: Head): void {
    const { count, epoch, nextOffset, looksAtMs } = head
    const rows = [...stored(view, device, head, 0)]
    assert(rows.length === count && count <= INBOX_MESSAGES_MAX, 'the messages are counted and few enough')
    assert(epoch !== 0, 'an inbox that was used has an epoch')
    assert(
      rows.every(({ offset, row }) => offset < nextOffset && endOf(row) >= looksAtMs),
      'no message is ahead of the head or of the sweep',
    )
    assert(
      isDeepStrictEqual(this.#invitationsOf(view, device, head), invitationsAmong(rows)),
      'the head knows which invitations wait',
    )
  }

  /** Ends what is over in an inbox; returns when to look again. */
  #look(change: Change, device: Uint8Array): number | undefined {
    const { nowMs } = change
    const head = change.get(INBOX_HEADS, device)
    // One ending stands for the inbox, that of the head; another one is of an inbox that was erased.
    if (head === undefined || head.looksAtMs >= nowMs + 1) return undefined
    const rows = [...stored(change, device, head, 0)]
    const due = rows.filter(({ row }) => nowMs >= endOf(row))
    const ends = rows.map(({ row }) => endOf(row)).filter(endMs => nowMs < endMs)
    change.put(INBOX_HEADS, device, { ...head, looksAtMs: Math.min(...ends) })
    for (const { offset, row } of due) this.#expire(change, device, offset, row)
    const { looksAtMs } = change.get(INBOX_HEADS, device)!
    return looksAtMs === NEVER ? undefined : looksAtMs
  }

  #moveLook(change: Change, device: Uint8Array, fromMs: number, toMs: number): void {
    const { expiries } = this.#deps
    if (fromMs !== NEVER) expiries.remove(change, EXPIRY.inbox, fromMs, device)
    expiries.add(change, EXPIRY.inbox, toMs, device)
  }

  #expire(change: Change, device: Uint8Array, offset: number, row: Row): void {
    const head = this.#remove(change, device, change.get(INBOX_HEADS, device)!, offset)
    change.put(INBOX_HEADS, device, head)
    const tombstone = this.#tombstoneOf(row, change.nowMs)
    if (tombstone !== undefined) {
      const [userId, deviceId] = [idInKey(device, 0) as UserId, idInKey(device, 1) as DeviceId]
      this.append(change, userId, deviceId, { item: tombstone })
    } else if (row.expiresAtMs - row.atMs >= INBOX_KEPT_MS)
      this.#noteLost(change, device, head, offset, 'expired')
  }

  /** What takes the place of an invitation on which its room has said nothing. */
  #tombstoneOf({ callId, sealed }: Row, nowMs: number): InboxItem | undefined {
    const item = callId === undefined ? undefined : this.#items.open(sealed)
    if (item?.kind !== 'notice') return undefined
    const body = missedInsteadOf(item.notice)
    const eventId = newEventId(this.#deps.randomBytes)
    return body && { kind: 'notice', notice: { ...body, eventId, sentAtMs: nowMs } }
  }

  #makeRoom(change: Change, device: Uint8Array, head: Head): Head {
    if (head.count < INBOX_MESSAGES_MAX) return head
    const [oldest] = stored(change, device, head, 0)
    assert(oldest !== undefined, 'an inbox that is full has an oldest message')
    return this.#noteLost(
      change,
      device,
      this.#remove(change, device, head, oldest.offset),
      oldest.offset,
      'full',
    )
  }

  #noteLost(change: Change, device: Uint8Array, head: Head, offset: number, reason: DropReason): Head {
    const next = { ...head, lostOffset: Math.max(head.lostOffset, offset) }
    change.put(INBOX_HEADS, device, next)
    change.happened({ kind: 'inbox-dropped', reason })
    return next
  }

  /** Returns the head as it is to be written then, which is the same when nothing was there. */
  #remove(change: Change, device: Uint8Array, head: Head, offset: number): Head {
    const key = rowKey(device, offset)
    const isFirst = head.first?.offset === offset
    const row = isFirst ? head.first?.row : change.get(INBOX, key)
    if (row === undefined) return head
    const before = this.#invitationsOf(change, device, head)
    if (!isFirst) change.remove(INBOX, key)
    this.#items.forget(row.sealed)
    const invitations = row.callId === undefined ? before : before.filter(([, its]) => its !== offset)
    const changed = { ...head, count: head.count - 1, invitations }
    return isFirst ? withoutFirst(changed) : changed
  }

  /** As `#remove`, of the invitation to a call that waits. */
  #withdraw(change: Change, device: Uint8Array, head: Head, callId: bigint | undefined): Head {
    if (callId === undefined) return head
    const found = this.#invitationsOf(change, device, head).find(([itsCall]) => itsCall === callId)
    return found === undefined ? head : this.#remove(change, device, head, found[1])
  }

  #invitationsOf(view: View, device: Uint8Array, head: Head): readonly Invitation[] {
    return head.invitations ?? invitationsAmong([...stored(view, device, head, 0)])
  }

  #newHead(): Head {
    return { ...NO_HEAD, epoch: this.#newEpoch(), looksAtMs: NEVER, invitations: [] }
  }

  #newEpoch(): number {
    return Math.max(1, Buffer.from(this.#deps.randomBytes(4)).readUInt32BE())
  }
}

/** With it most heads are still shorter than half a page, beyond which LMDB gives a row pages of its own. */
const FIRST_BYTES_MAX = 1_536
const NEVER = Number.POSITIVE_INFINITY
const NO_HEAD: InboxHead = { epoch: 0, nextOffset: 1, lostOffset: 0, count: 0 }
const READ_SINGLY_MAX = 16

/**
 * Departure from a range for the few messages that have just come: what lmdb-js makes for each range, its cursor among
 * it, outlives the garbage collections of short-lived things (`call-start` in `bench/`).
 */
function behind(view: View, device: Uint8Array, offset: number): Iterable<StoredRow> {
  const head = view.get(INBOX_HEADS, device)
  if (head === undefined) return []
  return head.nextOffset - offset > READ_SINGLY_MAX
    ? stored(view, device, head, offset + 1)
    : singly(view, device, head, offset + 1)
}

function* singly(
  view: View,
  device: Uint8Array,
  { first, count, nextOffset }: Head,
  fromOffset: number,
): Iterable<StoredRow> {
  if (first !== undefined && first.offset >= fromOffset) yield first
  if (first !== undefined && count === 1) return
  for (let offset = fromOffset; offset < nextOffset; offset++) {
    const row = view.get(INBOX, rowKey(device, offset))
    if (row !== undefined) yield { offset, row }
  }
}

function* stored(view: View, device: Uint8Array, { first }: Head, fromOffset: number): Iterable<StoredRow> {
  if (first !== undefined && first.offset >= fromOffset) yield first
  const range = { start: rowKey(device, fromOffset), end: keyBehind(device) }
  for (const { key, value } of view.range(INBOX, range)) yield { offset: offsetIn(key), row: value }
}

function eraseBelow(change: Change, prefix: Uint8Array): void {
  const range = rangeOf(prefix)
  for (const table of [INBOX, INBOX_HEADS, INVITATIONS_OF_BEFORE]) {
    for (const key of [...change.keys(table, range)]) change.remove(table, key)
  }
}

const INBOX = recordTable<Row>('inbox', ROW_SHAPES)
export const INBOX_HEADS = recordTable<Head>('inbox-heads', HEAD_SHAPES)
/** What earlier versions kept; only erased. */
const INVITATIONS_OF_BEFORE = recordTable<number>('inbox-invitations')
