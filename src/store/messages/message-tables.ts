/** Tables of messages that wait: for a device in its inbox, and to leave the process in the outbox. */

import { EXPIRY } from '../engine/expiries.ts'
import { ID, KIND, NUMBER, opaque, TIME } from '../engine/key-parts.ts'
import { idsKey } from '../engine/keys.ts'
import {
  bytes,
  count,
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

export const INBOX = rowTable({
  name: 'inbox',
  subject: 'messages that wait',
  holds: 'where an older message of a device is, until when',
  key: { user: ID, device: ID, offset: NUMBER },
  row: ENTRY,
  shapes: ENTRY_SHAPES,
  relations: [
    {
      in: 'inbox-heads',
      under: key => key.subarray(0, DEVICE_BYTES),
      where: ({ nextOffset, entries }: Head, key) =>
        offsetIn(key) < nextOffset && !entries.some(({ offset }) => offset === offsetIn(key)),
      otherwise: 'inbox-heads does not know of the message',
    },
    {
      in: 'inbox-groups',
      under: (_, { group }) => group,
      otherwise: 'its message is not in inbox-groups',
    },
    {
      in: 'calls',
      under: (_, { callId }) => (callId === undefined ? undefined : idsKey(callId)),
      otherwise: (_, { callId }) => `it invites to call ${callId}, which is not in calls`,
    },
  ],
  remedy: 'the device may miss what it was to be told: have its user open the app and look',
})

/** The row of an inbox as a whole. */
export type Head = RowOf<typeof HEAD>
const HEAD = object({
  /** 32 random bits; 0 for an inbox that nothing was put into yet. */
  epoch: count,
  /** The offset of the message that comes next; the first has 1. */
  nextOffset: count,
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

export const INBOX_HEADS = rowTable({
  name: 'inbox-heads',
  subject: 'messages that wait',
  holds: 'the newest messages of a device, and its offsets',
  key: { user: ID, device: ID },
  row: HEAD,
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
    {
      in: ['devices', 'devices-removed', 'devices-pending'],
      under: key => key,
      otherwise: 'there is no such device',
    },
  ],
  *disagreements(_, { epoch }) {
    if (epoch === 0) yield 'its inbox has no epoch'
  },
  remedy: 'the device may miss messages: have its user remove the device and sign in on it again',
})

/** How many messages, and these, sealed. */
export const GROUPS = bytesTable({
  name: 'inbox-groups',
  subject: 'messages that wait',
  holds: 'messages of one change, sealed, for up to 32 inboxes',
  key: GROUP,
  row: { fits: value => value instanceof Uint8Array && sealed.fits(value.subarray(1)) },
  remedy: 'the devices that it is for miss it: have their users open the app and look',
})

/** A bit for each message that its device is done with, where that is some but not all. */
export const SETTLED = bytesTable({
  name: 'inbox-settled',
  subject: 'messages that wait',
  holds: 'which of these messages are acknowledged',
  key: GROUP,
  row: bytes(GROUP_MESSAGES_MAX / 8),
  relations: [
    {
      in: 'inbox-groups',
      under: key => key,
      otherwise: 'there are no such messages in inbox-groups',
    },
  ],
  remedy: 'devices may get messages again that they have acknowledged',
})

export type OutboxRow = RowOf<typeof OUTBOX_ROW>
const OUTBOX_ROW = object({
  /** A list of messages. */
  sealed,
  /** How often they have been tried. */
  tries: count,
})

export const OUTBOX = rowTable({
  name: 'outbox',
  subject: 'messages that wait',
  holds: 'mail, short messages or pushes, sealed',
  key: { lane: KIND, due: TIME, count: NUMBER, random: opaque(4) },
  row: OUTBOX_ROW,
  remedy: 'the message is not sent; the others are',
})

export const MESSAGE_TABLES = [INBOX, INBOX_HEADS, GROUPS, SETTLED, OUTBOX]

/** An inbox as its device sees it. */
export type InboxHead = Pick<Head, 'epoch' | 'nextOffset' | 'lostOffset' | 'delivered'> & {
  /** How many messages. */
  readonly count: number
}

/** When the sweep ends a message: an invitation some time after it is no longer shown. */
export function endOf({ expiresAtMs, callId }: Pick<Entry, 'expiresAtMs' | 'callId'>): number {
  return callId === undefined ? expiresAtMs : expiresAtMs + LAST_WORD_WITHIN_MS
}

/** By device and offset. */
export function rowKey(device: Uint8Array, offset: number): Uint8Array {
  const key = Buffer.allocUnsafe(device.length + NUMBER.bytes)
  key.set(device)
  key.writeUIntBE(offset, device.length, NUMBER.bytes)
  return key
}

/** The offset in a key that `rowKey` has made. */
function offsetIn(key: Uint8Array): number {
  return Buffer.from(key.buffer, key.byteOffset, key.length).readUIntBE(DEVICE_BYTES, NUMBER.bytes)
}

/** A room speaks five seconds after the ring; the rest is for a process that was down meanwhile. */
const LAST_WORD_WITHIN_MS = 60_000
const DEVICE_BYTES = 2 * ID.bytes
