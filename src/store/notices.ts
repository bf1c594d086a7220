/**
 * Tells the devices of a user of something, in the transaction that made it true: what is pushed goes to the outbox,
 * once for each device that can be pushed to.
 */

import type { DeviceId, UserId } from '../domain/ids.ts'
import { isPushed, type NoticeBody } from '../domain/notice.ts'
import type { DeviceStore } from './device-store.ts'
import type { OutboxStore } from './outbox-store.ts'

export interface NoticesParts {
  readonly devices: Pick<DeviceStore, 'activeDevicesOf'>
  readonly outbox: Pick<OutboxStore, 'add'>
  readonly randomBytes: (length: number) => Uint8Array
}

export class Notices {
  readonly #parts: NoticesParts

  constructor(parts: NoticesParts) {
    this.#parts = parts
  }

  /** In a transaction: tells every device of the user but one, which did it. */
  tell(userId: UserId, body: NoticeBody, nowMs: number, exceptDeviceId?: DeviceId): void {
    const { devices, outbox, randomBytes } = this.#parts
    if (!isPushed(body)) return
    const eventId = Buffer.from(randomBytes(16)).toString('base64url')
    const notice = { ...body, eventId, sentAtMs: nowMs }
    for (const { deviceId, push } of devices.activeDevicesOf(userId)) {
      if (deviceId === exceptDeviceId || push === undefined) continue
      outbox.add({ channel: 'push', userId, deviceId, notice, expiresAtMs: nowMs + PUSHED_WITHIN_MS }, nowMs)
    }
  }
}

/** A contact or account event that could not be pushed for a day is read in the app. */
const PUSHED_WITHIN_MS = 86_400_000
