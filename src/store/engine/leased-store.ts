/**
 * The store of a process that may lose the right to write while it goes on: whatever was begun on this store ends with
 * the lease. A change that comes later, from work that was still under way, is refused, even if the process writes again.
 */

import { SignalError } from '../../errors.ts'
import type { ChangeLedger } from './change-ledger.ts'
import type { LmdbStore } from './lmdb-store.ts'
import type {
  Change,
  FollowedCommit,
  Happening,
  HappeningOf,
  RowWatcher,
  SharedStore,
  View,
} from './store.ts'
import type { Table } from './table.ts'

export class LeasedStore implements SharedStore {
  readonly #database: LmdbStore
  readonly #ends: (() => void)[] = []
  #isOver = false

  /** `database` must have the ledger's last change. */
  constructor(database: LmdbStore, ledger: ChangeLedger) {
    this.#database = database
    database.useLedger(ledger)
  }

  get lastChange(): number {
    return this.#database.lastChange
  }

  view<Result>(read: (view: View) => Result): Result {
    return this.#database.view(read)
  }

  change<Result>(write: (change: Change) => Result, atMs?: number): Promise<Result> {
    if (!this.#isOver) return this.#database.change(write, atMs)
    return Promise.reject(new SignalError('STORE_UNAVAILABLE', 'this node is no longer the writer'))
  }

  subscribe<Kind extends Happening['kind']>(
    kind: Kind,
    listener: (happening: HappeningOf<Kind>) => void,
  ): void {
    this.#ends.push(this.#database.subscribe(kind, listener))
  }

  watch(table: Pick<Table<never>, 'name'>, watcher: RowWatcher): void {
    this.#ends.push(this.#database.watch(table, watcher))
  }

  follow(listener: (change: FollowedCommit) => void): () => void {
    return this.#database.follow(listener)
  }

  settled(): Promise<void> {
    return this.#database.settled()
  }

  dropDeadReaders(): void {
    this.#database.dropDeadReaders()
  }

  /** Resolves when changes under way have ended, and the ledger is not used any more. */
  async end(): Promise<void> {
    this.#isOver = true
    await this.#database.settled()
    this.#database.useLedger(undefined)
    for (const end of this.#ends) end()
  }
}
