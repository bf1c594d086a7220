/**
 * A table as it describes itself, beside the store that uses it: its rows' keys, form, ending and relations. Everything
 * else about it follows: the type of its rows, how they are stored, their check (`src/check/rows`), and its place in the
 * list of `docs/reference/tables.md`.
 */

import type { KeyParts } from './key-parts.ts'
import type { Form } from './row-form.ts'

export type Key = Uint8Array | string

/** As much as a store has to know of a table. `Value` is the type of its rows. */
export interface Table<Value, RowKey extends Key = Uint8Array> {
  readonly name: string
  /** `bytes`: the row is its bytes. */
  readonly codec: 'msgpack' | 'bytes'
  /** `bytes` keys sort as their bytes do. */
  readonly keys: 'bytes' | 'text'
  /**
   * The member names, in order, of objects that rows often are or have. They are stored without their names: a third as
   * long, several times faster to read. Other objects are stored with them. Stored rows refer to a shape by its
   * position, so a change of shapes raises `STORE_FORM`.
   */
  readonly shapes: readonly (readonly string[])[]
  /** For the compiler only. */
  readonly types?: (value: Value, key: RowKey) => void
}

export interface TableDescription<Value> {
  /** The content of a row, in a few words. */
  readonly holds: string
  /** See `Table`. */
  readonly shapes?: readonly (readonly string[])[]
  /** The ending of its rows in `expiries`; without one, a row would stay for ever. */
  readonly ending?: Ending<Value>
  /** The key that a row has by its own members. */
  ownKey?(key: Buffer, value: Value): Uint8Array
  readonly relations?: readonly Relation<Value>[]
  /** Disagreements that no relation can state, each as the beginning of a sentence. Called for rows that have their form. */
  disagreements?(key: Buffer, value: Value, rows: OtherRows): Iterable<string>
  /** The meaning of a damaged row, and what to do; left out for the log, which has its own check. */
  readonly remedy?: string
}

export interface Ending<Value> {
  /** One of `EXPIRY`. */
  readonly kind: number
  /** When exactly, if its time is known; undefined for a row that has no ending. Left out: at any time. */
  atMs?(value: Value): number | undefined
  /** A second ending of each row, at any time, which ends nothing: it looks whether the user should hear of the first. */
  readonly noticeKind?: number
}

/** A row of another table that has to be there with this one. */
export interface Relation<Value> {
  /** Its table; of several any will do. */
  readonly in: string | readonly string[]
  /** Its key; undefined where there is nothing to ask for. */
  under(key: Buffer, value: Value): Uint8Array | undefined
  /** Whether it is as it has to be. */
  where?(other: never, key: Buffer, value: Value): boolean
  /** The end of a sentence that says that its table does not have …; left out: it. */
  what?(key: Buffer, value: Value): string
}

/** The rows of other tables, as a check reads them. A table that is not there has everything. */
export interface OtherRows {
  has(table: string, key: Uint8Array): boolean
  /** Whether there is such a row and this is so, or it is unreadable, which a fault of its own says. */
  holds<Value>(table: string, key: Uint8Array, isSo: (value: Value) => boolean): boolean
}

export interface DescribedTable<Value, RowKey extends Key = Uint8Array> extends Table<Value, RowKey> {
  /** The parts of its keys in order, or what they say where they are texts. */
  readonly key: KeyParts | string
  readonly row: Form<Value>
  readonly description: TableDescription<Value>
}

/** A table whose rows may have any type. */
export type AnyTable = Table<never, never> & Omit<DescribedTable<unknown>, 'types'>

/** A table of msgpack rows under binary keys. */
export function rowTable<Value>(
  name: string,
  key: KeyParts,
  row: Form<Value>,
  description: TableDescription<NoInfer<Value>>,
): DescribedTable<Value> {
  const { shapes = [] } = description
  return described({ name, codec: 'msgpack', keys: 'bytes', shapes, key, row, description })
}

/** A table of a few msgpack rows under texts. */
export function textKeyTable<Value>(
  name: string,
  key: string,
  row: Form<Value>,
  description: TableDescription<NoInfer<Value>>,
): DescribedTable<Value, string> {
  return described({ name, codec: 'msgpack', keys: 'text', shapes: [], key, row, description })
}

/** A table of bytes under binary keys. */
export function bytesTable(
  name: string,
  key: KeyParts,
  row: Form<Uint8Array>,
  description: TableDescription<Uint8Array>,
): DescribedTable<Uint8Array> {
  return described({ name, codec: 'bytes', keys: 'bytes', shapes: [], key, row, description })
}

/**
 * Every table that the program has described. A store opens them as it is opened itself: a table that a change opens
 * would be closed again where that change fails.
 */
export const DESCRIBED_TABLES: Table<never, never>[] = []

function described<Described extends Table<never, never>>(table: Described): Described {
  DESCRIBED_TABLES.push(table)
  return table
}
