/** The rows of a change come out of their octets as they went in. */

import { randomBytes } from 'node:crypto'
import t from 'tap'
import { formatChangedRows, readChangedRows } from '../../../src/store/engine/changed-rows.ts'
import type { WatchedRow } from '../../../src/store/engine/store.ts'

function rowsIn(octets: Uint8Array): WatchedRow[] {
  const rows: WatchedRow[] = []
  readChangedRows(octets, (table, key) => rows.push({ table, key: Buffer.from(key) }))
  return rows
}

const row = (table: string, length: number): WatchedRow => ({ table, key: randomBytes(length) })

t.test('any rows come out as they went in, in their order', async t => {
  for (const rows of [
    [],
    [row('users', 8)],
    [row('users', 0), row('users', 1_978), row('a', 16), row('users', 1)],
    Array.from({ length: 1_000 }, (_, at) => row(`table-${at % 3}`, at % 40)),
  ])
    t.same(rowsIn(formatChangedRows(rows)), rows)
})

t.test('octets that lie within a larger buffer are read alone', async t => {
  const octets = formatChangedRows([row('users', 8)])
  const larger = Buffer.concat([Buffer.alloc(3, 9), octets, Buffer.alloc(3, 9)])
  t.same(rowsIn(larger.subarray(3, -3)), rowsIn(octets))
})

t.test('the name of a table stands once for the rows that follow one another', async t => {
  t.equal(formatChangedRows([row('users', 8), row('users', 8), row('a', 8)]).length, 5 + 1 + 3 * (3 + 8))
})

t.test('octets that end within a row are refused', async t => {
  const octets = formatChangedRows([row('users', 8), row('users', 8)])
  const ends = new Set([0, 16])
  for (let length = 0; length < octets.length; length++) {
    const read = () => rowsIn(octets.subarray(0, length))
    if (ends.has(length)) t.doesNotThrow(read, `${length}`)
    else t.throws(read, { code: 'MALFORMED' }, `${length}`)
  }
})
