/**
 * A device's inbox as its connection uses it: reads at once, writes in transactions of their own. It knows what is being
 * written, so that a device that reconnects meanwhile does not get again what it has acknowledged, and is told of what it
 * gets again that it does.
 */

import type { DeviceId, UserId } from '../domain/ids.ts'
import type { InboxItem } from '../domain/inbox.ts'
import type { Database } from './database.ts'
import type { InboxHead, InboxMessage, InboxStore } from './inbox-store.ts'

export type DevelopmentItem = Extract<InboxItem, { kind: 'dev' }>

/** What a frame, or a transaction of frames, does to an inbox. */
export interface InboxChange {
  /** Offsets the device is done with. */
  readonly settled: readonly number[]
  /** What the device sent to its own queues. */
  readonly sent: readonly DevelopmentItem[]
}

/** By queue, the last offset that a connection was given. */
type Marks = Readonly<Record<string, number>>

export class DeviceInbox {
  readonly #database: Pick<Database, 'commit'>
  readonly #inbox: Pick<InboxStore, 'head' | 'after' | 'append' | 'settle' | 'markDelivered'>
  readonly #nowMs: () => number
  /** Messages, by user, device and offset. */
  readonly #settling = new Set<string>()
  /** By user and device. */
  readonly #marking = new Map<string, Marks>()

  constructor(
    database: Pick<Database, 'commit'>,
    inbox: Pick<InboxStore, 'head' | 'after' | 'append' | 'settle' | 'markDelivered'>,
    nowMs: () => number,
  ) {
    this.#database = database
    this.#inbox = inbox
    this.#nowMs = nowMs
  }

  head(userId: UserId, deviceId: DeviceId): InboxHead {
    const head = this.#inbox.head(userId, deviceId)
    const marks = this.#marking.size === 0 ? undefined : this.#marking.get(nameOf(userId, deviceId))
    if (marks === undefined || head.epoch === 0) return head
    return { ...head, delivered: furthest(head.delivered, marks) }
  }

  /** Messages behind `offset` whose time is not over, in order, at most `limit`. */
  after(userId: UserId, deviceId: DeviceId, offset: number, limit: number): readonly InboxMessage[] {
    return this.#inbox.after(userId, deviceId, offset, limit, this.#nowMs())
  }

  /** Whether a message that may still be there is about to go. */
  isSettling(userId: UserId, deviceId: DeviceId, offset: number): boolean {
    return this.#settling.size > 0 && this.#settling.has(`${nameOf(userId, deviceId)} ${offset}`)
  }

  /** Resolves when the whole change is durable; rejects with `STORE_UNAVAILABLE` when nothing of it is. */
  async change(userId: UserId, deviceId: DeviceId, { settled, sent }: InboxChange): Promise<void> {
    const device = nameOf(userId, deviceId)
    for (const offset of settled) this.#settling.add(`${device} ${offset}`)
    try {
      await this.#database.commit(() => {
        const nowMs = this.#nowMs()
        if (settled.length > 0) this.#inbox.settle(userId, deviceId, settled)
        for (const item of sent) this.#inbox.append(userId, deviceId, { item }, nowMs)
      })
    } finally {
      for (const offset of settled) this.#settling.delete(`${device} ${offset}`)
    }
  }

  /** Notes what was given and may be given again, for `head` from now on. Resolves when that is durable. */
  async markDelivered(userId: UserId, deviceId: DeviceId, delivered: Marks): Promise<void> {
    const device = nameOf(userId, deviceId)
    const marks = furthest(this.#marking.get(device), delivered)
    this.#marking.set(device, marks)
    try {
      await this.#database.commit(() => this.#inbox.markDelivered(userId, deviceId, delivered))
    } finally {
      if (this.#marking.get(device) === marks) this.#marking.delete(device)
    }
  }
}

function furthest(some: Marks = {}, others: Marks): Marks {
  const merged: Record<string, number> = { ...some }
  for (const [queue, offset] of Object.entries(others)) merged[queue] = Math.max(merged[queue] ?? 0, offset)
  return merged
}

function nameOf(userId: UserId, deviceId: DeviceId): string {
  return `${userId} ${deviceId}`
}
