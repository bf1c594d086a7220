/**
 * The waiting messages of one channel, as its sender takes them: oldest first, each once until it is settled. It reads
 * on from the place it has come to, and knows when there is nothing to read: what waits for its time, or is with the
 * sender, costs nothing meanwhile.
 */

import { decode } from 'msgpackr'
import type { Outgoing } from '../domain/outgoing.ts'
import type { Table } from './database.ts'
import type { Settlement } from './outbox-store.ts'
import type { Sealed } from './sealed.ts'

export interface OutboxRow {
  readonly sealed: Uint8Array
  /** How often it has been tried. */
  readonly tries: number
}

export interface WaitingMessage {
  readonly key: Uint8Array
  readonly message: Outgoing
  readonly tries: number
}

export interface OutboxQueueParts {
  readonly rows: Pick<Table<OutboxRow>, 'getRange'>
  readonly sealed: Pick<Sealed, 'open'>
  /** With which the keys of the channel begin. */
  readonly channelByte: number
  /** In one transaction. */
  readonly settle: (settlements: readonly Settlement[]) => Promise<void>
  /** There may be more to take. */
  readonly onNews: () => void
}

export class OutboxQueue {
  readonly #parts: OutboxQueueParts
  readonly #end: Uint8Array
  /** The first key that is not read yet, or one before it. */
  #place: Buffer
  /** When there will be something to read at that place, milliseconds since 1970; infinite when nothing is there. */
  #readableMs = 0
  /** Taken and not settled. */
  readonly #taken = new Set<string>()

  constructor(parts: OutboxQueueParts) {
    this.#parts = parts
    this.#place = Buffer.of(parts.channelByte)
    this.#end = Uint8Array.of(parts.channelByte + 1)
  }

  /** How many messages are taken and not settled. */
  get takenCount(): number {
    return this.#taken.size
  }

  /** When to look again if nothing is written before, milliseconds since 1970; undefined when nothing waits. */
  get nextDueMs(): number | undefined {
    return Number.isFinite(this.#readableMs) ? this.#readableMs : undefined
  }

  /** The oldest messages whose time has come and that are not taken. */
  take(nowMs: number, countMax: number): WaitingMessage[] {
    const taken: WaitingMessage[] = []
    if (nowMs < this.#readableMs || countMax === 0) return taken
    const lost: Settlement[] = []
    let last: Uint8Array | undefined
    this.#readableMs = Number.POSITIVE_INFINITY
    for (const { key, value } of this.#parts.rows.getRange({ start: this.#place, end: this.#end })) {
      const dueMs = dueMsOf(key)
      if (dueMs > nowMs || taken.length + lost.length === countMax) {
        this.#readableMs = dueMs
        break
      }
      last = key
      const name = nameOf(key)
      if (this.#taken.has(name)) continue
      this.#taken.add(name)
      const plain = this.#parts.sealed.open(value.sealed)
      // Sealed by another secret: it can't be sent any more, and its expiry is unknown.
      if (plain === undefined) lost.push({ key })
      else taken.push({ key, message: decode(plain), tries: value.tries })
    }
    if (last !== undefined) this.#place = Buffer.concat([last, FIRST_BEHIND])
    if (lost.length > 0) this.#forget(lost)
    return taken
  }

  /** Has them gone, or back at a later time. Until that is durable they are not taken again, nor after it has failed. */
  async settle(settlements: readonly Settlement[]): Promise<void> {
    await this.#parts.settle(settlements)
    for (const { key } of settlements) this.#taken.delete(nameOf(key))
  }

  /** Messages were written, of which `firstKey` is the first: not always behind those that have been read. */
  onWritten(firstKey: Buffer): void {
    if (firstKey.compare(this.#place) < 0) this.#place = firstKey
    this.#readableMs = Math.min(this.#readableMs, dueMsOf(firstKey))
  }

  /** Where this can't be written, the next queue meets them again. */
  #forget(lost: readonly Settlement[]): void {
    void this.settle(lost)
      .catch(() => undefined)
      .then(this.#parts.onNews)
  }
}

/** Makes of a key the least one behind it. */
const FIRST_BEHIND = Buffer.of(0)

/** The time in a key, milliseconds since 1970. */
function dueMsOf(key: Uint8Array): number {
  return Buffer.from(key.buffer, key.byteOffset, key.length).readUIntBE(1, 6)
}

function nameOf(key: Uint8Array): string {
  return Buffer.from(key.buffer, key.byteOffset, key.length).toString('latin1')
}
