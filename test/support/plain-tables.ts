/** Tables for tests of the store itself, whose rows may be anything. */

import { ID } from '../../src/store/engine/key-parts.ts'
import { bytes, type Form } from '../../src/store/engine/row-form.ts'
import { bytesTable, rowTable, type Table, textKeyTable } from '../../src/store/engine/table.ts'

export function plainTable<Value>(name: string, shapes: readonly (readonly string[])[] = []): Table<Value> {
  return rowTable(name, { id: ID }, anything<Value>(), { ...OF_A_TEST, shapes })
}

export function plainTextKeyTable<Value>(name: string): Table<Value, string> {
  return textKeyTable(name, 'name', anything<Value>(), OF_A_TEST)
}

export function plainBytesTable(name: string): Table<Uint8Array> {
  return bytesTable(name, { id: ID }, bytes(), OF_A_TEST)
}

function anything<Value>(): Form<Value> {
  return { fits: () => true }
}

const OF_A_TEST = { holds: 'whatever a test puts there' }
