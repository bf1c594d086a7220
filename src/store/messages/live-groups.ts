/** Messages that are live, and the rows that they share, as they are in memory. */

import type { InboxItem } from '../../domain/messages/inbox.ts'
import { nameOfKey } from '../engine/keys.ts'
import { recordsIn } from './live-rows.ts'
import { UnsettledValue } from './unsettled-value.ts'

export interface LiveMessage {
  /** The name of its device's key. */
  readonly device: string
  readonly offset: number
  readonly atMs: number
  readonly expiresAtMs: number
  /** The call of an invitation. */
  readonly callId: bigint | undefined
  /** Undefined where it is not opened. */
  item: InboxItem | undefined
  /** Undefined until its change ends. */
  group: LiveGroup | undefined
  /** Which of the group's messages it is. */
  at: number
}

/** `absent`: it was never there, or no trace says so. */
export type Presence = 'there' | 'gone' | 'absent'

/** A row of messages. It is put once and removed once. */
export interface LiveGroup {
  readonly id: Uint8Array
  readonly name: string
  readonly atMs: number
  readonly messages: readonly LiveMessage[]
  readonly presence: UnsettledValue<Presence>
  /** A bit for each message that its device is done with. */
  readonly settled: UnsettledValue<number>
  /** Those of them whose messages have left the lists of their devices. */
  unlisted: number
  wasDurable: boolean
  isOpened: boolean
}

export function newGroup(id: Uint8Array, messages: readonly LiveMessage[]): LiveGroup {
  return {
    id,
    name: nameOfKey(id),
    atMs: Buffer.from(id.buffer, id.byteOffset, id.length).readUIntBE(0, 6),
    messages,
    presence: new UnsettledValue<Presence>('absent'),
    settled: new UnsettledValue(0),
    unlisted: 0,
    wasDurable: false,
    isOpened: false,
  }
}

/** Not opened. */
export function groupOf(key: Uint8Array, row: Uint8Array): LiveGroup {
  // A key of changed rows is a part of a message.
  const id = Buffer.from(key)
  const messages: LiveMessage[] = []
  const group = newGroup(id, messages)
  for (const record of recordsIn(row)) messages.push({ ...record, atMs: group.atMs, item: undefined, group })
  return group
}

export function allBits({ messages }: LiveGroup): number {
  return (2 ** messages.length - 1) >>> 0
}

export function bitsIn(row: Uint8Array | undefined): number {
  return row === undefined ? 0 : Buffer.from(row.buffer, row.byteOffset, row.length).readUInt32LE()
}

export function bitsRow(bits: number): Uint8Array {
  const row = Buffer.allocUnsafe(4)
  row.writeUInt32LE(bits)
  return row
}
