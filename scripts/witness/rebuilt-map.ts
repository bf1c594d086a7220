/** The map of an index that a witness rebuilds, in its store: rows and state in one change. */

import { createHash } from 'node:crypto'
import { HASH_BYTES } from '../../src/log/hash.ts'
import type { GrownTree } from '../../src/log/patricia-rows.ts'
import { HASH, NUMBER } from '../../src/store/engine/key-parts.ts'
import { indexKey, rangeOf } from '../../src/store/engine/keys.ts'
import { bytes, count, listOf, object } from '../../src/store/engine/row-form.ts'
import type { Store } from '../../src/store/engine/store.ts'
import { bytesTable, textKeyTable } from '../../src/store/engine/table.ts'
import type { RebuildState, RebuiltMap } from '../rebuild/rebuild.ts'

const REBUILT_ROWS = bytesTable('rebuilt-rows', { origin: HASH, row: NUMBER }, bytes(), {
  holds: 'a part of the map of an index',
})
const REBUILT = textKeyTable(
  'rebuilt',
  'origin',
  object({
    entries: count,
    entryRoots: listOf(bytes(HASH_BYTES)),
    leaves: count,
    leafRoots: listOf(bytes(HASH_BYTES)),
  }),
  {
    holds: 'how far an index was rebuilt',
  },
)

export class RebuiltRows implements RebuiltMap {
  readonly #store: Store
  readonly #origin: string
  /** The keys of its rows begin so. */
  readonly #prefix: Uint8Array

  constructor(store: Store, origin: string) {
    this.#store = store
    this.#origin = origin
    this.#prefix = createHash('sha256').update(origin).digest()
  }

  get state(): RebuildState | undefined {
    return this.#store.view(view => view.get(REBUILT, this.#origin))
  }

  readonly read = (id: number): Uint8Array | undefined => {
    const row = this.#store.view(view => view.getVolatile(REBUILT_ROWS, this.#key(id)))
    // A plain array: `slice` of a Buffer is no copy.
    return row && new Uint8Array(row.buffer, row.byteOffset, row.length)
  }

  keep(rows: GrownTree['rows'], state: RebuildState): Promise<void> {
    return this.#store.change(change => {
      for (const [id, row] of rows) change.put(REBUILT_ROWS, this.#key(id), row)
      change.put(REBUILT, this.#origin, state)
    })
  }

  /** Begins with nothing; a kill within leaves no state, and so it is done again. */
  async clear(): Promise<void> {
    await this.#store.change(change => change.remove(REBUILT, this.#origin))
    const range = { ...rangeOf(this.#prefix), limit: ROWS_AT_ONCE }
    for (let removed = ROWS_AT_ONCE; removed === ROWS_AT_ONCE; )
      removed = await this.#store.change(change => {
        const keys = [...change.keys(REBUILT_ROWS, range)]
        for (const key of keys) change.remove(REBUILT_ROWS, key)
        return keys.length
      })
  }

  #key(id: number): Uint8Array {
    return Buffer.concat([this.#prefix, indexKey(id)])
  }
}

const ROWS_AT_ONCE = 1_024
