/** Many rows in one statement: portions that are bounded in rows and bytes, as arrays for `unnest`. */

import type { PutRow, WrittenRow } from '../engine/change-ledger.ts'
import { bytesArray, textArray } from './array-value.ts'

/** Rows for one statement each. */
export function* portionsOf<Row extends WrittenRow>(rows: Iterable<Row>): Iterable<Row[]> {
  let portion: Row[] = []
  let bytes = 0
  for (const row of rows) {
    portion.push(row)
    bytes += row.key.length + (row.value?.length ?? 0)
    if (portion.length < PORTION_ROWS && bytes < PORTION_BYTES) continue
    yield portion
    portion = []
    bytes = 0
  }
  if (portion.length > 0) yield portion
}

/** Tables and keys, for `text[]` and `bytea[]`. */
export function keysOf(rows: readonly WrittenRow[]): [Buffer, Buffer] {
  return [textArray(rows.map(({ table }) => table)), bytesArray(rows.map(({ key }) => key))]
}

/** For `bytea[]`. */
export function valuesOf(rows: readonly PutRow[]): Buffer {
  return bytesArray(rows.map(({ value }) => value))
}

const PORTION_ROWS = 2_000
const PORTION_BYTES = 4 * 1024 * 1024
