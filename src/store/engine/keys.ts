/** Binary table keys: fixed-width big-endian numbers, so that LMDB's byte order is the numbers' order. */

import { hash } from 'node:crypto'
import type { CallId, UserId } from '../../domain/ids.ts'
import { assert } from '../../errors.ts'

/** A leaf, tile or block index in 6 bytes; covers every index below 2^48. */
export function indexKey(index: number): Uint8Array {
  const key = Buffer.allocUnsafe(6)
  key.writeUIntBE(index, 0, 6)
  return key
}

/** A hash tile's level and index in 7 bytes. */
export function tileKey(level: number, index: number): Uint8Array {
  const key = Buffer.allocUnsafe(7)
  key[0] = level
  key.writeUIntBE(index, 1, 6)
  return key
}

/** The key of a row that belongs to one to four ids: 8 bytes each, big-endian. */
export function idsKey(...ids: readonly bigint[]): Uint8Array {
  // `writeBigUInt64BE` of a buffer takes three times as long.
  for (let at = 0; at < ids.length; at++) {
    const id = ids[at]!
    assert(id >= 0n && id <= ID_MAX, 'an id is a uint64')
    SCRATCH.setBigUint64(8 * at, id)
  }
  const key = Buffer.allocUnsafe(8 * ids.length)
  key.set(SCRATCH_BYTES[ids.length]!)
  return key
}

/** The id at a position of a key made by `idsKey`. */
export function idInKey(key: Uint8Array, at: number): bigint {
  const from = ID_BYTES * at
  assert(from + ID_BYTES <= key.length, 'a key has the id that is asked for')
  // A view of the key, in order to read from it, takes five times as long.
  for (let byte = 0; byte < ID_BYTES; byte++) SCRATCH_BYTES[1]![byte] = key[from + byte]!
  return SCRATCH.getBigUint64(0)
}

/** The user whom a row belongs to: the first id of its key. */
export function userInKey(key: Uint8Array): UserId {
  return idInKey(key, 0) as UserId
}

/** The call that a row is of, likewise. */
export function callInKey(key: Uint8Array): CallId {
  return idInKey(key, 0) as CallId
}

/** A moment in 6 bytes, milliseconds since 1970: rows under it sort by time. */
export function timeBytes(atMs: number): Uint8Array {
  return indexKey(Math.max(0, Math.floor(atMs)))
}

/** A key behind every key of up to 64 bytes more that begins with `prefix`. */
export function keyBehind(prefix: Uint8Array): Uint8Array {
  return Buffer.concat([prefix, ALL_ONES])
}

/** The keys of up to 64 bytes more that begin with `prefix`. */
export function rangeOf(prefix: Uint8Array): { readonly start: Uint8Array; readonly end: Uint8Array } {
  return { start: prefix, end: keyBehind(prefix) }
}

/** A key as a name in memory: a character for each byte. */
export function nameOfKey(key: Uint8Array): string {
  // Most keys are one id or two. Spelt out, their names take half the time or less.
  if (key.length === ID_BYTES) return nameOfId(key)
  if (key.length === 2 * ID_BYTES) return nameOfTwoIds(key)
  const bytes = key instanceof Buffer ? key : Buffer.from(key.buffer, key.byteOffset, key.length)
  return bytes.toString('latin1')
}

/** A text of any length as a key: its SHA-256. Taken as text, since a digest as a Buffer has memory outside the heap. */
export function textKey(text: string): Buffer {
  return Buffer.from(hash('sha256', text, 'binary'), 'latin1')
}

function nameOfId(key: Uint8Array): string {
  return String.fromCharCode(key[0]!, key[1]!, key[2]!, key[3]!, key[4]!, key[5]!, key[6]!, key[7]!)
}

// biome-ignore format: two ids
function nameOfTwoIds(key: Uint8Array): string {
  return String.fromCharCode(
    key[0]!, key[1]!, key[2]!, key[3]!, key[4]!, key[5]!, key[6]!, key[7]!,
    key[8]!, key[9]!, key[10]!, key[11]!, key[12]!, key[13]!, key[14]!, key[15]!,
  )
}

const ID_BYTES = 8
const ID_MAX = 2n ** 64n - 1n
const IDS_MAX = 4
const SCRATCH = new DataView(new ArrayBuffer(8 * IDS_MAX))
/** Its beginnings, by number of ids. */
const SCRATCH_BYTES = Array.from(
  { length: IDS_MAX + 1 },
  (_, ids) => new Uint8Array(SCRATCH.buffer, 0, 8 * ids),
)
const ALL_ONES = Buffer.alloc(65, 0xff)
