/**
 * The rows of a change as octets, for the caches of other processes: for each row the length of its table's name, the name,
 * the length of its key, and the key. A row of the same table as the row before it has 0 and no name. A name's length has
 * one octet, a key's two.
 */

import { assert, SignalError } from '../../errors.ts'
import type { WatchedRow } from './store.ts'

export function formatChangedRows(rows: readonly WatchedRow[]): Uint8Array {
  let length = 0
  let table = ''
  for (const row of rows) {
    assert(row.table.length <= NAME_MAX && row.key.length <= KEY_MAX, 'LMDB has no longer names and keys')
    length += 3 + row.key.length + (row.table === table ? 0 : row.table.length)
    table = row.table
  }
  const octets = Buffer.allocUnsafe(length)
  let at = 0
  table = ''
  for (const row of rows) {
    const name = row.table === table ? '' : row.table
    table = row.table
    octets[at++] = name.length
    at += octets.write(name, at, 'latin1')
    at = octets.writeUInt16BE(row.key.length, at)
    octets.set(row.key, at)
    at += row.key.length
  }
  return octets
}

/** Calls `onRow` with each row. Its key is a part of `octets`. Throws `MALFORMED`. */
export function readChangedRows(octets: Uint8Array, onRow: (table: string, key: Uint8Array) => void): void {
  const bytes = Buffer.from(octets.buffer, octets.byteOffset, octets.length)
  let table = ''
  for (let at = 0; at < bytes.length; ) {
    const nameEnd = at + 1 + bytes[at]!
    const keyAt = nameEnd + 2
    const end = keyAt > bytes.length ? keyAt : keyAt + bytes.readUInt16BE(nameEnd)
    if (end > bytes.length) throw new SignalError('MALFORMED', 'changed rows end within a row')
    if (nameEnd > at + 1) table = bytes.toString('latin1', at + 1, nameEnd)
    onRow(table, bytes.subarray(keyAt, end))
    at = end
  }
}

const NAME_MAX = 2 ** 8 - 1
const KEY_MAX = 2 ** 16 - 1
