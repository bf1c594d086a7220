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
import { type FcmPush, type FcmSender, finishedFcmPush } from './fcm.ts'
import { finishedApnsPush } from './finished-push.ts'
import { type LetterSettings, mailTextOf, smsTextOf } from './letters.ts'
import type { MailSender } from './mail.ts'
import type { DeliveryOutcome, Skipped } from './outcome.ts'
import { apnsPushOf, fcmPushOf, type Push } from './push.ts'
import { pushContentOf } from './push-content.ts'
import { ALERT_AFTER_MS, type Tried, tryTwice, type Wait } from './ring.ts'
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
  /** Apple or Google has taken a push that rings for the call. */
  readonly onRingTaken: (callId: CallId, userId: UserId) => void
  /** A provider's answer about a token of the device. */
  readonly judgeToken: (userId: UserId, deviceId: DeviceId, judged: TokenVerdict) => Promise<void>
  /** The environment of a device's APNs tokens turned out to be another. */
  readonly setApnsEnvironment: (
    userId: UserId,
    deviceId: DeviceId,
    environment: 'production' | 'development',
  ) => Promise<void>
  readonly wait: Wait
  /** A try of a ring has failed, and another follows at once: the same again, or an alert in place of a VoIP push. */
  readonly onTryFailed: (outcome: DeliveryOutcome, next: 'again' | 'alert') => void
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

/** A push for a device, in its provider's form. */
type Prepared = { readonly device: Device; readonly kind: string } & (
  | { readonly provider: 'apns'; readonly push: ApnsPush }
  | { readonly provider: 'fcm'; readonly push: FcmPush }
  | { readonly provider: 'webpush'; readonly push: WebPush }
)

type PushMessage = Extract<OutboxMessage, { readonly channel: 'push' }>

export class Delivery {
  readonly #deps: DeliveryDeps
  /** Rings that Apple took no VoIP push for, as the outbox holds them: each goes out as an alert from then on. */
  readonly #byAlert = new WeakSet<PushMessage>()

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
    const prepared = this.#prepare(message)
    if (prepared === undefined) return SKIPPED
    const isRing = message.notice.kind === 'call_invitation'
    return (await (isRing ? this.#ring(message, prepared) : this.#handOver(message, prepared))) ?? SKIPPED
  }

  /**
   * Tries VoIP, if the device takes that, and an alert once Apple has refused the VoIP push, or not taken it in time.
   * From then on no VoIP push follows, in later tries neither: the phone would ring anew. Without another token, or
   * where that one is gone, the ring stays with VoIP.
   */
  async #ring(message: PushMessage, prepared: Prepared): Promise<Tried> {
    const { wait, onTryFailed } = this.#deps
    const first = this.#tryTwice(message, prepared)
    if (prepared.provider !== 'apns' || prepared.push.pushType !== 'voip') return first
    // It may fail when nothing waits for it any more.
    first.catch(() => undefined)
    const early = await Promise.race([first, wait(ALERT_AFTER_MS).then(() => LATE)])
    if (early === undefined || early.kind === 'sent') return early
    this.#byAlert.add(message)
    const alert = this.#prepare(message)
    if (alert !== undefined) {
      onTryFailed(early, 'alert')
      const outcome = await this.#tryTwice(message, alert)
      if (outcome?.kind === 'sent' || outcome?.kind === 'retry') return outcome
    }
    this.#byAlert.delete(message)
    return first
  }

  #tryTwice(message: PushMessage, prepared: Prepared): Promise<Tried> {
    const { wait, onTryFailed } = this.#deps
    let next: Prepared | undefined = prepared
    const send = async () => {
      const current = next ?? this.#prepare(message)
      next = undefined
      return current && this.#handOver(message, current)
    }
    return tryTwice(send, wait, outcome => onTryFailed(outcome, 'again'))
  }

  /** Undefined when the device is gone or has no token. */
  #prepare(message: PushMessage): Prepared | undefined {
    const { userId, deviceId, notice, expiresAtMs } = message
    const device = this.#addresseeOf(message)
    const badgeOf = () => this.#deps.badgeOf(userId)
    const content = pushContentOf(notice, { deviceId, expiresAtMs, badgeOf })
    if (device === undefined || content === undefined) return undefined
    const kind = content.members.type
    const contentPush: Push = { content, eventId: notice.eventId, expiresAtMs }
    const apns = apnsPushOf(device, contentPush, this.#deps.bundleId)
    if (apns !== undefined) return { device, kind, provider: 'apns', push: apns }
    const fcm = fcmPushOf(device, contentPush, this.#deps.nowMs())
    if (fcm !== undefined) return { device, kind, provider: 'fcm', push: fcm }
    const web = webPushOf(device, contentPush, this.#deps.letters, this.#deps.nowMs())
    return web && { device, kind, provider: 'webpush', push: web }
  }

  /** The device, unless it is removed or its news is stale: no phone rings for a call that has ended. */
  #addresseeOf(message: PushMessage): Device | undefined {
    const { userId, deviceId, notice, expiresAtMs, lastTokens } = message
    const { deviceOf, isRinging, nowMs } = this.#deps
    if (nowMs() >= expiresAtMs) return undefined
    if (notice.kind === 'call_invitation' && !isRinging(notice.callId, userId)) return undefined
    const device = deviceOf(userId, deviceId, notice.kind)
    const push = device?.push ?? lastTokens
    const isByAlert = this.#byAlert.has(message)
    if (device === undefined || push === undefined || (push === device.push && !isByAlert)) return device
    const { apnsVoipToken: _, ...withoutVoip } = push
    return { ...device, push: isByAlert ? withoutVoip : push }
  }

  async #handOver(message: PushMessage, prepared: Prepared): Promise<DeliveryOutcome> {
    const { userId, deviceId, notice } = message
    const { kind, provider } = prepared
    const { onRendered, onRingTaken, nowMs } = this.#deps
    onRendered?.({ channel: 'push', kind, userId, deviceId, provider, ...shownOf(prepared) })
    const sentAtMs = nowMs()
    const outcome = (await this.#sending(prepared)) ?? SENT
    if (notice.kind === 'call_invitation' && outcome.kind === 'sent') onRingTaken(notice.callId, userId)
    // With a full disk, too, a push is sent once, and a ring goes another way. The next push says the same of the token.
    await this.#learn(message, prepared, outcome, sentAtMs).catch(() => undefined)
    return outcome
  }

  /** Keeps a provider's word on the device and its token. Rejects where the store doesn't take it. */
  async #learn(
    { userId, deviceId }: PushMessage,
    prepared: Prepared,
    outcome: DeliveryOutcome,
    sentAtMs: number,
  ): Promise<void> {
    const { device, provider, push } = prepared
    const { judgeToken, setApnsEnvironment } = this.#deps
    const verdict = VERDICTS[outcome.kind]
    if (verdict !== undefined) {
      const atMs = outcome.kind === 'token-gone' ? (outcome.sinceMs ?? sentAtMs) : sentAtMs
      const name = tokenNameOf(prepared)
      // Most pushes are taken, and most tokens are not in doubt.
      const isNews = verdict !== 'good' || device.push?.doubtedAtMs?.[name] !== undefined
      const token = provider === 'webpush' ? push.subscription.endpoint : push.token
      if (isNews) await judgeToken(userId, deviceId, { name, token, verdict, atMs })
    }
    const isMoved = provider === 'apns' && outcome.kind === 'sent' && outcome.environment !== push.environment
    if (isMoved && outcome.environment !== undefined) {
      await setApnsEnvironment(userId, deviceId, outcome.environment)
    }
  }

  /** Undefined without a sender. */
  #sending({ provider, push }: Prepared): Promise<DeliveryOutcome> | undefined {
    const { apns, fcm, webPush } = this.#deps.senders
    switch (provider) {
      case 'apns':
        return apns?.send(push)
      case 'fcm':
        return fcm?.send(push)
      case 'webpush':
        return webPush?.send(push)
    }
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

function tokenNameOf(prepared: Prepared): TokenVerdict['name'] {
  if (prepared.provider === 'fcm') return 'fcmToken'
  if (prepared.provider === 'webpush') return 'webPush'
  return prepared.push.pushType === 'voip' ? 'apnsVoipToken' : 'apnsToken'
}

function shownOf({ provider, push }: Prepared): {
  headers: Readonly<Record<string, string>>
  payload: object
} {
  if (provider === 'apns') {
    const finished = finishedApnsPush(push)
    return { headers: apnsHeaders(finished), payload: finished.payload }
  }
  if (provider === 'webpush') {
    const { urgency, ttlSeconds, topic, payload } = push
    return { headers: { urgency, ttl: `${ttlSeconds}`, ...(topic === undefined ? {} : { topic }) }, payload }
  }
  const { token: _, isUrgent: __, priority, ttlSeconds, ...payload } = finishedFcmPush(push)
  return { headers: { priority, ttl: `${ttlSeconds}s` }, payload }
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
/** No answer to a VoIP push that was worth waiting for. */
const LATE: DeliveryOutcome = { kind: 'retry', reason: 'timeout' }
const VERDICTS: Partial<Record<DeliveryOutcome['kind'], TokenVerdict['verdict']>> = {
  sent: 'good',
  'token-gone': 'gone',
  'token-unknown': 'unknown',
}
