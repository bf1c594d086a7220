/**
 * A device's inbox as its connection uses it: reads at once, writes in changes of their own. It knows writes under way.
 * So a device that reconnects does not get an acknowledged message again, and sees which ones are redelivered.
 *
 * What devices are done with is collected for a moment and settled in one change: ten that ring at once acknowledge at
 * once, and a commit for each took a twentieth of the processor time of a call (`call-start` in `bench/`).
 */

import type { DeviceId, UserId } from '../../domain/ids.ts'
import { SignalError } from '../../errors.ts'
import type { ReadStore } from '../engine/store.ts'
import type { InboxMessage, InboxStore } from './inbox-store.ts'
import type { DeliveredMarks, DevelopmentItem, InboxWrites, SentItems } from './inbox-writes.ts'
import type { InboxHead } from './message-tables.ts'

/** The change that a frame, or a transaction of frames, makes to an inbox. */
export interface InboxChange {
  /** Offsets the device is done with. */
  readonly settled: readonly number[]
  /** Messages that the device sent to its own queues. */
  readonly sent: readonly DevelopmentItem[]
}

/** Messages that a device is done with. */
interface Settling {
  readonly userId: UserId
  readonly deviceId: DeviceId
  readonly offsets: number[]
}

/** By device, each with its user: two users may have devices of one id. Names made of both cost half of an acknowledgement. */
type Batch = Map<DeviceId, readonly Settling[]>

export interface DeviceInboxDeps {
  readonly database: Pick<ReadStore, 'view'>
  readonly inbox: Pick<InboxStore, 'head' | 'after'>
  readonly writes: InboxWrites
  readonly nowMs: () => number
  /** Calls `run` once, some milliseconds from now. */
  readonly soon: (run: () => void) => void
  /** Called with the error of work that no caller waits for. */
  readonly onFault: (error: unknown) => void
}

export class DeviceInbox {
  readonly #deps: DeviceInboxDeps
  /** The batch being collected; those before it are being written. */
  #batch: Batch = new Map()
  #collected = 0
  readonly #writing = new Set<Batch>()
  #failedSettles = 0
  /** By user and device. */
  readonly #marking = new Map<string, DeliveredMarks>()

  constructor(deps: DeviceInboxDeps) {
    this.#deps = deps
  }

  head(userId: UserId, deviceId: DeviceId): InboxHead {
    const { database, inbox } = this.#deps
    const head = database.view(view => inbox.head(view, userId, deviceId))
    const marks = this.#marking.size === 0 ? undefined : this.#marking.get(nameOf(userId, deviceId))
    if (marks === undefined || head.epoch === 0) return head
    return { ...head, delivered: furthest(head.delivered, marks) }
  }

  /** Unexpired messages behind `offset`, in order, at most `limit`. */
  after(userId: UserId, deviceId: DeviceId, offset: number, limit: number): readonly InboxMessage[] {
    const { database, inbox, nowMs } = this.#deps
    return database.view(view => inbox.after(view, userId, deviceId, { offset, limit, nowMs: nowMs() }))
  }

  /** Whether a message that may still be there is about to go. */
  isSettling(userId: UserId, deviceId: DeviceId, offset: number): boolean {
    if (settlingOf(this.#batch, userId, deviceId)?.offsets.includes(offset)) return true
    for (const batch of this.#writing)
      if (settlingOf(batch, userId, deviceId)?.offsets.includes(offset)) return true
    return false
  }

  /** The device is done with these, which is durable some milliseconds later. If it can't be made so, they come again. */
  settleSoon(userId: UserId, deviceId: DeviceId, offsets: readonly number[]): void {
    if (offsets.length === 0) return
    if (this.#batch.size === 0) this.#deps.soon(() => this.settleCollected())
    const known = settlingOf(this.#batch, userId, deviceId)
    if (known === undefined) addTo(this.#batch, { userId, deviceId, offsets: [...offsets] })
    else for (const offset of offsets) known.offsets.push(offset)
    this.#collected += offsets.length
    if (this.#collected >= SETTLED_AT_ONCE_MAX) this.settleCollected()
  }

  /** How many batches of collected acknowledgements, of any devices, could not be written. */
  get failedSettles(): number {
    return this.#failedSettles
  }

  /** Writes collected acknowledgements now. */
  settleCollected(): void {
    if (this.#batch.size > 0) this.settleNow().catch(this.#deps.onFault)
  }

  /** Resolves when collected acknowledgements are durable, or the store could not write them. */
  async settleNow(): Promise<void> {
    const batch = this.#batch
    this.#batch = new Map()
    this.#collected = 0
    try {
      await this.#write(batch)
    } catch (error) {
      this.#failedSettles += 1
      if (!(error instanceof SignalError) || error.code !== 'STORE_UNAVAILABLE') throw error
    }
  }

  /** Resolves when the whole change is durable; rejects with `STORE_UNAVAILABLE` when nothing of it is. */
  change(userId: UserId, deviceId: DeviceId, { settled, sent }: InboxChange): Promise<void> {
    const batch: Batch = new Map()
    if (settled.length > 0) addTo(batch, { userId, deviceId, offsets: [...settled] })
    return this.#write(batch, sent.length > 0 ? { userId, deviceId, items: sent } : undefined)
  }

  /** Notes deliveries that may be repeated, for later calls of `head`. Resolves when that is durable. */
  async markDelivered(userId: UserId, deviceId: DeviceId, delivered: DeliveredMarks): Promise<void> {
    const device = nameOf(userId, deviceId)
    const marks = furthest(this.#marking.get(device), delivered)
    this.#marking.set(device, marks)
    try {
      await this.#deps.writes.markDelivered(userId, deviceId, delivered)
    } finally {
      if (this.#marking.get(device) === marks) this.#marking.delete(device)
    }
  }

  /** Settles what devices are done with, in one change with what else they sent. */
  async #write(batch: Batch, sent?: SentItems): Promise<void> {
    this.#writing.add(batch)
    try {
      await this.#deps.writes.settle([...batch.values()].flat(), sent)
    } finally {
      this.#writing.delete(batch)
    }
  }
}

function settlingOf(batch: Batch, userId: UserId, deviceId: DeviceId): Settling | undefined {
  return batch.get(deviceId)?.find(each => each.userId === userId)
}

function addTo(batch: Batch, settling: Settling): void {
  const { deviceId } = settling
  batch.set(deviceId, [...(batch.get(deviceId) ?? []), settling])
}

function furthest(some: DeliveredMarks = {}, others: DeliveredMarks): DeliveredMarks {
  const merged: Record<string, number> = { ...some }
  for (const [queue, offset] of Object.entries(others)) merged[queue] = Math.max(merged[queue] ?? 0, offset)
  return merged
}

function nameOf(userId: UserId, deviceId: DeviceId): string {
  return `${userId} ${deviceId}`
}

/** A change of a few milliseconds. */
const SETTLED_AT_ONCE_MAX = 256
