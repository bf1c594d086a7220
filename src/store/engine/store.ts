/**
 * The store as everything above it knows it: tables of rows under sorted keys, read in views and written in changes.
 *
 *     await store.change(change => change.put(USERS, idsKey(userId), user))
 *     store.view(view => view.get(USERS, idsKey(userId)))
 *
 * A table is only a description: nothing can be read from it without a view, or written without a change.
 */

import type { Happening, HappeningOf } from '../../domain/happening.ts'
import type { Key, Table } from './table.ts'

export type { Happening, HappeningOf }

export interface KeyRange<RowKey extends Key = Uint8Array> {
  /** The first key; in reverse the last one. It belongs to the range. */
  readonly start?: RowKey
  /** Where the range ends; it does not belong to it. */
  readonly end?: RowKey
  readonly limit?: number
  readonly reverse?: boolean
}

export interface Row<Value, RowKey extends Key = Uint8Array> {
  readonly key: RowKey
  readonly value: Value
}

/** One unchanging, durable state of the store. Valid until: the function that was given it returns. */
export interface View {
  /** A copy of the row. */
  get<Value, RowKey extends Key>(table: Table<Value, RowKey>, key: RowKey): Value | undefined
  /** The row's bytes. Valid until: the next read. */
  getVolatile(table: Table<Uint8Array>, key: Uint8Array): Buffer | undefined
  has<RowKey extends Key>(table: Table<never, RowKey>, key: RowKey): boolean
  /** Keys in order. Iterate before anything is written to the table. */
  keys<RowKey extends Key>(table: Table<never, RowKey>, range?: KeyRange<RowKey>): Iterable<RowKey>
  /** Keys and copies of rows, in order. Iterate before anything is written to the table. */
  range<Value, RowKey extends Key>(
    table: Table<Value, RowKey>,
    range?: KeyRange<RowKey>,
  ): Iterable<Row<Value, RowKey>>
  /** How many keys the range has. */
  count<RowKey extends Key>(table: Table<never, RowKey>, range?: KeyRange<RowKey>): number
}

/**
 * A state that is being changed: its reads see its own writes. Its function depends on nothing but the state, what it
 * closes over, `nowMs` and the randomness it was given, so that it can run again.
 */
export interface Change extends View {
  /** The one instant of the whole change, milliseconds since 1970. */
  readonly nowMs: number
  /** Its place in the order of durable changes that write, from 1 on: of all where they have a record, else since the store was opened. */
  readonly number: number
  put<Value, RowKey extends Key>(table: Table<Value, RowKey>, key: RowKey, value: Value): void
  remove<RowKey extends Key>(table: Table<never, RowKey>, key: RowKey): void
  /** Tells `happening` to the subscribers once the change is durable; news and badges once, however often it is said. */
  happened(happening: Happening): void
  /** Returns the result of `write`. Where that throws, its writes and happenings are taken back before the error goes on. */
  attempt<Result>(write: () => Result): Result
  /** Has `undo` called where the attempt that is under way is taken back, for notes in memory that stand beside its rows. */
  whenTakenBack(undo: () => void): void
  /** Runs `write` when the change's function has returned, as a part of the change. */
  atEnd(write: () => void): void
  /** The value that `owner` keeps for the length of this change; `make` makes it. */
  local<Value>(owner: object, make: () => Value): Value
}

/** Hears of the rows of a table by their keys, for values in memory that are made of them. */
export interface RowWatcher {
  /** A change puts the row, or removes it where `row` is undefined. */
  readonly onWriting: (key: Uint8Array, row: unknown) => void
  /** The change's writing of this row was taken back; it may write on. */
  readonly onTakenBack?: (key: Uint8Array) => void
  /** For each writing, once the change is durable or has failed. */
  readonly onSettled: (key: Uint8Array, isDurable: boolean) => void
  /** Another process has made a change of the row durable. */
  readonly onReplaced: (key: Uint8Array) => void
}

/** A row of a watched table. */
export interface WatchedRow {
  readonly table: string
  readonly key: Uint8Array
}

/** Changes that became durable together, as followers hear of them: plain data, for a process that reads the same rows. */
export interface FollowedCommit {
  /** The number of the first change. */
  readonly first: number
  /** The number of the last one. */
  readonly number: number
  /** Rows of watched tables that they have put or removed, which caches forget; in the form of `changed-rows.ts`. */
  readonly rows: Uint8Array
}

/** Whether the reader may see writes that are not durable yet. */
export function isChange(view: View): view is Change {
  return 'put' in view
}

/** The store as every process has it. */
export interface ReadStore {
  /** Returns the result of `read`, which must read to the end: the view ends with the call. */
  view<Result>(read: (view: View) => Result): Result
  /** Calls `listener` with what durable changes said has happened, in order, before their promises resolve. */
  subscribe<Kind extends Happening['kind']>(
    kind: Kind,
    listener: (happening: HappeningOf<Kind>) => void,
  ): void
  /** Watches the rows of a table of records, for values in memory that are made of them. */
  watch(table: Pick<Table<never>, 'name'>, watcher: RowWatcher): void
}

/** The whole store, which the writer alone has. */
export interface Store extends ReadStore {
  /**
   * Runs `write` on the newest state and resolves with its result once that is durable. Changes run in the order of the
   * calls. When `write` throws, the store stays byte for byte as it was and the promise rejects with the same error.
   * `atMs` is the change's instant, by default that of the store's clock when `write` runs.
   *
   * Throws STORE_UNAVAILABLE: the write failed; the store is as it was.
   */
  change<Result>(write: (change: Change) => Result, atMs?: number): Promise<Result>
}

/** A store whose changes other processes follow. */
export interface SharedStore extends Store {
  /** The number of the last durable change; 0 where there was none. */
  readonly lastChange: number
  /** See `LmdbStore.follow`. */
  follow(listener: (change: FollowedCommit) => void): () => void
  /** Resolves when the changes that were asked for so far have ended. */
  settled(): Promise<void>
  /** See `LmdbStore.dropDeadReaders`. */
  dropDeadReaders(): void
}
