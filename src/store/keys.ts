/** Binary table keys: fixed-width big-endian numbers, so that LMDB's byte order is the numbers' order. */

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
