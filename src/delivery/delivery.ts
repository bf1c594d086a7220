/**
 * One message of the outbox to the sender of its channel. A channel without a sender is off: nothing is put into the
 * outbox for it, but in development, where messages are shown and count as sent.
 */

import type { Device, TokenVerdict } from '../domain/devices/device.ts'
import type { CallId, DeviceId, UserId } from '../domain/ids.ts'
import type { Notice } from '../domain/messages/notice.ts'
import type { OutboxMessage, PushProvider } from '../domain/messages/outbox-message.ts'
import { assert } from '../errors.ts'
import type { ApnsSender } from './apns.ts'
import type { ApnsPush } from './apns-link.ts'
import type { FcmPush, FcmSender } from './fcm.ts'
import { type LetterSettings, mailTextOf, smsTextOf } from './letters.ts'
import type { MailSender } from './mail.ts'
import type { DeliveryOutcome, Skipped } from './outcome.ts'
import { apnsPushOf, fcmPushOf, type Push } from './push.ts'
import { pushContentOf } from './push-content.ts'
import type { SmsSender } from './sms.ts'
import { chooseLanguage, type Language } from './texts.ts'
import type { WebPush, WebPushSender } from './web-push.ts'
import { webPushOf } from './web-push-content.ts'

export interface Senders {
  readonly mail?: Pick<MailSender, 'send'>
  readonly sms?: Pick<SmsSender, 'send'>
  readonly apns?: Pick<ApnsSender, 'send'>
  readonly fcm?: Pick<FcmSender, 'send'>
  readonly webPush?: Pick<WebPushSender, 'send'>
  /** Has Apple forget a consent. */
  readonly apple?: {
    revoke(refreshToken: string, clientId: string): Promise<'revoked' | 'retry' | 'refused'>
  }
}

export interface DeliveryDeps {
  readonly senders: Senders
  readonly letters: LetterSettings & { readonly language: Language }
  /** The app's own, for devices that have not sent theirs. */
  readonly bundleId?: string | undefined
  readonly nowMs: () => number
  /** Undefined for one that is removed, and for one that may not hear of this. */
  readonly deviceOf: (userId: UserId, deviceId: DeviceId, kind: Notice['kind']) => Device | undefined
  /** The number that the user's app icon shows. */
  readonly badgeOf: (userId: UserId) => number
  /** Whether an invitation of the user to the call waits for an answer. */
  readonly isRinging: (callId: CallId, userId: UserId) => boolean
  /** A provider's answer about a token of the device. */
  readonly judgeToken: (userId: UserId, deviceId: DeviceId, judged: TokenVerdict) => Promise<void>
  /** The environment of a device's APNs tokens turned out to be another. */
  readonly setApnsEnvironment: (
    userId: UserId,
    deviceId: DeviceId,
    environment: 'production' | 'development',
  ) => Promise<void>
  /** Whether the operator's login check lets the code leave; absent where there is none. */
  readonly allows?: (message: CheckedMessage) => Promise<boolean>
  /** Called with each message in its last form; absent but in development. */
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
      /** As contract 6 calls it, and the payload in its `type`. */
      readonly kind: string
      readonly userId: UserId
      readonly deviceId: DeviceId
      readonly provider: PushProvider
      readonly headers: Readonly<Record<string, string>>
      readonly payload: object
    }

export type CheckedMessage = Required<Extract<OutboxMessage, { channel: 'mail' | 'sms' }>>

type PushMessage = Extract<OutboxMessage, { readonly channel: 'push' }>

export class Delivery {
  readonly #deps: DeliveryDeps

  constructor(deps: DeliveryDeps) {
    this.#deps = deps
  }

  /** Never rejects for what the other side does. */
  async send(message: OutboxMessage): Promise<DeliveryOutcome | Skipped> {
    if (isChecked(message) && (await this.#deps.allows?.(message)) === false) return SKIPPED
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
  }: Extract<OutboxMessage, { channel: 'mail' | 'sms' }>): Promise<DeliveryOutcome> {
    const { senders, letters, onRendered } = this.#deps
    const words = mailTextOf(letter, chooseLanguage(language, letters.language), letters)
    const otp = letter.kind === 'otp' ? letter.otp : undefined
    onRendered?.({ channel: 'mail', to, text: `${words.subject}\n\n${words.text}`, otp })
    return senders.mail?.send({ to, ...words }) ?? SENT
  }

  async #sms({
    to,
    language,
    letter,
  }: Extract<OutboxMessage, { channel: 'mail' | 'sms' }>): Promise<DeliveryOutcome> {
    const { senders, letters, onRendered } = this.#deps
    const text = smsTextOf(letter, chooseLanguage(language, letters.language), letters)
    onRendered?.({ channel: 'sms', to, text, otp: letter.kind === 'otp' ? letter.otp : undefined })
    return senders.sms?.send({ to, text }) ?? SENT
  }

  async #push(message: PushMessage): Promise<DeliveryOutcome | Skipped> {
    return (await this.#pushToDevice(message)) ?? SKIPPED
  }

  /** Undefined when the device is gone or has no token. */
  async #pushToDevice(message: PushMessage): Promise<DeliveryOutcome | undefined> {
    const { userId, deviceId, notice, expiresAtMs } = message
    const device = this.#addresseeOf(message)
    const badgeOf = () => this.#deps.badgeOf(userId)
    const content = pushContentOf(notice, { deviceId, expiresAtMs, badgeOf })
    if (device === undefined || content === undefined) return undefined
    const push: Push = { content, eventId: notice.eventId, expiresAtMs }
    const apns = apnsPushOf(device, push, this.#deps.bundleId)
    if (apns !== undefined) return this.#pushByApns(message, content.members.type, apns)
    const fcm = fcmPushOf(device, push, this.#deps.nowMs())
    if (fcm !== undefined) return this.#pushByFcm(message, content.members.type, fcm)
    const { letters } = this.#deps
    const { appName, language } = letters
    const web = webPushOf(device, push, { appName, language, nowMs: this.#deps.nowMs() })
    return web && this.#pushToBrowser(message, content.members.type, web)
  }

  /** The device, unless it is removed or its news is stale: no phone rings for a call that has ended. */
  #addresseeOf({ userId, deviceId, notice, expiresAtMs, lastTokens }: PushMessage): Device | undefined {
    const { deviceOf, isRinging, nowMs } = this.#deps
    if (nowMs() >= expiresAtMs) return undefined
    if (notice.kind === 'call_invitation' && !isRinging(notice.callId, userId)) return undefined
    const device = deviceOf(userId, deviceId, notice.kind)
    const isForgotten = device?.push === undefined && lastTokens !== undefined
    return device && isForgotten ? { ...device, push: lastTokens } : device
  }

  async #pushByApns(message: PushMessage, kind: string, push: ApnsPush): Promise<DeliveryOutcome> {
    const { senders, setApnsEnvironment } = this.#deps
    const { userId, deviceId } = message
    const { payload } = push
    const headers = apnsHeaders(push)
    this.#deps.onRendered?.({ channel: 'push', kind, userId, deviceId, provider: 'apns', headers, payload })
    const sentAtMs = this.#deps.nowMs()
    const outcome = (await senders.apns?.send(push)) ?? SENT
    const isVoip = push.pushType === 'voip'
    switch (outcome.kind) {
      case 'sent':
        if (outcome.environment !== undefined && outcome.environment !== push.environment) {
          await setApnsEnvironment(userId, deviceId, outcome.environment)
        }
        return outcome
      case 'token-gone':
        await this.#dropToken(
          message,
          isVoip ? 'apnsVoipToken' : 'apnsToken',
          push.token,
          outcome.sinceMs ?? sentAtMs,
        )
        return (isVoip ? await this.#pushWithoutVoip(message) : undefined) ?? outcome
      case 'retry':
        return isVoip ? { ...outcome, triesMax: VOIP_TRIES_MAX } : outcome
      case 'refused':
        return outcome
    }
  }

  /**
   * To a phone without its VoIP token, by an alert. A phone that has just registered a new token is awake and
   * connected.
   */
  async #pushWithoutVoip(message: PushMessage): Promise<DeliveryOutcome | undefined> {
    const device = this.#addresseeOf(message)
    return device?.push?.apnsVoipToken === undefined ? this.#pushToDevice(message) : undefined
  }

  async #pushByFcm(message: PushMessage, kind: string, push: FcmPush): Promise<DeliveryOutcome> {
    const { userId, deviceId } = message
    const { token, priority, ttlSeconds, ...payload } = push
    const headers = { priority, ttl: `${ttlSeconds}s` }
    this.#deps.onRendered?.({ channel: 'push', kind, userId, deviceId, provider: 'fcm', headers, payload })
    const sentAtMs = this.#deps.nowMs()
    const outcome = (await this.#deps.senders.fcm?.send(push)) ?? SENT
    if (outcome.kind === 'token-gone') {
      await this.#dropToken(message, 'fcmToken', token, outcome.sinceMs ?? sentAtMs)
    }
    return outcome
  }

  async #pushToBrowser(message: PushMessage, kind: string, push: WebPush): Promise<DeliveryOutcome> {
    const { userId, deviceId } = message
    const { subscription, urgency, ttlSeconds, topic, payload } = push
    const headers = { urgency, ttl: String(ttlSeconds), ...(topic === undefined ? {} : { topic }) }
    this.#deps.onRendered?.({
      channel: 'push',
      kind,
      userId,
      deviceId,
      provider: 'webpush',
      headers,
      payload,
    })
    const sentAtMs = this.#deps.nowMs()
    const outcome = (await this.#deps.senders.webPush?.send(push)) ?? SENT
    if (outcome.kind === 'token-gone') {
      await this.#dropToken(message, 'webPush', subscription.endpoint, outcome.sinceMs ?? sentAtMs)
    }
    return outcome
  }

  /** A token that was renewed since stays. */
  #dropToken(
    { userId, deviceId }: PushMessage,
    name: TokenVerdict['name'],
    token: string,
    atMs: number,
  ): Promise<void> {
    return this.#deps.judgeToken(userId, deviceId, { name, token, verdict: 'gone', atMs })
  }

  async #revoke({
    refreshToken,
    clientId,
  }: Extract<OutboxMessage, { channel: 'apple' }>): Promise<DeliveryOutcome> {
    const { apple } = this.#deps.senders
    assert(apple !== undefined, 'a refresh token of Apple is kept only where it can be revoked')
    const outcome = await apple.revoke(refreshToken, clientId)
    if (outcome === 'revoked') return SENT
    return { kind: outcome, reason: 'revocation' }
  }
}

function isChecked(message: OutboxMessage): message is CheckedMessage {
  return 'check' in message && message.check !== undefined
}

function apnsHeaders(push: ApnsPush): Readonly<Record<string, string>> {
  const { topic, pushType, priority, expiresAtMs, collapseId, id } = push
  return {
    'apns-topic': topic,
    'apns-push-type': pushType,
    'apns-priority': String(priority),
    'apns-expiration': String(Math.floor(expiresAtMs / 1000)),
    ...(collapseId === undefined ? {} : { 'apns-collapse-id': collapseId }),
    'apns-id': id,
  }
}

const SENT: DeliveryOutcome = { kind: 'sent' }
const SKIPPED: Skipped = { kind: 'skipped' }
/** Once more, after a second (contract 6): any later is too late. */
const VOIP_TRIES_MAX = 2
