/**
 * The store of a process that reads another process's writes: views of its own over the same LMDB environment, opened
 * for reading only. It hears of durable changes by `apply`, in order, as `LmdbStore.follow` tells them.
 *
 * Between a commit and its `apply` a view may already see the change's rows, while caches still have the ones before.
 */

import { assert } from '../../errors.ts'
import { Watermark } from '../../watermark.ts'
import { readChangedRows } from './changed-rows.ts'
import { nameOfKey } from './keys.ts'
import type { LmdbStore } from './lmdb-store.ts'
import type { FollowedCommit, Happening, HappeningOf, ReadStore, RowWatcher, View } from './store.ts'
import { Subscribers } from './subscribers.ts'
import type { Table } from './table.ts'

type NewsOf = (view: View, table: string, key: Uint8Array) => Iterable<Happening>

export class FollowedStore implements ReadStore {
  readonly #database: Pick<LmdbStore, 'view' | 'refresh' | 'openTables'>
  /** By table name. */
  readonly #watchers = new Map<string, RowWatcher[]>()
  readonly #newsOf: NewsOf
  readonly #onFault: (error: unknown) => void
  readonly #subscribers = new Subscribers()
  readonly #applied: Watermark

  /**
   * `lastChange` was the last durable one when the writer began to tell. `newsOf` returns the news for subscribers in a row
   * that has changed. `onFault` is called with a subscriber's error; all the rest still hear.
   */
  constructor(
    database: Pick<LmdbStore, 'view' | 'refresh' | 'openTables'>,
    lastChange: number,
    newsOf: NewsOf = () => [],
    onFault: (error: unknown) => void = rethrow,
  ) {
    this.#database = database
    this.#applied = new Watermark(lastChange)
    this.#newsOf = newsOf
    this.#onFault = onFault
    // A table that is opened later ends the view in which that happens.
    database.openTables()
  }

  /** The number of the change that was applied last. */
  get lastChange(): number {
    return this.#applied.reached
  }

  /** Later views see the changes, caches drop their rows, and subscribers hear their happenings. */
  apply({ first, number, rows }: FollowedCommit): void {
    assert(first === this.lastChange + 1, 'a follower hears of each change, in order')
    this.#database.refresh()
    this.#applied.reach(number)
    const changed = new Map<string, readonly [table: string, key: Uint8Array]>()
    readChangedRows(rows, (table, key) => {
      for (const watcher of this.#watchers.get(table) ?? NONE) watcher.onReplaced(key)
      // A row is there once for each writing.
      changed.set(table + nameOfKey(key), [table, key])
    })
    const news = this.#database.view(view =>
      [...changed.values()].flatMap(([table, key]) => [...this.#newsOf(view, table, key)]),
    )
    this.#subscribers.tell(news, this.#onFault)
  }

  /** Resolves once the change of this number is applied. Its caller's process ends with the writer. */
  applied(number: number): Promise<void> {
    return this.#applied.wait(number)
  }

  view<Result>(read: (view: View) => Result): Result {
    return this.#database.view(read)
  }

  /** The listener hears of `newsOf` alone: what else has happened stays at the writer. */
  subscribe<Kind extends Happening['kind']>(
    kind: Kind,
    listener: (happening: HappeningOf<Kind>) => void,
  ): void {
    this.#subscribers.add(kind, listener)
  }

  watch({ name }: Pick<Table<never>, 'name'>, watcher: RowWatcher): void {
    const watchers = this.#watchers.get(name)
    if (watchers === undefined) this.#watchers.set(name, [watcher])
    else watchers.push(watcher)
  }
}

const NONE: readonly RowWatcher[] = []

function rethrow(error: unknown): never {
  throw error
}
