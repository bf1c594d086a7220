/**
 * Views and changes of an LMDB environment. LMDB shows a reader durable rows. The function of a change runs in LMDB's
 * transaction and sees its own writes, so both read alike.
 *
 * Many changes share a transaction. One that throws before it writes leaves nothing to take back. For one that throws later
 * the queue runs all of them again, each with an undo log: writes note the rows' bytes as they were. A log all the time would
 * cost a read for each write.
 */

import { asBinary, type Database as LmdbTable } from 'lmdb'
import type { Happening } from '../../domain/happening.ts'
import { assert } from '../../errors.ts'
import type { WrittenRow } from './change-ledger.ts'
import type { Change, KeyRange, Row, RowWatcher, View, WatchedRow } from './store.ts'
import type { Key, Table } from './table.ts'
import { isOfLmdb } from './write-failure.ts'

/** A table as LMDB has it open. */
export interface OpenTable {
  readonly name: string
  readonly lmdb: LmdbTable<unknown, Key>
  readonly watchers: RowWatcher[]
}

/** Undefined for a table that is not there, in a store that is open for reading only. */
export type OpenTableOf = (table: Table<never, never>) => OpenTable | undefined

/** Counts since the store was opened. */
export interface StoreFigures {
  /** Transactions of LMDB, each with all changes that waited. */
  commits: number
  puts: number
  removes: number
  /** Reads of a row by its key, or of a range. */
  reads: number
}

/** A row as it was before the change wrote it. */
interface EarlierRow {
  readonly table: OpenTable
  readonly key: Key
  readonly bytes: Uint8Array | undefined
}

/** One for each watcher of a row that is written. */
interface WatchedWriting extends WatchedRow {
  readonly watcher: RowWatcher
}

/** A row before a change and after it; undefined where there is none. */
export interface RewrittenRow {
  /** Table and key. */
  readonly name: string
  readonly before: Uint8Array | undefined
  readonly now: Uint8Array | undefined
}

export interface ChangeOptions {
  /** Milliseconds since 1970. */
  readonly nowMs: number
  readonly number: number
  readonly hasUndo: boolean
  /** Whether its rows are kept for the ledger of changes. */
  readonly hasLedger: boolean
}

export class LmdbView implements View {
  readonly #open: OpenTableOf
  readonly #figures: StoreFigures

  constructor(open: OpenTableOf, figures: StoreFigures) {
    this.#open = open
    this.#figures = figures
  }

  get<Value, RowKey extends Key>(table: Table<Value, RowKey>, key: RowKey): Value | undefined {
    return this.#read(table)?.lmdb.get(key) as Value | undefined
  }

  getVolatile(table: Table<Uint8Array>, key: Uint8Array): Buffer | undefined {
    return this.#read(table)?.lmdb.getBinaryFast(key)
  }

  has<RowKey extends Key>(table: Table<never, RowKey>, key: RowKey): boolean {
    return this.#read(table)?.lmdb.doesExist(key) ?? false
  }

  keys<RowKey extends Key>(table: Table<never, RowKey>, range: KeyRange<RowKey> = {}): Iterable<RowKey> {
    return (this.#read(table)?.lmdb.getKeys(range) ?? []) as Iterable<RowKey>
  }

  range<Value, RowKey extends Key>(
    table: Table<Value, RowKey>,
    range: KeyRange<RowKey> = {},
  ): Iterable<Row<Value, RowKey>> {
    return (this.#read(table)?.lmdb.getRange(range) ?? []) as Iterable<Row<Value, RowKey>>
  }

  count<RowKey extends Key>(table: Table<never, RowKey>, range: KeyRange<RowKey> = {}): number {
    return this.#read(table)?.lmdb.getKeysCount(range) ?? 0
  }

  #read(table: Table<never, never>): OpenTable | undefined {
    this.#figures.reads += 1
    return this.#open(table)
  }
}

export class LmdbChange extends LmdbView implements Change {
  readonly nowMs: number
  readonly number: number
  readonly happenings: Happening[] = []
  readonly #openTable: OpenTableOf
  readonly #counts: StoreFigures
  /** The undo log. */
  readonly #earlier: EarlierRow[] = []
  /** Above 0, writes go into the undo log. */
  #undoable: number
  /** For watchers. */
  readonly #watched: WatchedWriting[] = []
  #hasWritten = false
  /** For the ledger of changes, in the order of the writing; undefined where there is none. */
  readonly #recorded: WrittenRow[] | undefined
  readonly #endings: (() => void)[] = []
  /** See `whenTakenBack`. */
  readonly #undos: (() => void)[] = []
  /** News and badges that are said already. */
  #news: Map<Happening['kind'], Set<bigint>> | undefined
  #locals: Map<object, unknown> | undefined
  #isRunning = true

  constructor(
    open: OpenTableOf,
    figures: StoreFigures,
    { nowMs, number, hasUndo, hasLedger }: ChangeOptions,
  ) {
    super(open, figures)
    this.#openTable = open
    this.#counts = figures
    this.nowMs = nowMs
    this.number = number
    this.#undoable = hasUndo ? 1 : 0
    this.#recorded = hasLedger ? [] : undefined
  }

  put<Value, RowKey extends Key>(table: Table<Value, RowKey>, key: RowKey, value: Value): void {
    const { lmdb } = this.#writing(table, key, value)
    if (this.#recorded === undefined) lmdb.put(key, value)
    else {
      const bytes = table.codec === 'bytes' ? (value as Uint8Array) : encoderOf(lmdb).encode(value)
      this.#recorded.push({ table: table.name, key: bytesOfKey(key), value: bytes })
      lmdb.put(key, asBinary(bufferOf(bytes)))
    }
    this.#counts.puts += 1
  }

  remove<RowKey extends Key>(table: Table<never, RowKey>, key: RowKey): void {
    this.#writing(table, key, undefined).lmdb.remove(key)
    this.#recorded?.push({ table: table.name, key: bytesOfKey(key), value: undefined })
    this.#counts.removes += 1
  }

  happened(happening: Happening): void {
    this.#assertRunning()
    const subject = newsSubjectOf(happening)
    if (subject === undefined || this.#isFirst(happening.kind, subject)) this.happenings.push(happening)
  }

  atEnd(write: () => void): void {
    this.#assertRunning()
    this.#endings.push(write)
  }

  whenTakenBack(undo: () => void): void {
    this.#assertRunning()
    this.#undos.push(undo)
  }

  attempt<Result>(write: () => Result): Result {
    this.#assertRunning()
    const undos = this.#undos.length
    const hadWritten = this.#hasWritten
    const [rows, happenings, endings] = [this.#earlier.length, this.happenings.length, this.#endings.length]
    const recorded = this.#recorded?.length ?? 0
    // Values that owners collected so far must not include writes that may be taken back.
    this.#locals = undefined
    this.#undoable += 1
    try {
      return write()
    } catch (error) {
      this.#locals = undefined
      // After it LMDB takes nothing more, and the whole transaction goes.
      if (isOfLmdb(error)) throw error
      this.#putBack(this.#earlier.splice(rows))
      for (const undo of this.#undos.splice(undos).toReversed()) undo()
      this.#hasWritten = hadWritten
      this.#recorded?.splice(recorded)
      for (const happening of this.happenings.slice(happenings)) this.#forgetNews(happening)
      this.happenings.length = happenings
      this.#endings.length = endings
      throw error
    } finally {
      this.#undoable -= 1
    }
  }

  local<Value>(owner: object, make: () => Value): Value {
    this.#locals ??= new Map()
    const known = this.#locals.get(owner)
    if (known !== undefined) return known as Value
    const made = make()
    this.#locals.set(owner, made)
    return made
  }

  /** Set by a rehearsal: called before each write, whose fault it throws. */
  beforeWrite: (() => void) | undefined

  /** Each row that was written, with its bytes before the change and now. */
  get written(): readonly RewrittenRow[] {
    const firsts = new Map<string, EarlierRow>()
    for (const row of this.#earlier) {
      const name = `${(row.table.lmdb as { readonly name?: string }).name} ${Buffer.from(row.key).toString('hex')}`
      if (!firsts.has(name)) firsts.set(name, row)
    }
    return [...firsts].map(([name, { table, key, bytes }]) => ({
      name,
      before: bytes,
      now: table.lmdb.getBinary(key),
    }))
  }

  /** Whether it has put or removed a row. */
  get hasWritten(): boolean {
    return this.#hasWritten
  }

  /** The rows that it has put or removed, where changes are recorded. A row that it wrote twice is there twice. */
  get ledgerRows(): readonly WrittenRow[] {
    return this.#recorded ?? []
  }

  /** Whether it threw and what it wrote is still there. */
  get mustBeTakenBack(): boolean {
    return this.#hasWritten && this.#undoable === 0
  }

  /** Runs the change's function and its endings; takes their writes back where either throws, if there is an undo log. */
  run<Result>(write: (change: Change) => Result): Result {
    try {
      const result = write(this)
      for (const end of this.#endings) end()
      return result
    } catch (error) {
      if (!isOfLmdb(error)) this.takeBack()
      throw error
    } finally {
      this.#isRunning = false
      this.#locals = undefined
    }
  }

  #writing(table: Table<never, never>, key: Key, row: unknown): OpenTable {
    this.#assertRunning()
    const open = this.#openTable(table)
    assert(open !== undefined, 'a store that is open for reading only is not changed')
    this.beforeWrite?.()
    for (const watcher of open.watchers) {
      watcher.onWriting(key as Uint8Array, row)
      this.#watched.push({ watcher, table: open.name, key: key as Uint8Array })
    }
    this.#hasWritten = true
    if (this.#undoable > 0) this.#earlier.push({ table: open, key, bytes: open.lmdb.getBinary(key) })
    return open
  }

  /** Tells watchers, once, that the writes are durable, or never will be. */
  settle(isDurable: boolean): void {
    for (const { watcher, key } of this.#watched) watcher.onSettled(key, isDurable)
  }

  /** Rows of watched tables that it has put or removed; some may be there twice. */
  watchedRows(): WatchedRow[] {
    const rows: WatchedRow[] = []
    for (const { table, key } of this.#watched) {
      const last = rows.at(-1)
      // A writing is there once for each watcher, with one key.
      if (last?.key !== key || last.table !== table) rows.push({ table, key })
    }
    return rows
  }

  takeBack(): void {
    this.happenings.length = 0
    this.#recorded?.splice(0)
    this.#putBack(this.#earlier)
  }

  #isFirst(kind: Happening['kind'], subject: bigint): boolean {
    this.#news ??= new Map()
    let subjects = this.#news.get(kind)
    if (subjects === undefined) {
      subjects = new Set()
      this.#news.set(kind, subjects)
    }
    const before = subjects.size
    return subjects.add(subject).size > before
  }

  #forgetNews(happening: Happening): void {
    const subject = newsSubjectOf(happening)
    if (subject !== undefined) this.#news?.get(happening.kind)?.delete(subject)
  }

  #assertRunning(): void {
    assert(this.#isRunning, 'a change is written by its own function')
  }

  #putBack(rows: readonly EarlierRow[]): void {
    for (const { table, key, bytes } of rows.toReversed()) {
      if (bytes === undefined) table.lmdb.remove(key)
      else table.lmdb.put(key, asBinary(Buffer.from(bytes)))
      for (const { onTakenBack } of table.watchers) onTakenBack?.(key as Uint8Array)
    }
  }
}

/** The key as LMDB has it: the order of text keys, which are names, is that of their UTF-8. */
function bytesOfKey(key: Key): Uint8Array {
  return typeof key === 'string' ? Buffer.from(key) : key
}

/** lmdb-js has it, though its types do not say so. */
function encoderOf(lmdb: LmdbTable<unknown, Key>): { encode(value: unknown): Uint8Array } {
  return (lmdb as unknown as { readonly encoder: { encode(value: unknown): Uint8Array } }).encoder
}

/** The same octets, as lmdb-js takes them. */
export function bufferOf(bytes: Uint8Array): Buffer {
  return bytes instanceof Buffer ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
}

/**
 * Whom news are for; undefined for other happenings. A change reports news of a kind once for each, since their subscribers
 * look anyway. An id: as part of a text it would cost four times as much.
 */
export function newsSubjectOf(happening: Happening): bigint | undefined {
  switch (happening.kind) {
    case 'inbox-news':
      return happening.deviceId
    case 'badge-changed':
      return happening.userId
    case 'webhook-news':
    case 'webhooks-crowded':
      return happening.endpointId
    default:
      return undefined
  }
}
