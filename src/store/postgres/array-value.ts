/**
 * Arrays as values of a statement, in PostgreSQL's binary form (`array_recv`): as text each octet would take two digits, and
 * the server would read them one by one.
 */

/** A value for `bytea[]`. */
export function bytesArray(items: readonly Uint8Array[]): Buffer {
  return arrayOf(BYTEA, items)
}

/** A value for `text[]`. */
export function textArray(items: readonly string[]): Buffer {
  return arrayOf(
    TEXT,
    items.map(item => Buffer.from(item)),
  )
}

function arrayOf(type: number, items: readonly Uint8Array[]): Buffer {
  let length = HEADER_BYTES
  for (const item of items) length += 4 + item.length
  const array = Buffer.allocUnsafe(length)
  // Dimensions, whether there are nulls, type, then length and first index of the one dimension.
  array.writeInt32BE(1, 0)
  array.writeInt32BE(0, 4)
  array.writeInt32BE(type, 8)
  array.writeInt32BE(items.length, 12)
  array.writeInt32BE(1, 16)
  let at = HEADER_BYTES
  for (const item of items) {
    array.writeInt32BE(item.length, at)
    array.set(item, at + 4)
    at += 4 + item.length
  }
  return array
}

const HEADER_BYTES = 20
const BYTEA = 17
const TEXT = 25
