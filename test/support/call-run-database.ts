/**
 * A `Database` in memory for seeded runs of calls, which decide when and how each commit ends. Written in the order of
 * their calls, commits are visible and durable in the same moment, as LMDB has it that syncs before it shows; told, a
 * commit runs its effects and its promise settles. What is not written when the process dies never was.
 *
 * Values are kept as they are: the stores change none that they have put or got.
 */

import { SignalError } from '../../src/errors.ts'
import type { Database } from '../../src/store/database.ts'

interface Range {
  readonly start?: Uint8Array
  readonly end?: Uint8Array
  readonly limit?: number
  readonly reverse?: boolean
}

interface Commit<Note> {
  readonly write: () => unknown
  readonly resolve: (result: unknown) => void
  readonly reject: (error: unknown) => void
  readonly effects: (() => void)[]
  /** Tell watchers of the rows that were written. */
  readonly writes: (() => void)[]
  readonly notes: Note[]
  result: unknown
  thrown: { readonly error: unknown } | undefined
}

type Watch = Parameters<Database['watch']>

/** `Note` is what is said of commits to whoever hears when one is written. */
export class RunDatabase<Note> {
  readonly #tables: Map<string, RunTable>
  readonly #onWritten: (notes: readonly Note[], thrown: unknown) => void
  readonly #watches: Watch[] = []
  #waiting: Commit<Note>[] = []
  #written: Commit<Note>[] = []
  #running: Commit<Note> | undefined
  #ahead: Note[] = []
  #isDead = false

  constructor(
    onWritten: (notes: readonly Note[], thrown: unknown) => void,
    tables: Map<string, RunTable> = new Map(),
  ) {
    this.#onWritten = onWritten
    this.#tables = tables
  }

  /** The same as the product knows it: whatever else a `Database` has is not used by the stores of calls. */
  asDatabase(): Database {
    return this as unknown as Database
  }

  table(name: string): RunTable {
    const table = this.#tables.get(name) ?? new SortedRows()
    this.#tables.set(name, table)
    return new WatchedTable(table, key => this.#tellWatches(name, key))
  }

  watch(...watch: Watch): void {
    this.#watches.push(watch)
  }

  #tellWatches(name: string, key: Uint8Array): void {
    for (const [table, onWriting, onWritten] of this.#watches) {
      if (table !== name) continue
      onWriting(key)
      this.#running!.writes.push(() => onWritten(key))
    }
  }

  commit<Result>(write: () => Result): Promise<Result> {
    const notes = this.#ahead
    this.#ahead = []
    return new Promise<Result>((resolve, reject) => {
      if (this.#isDead) return
      const settle = { resolve: resolve as (result: unknown) => void, reject }
      const none = { effects: [], writes: [], result: undefined, thrown: undefined }
      this.#waiting.push({ write, ...settle, notes, ...none })
    })
  }

  afterCommit(effect: () => void): void {
    this.#running!.effects.push(effect)
  }

  get transaction(): object {
    return this.#running!.effects
  }

  /** Says something of the commit that is asked for next. */
  noteAhead(note: Note): void {
    this.#ahead.push(note)
  }

  /** In a transaction: says something of it. */
  note(note: Note): void {
    this.#running!.notes.push(note)
  }

  /** Commits that are neither written nor refused. */
  get waiting(): number {
    return this.#waiting.length
  }

  /** Commits that are written and not told. */
  get written(): number {
    return this.#written.length
  }

  /** Writes the oldest commit that waits: it is durable, and all can read it. */
  writeNext(): void {
    const commit = this.#waiting.shift()!
    this.#running = commit
    try {
      commit.result = commit.write()
    } catch (error) {
      commit.thrown = { error }
    }
    this.#running = undefined
    this.#written.push(commit)
    this.#onWritten(commit.notes, commit.thrown?.error)
  }

  /** Tells the oldest written commit how it ended: well, unless it threw. */
  tellNext(): void {
    const { thrown, effects, writes, resolve, reject, result } = this.#written.shift()!
    for (const tell of writes) tell()
    if (thrown !== undefined) return reject(thrown.error)
    for (const effect of effects) effect()
    resolve(result)
  }

  /** Refuses the `count` oldest of those that wait, which leave nothing behind; those before them are told first. */
  refuse(count: number): void {
    while (this.#written.length > 0) this.tellNext()
    const error = new SignalError('STORE_UNAVAILABLE', 'the disk is full')
    for (const { reject } of this.#waiting.splice(0, count)) reject(error)
  }

  /** Writes and tells all there is. */
  settleAll(): void {
    while (this.#waiting.length > 0) this.writeNext()
    while (this.#written.length > 0) this.tellNext()
  }

  /** What another process finds after this one ended; nothing of this one is heard of any more. */
  crash(): RunDatabase<Note> {
    this.#isDead = true
    this.#waiting = []
    this.#written = []
    return new RunDatabase(this.#onWritten, this.#tables)
  }
}

/** Rows in the order of their keys' bytes. */
export interface RunTable {
  readonly size: number
  get(key: Uint8Array): unknown
  put(key: Uint8Array, value: unknown): void
  remove(key: Uint8Array): void
  getRange(range?: Range): { key: Uint8Array; value: unknown }[]
  getKeys(range?: Range): Uint8Array[]
  getKeysCount(range?: Range): number
}

class WatchedTable implements RunTable {
  readonly #rows: RunTable
  readonly #onWriting: (key: Uint8Array) => void

  constructor(rows: RunTable, onWriting: (key: Uint8Array) => void) {
    this.#rows = rows
    this.#onWriting = onWriting
  }

  get size(): number {
    return this.#rows.size
  }

  get(key: Uint8Array): unknown {
    return this.#rows.get(key)
  }

  put(key: Uint8Array, value: unknown): void {
    this.#onWriting(key)
    this.#rows.put(key, value)
  }

  remove(key: Uint8Array): void {
    this.#onWriting(key)
    this.#rows.remove(key)
  }

  getRange(range?: Range): { key: Uint8Array; value: unknown }[] {
    return this.#rows.getRange(range)
  }

  getKeys(range?: Range): Uint8Array[] {
    return this.#rows.getKeys(range)
  }

  getKeysCount(range?: Range): number {
    return this.#rows.getKeysCount(range)
  }
}

class SortedRows implements RunTable {
  readonly #rows = new Map<string, unknown>()
  /** Names of the keys, in order. */
  readonly #names: string[] = []

  get size(): number {
    return this.#names.length
  }

  get(key: Uint8Array): unknown {
    return this.#rows.get(nameOf(key))
  }

  put(key: Uint8Array, value: unknown): void {
    const name = nameOf(key)
    if (!this.#rows.has(name)) this.#names.splice(this.#placeOf(name), 0, name)
    this.#rows.set(name, value)
  }

  remove(key: Uint8Array): void {
    const name = nameOf(key)
    if (this.#rows.delete(name)) this.#names.splice(this.#placeOf(name), 1)
  }

  getRange(range: Range = {}): { key: Uint8Array; value: unknown }[] {
    return this.#namesIn(range).map(name => ({ key: keyOf(name), value: this.#rows.get(name) }))
  }

  getKeys(range: Range = {}): Uint8Array[] {
    return this.#namesIn(range).map(keyOf)
  }

  getKeysCount(range: Range = {}): number {
    return this.#namesIn(range).length
  }

  /** `start` belongs to the range, `end` does not; in reverse, `start` is the higher one. */
  #namesIn({ start, end, limit = this.#names.length, reverse = false }: Range): string[] {
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

/** Code units of a string compare as the octets they stand for. */
function nameOf(key: Uint8Array): string {
  return Buffer.from(key.buffer, key.byteOffset, key.length).toString('latin1')
}

function keyOf(name: string): Uint8Array {
  return Buffer.from(name, 'latin1')
}
