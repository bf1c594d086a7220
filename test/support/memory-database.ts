/**
 * The tables of a `Database` in memory, for tests that decide when and how each commit ends. Commits are written and
 * told in the order of their calls, as LMDB does it: written, a commit is visible; told, it is durable and its promise
 * settles. Reads reuse one buffer, as `getBinaryFast` does, so that who keeps a view of it is found out.
 */

import { SignalError } from '../../src/errors.ts'
import type { Database } from '../../src/store/database.ts'

type Tables = ReadonlyMap<string, ReadonlyMap<string, unknown>>

interface Commit {
  readonly write: () => void
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
  /** The tables after it, once it is written. */
  after: Tables | undefined
  /** What its `write` threw. */
  thrown: unknown
}

export class MemoryDatabase {
  #tables: Map<string, Map<string, unknown>>
  #durable: Tables
  #commits: Commit[] = []

  constructor(tables: Tables = new Map()) {
    this.#tables = copyOf(tables)
    this.#durable = tables
  }

  /** The same as the product knows it: whatever else a `Database` has is not used by the log's tables. */
  asDatabase(): Database {
    return this as unknown as Database
  }

  bytesTable(name: string) {
    return {
      getBinaryFast: (key: Uint8Array): Buffer | undefined => this.#read(name, nameOf(key)),
      put: (key: Uint8Array, value: Uint8Array): void => this.#put(name, nameOf(key), Buffer.from(value)),
    }
  }

  recordTable<Value>(name: string) {
    return {
      get: (key: string) => this.#table(name).get(key) as Value | undefined,
      put: (key: string, value: Value): void => this.#put(name, key, structuredClone(value)),
    }
  }

  commit(write: () => void): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#commits.push({ write, resolve, reject, after: undefined, thrown: undefined })
    })
  }

  /** Commits that are neither written nor refused. */
  get waiting(): number {
    return this.#commits.filter(({ after }) => after === undefined).length
  }

  /** Commits that are written and not told. */
  get written(): number {
    return this.#commits.length - this.waiting
  }

  /** Writes the oldest commit that waits: all can read it now. */
  writeNext(): void {
    const commit = this.#commits.find(({ after }) => after === undefined)!
    try {
      commit.write()
    } catch (error) {
      commit.thrown = error
    }
    commit.after = copyOf(this.#tables)
  }

  /** Tells the oldest written commit how it ended: well, unless it threw. */
  tellNext(): void {
    const commit = this.#takeWritten()
    if (commit.thrown === undefined) commit.resolve()
    else commit.reject(storeUnavailable(commit.thrown))
  }

  /** Tells the oldest written commit that it failed, though it is there: false when it had thrown and is not. */
  tellNextFailed(reason: Error): boolean {
    const { reject, thrown } = this.#takeWritten()
    reject(storeUnavailable(reason))
    return thrown === undefined
  }

  /** Refuses the `count` oldest of those that wait, none being written: they leave nothing behind. */
  refuseWaiting(count: number, reason: Error): void {
    for (const { reject } of this.#commits.splice(0, count)) reject(storeUnavailable(reason))
  }

  /** Writes and tells all there is. */
  settleAll(): void {
    while (this.waiting > 0) this.writeNext()
    while (this.written > 0) this.tellNext()
  }

  /** What another process finds after this one ended, with so many of the commits that were written and not told. */
  crash(kept: number): MemoryDatabase {
    return new MemoryDatabase(kept === 0 ? this.#durable : this.#commits[kept - 1]!.after)
  }

  /** A view of what is durable. */
  durable(): MemoryDatabase {
    return new MemoryDatabase(this.#durable)
  }

  #takeWritten(): Commit {
    const commit = this.#commits.shift()!
    this.#durable = commit.after!
    return commit
  }

  #table(name: string): Map<string, unknown> {
    const table = this.#tables.get(name) ?? new Map<string, unknown>()
    this.#tables.set(name, table)
    return table
  }

  #read(name: string, key: string): Buffer | undefined {
    const value = this.#table(name).get(key) as Buffer | undefined
    if (value === undefined) return undefined
    readBuffer.set(value)
    return readBuffer.subarray(0, value.length)
  }

  #put(name: string, key: string, value: unknown): void {
    this.#table(name).set(key, value)
  }
}

/** An error as LMDB gives it, which tells by its code whether there was no room (28). */
export function diskError(code: number): Error {
  return Object.assign(new Error(`disk error ${code}`), { code })
}

function storeUnavailable(cause: unknown): SignalError {
  return new SignalError('STORE_UNAVAILABLE', 'the store could not write', { cause })
}

function copyOf(tables: Tables): Map<string, Map<string, unknown>> {
  return new Map([...tables].map(([name, rows]) => [name, new Map(rows)]))
}

function nameOf(key: Uint8Array): string {
  return Buffer.from(key).toString('hex')
}

/** More than a bundle of the longest entries has. */
const readBuffer = Buffer.alloc(512 * 1024)
