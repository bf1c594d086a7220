/**
 * The tail of the order of changes, for a node that does not write. PostgreSQL notifies of appended changes; a poll
 * beside that is the heart-beat, finds what a notification missed, and tells who writes. Connections are replaced as
 * they fail.
 */

import { setTimeout } from 'node:timers/promises'
import { backOffMs } from '../../back-off.ts'
import { SignalError } from '../../errors.ts'
import { type LedgerChange, type Position, readChanges } from './changes.ts'
import type { Connection, ConnectionDeps } from './connection.ts'
import type { Hold } from './holds.ts'
import { BACK_OFF, Reconnecting } from './reconnecting.ts'
import { readWriterAnd, type WriterState } from './writer-row.ts'

export interface Following {
  /** Where the follower stands. */
  readonly after: Position
  /** Takes the next changes, in order; no more come before it is done. Its failure ends the follower. */
  readonly onChanges: (changes: readonly LedgerChange[]) => void | Promise<void>
  /** Hears the writer's state with each poll, before `onCurrent` of that. */
  readonly onWriter?: (writer: WriterState) => void
  /** `currentAtMs` is later than before. */
  readonly onCurrent?: () => void
  /** Why the ledger could not be asked; it will be again. */
  readonly onFailure?: (error: SignalError) => void
  /** Bodies that are read at a time. */
  readonly portionBytesMax?: number
}

export interface FollowerDeps {
  readonly connection: Omit<ConnectionDeps, 'onNotified'>
  readonly random: () => number
  readonly monotonicMs: () => number
  /** Keeps the changes that the follower lacks until it has caught up for the first time. */
  readonly hold: Hold
}

/** `startAnew`: the ledger has another past, or no longer what the follower lacks; it needs a snapshot. */
export type FollowerEnd =
  | { readonly kind: 'closed' }
  | { readonly kind: 'startAnew'; readonly reason: string }

export class Follower {
  /** Rejects with what `onChanges` threw. */
  readonly ended: Promise<FollowerEnd>
  readonly #deps: FollowerDeps
  readonly #following: Following
  readonly #reconnecting: Reconnecting
  #position: Position
  #writer: WriterState | undefined
  #heardAtMs: number | undefined
  /** The last poll: when it was asked, and the last change that it found. */
  #polled: { readonly atMs: number; readonly last: number } | undefined
  #currentAtMs: number | undefined
  /** The number of the newest change, by notification or poll. */
  #newest = 0
  #pollAtMs = 0
  #isClosed = false
  #wake: () => void = () => {}

  constructor(deps: FollowerDeps, following: Following) {
    this.#deps = deps
    this.#following = following
    this.#position = following.after
    const onNotified = (payload: string) => this.#onNotified(payload)
    this.#reconnecting = new Reconnecting({ ...deps.connection, onNotified }, connection =>
      this.#listen(connection),
    )
    this.ended = this.#run()
  }

  /** Behind the changes that `onChanges` has taken. */
  get position(): Position {
    return this.#position
  }

  /** As the last poll found it. */
  get writer(): WriterState | undefined {
    return this.#writer
  }

  /** When the last question was asked that PostgreSQL has answered, in the monotonic clock. */
  get heardAtMs(): number | undefined {
    return this.#heardAtMs
  }

  /** `onChanges` has taken all that the ledger had then, in the monotonic clock. */
  get currentAtMs(): number | undefined {
    return this.#currentAtMs
  }

  /** Polls now. */
  poll(): void {
    this.#pollAtMs = 0
    this.#wake()
  }

  /** Resolves when `onChanges` is done and will not be called again. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#wake()
    this.#reconnecting.cut()
    await this.#reconnecting.close()
    await this.ended.catch(() => {})
  }

  async #run(): Promise<FollowerEnd> {
    let failures = 0
    while (!this.#isClosed) {
      const read = await this.#read()
      if (this.#isClosed) break
      failures = read.kind === 'failed' ? failures + 1 : 0
      if (read.kind === 'failed') await setTimeout(backOffMs(BACK_OFF, failures, this.#deps.random()))
      if (read.kind === 'gap') {
        await this.#reconnecting.close()
        return { kind: 'startAnew', reason: read.reason }
      }
      if (read.kind === 'changes') await this.#take(read.changes)
      if (read.kind === 'nothing') await this.#idle()
    }
    return { kind: 'closed' }
  }

  async #read(): Promise<Read> {
    try {
      const connection = await this.#reconnecting.get()
      if (this.#deps.monotonicMs() >= this.#pollAtMs) {
        const gap = await this.#poll(connection)
        if (gap !== undefined) return await this.#gap(connection, gap)
      }
      if (this.#currentAtMs !== undefined) await this.#deps.hold.release(connection)
      else await this.#deps.hold.renew(connection, this.#position.number)
      if (this.#newest <= this.#position.number) return { kind: 'nothing' }
      return await this.#readPortion(connection)
    } catch (error) {
      if (!(error instanceof SignalError)) throw error
      if (!this.#isClosed) this.#following.onFailure?.(error)
      return { kind: 'failed' }
    }
  }

  /** Returns why the follower can't go on from where it stands. */
  async #poll(connection: Connection): Promise<string | undefined> {
    const { number, epoch } = this.#position
    const askedAtMs = this.#deps.monotonicMs()
    const { writer, epochAtNumber } = await readWriterAnd(connection, number, POLL_DEADLINE_MS)
    this.#heardAtMs = askedAtMs
    this.#pollAtMs = askedAtMs + POLL_MS
    this.#writer = writer
    if (writer.last < number) return `the ledger ends with change ${writer.last}, before ${number}`
    if (number > 0 && epochAtNumber === undefined) return `the ledger no longer has change ${number}`
    if (number > 0 && epochAtNumber !== epoch) return `change ${number} of the ledger is another one`
    this.#newest = writer.last
    this.#polled = { atMs: askedAtMs, last: writer.last }
    this.#following.onWriter?.(writer)
    this.#noteCurrent()
    return undefined
  }

  async #readPortion(connection: Connection): Promise<Read> {
    const { number } = this.#position
    const bytesMax = this.#following.portionBytesMax ?? PORTION_BYTES_MAX
    const askedAtMs = this.#deps.monotonicMs()
    const changes = await readChanges(connection, { after: number, until: Number.MAX_SAFE_INTEGER, bytesMax })
    this.#heardAtMs = askedAtMs
    for (const [at, change] of changes.entries()) {
      if (change.number !== number + 1 + at)
        return await this.#gap(connection, `change ${number + 1 + at} is missing`)
    }
    if (changes.length > 0) return { kind: 'changes', changes }
    // The next poll says why.
    this.#newest = number
    return { kind: 'nothing' }
  }

  async #gap(connection: Connection, reason: string): Promise<Read> {
    await this.#deps.hold.release(connection)
    return { kind: 'gap', reason }
  }

  async #take(changes: readonly LedgerChange[]): Promise<void> {
    await this.#following.onChanges(changes)
    const { number, epoch } = changes.at(-1)!
    this.#position = { number, epoch }
    this.#noteCurrent()
  }

  #noteCurrent(): void {
    if (this.#polled === undefined || this.#polled.last > this.#position.number) return
    if (this.#polled.atMs === this.#currentAtMs) return
    this.#currentAtMs = this.#polled.atMs
    this.#following.onCurrent?.()
  }

  /** Until a notification or the next poll. */
  async #idle(): Promise<void> {
    const ms = this.#pollAtMs - this.#deps.monotonicMs()
    if (ms <= 0 || this.#newest > this.#position.number || this.#isClosed) return
    await new Promise<void>(resolve => {
      const timer = globalThis.setTimeout(resolve, ms)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  async #listen(connection: Connection): Promise<void> {
    await connection.run({ text: 'listen callsign' })
    // The ledger may have changed since.
    this.#pollAtMs = 0
  }

  #onNotified(payload: string): void {
    // Without a number it is the writer that has changed.
    if (payload === '') return this.poll()
    this.#newest = Math.max(this.#newest, Number(payload))
    this.#wake()
  }
}

type Read =
  | { readonly kind: 'failed' }
  | { readonly kind: 'nothing' }
  | { readonly kind: 'changes'; readonly changes: readonly LedgerChange[] }
  | { readonly kind: 'gap'; readonly reason: string }

const POLL_MS = 500
const POLL_DEADLINE_MS = 1_000
const PORTION_BYTES_MAX = 4 * 1024 * 1024
