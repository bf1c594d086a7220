/**
 * Tells devices of something, in the change that made it true: each finds it in its inbox, and pushes go to the outbox
 * too, for devices that can be pushed to. A device that the user's list does not name hears of the account alone.
 */

import type { CallNotice, DeviceEffect } from '../../domain/calls/call-notice.ts'
import type { Device, PushTokens } from '../../domain/devices/device.ts'
import type { DeviceId, UserId } from '../../domain/ids.ts'
import { newEventId } from '../../domain/ids.ts'
import { isForAnyDevice, type NoticeItem, noticeOf } from '../../domain/messages/inbox.ts'
import { isPushed, type PersonalNoticeBody, type SharedNotice } from '../../domain/messages/notice.ts'
import type { PushProvider } from '../../domain/messages/outbox-message.ts'
import type { DeviceStore } from '../devices/device-store.ts'
import type { Restrictions } from '../devices/restrictions.ts'
import type { Change } from '../engine/store.ts'
import type { InboxStore } from './inbox-store.ts'
import type { OutboxStore } from './outbox-store.ts'

export interface NoticesDeps {
  readonly devices: Pick<DeviceStore, 'activeDevicesOf'>
  readonly restrictions: Pick<Restrictions, 'of'>
  readonly inbox: Pick<InboxStore, 'append' | 'dropInvitation'>
  readonly outbox: Pick<OutboxStore, 'add'>
  readonly randomBytes: (length: number) => Uint8Array
  /** Whether the device has a socket at this moment. */
  readonly isConnected: (userId: UserId, deviceId: DeviceId) => boolean
}

export class Notices {
  readonly #deps: NoticesDeps

  constructor(deps: NoticesDeps) {
    this.#deps = deps
  }

  /** Tells every device of the user that may hear of it but one, which did it. */
  tell(change: Change, userId: UserId, body: PersonalNoticeBody, exceptDeviceId?: DeviceId): void {
    this.#tell(change, userId, body, deviceId => deviceId !== exceptDeviceId)
  }

  /** Tells one device of the user what concerns it alone. One that is removed hears nothing. */
  tellOnly(change: Change, userId: UserId, body: PersonalNoticeBody, ownDeviceId: DeviceId): void {
    this.#tell(change, userId, body, deviceId => deviceId === ownDeviceId)
  }

  /** Tells one device something of a call. One that is removed, or that the list does not name, hears nothing. */
  tellDevice(change: Change, effect: Omit<DeviceEffect, 'kind'>): void {
    const { nowMs } = change
    const { userId, deviceId, notice: body, encryptedAESKey, expiresAtMs, replaces, isMissed } = effect
    const { devices, inbox } = this.#deps
    const replaced = replaces === 'invitation' ? body.callId : undefined
    const device = devices.activeDevicesOf(change, userId).find(device => device.deviceId === deviceId)
    if (device === undefined || this.#isRestricted(change, userId, deviceId)) {
      if (replaced !== undefined) inbox.dropInvitation(change, userId, deviceId, replaced)
      return
    }
    const item = this.#itemOf(change, body, encryptedAESKey)
    inbox.append(change, userId, deviceId, { item, expiresAtMs, replaces: replaced })
    const to = { userId, device }
    this.#push(change, to, item, this.#callPushedUntilMs(effect, nowMs))
    if (body.kind !== 'call_cancelled' || !isMissed || device.push === undefined) return
    this.#push(change, to, this.#newItem({ ...body, kind: 'call_missed' }, nowMs), nowMs + PUSHED_WITHIN_MS)
  }

  #tell(
    change: Change,
    userId: UserId,
    body: PersonalNoticeBody,
    isMeant: (deviceId: DeviceId) => boolean,
  ): void {
    const { nowMs } = change
    const pushedUntilMs = isPushed(body) ? nowMs + PUSHED_WITHIN_MS : undefined
    const item = this.#newItem(body, nowMs)
    const isForAny = isForAnyDevice(body.kind)
    for (const device of this.#deps.devices.activeDevicesOf(change, userId)) {
      const { deviceId } = device
      if (!isMeant(deviceId) || (!isForAny && this.#isRestricted(change, userId, deviceId))) continue
      this.#deps.inbox.append(change, userId, deviceId, { item })
      this.#push(change, { userId, device }, item, pushedUntilMs)
    }
  }

  #isRestricted(change: Change, userId: UserId, deviceId: DeviceId): boolean {
    return this.#deps.restrictions.of(change, userId, deviceId) !== undefined
  }

  #push(
    change: Change,
    { userId, device }: Addressee,
    item: NoticeItem,
    expiresAtMs: number | undefined,
  ): void {
    const { deviceId, push } = device
    if (push === undefined || expiresAtMs === undefined) return
    const provider = providerOf(push)
    if (provider === undefined) return
    const notice = noticeOf(item)
    const message = { channel: 'push', userId, deviceId, notice, expiresAtMs, provider } as const
    // What ends all sessions forgets the tokens of their devices, and is the last thing that is pushed to them.
    const sent = notice.kind === 'session_revoked' ? { ...message, lastTokens: push } : message
    this.#deps.outbox.add(change, sent)
  }

  /**
   * Until when something of a call may be pushed (contract 6), if at all. A device that rings hears of the end of it by
   * its socket, if it has one; an invitation and a missed call are pushed in any case, since a socket may be a frozen
   * app's.
   */
  #callPushedUntilMs(
    { userId, deviceId, notice, replaces }: Omit<DeviceEffect, 'kind'>,
    nowMs: number,
  ): number | undefined {
    switch (notice.kind) {
      case 'call_invitation':
        return notice.expiresAtMs
      case 'call_missed':
        return nowMs + PUSHED_WITHIN_MS
      case 'call_cancelled':
      case 'call_answered_elsewhere':
      case 'call_ended': {
        const isRinging = replaces === 'invitation' && !this.#deps.isConnected(userId, deviceId)
        return isRinging ? nowMs + RING_STOPPED_WITHIN_MS : undefined
      }
      default:
        return undefined
    }
  }

  /** The same for all devices that a change tells the same, but for those with keys of their own. */
  #itemOf(change: Change, body: CallNotice, encryptedAESKey: string | undefined): NoticeItem {
    if (encryptedAESKey !== undefined) return this.#newItem(body, change.nowMs, encryptedAESKey)
    const last = change.local(this, () => new Map<CallNotice, NoticeItem>())
    const known = last.get(body)
    if (known !== undefined) return known
    const item = this.#newItem(body, change.nowMs)
    last.set(body, item)
    return item
  }

  #newItem(body: SharedNotice, sentAtMs: number, encryptedAESKey?: string): NoticeItem {
    return { kind: 'notice', body, encryptedAESKey, eventId: newEventId(this.#deps.randomBytes), sentAtMs }
  }
}

interface Addressee {
  readonly userId: UserId
  readonly device: Device
}

/** Undefined for a device that has sent a key for its pushes, and no token yet. */
function providerOf({ apnsToken, apnsVoipToken, fcmToken, webPush }: PushTokens): PushProvider | undefined {
  if (apnsToken !== undefined || apnsVoipToken !== undefined) return 'apns'
  if (fcmToken !== undefined) return 'fcm'
  return webPush && 'webpush'
}

/** An event that could not be pushed for a day is read in the app. */
const PUSHED_WITHIN_MS = 86_400_000
/** A phone that is told later has stopped ringing by itself. */
const RING_STOPPED_WITHIN_MS = 30_000
