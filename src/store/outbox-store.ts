/**
 * Messages that wait to leave the process, sealed, each under its channel and the time of its next try. They are
 * written in the transaction of what they tell of, so that neither is there without the other.
 */

import { encode } from 'msgpackr'
import type { Channel, Outgoing } from '../domain/outgoing.ts'
import type { Secrets } from '../domain/secrets.ts'
import type { Database, Table } from './database.ts'
import { timeBytes } from './keys.ts'
import { OutboxQueue, type OutboxRow } from './outbox-queue.ts'
import { Sealed } from './sealed.ts'

/** A message that is out of the way, or comes again. */
export interface Settlement {
  readonly key: Uint8Array
  /** When it is tried again, milliseconds since 1970; absent when it was sent or given up. */
  readonly untilMs?: number | undefined
}

/** What a transaction has put into a channel. */
interface News {
  readonly transaction: object
  firstKey: Buffer
}

export class OutboxStore {
  readonly #database: Database
  readonly #rows: Table<OutboxRow>
  readonly #sealed: Sealed
  readonly #randomBytes: (length: number) => Uint8Array
  readonly #onNews: (channel: Channel) => void
  readonly #queues = new Map<Channel, OutboxQueue>()
  readonly #news = new Map<Channel, News>()
  #count = 0

  /** `onNews` is told of each channel that a transaction has put something into, once that is durable. */
  constructor(
    database: Database,
    secrets: Pick<Secrets, 'seal'>,
    randomBytes: (length: number) => Uint8Array,
    onNews: (channel: Channel) => void,
  ) {
    this.#database = database
    this.#rows = database.table('outbox')
    this.#sealed = new Sealed(secrets, randomBytes, 'outbox')
    this.#randomBytes = randomBytes
    this.#onNews = onNews
  }

  /** In a transaction. */
  add(message: Outgoing, nowMs: number): void {
    const sealed = this.#sealed.seal(encode(message))
    this.#put(message.channel, nowMs, { sealed, tries: 0 })
  }

  /** The channel's messages from the oldest on. It takes the place of the channel's earlier one. */
  queue(channel: Channel): OutboxQueue {
    const queue = new OutboxQueue({
      rows: this.#rows,
      sealed: this.#sealed,
      channelByte: CHANNEL_BYTES[channel],
      settle: settlements => this.#settle(channel, settlements),
      onNews: () => this.#onNews(channel),
    })
    this.#queues.set(channel, queue)
    return queue
  }

  #settle(channel: Channel, settlements: readonly Settlement[]): Promise<void> {
    return this.#database.commit(() => {
      for (const { key, untilMs } of settlements) {
        const row = untilMs === undefined ? undefined : this.#rows.get(key)
        this.#rows.remove(key)
        if (row !== undefined) this.#put(channel, untilMs!, { ...row, tries: row.tries + 1 })
      }
    })
  }

  #put(channel: Channel, dueMs: number, row: OutboxRow): void {
    const key = this.#newKey(channel, dueMs)
    this.#rows.put(key, row)
    const { transaction } = this.#database
    const news = this.#news.get(channel)
    if (news?.transaction === transaction) {
      if (key.compare(news.firstKey) < 0) news.firstKey = key
      return
    }
    const begun: News = { transaction, firstKey: key }
    this.#news.set(channel, begun)
    this.#database.afterCommit(() => {
      this.#queues.get(channel)?.onWritten(begun.firstKey)
      this.#onNews(channel)
    })
  }

  #newKey(channel: Channel, dueMs: number): Buffer {
    const key = Buffer.allocUnsafe(KEY_BYTES)
    key[0] = CHANNEL_BYTES[channel]
    key.set(timeBytes(dueMs), 1)
    // Of one moment, in the order in which they were added.
    key.writeUIntBE(++this.#count, 7, 6)
    key.set(this.#randomBytes(4), 13)
    return key
  }
}

/** First byte of the keys. */
const CHANNEL_BYTES: Record<Channel, number> = { mail: 1, sms: 2, push: 3, apple: 4 }
/** Channel, time, count, and random bytes, since the count begins anew with each process. */
const KEY_BYTES = 17
