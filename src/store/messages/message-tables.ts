/** Tables of messages that wait: for a device in its inbox, and to leave the process in the outbox. */

import { EXPIRY } from '../engine/expiries.ts'
import { ID, KIND, NUMBER, opaque, TIME } from '../engine/key-parts.ts'
import { idsKey } from '../engine/keys.ts'
import {
  bytes,
  count,
  type Form,
  id,
  listOf,
  mapOf,
  object,
  optional,
  type RowOf,
  sealed,
  text,
} from '../engine/row-form.ts'
import { bytesTable, rowTable } from '../engine/table.ts'
import { isSettledIn, recordsEnd, recordsIn } from './live-rows.ts'

/** Time, number of the change, random bytes. */
const GROUP = { time: TIME, change: NUMBER, random: opaque(4) }
export const GROUP_ID_BYTES = 16
/** To read one, all have to be opened. */
export const GROUP_MESSAGES_MAX = 32

/** A message and its place. */
export type Entry = RowOf<typeof ENTRY>
const ENTRY = object({
  offset: count,
  queue: text,
  atMs: count,
  expiresAtMs: count,
  /** The call of an invitation. */
  callId: optional(id()),
  /** Where it is. */
  group: bytes(GROUP_ID_BYTES),
  at: count,
})
const ENTRY_SHAPES = [ENTRY.shape(), ENTRY.shape('callId')]

export const INBOX = rowTable('inbox', { user: ID, device: ID, offset: NUMBER }, ENTRY, {
  holds: 'where an older message of a device is, until when',
  shapes: ENTRY_SHAPES,
  relations: [
    {
      in: 'inbox-heads',
      under: key => key.subarray(0, DEVICE_BYTES),
      where: ({ nextOffset, entries }: Head, _, row) =>
        row.offset < nextOffset && !entries.some(({ offset }) => offset === row.offset),
    },
    { in: 'inbox-groups', under: (_, { group }) => group },
    {
      in: 'calls',
      under: (_, { callId }) => (callId === undefined ? undefined : idsKey(callId)),
      what: (_, { callId }) => `call ${callId}, to which it invites`,
    },
  ],
  ownKey: (key, { offset }) => rowKey(key.subarray(0, DEVICE_BYTES), offset),
  remedy: 'the device may miss what it was to be told: have its user open the app and look',
})

/** The row of an inbox as a whole. */
export type Head = RowOf<typeof HEAD>
const HEAD = object({
  /** 32 random bits; 0 for an inbox that nothing was put into yet. */
  epoch: count,
  /**
   * All messages with lower offsets that wait are in this row, or in rows of the device's own; those from here on are in
   * `inbox-live`. The first message has 1.
   */
  nextOffset: count,
  /** Offsets below may have been given: a device that is there is given them without a write of this row. */
  reservedTo: count,
  /** The last message that was dropped unsettled, for want of room or after seven days; 0 when none was. */
  lostOffset: count,
  /** When the sweep looks here; infinite when it need not. */
  looksAtMs: count,
  /** How many messages have rows of their own. */
  rows: count,
  /** The rest, in order. Some may be settled already: settling leaves the head as it is. */
  entries: listOf(ENTRY),
  /** By queue, the last offset that a connection is known to have been given; absent when none is. */
  delivered: optional(mapOf(count)),
})

export const INBOX_HEADS = rowTable('inbox-heads', { user: ID, device: ID }, HEAD, {
  holds: 'the newest messages of a device, and its offsets',
  shapes: [
    HEAD.shape(),
    HEAD.shape('delivered'),
    // The last delivered offset of each queue but a developer's, by name.
    ['account'],
    ['calls'],
    ['contacts'],
    ['account', 'calls'],
    ['account', 'contacts'],
    ['calls', 'contacts'],
    ['account', 'calls', 'contacts'],
    ...ENTRY_SHAPES,
  ],
  ending: {
    kind: EXPIRY.inbox,
    atMs: ({ looksAtMs }) => (Number.isFinite(looksAtMs) ? looksAtMs : undefined),
  },
  relations: [
    { in: ['devices', 'devices-removed', 'devices-pending'], under: key => key, what: () => 'the device' },
  ],
  *disagreements(_, { epoch, nextOffset, reservedTo }) {
    if (epoch === 0) yield 'its inbox has no epoch'
    if (reservedTo < nextOffset) yield 'it has given offsets that it has not reserved'
  },
  remedy: 'the device may miss messages: have its user remove the device and sign in on it again',
})

const COUNTED_AND_SEALED: Form<Uint8Array> = {
  fits: value => value instanceof Uint8Array && sealed.fits(value.subarray(1)),
}

/** How many messages, and these, sealed. */
export const GROUPS = bytesTable('inbox-groups', GROUP, COUNTED_AND_SEALED, {
  holds: 'messages of one change, sealed, for up to 32 inboxes',
  remedy: 'the devices that it is for miss it: have their users open the app and look',
})

/** A bit for each message that its device is done with, where that is some but not all. */
export const SETTLED = bytesTable('inbox-settled', GROUP, bytes(GROUP_MESSAGES_MAX / 8), {
  holds: 'which of these messages are acknowledged',
  relations: [{ in: 'inbox-groups', under: key => key, what: () => 'such messages' }],
  remedy: 'devices may get messages again that they have acknowledged',
})

const LIVE: Form<Uint8Array> = {
  fits: value =>
    value instanceof Uint8Array && recordsEnd(value) > 1 && sealed.fits(value.subarray(recordsEnd(value))),
}

/** The places of messages, then all of them, sealed. See `live-rows.ts`. */
export const LIVE_GROUPS = bytesTable('inbox-live', GROUP, LIVE, {
  holds: 'messages of one change, sealed, for up to 32 devices that were there; for a minute at most',
  *disagreements(key, row, rows) {
    for (const { device, offset, callId, at } of recordsIn(row)) {
      const isSettled =
        rows.has('inbox-live-settled', key) &&
        rows.holds<Uint8Array>('inbox-live-settled', key, bits => isSettledIn(bits, at))
      if (isSettled) continue
      const isPlaced = ({ nextOffset, reservedTo }: Head) => nextOffset <= offset && offset < reservedTo
      if (!rows.holds('inbox-heads', Buffer.from(device, 'latin1'), isPlaced))
        yield `inbox-heads does not have a place for its message ${at + 1}`
      if (callId !== undefined && !rows.has('calls', idsKey(callId)))
        yield `it invites to call ${callId}, which is not in calls`
    }
  },
  remedy: 'the devices that it is for miss it: have their users open the app and look',
})

/** As `SETTLED`. */
export const LIVE_SETTLED = bytesTable('inbox-live-settled', GROUP, bytes(GROUP_MESSAGES_MAX / 8), {
  holds: 'which of these messages are acknowledged',
  relations: [{ in: 'inbox-live', under: key => key, what: () => 'such messages' }],
  remedy: 'devices may get messages again that they have acknowledged',
})

const LANE_PLACE = { lane: KIND, due: TIME, count: NUMBER, random: opaque(4) }
export type OutboxRow = RowOf<typeof OUTBOX_ROW>
/** A list of messages, and how often they have been tried. */
const OUTBOX_ROW = object({ sealed, tries: count })

export const OUTBOX = rowTable('outbox', LANE_PLACE, OUTBOX_ROW, {
  holds: 'mail, short messages or pushes, sealed',
  remedy: 'the message is not sent; the others are',
})

/** An inbox as its device sees it. */
export type InboxHead = Pick<Head, 'epoch' | 'lostOffset' | 'delivered'> & {
  /** No message is to come with a lower offset. */
  readonly nextOffset: number
  /** All messages so far have lower offsets. The same where it is known, which it may not be in another process. */
  readonly givenBelow: number
  /** How many messages. */
  readonly count: number
}

/** By device and offset. */
export function rowKey(device: Uint8Array, offset: number): Uint8Array {
  const key = Buffer.allocUnsafe(device.length + NUMBER.bytes)
  key.set(device)
  key.writeUIntBE(offset, device.length, NUMBER.bytes)
  return key
}

const DEVICE_BYTES = 2 * ID.bytes
