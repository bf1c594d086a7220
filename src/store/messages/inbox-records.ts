/** The records of inboxes: a head for each device, and a row for each message but one that stands in its head. */

/** What is to be said of an inbox as a whole. */
export interface InboxHead {
  /** 32 random bits; 0 for an inbox that nothing was put into yet. */
  readonly epoch: number
  /** Of the message that comes next; the first has 1. */
  readonly nextOffset: number
  /** The last message that was dropped unsettled, for want of room or after seven days; 0 when none was. */
  readonly lostOffset: number
  /** How many messages there are. */
  readonly count: number
  /** By queue, the last offset that a connection is known to have been given; absent when none is. */
  readonly delivered?: Readonly<Record<string, number>>
}

/** As it is stored. */
export interface Head extends InboxHead {
  /** When the sweep looks here; infinite when it need not. */
  readonly looksAtMs: number
  /** Those that wait, with their calls. Absent in heads of before, whose rows say it. */
  readonly invitations?: readonly Invitation[]
  /**
   * The oldest message, where it came into an empty inbox and is small: most are settled before another comes, and a row
   * less to put and to remove takes a tenth off a call's main thread (`call-start` in `bench/`). The others have rows.
   */
  readonly first?: StoredRow
}

/** One that waits, with its place. */
export type Invitation = readonly [callId: bigint, offset: number]

/** A message as it is stored. */
export interface Row {
  readonly queue: string
  readonly atMs: number
  readonly expiresAtMs: number
  /** Of an invitation. */
  readonly callId?: bigint
  readonly sealed: Uint8Array
}

/** A message and its place. */
export interface StoredRow {
  readonly offset: number
  readonly row: Row
}

/** `callId` is given for an invitation. */
export function rowOf(
  queue: string,
  { atMs, expiresAtMs }: Pick<Row, 'atMs' | 'expiresAtMs'>,
  callId: bigint | undefined,
  sealed: Uint8Array,
): Row {
  if (callId === undefined) return { queue, atMs, expiresAtMs, sealed }
  return { queue, atMs, expiresAtMs, callId, sealed }
}

/** The head without the message in it. */
export function withoutFirst({ first, ...head }: Head): Head {
  return head
}

/** Those that these messages are. */
export function invitationsAmong(stored: readonly StoredRow[]): Invitation[] {
  return stored.flatMap(({ offset, row: { callId } }) => (callId === undefined ? [] : [[callId, offset]]))
}

/** When the sweep ends a message: an invitation some time after it is no longer shown. */
export function endOf({ expiresAtMs, callId }: Row): number {
  return callId === undefined ? expiresAtMs : expiresAtMs + LAST_WORD_WITHIN_MS
}

/** By device and offset. */
export function rowKey(device: Uint8Array, offset: number): Uint8Array {
  const key = Buffer.allocUnsafe(device.length + 6)
  key.set(device)
  key.writeUIntBE(offset, device.length, 6)
  return key
}

/** Of a key that `rowKey` has made. */
export function offsetIn(key: Uint8Array): number {
  return Buffer.from(key.buffer, key.byteOffset, key.length).readUIntBE(DEVICE_BYTES, 6)
}

/** Of the table `inbox`. */
export const ROW_SHAPES = [
  ['queue', 'atMs', 'expiresAtMs', 'sealed'],
  ['queue', 'atMs', 'expiresAtMs', 'callId', 'sealed'],
]
/** Of the table `inbox-heads`. */
export const HEAD_SHAPES = [
  ['epoch', 'nextOffset', 'lostOffset', 'count', 'looksAtMs'],
  ['epoch', 'nextOffset', 'lostOffset', 'count', 'looksAtMs', 'delivered'],
  ['epoch', 'nextOffset', 'lostOffset', 'count', 'looksAtMs', 'invitations'],
  ['epoch', 'nextOffset', 'lostOffset', 'count', 'looksAtMs', 'invitations', 'delivered'],
  // What was delivered of each queue but a developer's, by name.
  ['account'],
  ['calls'],
  ['contacts'],
  ['account', 'calls'],
  ['account', 'contacts'],
  ['calls', 'contacts'],
  ['account', 'calls', 'contacts'],
  ['epoch', 'nextOffset', 'lostOffset', 'count', 'looksAtMs', 'invitations', 'first'],
  ['epoch', 'nextOffset', 'lostOffset', 'count', 'looksAtMs', 'invitations', 'delivered', 'first'],
  ['epoch', 'nextOffset', 'lostOffset', 'count', 'looksAtMs', 'invitations', 'first', 'delivered'],
  ['offset', 'row'],
  ...ROW_SHAPES,
]
/** A room speaks five seconds after the ring; the rest is for a process that was down meanwhile. */
const LAST_WORD_WITHIN_MS = 60_000
const DEVICE_BYTES = 16
