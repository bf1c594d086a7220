/**
 * Messages that wait to leave the process, sealed, each under its channel and the time of its next try. They are
 * written in the transaction of what they tell of, so that neither is there without the other.
 */

import { decode, encode } from 'msgpackr'
import type { Channel, Outgoing } from '../domain/outgoing.ts'
import type { Secrets } from '../domain/secrets.ts'
import type { Database, Table } from './database.ts'
import { indexKey, timeBytes } from './keys.ts'
import { Sealed } from './sealed.ts'

interface Row {
  readonly sealed: Uint8Array
  /** How often it has been tried. */
  readonly tries: number
}

export interface WaitingMessage {
  readonly key: Uint8Array
  readonly message: Outgoing
  readonly tries: number
}

export class OutboxStore {
  readonly #database: Database
  readonly #rows: Table<Row>
  readonly #sealed: Sealed
  readonly #randomBytes: (length: number) => Uint8Array
  readonly #onAdded: (channel: Channel) => void
  #count = 0

  /** `onAdded` is told of each new message, and of lost ones that are out of the way, when its transaction is durable. */
  constructor(
    database: Database,
    secrets: Pick<Secrets, 'seal'>,
    randomBytes: (length: number) => Uint8Array,
    onAdded: (channel: Channel) => void,
  ) {
    this.#database = database
    this.#rows = database.table('outbox')
    this.#sealed = new Sealed(secrets, randomBytes, 'outbox')
    this.#randomBytes = randomBytes
    this.#onAdded = onAdded
  }

  /** In a transaction. */
  add(message: Outgoing, nowMs: number): void {
    const sealed = this.#sealed.seal(encode(message))
    this.#rows.put(this.#newKey(message.channel, nowMs), { sealed, tries: 0 })
    this.#database.afterCommit(() => this.#onAdded(message.channel))
  }

  /** The oldest messages of a channel whose time has come. */
  due(channel: Channel, nowMs: number, countMax: number): WaitingMessage[] {
    const start = Uint8Array.of(CHANNEL_BYTES[channel])
    const end = Buffer.concat([start, timeBytes(nowMs + 1)])
    const waiting: WaitingMessage[] = []
    const lost: Uint8Array[] = []
    for (const { key, value } of this.#rows.getRange({ start, end, limit: countMax })) {
      const plain = this.#sealed.open(value.sealed)
      // Sealed by another secret: it can't be sent any more, and its expiry is unknown.
      if (plain === undefined) lost.push(key)
      else waiting.push({ key, message: decode(plain), tries: value.tries })
    }
    if (lost.length > 0) this.#forget(channel, lost)
    return waiting
  }

  /** When the first message of a channel that is not due yet will be, milliseconds since 1970. */
  nextDueMs(channel: Channel, nowMs: number): number | undefined {
    const start = Buffer.concat([Uint8Array.of(CHANNEL_BYTES[channel]), timeBytes(nowMs + 1)])
    const end = Uint8Array.of(CHANNEL_BYTES[channel] + 1)
    for (const key of this.#rows.getKeys({ start, end, limit: 1 })) return Buffer.from(key).readUIntBE(1, 6)
    return undefined
  }

  /** Removes a message that was sent or is given up. */
  done(key: Uint8Array): Promise<void> {
    return this.#database.commit(() => void this.#rows.remove(key))
  }

  /** Has it tried again later. */
  postpone({ key, message }: WaitingMessage, untilMs: number): Promise<void> {
    return this.#database.commit(() => {
      const row = this.#rows.get(key)
      if (row === undefined) return
      this.#rows.remove(key)
      this.#rows.put(this.#newKey(message.channel, untilMs), { ...row, tries: row.tries + 1 })
    })
  }

  /** In their place others are due, of which nobody would tell. Where this can't be written, they are met again. */
  #forget(channel: Channel, keys: readonly Uint8Array[]): void {
    const forgotten = this.#database.commit(() => {
      for (const key of keys) this.#rows.remove(key)
      this.#database.afterCommit(() => this.#onAdded(channel))
    })
    forgotten.catch(() => undefined)
  }

  #newKey(channel: Channel, dueMs: number): Uint8Array {
    // Of one moment, in the order in which they were added.
    this.#count++
    const name = Buffer.concat([indexKey(this.#count), this.#randomBytes(4)])
    return Buffer.concat([Uint8Array.of(CHANNEL_BYTES[channel]), timeBytes(dueMs), name])
  }
}

/** First byte of the keys. */
const CHANNEL_BYTES: Record<Channel, number> = { mail: 1, sms: 2, push: 3, apple: 4 }
