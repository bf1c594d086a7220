/** The records of inboxes: a head for each device, which holds what came last, and a row for each older message. */

/** The record of an inbox as a whole. */
export interface InboxHead {
  /** 32 random bits; 0 for an inbox that nothing was put into yet. */
  readonly epoch: number
  /** The offset of the message that comes next; the first has 1. */
  readonly nextOffset: number
  /** The last message that was dropped unsettled, for want of room or after seven days; 0 when none was. */
  readonly lostOffset: number
  /** How many messages there are. */
  readonly count: number
  /** By queue, the last offset that a connection is known to have been given; absent when none is. */
  readonly delivered?: Readonly<Record<string, number>>
}

/** As it is stored. */
export interface Head extends Omit<InboxHead, 'count'> {
  /** When the sweep looks here; infinite when it need not. */
  readonly looksAtMs: number
  /** How many messages have rows of their own. */
  readonly rows: number
  /** The rest, in order. Some may be settled already: settling leaves the head as it is. */
  readonly entries: readonly Entry[]
}

/** A message's place among the groups. */
export interface GroupPlace {
  /** 16 bytes: key of the row. */
  readonly group: Uint8Array
  /** Which of the row's messages. */
  readonly at: number
}

/** A message and its place. */
export interface Entry extends GroupPlace {
  readonly offset: number
  readonly queue: string
  readonly atMs: number
  readonly expiresAtMs: number
  /** The call of an invitation. */
  readonly callId?: bigint
}

/** When the sweep ends a message: an invitation some time after it is no longer shown. */
export function endOf({ expiresAtMs, callId }: Pick<Entry, 'expiresAtMs' | 'callId'>): number {
  return callId === undefined ? expiresAtMs : expiresAtMs + LAST_WORD_WITHIN_MS
}

/** By device and offset. */
export function rowKey(device: Uint8Array, offset: number): Uint8Array {
  const key = Buffer.allocUnsafe(device.length + 6)
  key.set(device)
  key.writeUIntBE(offset, device.length, 6)
  return key
}

/** The offset in a key that `rowKey` has made. */
export function offsetIn(key: Uint8Array): number {
  return Buffer.from(key.buffer, key.byteOffset, key.length).readUIntBE(DEVICE_BYTES, 6)
}

/** Rows of the table `inbox`. */
export const ENTRY_SHAPES = [
  ['offset', 'queue', 'atMs', 'expiresAtMs', 'group', 'at'],
  ['offset', 'queue', 'atMs', 'expiresAtMs', 'callId', 'group', 'at'],
]
/** Rows of the table `inbox-heads`. */
export const HEAD_SHAPES = [
  ['epoch', 'nextOffset', 'lostOffset', 'looksAtMs', 'rows', 'entries'],
  ['epoch', 'nextOffset', 'lostOffset', 'looksAtMs', 'rows', 'entries', 'delivered'],
  // The last delivered offset of each queue but a developer's, by name.
  ['account'],
  ['calls'],
  ['contacts'],
  ['account', 'calls'],
  ['account', 'contacts'],
  ['calls', 'contacts'],
  ['account', 'calls', 'contacts'],
  ...ENTRY_SHAPES,
]
/** A room speaks five seconds after the ring; the rest is for a process that was down meanwhile. */
const LAST_WORD_WITHIN_MS = 60_000
const DEVICE_BYTES = 16
