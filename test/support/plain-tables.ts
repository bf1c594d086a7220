/** Tables for tests of the store itself, whose rows may be anything. */

import { ID } from '../../src/store/engine/key-parts.ts'
import type { Form } from '../../src/store/engine/row-form.ts'
import { bytesTable, rowTable, type Table, textKeyTable } from '../../src/store/engine/table.ts'

export function plainTable<Value>(name: string, shapes: readonly (readonly string[])[] = []): Table<Value> {
  return rowTable({ ...OF_TESTS, name, key: { id: ID }, row: anything<Value>(), shapes })
}

export function plainTextKeyTable<Value>(name: string): Table<Value, string> {
  return textKeyTable({ ...OF_TESTS, name, key: 'name', row: anything<Value>() })
}

export function plainBytesTable(name: string): Table<Uint8Array> {
  return bytesTable({ ...OF_TESTS, name, key: { id: ID } })
}

function anything<Value>(): Form<Value> {
  return { fits: () => true }
}

const OF_TESTS = { subject: 'the log', holds: 'whatever a test puts there' } as const
