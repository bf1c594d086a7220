/** The rows of the call history as bytes: a memory is 13 octets long, a call 7 and 8 for each of its people. */

import type { CallMemory, PastStatus, RememberedCall } from '../../domain/calls/call-history.ts'
import type { CallId, UserId } from '../../domain/ids.ts'
import { idsKey, timeBytes } from '../engine/keys.ts'

/** The place of a call in every list of calls. */
export interface CallHistoryPlace {
  /** When the call was created, milliseconds since 1970. */
  readonly atMs: number
  readonly id: bigint
}

/** How a key of `call-history` goes on behind the user, and a key of `call-history-calls`. */
export function placeKey({ atMs, id }: CallHistoryPlace): Uint8Array {
  return Buffer.concat([timeBytes(atMs), idsKey(id)])
}

export function memoryKey(userId: UserId, place: Uint8Array): Uint8Array {
  const key = Buffer.allocUnsafe(MEMORY_KEY_BYTES)
  key.set(idsKey(userId))
  key.set(place, ID_BYTES)
  return key
}

/** The part of a key of `call-history` that is its call's; valid as long as the key. */
export function placeInKey(key: Uint8Array): Uint8Array {
  return key.subarray(ID_BYTES)
}

export function readPlace(place: Uint8Array): CallHistoryPlace {
  const bytes = bufferOf(place)
  return { atMs: bytes.readUIntBE(0, TIME_BYTES), id: bytes.readBigUInt64BE(TIME_BYTES) }
}

/** Flags, the end, the time spent in the call. */
export function packMemory(
  { status, hadJoined, endedAtMs = 0, talkedMs }: CallMemory,
  seen: boolean,
): Uint8Array {
  const row = Buffer.allocUnsafe(1 + 2 * TIME_BYTES)
  row[0] = STATUSES.indexOf(status) | (hadJoined ? HAD_JOINED : 0) | (seen ? SEEN : 0)
  row.writeUIntBE(endedAtMs, 1, TIME_BYTES)
  row.writeUIntBE(talkedMs, 1 + TIME_BYTES, TIME_BYTES)
  return row
}

/** The user's memory as it was packed; undefined where the row is damaged. */
export function readMemory(userId: UserId, row: Uint8Array): CallMemory | undefined {
  const status = STATUSES[row[0]! & STATUS_BITS]
  if (status === undefined) return undefined
  const bytes = bufferOf(row)
  const endedAtMs = bytes.readUIntBE(1, TIME_BYTES)
  return {
    userId,
    status,
    hadJoined: (row[0]! & HAD_JOINED) !== 0,
    endedAtMs: endedAtMs === 0 ? undefined : endedAtMs,
    talkedMs: bytes.readUIntBE(1 + TIME_BYTES, TIME_BYTES),
  }
}

/** Whether it does not count in the badge. */
export function isSeen(row: Uint8Array): boolean {
  return (row[0]! & SEEN) !== 0
}

/** The row once its user has looked. */
export function seenRow(row: Uint8Array): Uint8Array {
  const seen = Buffer.from(row)
  seen[0]! |= SEEN
  return seen
}

/** Flags, the start, the people. */
export function packCall({ isVideo, isGroup, startedAtMs = 0, people }: RememberedCall): Uint8Array {
  const row = Buffer.allocUnsafe(PEOPLE_AT + ID_BYTES * people.length)
  row[0] = (isVideo ? VIDEO : 0) | (isGroup ? GROUP : 0)
  row.writeUIntBE(startedAtMs, 1, TIME_BYTES)
  const ids = new DataView(row.buffer, row.byteOffset + PEOPLE_AT)
  for (const [at, userId] of people.entries()) ids.setBigUint64(ID_BYTES * at, userId)
  return row
}

export function readCall(place: Uint8Array, row: Uint8Array): RememberedCall {
  const startedAtMs = bufferOf(row).readUIntBE(1, TIME_BYTES)
  const { atMs, id } = readPlace(place)
  return {
    callId: id as CallId,
    isVideo: (row[0]! & VIDEO) !== 0,
    isGroup: (row[0]! & GROUP) !== 0,
    people: peopleIn(row),
    createdAtMs: atMs,
    startedAtMs: startedAtMs === 0 ? undefined : startedAtMs,
  }
}

/** Those of a packed call. */
export function peopleIn(row: Uint8Array): UserId[] {
  const bytes = bufferOf(row)
  const people: UserId[] = []
  for (let at = PEOPLE_AT; at < bytes.length; at += ID_BYTES) people.push(bytes.readBigUInt64BE(at) as UserId)
  return people
}

function bufferOf(bytes: Uint8Array): Buffer {
  return bytes instanceof Buffer ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
}

const TIME_BYTES = 6
const ID_BYTES = 8
const MEMORY_KEY_BYTES = ID_BYTES + TIME_BYTES + ID_BYTES
const PEOPLE_AT = 1 + TIME_BYTES
/** In the order of their numbers, which are stored. */
const STATUSES: readonly PastStatus[] = ['ended', 'missed', 'declined', 'cancelled', 'failed']
const STATUS_BITS = 7
const HAD_JOINED = 8
const SEEN = 16
const VIDEO = 1
const GROUP = 2
