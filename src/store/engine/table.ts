/**
 * A table as it describes itself, beside the store that uses it: its rows' keys, form, ending and relations. Everything
 * else about it follows: the type of its rows, how they are stored, their check (`src/check/rows`), and the list of all
 * tables in `docs/house.md`.
 */

import { type KeyParts, OWNER_BYTES } from './key-parts.ts'
import { bytes, type Form } from './row-form.ts'

export type Key = Uint8Array | string

/** As much as a store has to know of a table. `Value` is the type of its rows. */
export interface Table<Value, RowKey extends Key = Uint8Array> {
  readonly name: string
  /** `bytes`: the row is its bytes. */
  readonly codec: 'msgpack' | 'bytes'
  /** `bytes` keys sort as their bytes do. */
  readonly keys: 'bytes' | 'text'
  /** See `TableDescription`. */
  readonly shapes: readonly (readonly string[])[]
  /** For the compiler only. */
  readonly types?: (value: Value, key: RowKey) => void
}

export interface TableDescription<Value> {
  readonly name: string
  readonly subject: Subject
  /** The content of a row, in a few words. */
  readonly holds: string
  /** The parts of its keys in order, or what they say where they are texts. */
  readonly key: KeyParts | string
  readonly row: Form<Value>
  /**
   * The member names, in order, of objects that rows often are or have. They are stored without their names: a third as
   * long, several times faster to read. Other objects are stored with them. Stored rows refer to a shape by its
   * position, so a change of shapes raises `STORE_FORM`.
   */
  readonly shapes?: readonly (readonly string[])[]
  /** Its rows have an ending in `expiries`, without which they would stay for ever. */
  readonly ending?: Ending<NoInfer<Value>>
  readonly relations?: readonly Relation<NoInfer<Value>>[]
  /** Disagreements that no relation can state, each as the beginning of a sentence. Called for rows that have their form. */
  disagreements?(key: Buffer, value: NoInfer<Value>, rows: OtherRows): Iterable<string>
  /** The meaning of a damaged row, and what to do; left out for the log, which has its own check. */
  readonly remedy?: string
}

export type Subject =
  | 'the log'
  | 'accounts'
  | 'codes and counts'
  | 'sessions'
  | 'devices'
  | 'contacts'
  | 'calls'
  | 'messages that wait'
  | 'endings, tasks for later, kept replies'
  | 'the copy of a ledger'

export interface Ending<Value> {
  /** One of `EXPIRY`. */
  readonly kind: number
  /** When exactly, if its time is known; undefined for a row that has no ending. Left out: at any time. */
  atMs?(value: Value): number | undefined
}

/** A row of another table that has to be there with this one. */
export interface Relation<Value> {
  /** Its table; of several any will do. */
  readonly in: string | readonly string[]
  /** Its key; undefined where there is nothing to ask for. */
  under(key: Buffer, value: Value): Uint8Array | undefined
  /** Whether it is as it has to be. */
  where?(other: never, key: Buffer, value: Value): boolean
  /** The beginning of a sentence that says that it is not there. */
  readonly otherwise: string | Telling<Value>['otherwise']
}

interface Telling<Value> {
  otherwise(key: Buffer, value: Value): string
}

/** The rows of other tables, as a check reads them. A table that is not there has everything. */
export interface OtherRows {
  has(table: string, key: Uint8Array): boolean
  /** Whether there is such a row and this is so, or it is unreadable, which a fault of its own says. */
  holds<Value>(table: string, key: Uint8Array, isSo: (value: Value) => boolean): boolean
}

/** Its user, with whose id the key begins, is one. */
export const OF_A_USER: Relation<unknown> = {
  in: 'users',
  under: key => key.subarray(0, OWNER_BYTES),
  otherwise: 'its user is not in users',
}

export interface DescribedTable<Value, RowKey extends Key = Uint8Array> extends Table<Value, RowKey> {
  readonly description: TableDescription<Value>
}

/** A table whose rows may have any type. */
export interface AnyTable extends Table<never, never> {
  readonly description: TableDescription<unknown>
}

/** A table of msgpack rows under binary keys. */
export function rowTable<Value>(
  description: TableDescription<Value> & { readonly key: KeyParts },
): DescribedTable<Value, Uint8Array> {
  return described(description, 'msgpack', 'bytes')
}

/** A table of a few msgpack rows under texts. */
export function textKeyTable<Value>(
  description: TableDescription<Value> & { readonly key: string },
): DescribedTable<Value, string> {
  return described(description, 'msgpack', 'text')
}

/** A table of bytes under binary keys. */
export function bytesTable({
  row = bytes(),
  ...rest
}: Omit<TableDescription<Uint8Array>, 'row'> & {
  readonly key: KeyParts
  readonly row?: Form<Uint8Array>
}): DescribedTable<Uint8Array, Uint8Array> {
  return described({ ...rest, row }, 'bytes', 'bytes')
}

/**
 * Every table that the program has described. A store opens them as it is opened itself: a table that a change opens
 * would be closed again where that change fails.
 */
export const DESCRIBED_TABLES: Table<never, never>[] = []

function described<Value, RowKey extends Key>(
  description: TableDescription<Value>,
  codec: Table<never>['codec'],
  keys: Table<never>['keys'],
): DescribedTable<Value, RowKey> {
  const { name, shapes = [] } = description
  const table = { name, codec, keys, shapes, description }
  DESCRIBED_TABLES.push(table)
  return table
}
