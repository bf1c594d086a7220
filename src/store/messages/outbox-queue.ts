/**
 * The waiting messages of one lane, as its sender takes them: oldest first, each once until it is settled. It reads on
 * from the place it has come to, and knows when there is nothing to read: messages that wait for their time, or are
 * with the sender, cost nothing.
 *
 * A row holds messages that were written together. It stays until the last of them is settled, so after a crash all of
 * them are sent again.
 */

import type { OutboxMessage } from '../../domain/messages/outbox-message.ts'
import { nameOfKey } from '../engine/keys.ts'
import type { ReadStore, View } from '../engine/store.ts'
import type { SealedValues } from '../tables/sealed-values.ts'
import { OUTBOX } from './message-tables.ts'

export interface WaitingMessage {
  readonly message: OutboxMessage
  readonly row: TakenRow
}

/** A row with its messages at the sender. */
export interface TakenRow {
  readonly key: Uint8Array
  /** How often its messages have been tried. */
  readonly tries: number
  /** Those of its messages that are not settled. */
  readonly open: Set<WaitingMessage>
  /** Those that come again. */
  readonly postponed: PostponedMessage[]
}

export interface PostponedMessage {
  readonly message: OutboxMessage
  readonly untilMs: number
}

/** A message that is out of the way, or comes again. */
export interface Settlement {
  readonly waiting: WaitingMessage
  /** When it is tried again, milliseconds since 1970; absent when it was sent or given up. */
  readonly untilMs?: number | undefined
}

export interface OutboxQueueDeps {
  readonly store: Pick<ReadStore, 'view'>
  readonly sealed: Pick<SealedValues<readonly OutboxMessage[]>, 'open'>
  /** With which the keys of the lane begin. */
  readonly laneByte: number
  /** In one change: removes rows, and writes postponed messages anew. */
  readonly settle: (rows: readonly TakenRow[]) => Promise<void>
  /** In one change: removes rows that can't be opened. */
  readonly forget: (rows: readonly TakenRow[]) => Promise<void>
}

export class OutboxQueue {
  readonly #deps: OutboxQueueDeps
  readonly #end: Uint8Array
  /** The first key that is not read yet, or one before it. */
  #place: Buffer
  /** When there will be something to read at that place, milliseconds since 1970; infinite when nothing is there. */
  #readableMs = 0
  /** The rows that are taken and still in the store. */
  readonly #taken = new Set<string>()
  #takenCount = 0
  /** Rows whose messages are settled, which the store has not taken. */
  #unwritten: readonly TakenRow[] = []

  constructor(deps: OutboxQueueDeps) {
    this.#deps = deps
    this.#place = Buffer.of(deps.laneByte)
    this.#end = Uint8Array.of(deps.laneByte + 1)
  }

  /** How many messages are taken and not settled. A row that could not be written counts as one. */
  get takenCount(): number {
    return this.#takenCount + this.#unwritten.length
  }

  /** When to look again if nothing is written before, milliseconds since 1970; undefined when nothing waits. */
  get nextDueMs(): number | undefined {
    return Number.isFinite(this.#readableMs) ? this.#readableMs : undefined
  }

  /** The oldest messages whose time has come and that are not taken: whole rows, until there are `countMin` or more. */
  take(nowMs: number, countMin: number): WaitingMessage[] {
    if (nowMs < this.#readableMs || countMin <= 0) return []
    return this.#deps.store.view(view => this.#takeFrom(view, nowMs, countMin))
  }

  #takeFrom(view: View, nowMs: number, countMin: number): WaitingMessage[] {
    const taken: WaitingMessage[] = []
    const lost: TakenRow[] = []
    let last: Uint8Array | undefined
    this.#readableMs = Number.POSITIVE_INFINITY
    for (const { key, value } of view.range(OUTBOX, { start: this.#place, end: this.#end })) {
      const dueMs = dueMsOf(key)
      if (dueMs > nowMs || taken.length + lost.length >= countMin) {
        this.#readableMs = dueMs
        break
      }
      last = key
      const name = nameOfKey(key)
      if (this.#taken.has(name)) continue
      const row: TakenRow = { key, tries: value.tries, open: new Set(), postponed: [] }
      this.#taken.add(name)
      const messages = this.#deps.sealed.open(value.sealed)
      // Sealed by another secret: it can't be sent any more, and its expiry is unknown.
      if (messages === undefined) lost.push(row)
      for (const message of messages ?? []) {
        const waiting = { message, row }
        row.open.add(waiting)
        taken.push(waiting)
      }
    }
    if (last !== undefined) this.#place = Buffer.concat([last, FIRST_BEHIND])
    if (lost.length > 0) this.#forget(lost)
    this.#takenCount += taken.length
    return taken
  }

  /**
   * Has them gone, or back at a later time. Until that is durable they are not taken again. Where it rejects, the next call
   * has them written too.
   */
  async settle(settlements: readonly Settlement[]): Promise<void> {
    const done = [...this.#unwritten]
    this.#unwritten = []
    for (const { waiting, untilMs } of settlements) {
      const { row, message } = waiting
      if (!row.open.delete(waiting)) continue
      this.#takenCount--
      if (untilMs !== undefined) row.postponed.push({ message, untilMs })
      if (row.open.size === 0) done.push(row)
    }
    if (done.length > 0) await this.#settleRows(done)
  }

  /** Messages were written, the first at `firstKey`: not always behind those that have been read. */
  onWritten(firstKey: Buffer): void {
    if (firstKey.compare(this.#place) < 0) this.#place = firstKey
    this.#readableMs = Math.min(this.#readableMs, dueMsOf(firstKey))
  }

  async #settleRows(rows: readonly TakenRow[]): Promise<void> {
    try {
      await this.#deps.settle(rows)
    } catch (error) {
      this.#unwritten = this.#unwritten.concat(rows)
      throw error
    }
    for (const { key } of rows) this.#taken.delete(nameOfKey(key))
  }

  /** Where this can't be written, the next queue meets them again. */
  #forget(lost: readonly TakenRow[]): void {
    const isGone = () => {
      for (const { key } of lost) this.#taken.delete(nameOfKey(key))
    }
    void this.#deps.forget(lost).then(isGone, () => undefined)
  }
}

/** Makes of a key the least one behind it. */
const FIRST_BEHIND = Buffer.of(0)

/** The time in a key, milliseconds since 1970. */
function dueMsOf(key: Uint8Array): number {
  return Buffer.from(key.buffer, key.byteOffset, key.length).readUIntBE(1, 6)
}
