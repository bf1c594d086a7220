/**
 * Messages that wait to leave the process, sealed, under their lane and the time of their next try. They are written in
 * the change of what they tell of, so that neither is there without the other. Pushes that one change adds share rows: a call rings many devices at once.
 */

import { type Lane, laneOf, type OutboxMessage } from '../../domain/messages/outbox-message.ts'
import type { Secrets } from '../../domain/secrets.ts'
import { timeBytes } from '../engine/keys.ts'
import type { Change, Store } from '../engine/store.ts'
import { SealedValues } from '../tables/sealed-values.ts'
import { OUTBOX } from './message-tables.ts'
import { OutboxQueue, type PostponedMessage, type TakenRow } from './outbox-queue.ts'

/** Messages of one change that become a row at its end. */
interface RowToCome {
  readonly dueMs: number
  readonly messages: OutboxMessage[]
}

/** The first row that a change puts into each lane. */
type FirstKeys = Map<Lane, Buffer>

export class OutboxStore {
  readonly #store: Store
  readonly #sealed: SealedValues<readonly OutboxMessage[]>
  readonly #randomBytes: (length: number) => Uint8Array
  readonly #queues = new Map<Lane, OutboxQueue>()

  constructor(store: Store, secrets: Pick<Secrets, 'seal'>, randomBytes: (length: number) => Uint8Array) {
    this.#store = store
    this.#sealed = new SealedValues(secrets, randomBytes, 'outbox')
    this.#randomBytes = randomBytes
    store.subscribe('outbox-news', ({ lane, firstKey }) => {
      this.#queues.get(lane)?.onWritten(Buffer.from(firstKey))
    })
  }

  /** It leaves the process once the change is durable. */
  add(change: Change, message: OutboxMessage): void {
    const { nowMs } = change
    const lane = laneOf(message)
    const rows = change.local(ROWS_TO_COME, () => new Map<Lane, RowToCome>())
    const begun = rows.get(lane)
    if (begun?.dueMs === nowMs && begun.messages.length < ROW_MESSAGES_MAX[lane]) {
      begun.messages.push(message)
      return
    }
    const row: RowToCome = { dueMs: nowMs, messages: [message] }
    rows.set(lane, row)
    change.atEnd(() => {
      if (rows.get(lane) === row) rows.delete(lane)
      this.#put(change, lane, row, 0)
    })
  }

  /** The lane's messages from the oldest on. It takes the place of the lane's earlier one. */
  queue(lane: Lane): OutboxQueue {
    const queue = new OutboxQueue({
      store: this.#store,
      sealed: this.#sealed,
      laneByte: LANE_BYTES[lane],
      settle: rows => this.#settle(lane, rows),
      forget: rows => this.#forget(lane, rows),
    })
    this.#queues.set(lane, queue)
    return queue
  }

  #settle(lane: Lane, rows: readonly TakenRow[]): Promise<void> {
    return this.#store.change(change => {
      for (const { key, tries, postponed } of rows) {
        // Gone after a write of unknown outcome, which has put the postponed ones back already.
        if (postponed.length > 0 && change.get(OUTBOX, key) === undefined) continue
        change.remove(OUTBOX, key)
        for (const [dueMs, messages] of byTime(postponed))
          this.#put(change, lane, { dueMs, messages }, tries + 1)
      }
    })
  }

  /** Removes rows that can't be sent any more, and has the lane looked at again from there. */
  #forget(lane: Lane, rows: readonly TakenRow[]): Promise<void> {
    return this.#store.change(change => {
      for (const { key } of rows) change.remove(OUTBOX, key)
      change.happened({ kind: 'outbox-news', lane, firstKey: rows[0]!.key })
    })
  }

  #put(change: Change, lane: Lane, { dueMs, messages }: RowToCome, tries: number): void {
    const key = this.#newKey(change, lane, dueMs)
    change.put(OUTBOX, key, { sealed: this.#sealed.seal(messages), tries })
    const firstKeys = change.local<FirstKeys>(this, () => new Map())
    const known = firstKeys.get(lane)
    if (known !== undefined && known.compare(key) < 0) return
    firstKeys.set(lane, key)
    if (known !== undefined) return
    // A row may come at the end of the change, too; this ending comes behind it.
    change.atEnd(() => change.happened({ kind: 'outbox-news', lane, firstKey: firstKeys.get(lane)! }))
  }

  #newKey(change: Change, lane: Lane, dueMs: number): Buffer {
    const key = Buffer.allocUnsafe(KEY_BYTES)
    key[0] = LANE_BYTES[lane]
    key.set(timeBytes(dueMs), 1)
    // Those of one moment come in the order in which they were added.
    key.writeUIntBE(nextCount(change), 7, 6)
    key.set(this.#randomBytes(4), 13)
    return key
  }
}

/** Counts on from row to row, and from change to change. */
function nextCount(change: Change): number {
  const rows = change.local(ROWS_OF_CHANGE, () => ({ count: 0 }))
  return change.number * CHANGE_ROWS_MAX + rows.count++
}

function byTime(postponed: readonly PostponedMessage[]): ReadonlyMap<number, OutboxMessage[]> {
  const times = new Map<number, OutboxMessage[]>()
  for (const { untilMs, message } of postponed) {
    const messages = times.get(untilMs)
    if (messages === undefined) times.set(untilMs, [message])
    else messages.push(message)
  }
  return times
}

/** First byte of the keys. */
const LANE_BYTES: Record<Lane, number> = {
  mail: 1,
  sms: 2,
  apns: 3,
  apple: 4,
  fcm: 5,
  'apns-calls': 6,
  'fcm-calls': 7,
  webpush: 8,
  'webpush-calls': 9,
}
/** The most messages that are sent again after a crash. */
const ROW_MESSAGES_MAX: Record<Lane, number> = {
  mail: 1,
  sms: 1,
  apns: 16,
  fcm: 16,
  apple: 1,
  'apns-calls': 16,
  'fcm-calls': 16,
  webpush: 16,
  'webpush-calls': 16,
}
/** Lane, time, count, and random bytes, since the count begins anew with each process. */
const KEY_BYTES = 17
/** Owns the rows that a change still adds messages to. */
const ROWS_TO_COME = {}
/** Owns what a change counts of its rows. */
const ROWS_OF_CHANGE = {}
/** More than a change adds. */
const CHANGE_ROWS_MAX = 4_096
