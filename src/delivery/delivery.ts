/**
 * One message of the outbox to the sender of its channel. A channel without a sender is off: nothing is put into the
 * outbox for it, but in development, where messages are shown and count as sent.
 */

import type { Device, PushTokenName } from '../domain/device.ts'
import type { DeviceId, UserId } from '../domain/ids.ts'
import type { Outgoing } from '../domain/outgoing.ts'
import { assert } from '../errors.ts'
import type { ApnsPush, ApnsSender } from './apns.ts'
import type { FcmPush, FcmSender } from './fcm.ts'
import { type LetterSettings, mailTextOf, smsTextOf } from './letters.ts'
import type { MailSender } from './mail.ts'
import type { DeliveryOutcome } from './outcome.ts'
import { apnsPushOf, fcmPushOf } from './push.ts'
import type { SmsSender } from './sms.ts'
import { chooseLanguage, type Language } from './texts.ts'

export interface Senders {
  readonly mail?: Pick<MailSender, 'send'>
  readonly sms?: Pick<SmsSender, 'send'>
  readonly apns?: Pick<ApnsSender, 'send'>
  readonly fcm?: Pick<FcmSender, 'send'>
  /** Has Apple forget a consent. */
  readonly apple?: {
    revoke(refreshToken: string, clientId: string): Promise<'revoked' | 'retry' | 'refused'>
  }
}

export interface DeliveryParts {
  readonly senders: Senders
  readonly letters: LetterSettings & { readonly language: Language }
  readonly nowMs: () => number
  readonly deviceOf: (userId: UserId, deviceId: DeviceId) => Device | undefined
  /** A token leads to no device any more: it is dropped unless it was registered after `beforeMs`. */
  readonly dropToken: (
    userId: UserId,
    deviceId: DeviceId,
    token: PushTokenName,
    beforeMs: number | undefined,
  ) => Promise<void>
  /** The environment of a device's APNs tokens turned out to be another. */
  readonly setApnsEnvironment: (
    userId: UserId,
    deviceId: DeviceId,
    environment: 'production' | 'development',
  ) => Promise<void>
  /** Shown what leaves, in its last form; absent but in development. */
  readonly onRendered?: (rendered: Rendered) => void
}

/** A message as it is handed to its sender. */
export type Rendered =
  | {
      readonly channel: 'mail' | 'sms'
      readonly to: string
      readonly text: string
      readonly otp: string | undefined
    }
  | {
      readonly channel: 'push'
      readonly kind: string
      readonly userId: UserId
      readonly deviceId: DeviceId
      readonly provider: 'apns' | 'fcm'
      readonly headers: Readonly<Record<string, string>>
      readonly payload: object
    }

export class Delivery {
  readonly #parts: DeliveryParts

  constructor(parts: DeliveryParts) {
    this.#parts = parts
  }

  /** Never rejects for what the other side does. A message for a device or address that is gone counts as sent. */
  async send(message: Outgoing): Promise<DeliveryOutcome> {
    switch (message.channel) {
      case 'mail':
        return this.#mail(message)
      case 'sms':
        return this.#sms(message)
      case 'push':
        return this.#push(message)
      case 'apple':
        return this.#revoke(message)
    }
  }

  async #mail({
    to,
    language,
    letter,
  }: Extract<Outgoing, { channel: 'mail' | 'sms' }>): Promise<DeliveryOutcome> {
    const { senders, letters, onRendered } = this.#parts
    const words = mailTextOf(letter, chooseLanguage(language, letters.language), letters)
    const otp = letter.kind === 'otp' ? letter.otp : undefined
    onRendered?.({ channel: 'mail', to, text: `${words.subject}\n\n${words.text}`, otp })
    return senders.mail?.send({ to, ...words }) ?? SENT
  }

  async #sms({
    to,
    language,
    letter,
  }: Extract<Outgoing, { channel: 'mail' | 'sms' }>): Promise<DeliveryOutcome> {
    const { senders, letters, onRendered } = this.#parts
    const text = smsTextOf(letter, chooseLanguage(language, letters.language), letters)
    onRendered?.({ channel: 'sms', to, text, otp: letter.kind === 'otp' ? letter.otp : undefined })
    return senders.sms?.send({ to, text }) ?? SENT
  }

  async #push(message: Extract<Outgoing, { channel: 'push' }>): Promise<DeliveryOutcome> {
    const { userId, deviceId, notice, expiresAtMs } = message
    const device = this.#parts.deviceOf(userId, deviceId)
    if (device === undefined || device.removedAtMs !== undefined) return SENT
    const apns = apnsPushOf(device, notice, expiresAtMs)
    if (apns !== undefined) return this.#pushByApns(message, apns)
    const fcm = fcmPushOf(device, notice, expiresAtMs, this.#parts.nowMs())
    return fcm === undefined ? SENT : this.#pushByFcm(message, fcm)
  }

  async #pushByApns(
    { userId, deviceId, notice }: Extract<Outgoing, { channel: 'push' }>,
    push: ApnsPush,
  ): Promise<DeliveryOutcome> {
    const { senders, onRendered, dropToken, setApnsEnvironment } = this.#parts
    const { payload, topic, pushType, priority, expiresAtMs, id } = push
    const headers = {
      'apns-topic': topic,
      'apns-push-type': pushType,
      'apns-priority': String(priority),
      'apns-expiration': String(Math.floor(expiresAtMs / 1000)),
      'apns-id': id,
    }
    onRendered?.({ channel: 'push', kind: notice.kind, userId, deviceId, provider: 'apns', headers, payload })
    const sentAtMs = this.#parts.nowMs()
    const outcome = (await senders.apns?.send(push)) ?? SENT
    if (outcome.kind === 'token-gone')
      await dropToken(userId, deviceId, 'apnsToken', outcome.sinceMs ?? sentAtMs)
    if (outcome.kind === 'sent' && outcome.environment !== undefined) {
      const wasAnother = outcome.environment !== push.environment
      if (wasAnother) await setApnsEnvironment(userId, deviceId, outcome.environment)
    }
    return outcome
  }

  async #pushByFcm(
    { userId, deviceId, notice }: Extract<Outgoing, { channel: 'push' }>,
    push: FcmPush,
  ): Promise<DeliveryOutcome> {
    const { senders, onRendered, dropToken } = this.#parts
    const { token, priority, ttlSeconds, ...payload } = push
    const headers = { priority, ttl: `${ttlSeconds}s` }
    onRendered?.({ channel: 'push', kind: notice.kind, userId, deviceId, provider: 'fcm', headers, payload })
    const sentAtMs = this.#parts.nowMs()
    const outcome = (await senders.fcm?.send(push)) ?? SENT
    // A token that was renewed meanwhile is another one.
    if (outcome.kind === 'token-gone')
      await dropToken(userId, deviceId, 'fcmToken', outcome.sinceMs ?? sentAtMs)
    return outcome
  }

  async #revoke({
    refreshToken,
    clientId,
  }: Extract<Outgoing, { channel: 'apple' }>): Promise<DeliveryOutcome> {
    const { apple } = this.#parts.senders
    assert(apple !== undefined, 'a refresh token of Apple is kept only where it can be revoked')
    const outcome = await apple.revoke(refreshToken, clientId)
    if (outcome === 'revoked') return SENT
    return { kind: outcome, reason: 'revocation' }
  }
}

const SENT: DeliveryOutcome = { kind: 'sent' }
