/** Tables by their names, with rows as they are stored. */

import type { Key, Table } from '../../src/store/engine/table.ts'

export function storedTable<RowKey extends Key = Uint8Array>(
  name: string,
  keys: Table<Uint8Array>['keys'] = 'bytes',
): Table<Uint8Array, RowKey> {
  return { name, codec: 'bytes', keys, shapes: [] }
}
