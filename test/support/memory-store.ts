/**
 * A `Store` in memory, for tests that decide when and how each change ends. Changes are written and told in the order of
 * the calls: written, a change is visible; told, it is durable, its subscribers hear and its promise settles.
 *
 * Volatile reads share one buffer, as LMDB's do, so that a caller who keeps one is found out. Other values are kept as
 * they are: the product changes none that it has put or got.
 *
 * `Note` is what a test says of changes to `onWritten`.
 */

import type { Happening, HappeningOf } from '../../src/domain/happening.ts'
import { assert, SignalError } from '../../src/errors.ts'
import { newsSubjectOf } from '../../src/store/engine/lmdb-change.ts'
import type { Change, KeyRange, Row, RowWatcher, Store, View } from '../../src/store/engine/store.ts'
import { Subscribers } from '../../src/store/engine/subscribers.ts'
import type { Key, Table } from '../../src/store/engine/table.ts'

interface EarlierRow {
  readonly rows: SortedRows
  readonly name: string
  readonly value: unknown
}

interface Queued<Note> {
  readonly write: (change: Change) => unknown
  readonly atMs: number | undefined
  readonly resolve: (result: unknown) => void
  readonly reject: (error: unknown) => void
  readonly notes: Note[]
}

interface Written<Note> extends Queued<Note> {
  readonly change: MemoryChange
  readonly outcome:
    | { readonly kind: 'written'; readonly result: unknown }
    | { readonly kind: 'thrown'; readonly error: unknown }
}

export interface MemoryStoreOptions<Note> {
  readonly nowMs?: () => number
  readonly onWritten?: (notes: readonly Note[], thrown: unknown) => void
}

export class MemoryStore<Note = never> implements Store {
  readonly #tables: Map<string, SortedRows>
  readonly #options: MemoryStoreOptions<Note>
  readonly #subscribers = new Subscribers()
  readonly #watchers = new Map<string, RowWatcher[]>()
  readonly #view: MemoryView
  #waiting: Queued<Note>[] = []
  #written: Written<Note>[] = []
  #running: { readonly change: MemoryChange; readonly notes: Note[] } | undefined
  #notesAhead: Note[] = []
  #lastAsked: Note[] | undefined
  #isDead = false
  #lastChange = 0

  constructor(options: MemoryStoreOptions<Note> = {}, tables: Map<string, SortedRows> = new Map()) {
    this.#options = options
    this.#tables = tables
    this.#view = new MemoryView(name => this.#rowsOf(name))
  }

  change<Result>(write: (change: Change) => Result, atMs?: number): Promise<Result> {
    const notes = this.#notesAhead
    this.#notesAhead = []
    this.#lastAsked = notes
    return new Promise<Result>((resolve, reject) => {
      if (this.#isDead) return
      this.#waiting.push({ write, atMs, resolve: resolve as Queued<Note>['resolve'], reject, notes })
    })
  }

  view<Result>(read: (view: View) => Result): Result {
    assert(this.#running === undefined, 'a change reads by itself')
    return read(this.#view)
  }

  subscribe<Kind extends Happening['kind']>(
    kind: Kind,
    listener: (happening: HappeningOf<Kind>) => void,
  ): void {
    this.#subscribers.add(kind, listener)
  }

  /** As if a durable change had said so. */
  say(happening: Happening): void {
    this.#subscribers.tell([happening], rethrow)
  }

  watch({ name }: Pick<Table<never>, 'name'>, watcher: RowWatcher): void {
    this.#watchers.set(name, [...(this.#watchers.get(name) ?? []), watcher])
  }

  /** Says something of the change that is asked for next. */
  noteAhead(note: Note): void {
    this.#notesAhead.push(note)
  }

  /** Names the change that was asked for last. */
  get lastAsked(): object | undefined {
    return this.#lastAsked
  }

  /** What was said ahead is of this change, which still waits. */
  noteOf(asked: object): void {
    const queued = this.#waiting.find(({ notes }) => notes === asked)
    assert(queued !== undefined, 'a change that takes more still waits')
    queued.notes.push(...this.#notesAhead.splice(0))
  }

  /** Says something of the change that runs. */
  note(note: Note): void {
    this.#running!.notes.push(note)
  }

  /** Changes that are neither written nor refused. */
  get waiting(): number {
    return this.#waiting.length
  }

  /** Changes that are written and not told. */
  get written(): number {
    return this.#written.length
  }

  /** How many rows a table has. */
  size(name: string): number {
    return this.#rowsOf(name).size
  }

  /** Writes the oldest change that waits: all can read it now. */
  writeNext(): void {
    const queued = this.#waiting.shift()!
    const { nowMs = Date.now } = this.#options
    const watchersOf = (name: string) => this.#watchers.get(name) ?? []
    const change = new MemoryChange(
      name => this.#rowsOf(name),
      watchersOf,
      queued.atMs ?? nowMs(),
      ++this.#lastChange,
    )
    this.#running = { change, notes: queued.notes }
    let outcome: Written<Note>['outcome']
    try {
      outcome = { kind: 'written', result: change.run(queued.write) }
    } catch (error) {
      outcome = { kind: 'thrown', error }
    }
    this.#running = undefined
    this.#written.push({ ...queued, change, outcome })
    this.#options.onWritten?.(queued.notes, outcome.kind === 'thrown' ? outcome.error : undefined)
  }

  /** Tells the oldest written change how it ended: well, unless it threw. */
  tellNext(): void {
    const { change, outcome, resolve, reject } = this.#written.shift()!
    change.settle(outcome.kind === 'written')
    if (outcome.kind === 'thrown') return reject(outcome.error)
    this.#subscribers.tell(change.happenings, rethrow)
    resolve(outcome.result)
  }

  /** Tells the oldest written change that it failed, though it is there: false when it had thrown and is not. */
  tellNextFailed(reason: Error): boolean {
    const { change, outcome, reject } = this.#written.shift()!
    change.settle(false)
    reject(unavailable(reason))
    return outcome.kind === 'written'
  }

  /** Refuses the `count` oldest waiting changes, which leave no trace; the written ones resolve first. */
  refuseWaiting(count: number, reason: Error): void {
    while (this.#written.length > 0) this.tellNext()
    for (const { reject } of this.#waiting.splice(0, count)) reject(unavailable(reason))
  }

  /** Writes and tells all there is. */
  settleAll(): void {
    while (this.waiting > 0) this.writeNext()
    while (this.written > 0) this.tellNext()
  }

  /**
   * What another process finds after this one ended, with so many of the changes that were written and not told. This
   * one writes nothing any more.
   */
  crash(kept: number = this.#written.length): MemoryStore<Note> {
    const next = this.#copy(kept)
    this.#isDead = true
    this.#waiting = []
    return next
  }

  /** A store with the durable rows. */
  durable(): MemoryStore<Note> {
    return this.#copy(0)
  }

  #copy(kept: number): MemoryStore<Note> {
    const tables = new Map([...this.#tables].map(([name, rows]) => [name, rows.copy()]))
    for (const { change } of this.#written.slice(kept).reverse()) change.takeBackFrom(tables)
    return new MemoryStore(this.#options, tables)
  }

  #rowsOf(name: string): SortedRows {
    const rows = this.#tables.get(name) ?? new SortedRows(name)
    this.#tables.set(name, rows)
    return rows
  }
}

class MemoryView implements View {
  protected readonly rowsOf: (name: string) => SortedRows

  constructor(rowsOf: (name: string) => SortedRows) {
    this.rowsOf = rowsOf
  }

  get<Value, RowKey extends Key>({ name }: Table<Value, RowKey>, key: RowKey): Value | undefined {
    const value = this.rowsOf(name).get(nameOf(key)) as Value | undefined
    return value instanceof Uint8Array ? (Buffer.from(value) as Value) : value
  }

  getVolatile({ name }: Table<Uint8Array>, key: Uint8Array): Buffer | undefined {
    const value = this.rowsOf(name).get(nameOf(key)) as Buffer | undefined
    if (value === undefined) return undefined
    readBuffer.set(value)
    return readBuffer.subarray(0, value.length)
  }

  has<RowKey extends Key>({ name }: Table<never, RowKey>, key: RowKey): boolean {
    return this.rowsOf(name).get(nameOf(key)) !== undefined
  }

  keys<RowKey extends Key>(table: Table<never, RowKey>, range: KeyRange<RowKey> = {}): Iterable<RowKey> {
    return this.rowsOf(table.name)
      .namesIn(range)
      .map(name => keyOf(table, name) as RowKey)
  }

  range<Value, RowKey extends Key>(
    table: Table<Value, RowKey>,
    range: KeyRange<RowKey> = {},
  ): Iterable<Row<Value, RowKey>> {
    const rows = this.rowsOf(table.name)
    return rows
      .namesIn(range)
      .map(name => ({ key: keyOf(table, name) as RowKey, value: rows.get(name) as Value }))
  }

  count<RowKey extends Key>({ name }: Table<never, RowKey>, range: KeyRange<RowKey> = {}): number {
    return this.rowsOf(name).namesIn(range).length
  }
}

class MemoryChange extends MemoryView implements Change {
  readonly nowMs: number
  readonly number: number
  readonly happenings: Happening[] = []
  readonly #watchersOf: (name: string) => readonly RowWatcher[]
  readonly #earlier: EarlierRow[] = []
  readonly #watched: { readonly watcher: RowWatcher; readonly key: Uint8Array }[] = []
  readonly #endings: (() => void)[] = []
  readonly #undos: (() => void)[] = []
  readonly #locals = new Map<object, unknown>()
  #isRunning = true

  constructor(
    rowsOf: (name: string) => SortedRows,
    watchersOf: (name: string) => readonly RowWatcher[],
    nowMs: number,
    number: number,
  ) {
    super(rowsOf)
    this.number = number
    this.#watchersOf = watchersOf
    this.nowMs = nowMs
  }

  put<Value, RowKey extends Key>(table: Table<Value, RowKey>, key: RowKey, value: Value): void {
    assert(value !== undefined, 'a row has a value')
    this.#write(table, key, value instanceof Uint8Array ? Buffer.from(value) : value)
  }

  remove<RowKey extends Key>(table: Table<never, RowKey>, key: RowKey): void {
    this.#write(table, key, undefined)
  }

  happened(happening: Happening): void {
    const subject = newsSubjectOf(happening)
    const isSame = (said: Happening) => said.kind === happening.kind && newsSubjectOf(said) === subject
    if (subject !== undefined && this.happenings.some(isSame)) return
    this.happenings.push(happening)
  }

  atEnd(write: () => void): void {
    this.#endings.push(write)
  }

  whenTakenBack(undo: () => void): void {
    this.#undos.push(undo)
  }

  attempt<Result>(write: () => Result): Result {
    const undos = this.#undos.length
    const [rows, happenings, endings] = [this.#earlier.length, this.happenings.length, this.#endings.length]
    this.#locals.clear()
    try {
      return write()
    } catch (error) {
      this.#locals.clear()
      this.#putBack(this.#earlier.splice(rows))
      for (const undo of this.#undos.splice(undos).reverse()) undo()
      this.happenings.length = happenings
      this.#endings.length = endings
      throw error
    }
  }

  local<Value>(owner: object, make: () => Value): Value {
    if (!this.#locals.has(owner)) this.#locals.set(owner, make())
    return this.#locals.get(owner) as Value
  }

  run<Result>(write: (change: Change) => Result): Result {
    try {
      const result = write(this)
      for (const end of this.#endings) end()
      return result
    } catch (error) {
      this.happenings.length = 0
      this.#putBack(this.#earlier.splice(0))
      throw error
    } finally {
      this.#isRunning = false
    }
  }

  settle(isDurable: boolean): void {
    for (const { watcher, key } of this.#watched) watcher.onSettled(key, isDurable)
  }

  #putBack(written: readonly EarlierRow[]): void {
    for (const { rows, name, value } of written.toReversed()) rows.put(name, value)
    for (const { watcher, key } of this.#watched) watcher.onTakenBack?.(key)
  }

  /** Takes the change back in a copy of the tables. */
  takeBackFrom(tables: ReadonlyMap<string, SortedRows>): void {
    for (const { rows, name, value } of this.#earlier.toReversed()) tables.get(rows.table)!.put(name, value)
  }

  #write(table: Table<never, never>, key: Key, value: unknown): void {
    assert(this.#isRunning, 'a change is written by its own function')
    for (const watcher of this.#watchersOf(table.name)) {
      watcher.onWriting(key as Uint8Array, value)
      this.#watched.push({ watcher, key: key as Uint8Array })
    }
    const [rows, name] = [this.rowsOf(table.name), nameOf(key)]
    this.#earlier.push({ rows, name, value: rows.get(name) })
    rows.put(name, value)
  }
}

/** Rows by the names of their keys, in order. */
class SortedRows {
  readonly table: string
  readonly #rows: Map<string, unknown>
  readonly #names: string[]

  constructor(table: string, rows: Map<string, unknown> = new Map(), names: string[] = []) {
    this.table = table
    this.#rows = rows
    this.#names = names
  }

  copy(): SortedRows {
    return new SortedRows(this.table, new Map(this.#rows), [...this.#names])
  }

  get size(): number {
    return this.#names.length
  }

  get(name: string): unknown {
    return this.#rows.get(name)
  }

  /** Undefined removes the row. */
  put(name: string, value: unknown): void {
    if (value === undefined) {
      if (this.#rows.delete(name)) this.#names.splice(this.#placeOf(name), 1)
      return
    }
    if (!this.#rows.has(name)) this.#names.splice(this.#placeOf(name), 0, name)
    this.#rows.set(name, value)
  }

  /** `start` belongs to the range, `end` does not; in reverse, `start` is the higher one. */
  namesIn({ start, end, limit = this.#names.length, reverse = false }: KeyRange<Key>): string[] {
    if (!reverse) {
      const first = start === undefined ? 0 : this.#placeOf(nameOf(start))
      const last = end === undefined ? this.#names.length : this.#placeOf(nameOf(end))
      return this.#names.slice(first, Math.max(first, Math.min(last, first + limit)))
    }
    const last = start === undefined ? this.#names.length : this.#placeBehind(nameOf(start))
    const first = end === undefined ? 0 : this.#placeBehind(nameOf(end))
    return this.#names.slice(Math.max(first, last - limit), Math.max(first, last)).reverse()
  }

  /** Where the first name is that is not less. */
  #placeOf(name: string): number {
    let [low, high] = [0, this.#names.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#names[middle]! < name) low = middle + 1
      else high = middle
    }
    return low
  }

  #placeBehind(name: string): number {
    const place = this.#placeOf(name)
    return this.#names[place] === name ? place + 1 : place
  }
}

/** An error as LMDB gives it, which tells by its code whether there was no room (28). */
export function diskError(code: number): Error {
  return Object.assign(new Error(`disk error ${code}`), { code })
}

function rethrow(error: unknown): never {
  throw error
}

function unavailable(cause: unknown): SignalError {
  return new SignalError('STORE_UNAVAILABLE', 'the store could not write', { cause })
}

/** Code units of a string compare as the octets they stand for. */
function nameOf(key: Key): string {
  if (typeof key === 'string') return key
  return Buffer.from(key.buffer, key.byteOffset, key.length).toString('latin1')
}

function keyOf({ keys }: Table<never, never>, name: string): Key {
  return keys === 'text' ? name : Buffer.from(name, 'latin1')
}

/** More than a bundle of the longest entries has. */
const readBuffer = Buffer.alloc(512 * 1024)
