/**
 * Values made of rows of the store, kept until any of them changes. The cache sees each changed row, so its writer need
 * not think of the cache.
 */

import { assert } from '../../errors.ts'
import { BoundedCache } from './bounded-cache.ts'
import type { ReadStore } from './store.ts'
import type { Table } from './table.ts'

export class WatchedCache<Key, Value> {
  readonly #values: BoundedCache<Key, Value>
  /** How many rows of a value are written and not durable yet; a value read from them now may never hold. */
  readonly #unsettled = new Map<Key, number>()

  /** `tables` are what values are made of, `keyOf` tells by the key of a row which value it belongs to. */
  constructor(
    store: Pick<ReadStore, 'watch'>,
    tables: readonly Pick<Table<never>, 'name'>[],
    keyOf: (rowKey: Uint8Array) => Key,
    valuesMax: number,
  ) {
    this.#values = new BoundedCache(valuesMax)
    const onWriting = (rowKey: Uint8Array) => this.#count(keyOf(rowKey), 1)
    const onSettled = (rowKey: Uint8Array) => this.#count(keyOf(rowKey), -1)
    const onReplaced = (rowKey: Uint8Array) => this.#values.delete(keyOf(rowKey))
    for (const table of tables) store.watch(table, { onWriting, onSettled, onReplaced })
  }

  /** The value that is kept, or what `read` reads now; kept then, unless it is undefined. Also in a change. */
  of<Read extends Value | undefined>(key: Key, read: () => Read): Value | Read {
    const kept = this.get(key)
    if (kept !== undefined) return kept
    const value = read()
    if (value !== undefined) this.set(key, value)
    return value
  }

  get(key: Key): Value | undefined {
    return this.#values.get(key)
  }

  /**
   * In the same turn as `value` was read: a change that is durable after the reading then comes after this call. While
   * one is under way, nothing is kept.
   */
  set(key: Key, value: Value): void {
    if (!this.#unsettled.has(key)) this.#values.set(key, value)
  }

  #count(key: Key, more: 1 | -1): void {
    const count = (this.#unsettled.get(key) ?? 0) + more
    assert(count >= 0, 'what is settled was written')
    if (count === 0) this.#unsettled.delete(key)
    else this.#unsettled.set(key, count)
    this.#values.delete(key)
  }
}
