/**
 * What connections write to inboxes, as a port of plain data: a process that only reads has it written by the one that
 * writes.
 */

import type { DeviceId, UserId } from '../../domain/ids.ts'
import type { InboxItem } from '../../domain/messages/inbox.ts'
import type { Store } from '../engine/store.ts'
import type { InboxStore } from './inbox-store.ts'

export type DevelopmentItem = Extract<InboxItem, { kind: 'dev' }>

/** The messages that a device has settled. */
export interface SettledOffsets {
  readonly userId: UserId
  readonly deviceId: DeviceId
  readonly offsets: readonly number[]
}

/** The items that a device sent to its own queues. */
export interface SentItems {
  readonly userId: UserId
  readonly deviceId: DeviceId
  readonly items: readonly DevelopmentItem[]
}

/** By queue, the last offset that a connection was given. */
export type DeliveredMarks = Readonly<Record<string, number>>

/**
 * Each is one change. It resolves once that is durable and this process's views see it.
 *
 * Throws STORE_UNAVAILABLE: nothing of it is written.
 */
export interface InboxWrites {
  settle(settled: readonly SettledOffsets[], sent?: SentItems): Promise<void>
  markDelivered(userId: UserId, deviceId: DeviceId, delivered: DeliveredMarks): Promise<void>
}

/** For the process that writes. */
export class LocalInboxWrites implements InboxWrites {
  readonly #database: Pick<Store, 'change'>
  readonly #inbox: Pick<InboxStore, 'append' | 'settle' | 'markDelivered'>

  constructor(
    database: Pick<Store, 'change'>,
    inbox: Pick<InboxStore, 'append' | 'settle' | 'markDelivered'>,
  ) {
    this.#database = database
    this.#inbox = inbox
  }

  settle(settled: readonly SettledOffsets[], sent?: SentItems): Promise<void> {
    const inbox = this.#inbox
    return this.#database.change(change => {
      for (const { userId, deviceId, offsets } of settled) inbox.settle(change, userId, deviceId, offsets)
      if (sent === undefined) return
      for (const item of sent.items) inbox.append(change, sent.userId, sent.deviceId, { item })
    })
  }

  markDelivered(userId: UserId, deviceId: DeviceId, delivered: DeliveredMarks): Promise<void> {
    return this.#database.change(change => this.#inbox.markDelivered(change, userId, deviceId, delivered))
  }
}
