/**
 * Values made of single rows of a table, kept in memory. Unlike `WatchedCache`, it takes the new row from the change that
 * writes it, so a row that is rewritten often is never read back.
 */

import { assert } from '../../errors.ts'
import { BoundedCache } from './bounded-cache.ts'
import { nameOfKey } from './keys.ts'
import { isChange, type ReadStore, type View } from './store.ts'
import type { Table } from './table.ts'

/** A row that changes have written and that is not durable yet. */
interface Unsettled<Kept> {
  writes: number
  /** Undefined where a change was taken back: the store knows what the row is then. */
  kept: Kept | undefined
}

export class RowCache<Row, Kept extends NonNullable<unknown> | null> {
  readonly #table: Table<Row>
  readonly #keptOf: (row: Row | undefined) => Kept
  readonly #durable: BoundedCache<string, Kept>
  readonly #unsettled = new Map<string, Unsettled<Kept>>()

  /** `keptOf` is given rows as they were put or read, and must not change them. */
  constructor(
    store: Pick<ReadStore, 'watch'>,
    table: Table<Row>,
    keptOf: (row: Row | undefined) => Kept,
    rowsMax: number,
  ) {
    this.#table = table
    this.#keptOf = keptOf
    this.#durable = new BoundedCache(rowsMax)
    store.watch(table, {
      onWriting: (key, row) => this.#write(nameOfKey(key), row as Row | undefined),
      onTakenBack: key => this.#forget(nameOfKey(key)),
      onSettled: (key, isDurable) => this.#settle(nameOfKey(key), isDurable),
      onReplaced: key => {
        const name = nameOfKey(key)
        this.#forget(name)
        this.#durable.delete(name)
      },
    })
  }

  /** The kept form of the row as this view, or this change, sees it. */
  of(view: View, key: Uint8Array): Kept {
    const name = nameOfKey(key)
    const unsettled = this.#unsettled.get(name)
    if (unsettled === undefined) {
      const kept = this.#durable.get(name)
      if (kept !== undefined) return kept
    } else if (isChange(view) && unsettled.kept !== undefined) return unsettled.kept
    const read = this.#keptOf(view.get(this.#table, key))
    if (unsettled === undefined) this.#durable.set(name, read)
    return read
  }

  #write(name: string, row: Row | undefined): void {
    const kept = this.#keptOf(row)
    const unsettled = this.#unsettled.get(name)
    if (unsettled === undefined) {
      this.#unsettled.set(name, { writes: 1, kept })
    } else {
      unsettled.writes += 1
      unsettled.kept = kept
    }
  }

  #forget(name: string): void {
    const unsettled = this.#unsettled.get(name)
    if (unsettled !== undefined) unsettled.kept = undefined
  }

  #settle(name: string, isDurable: boolean): void {
    const unsettled = this.#unsettled.get(name)
    assert(unsettled !== undefined, 'what is settled was written')
    if (!isDurable) unsettled.kept = undefined
    unsettled.writes -= 1
    if (unsettled.writes > 0) return
    this.#unsettled.delete(name)
    if (unsettled.kept === undefined) this.#durable.delete(name)
    else this.#durable.set(name, unsettled.kept)
  }
}
