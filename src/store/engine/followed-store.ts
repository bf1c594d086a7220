/**
 * The store of a process that reads what another one writes: views of its own over the same LMDB environment, opened for
 * reading only. It hears of each durable change by `apply`, in order, as `LmdbStore.follow` tells them.
 *
 * Between a commit and its `apply` a view may already see the change's rows, while caches still have the ones before.
 */

import { assert, SignalError } from '../../errors.ts'
import { readChangedRows } from './changed-rows.ts'
import { nameOfKey } from './keys.ts'
import type { LmdbStore } from './lmdb-store.ts'
import type { Change, FollowedChange, Happening, HappeningOf, RowWatcher, Store, View } from './store.ts'
import { Subscribers } from './subscribers.ts'
import type { Table } from './table.ts'

export interface FollowedStoreDeps {
  readonly database: Pick<LmdbStore, 'view' | 'refresh' | 'openTables'>
  /** The last change that was durable when the writer began to tell. No row was kept before. */
  readonly lastChange: number
  /** Returns the news for subscribers in a row of this table and key that has changed. */
  readonly newsOf?: (table: string, key: Uint8Array) => Happening | undefined
  /** Called with a subscriber's error; all the rest still hear. */
  readonly onFault?: (error: unknown) => void
}

export class FollowedStore implements Store {
  readonly #database: FollowedStoreDeps['database']
  /** By table name. */
  readonly #watchers = new Map<string, RowWatcher[]>()
  /** By the change that they wait for. */
  readonly #waiting = new Map<number, (() => void)[]>()
  readonly #newsOf: NonNullable<FollowedStoreDeps['newsOf']>
  readonly #onFault: (error: unknown) => void
  readonly #subscribers = new Subscribers()
  #lastChange: number

  constructor({ database, lastChange, newsOf = () => undefined, onFault = rethrow }: FollowedStoreDeps) {
    this.#database = database
    this.#lastChange = lastChange
    this.#newsOf = newsOf
    this.#onFault = onFault
    // A table that is opened later ends the view in which that happens.
    database.openTables()
  }

  /** The number of the change that was applied last. */
  get lastChange(): number {
    return this.#lastChange
  }

  /** Later views see the change, what is kept of its rows is dropped, and subscribers hear what the rows say. */
  apply({ number, rows }: FollowedChange): void {
    assert(number === this.#lastChange + 1, 'a follower hears of each change, in order')
    this.#database.refresh()
    this.#lastChange = number
    const news = new Map<string, Happening>()
    readChangedRows(rows, (table, key) => {
      for (const watcher of this.#watchers.get(table) ?? NONE) watcher.onReplaced(key)
      const happening = this.#newsOf(table, key)
      // A row is there once for each writing.
      if (happening !== undefined) news.set(table + nameOfKey(key), happening)
    })
    this.#subscribers.tell([...news.values()], this.#onFault)
    const waiting = this.#waiting.get(number)
    if (waiting === undefined) return
    this.#waiting.delete(number)
    for (const resolve of waiting) resolve()
  }

  /** Resolves once the change of this number is applied. Its caller's process ends with the writer. */
  applied(number: number): Promise<void> {
    if (number <= this.#lastChange) return Promise.resolve()
    return new Promise(resolve => {
      const waiting = this.#waiting.get(number)
      if (waiting === undefined) this.#waiting.set(number, [resolve])
      else waiting.push(resolve)
    })
  }

  change<Result>(_write: (change: Change) => Result): Promise<Result> {
    return Promise.reject(new SignalError('INTERNAL', 'a front changes nothing by itself'))
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
