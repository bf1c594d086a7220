/**
 * Push to browsers: one encrypted POST to the push service that the browser has chosen (RFC 8030, 8291, 8292). The
 * package web-push encrypts and signs; the request itself is ours, since its address comes from a client.
 */

import { Agent, type AgentOptions } from 'node:https'
import { isPushEndpoint, type WebPushSubscription } from '../domain/devices/web-push.ts'
import { assert } from '../errors.ts'
import { Recent } from '../recent.ts'
import { type PostResult, post } from './http-post.ts'
import type { DeliveryOutcome, Retry } from './outcome.ts'
import { publicLookup } from './public-lookup.ts'
import { vapidPublicKey } from './vapid-key.ts'

export interface WebPushSettings {
  /** As `vapidPublicKey` takes it. */
  readonly privateKey: string
  /** Where the push services reach the operator: `mailto:` or `https:`. */
  readonly contact: string
  /** Those of push services, as `isPushEndpoint` takes them. */
  readonly hosts: readonly string[]
  readonly timeoutMs?: number
  /** For urgent pushes, since a ring without an answer is tried again. */
  readonly urgentTimeoutMs?: number
  readonly nowMs?: () => number
  /** How sockets are opened, for tests. No setting leads here: it would open the machine's own network. */
  readonly sockets?: AgentOptions
}

export interface WebPush {
  readonly subscription: WebPushSubscription
  /** Wakes the browser from its sleep. */
  readonly urgency: 'high' | 'normal'
  readonly ttlSeconds: number
  /** A later push takes the place of one with the same topic that the push service still holds: at most 32 characters of base64url. */
  readonly topic?: string
  readonly payload: object
}

/** Every push service takes 4,096 octets (RFC 8030, section 7.2), and the encryption takes 103 of them. */
export const WEB_PUSH_BYTES_MAX = 3_993

export class WebPushSender {
  readonly #settings: WebPushSettings
  readonly #publicKey: string
  readonly #agent: Agent
  readonly #nowMs: () => number
  /** Signed headers by the origin of their push service. */
  readonly #signed = new Recent<string, { readonly header: string; readonly freshUntilMs: number }>(64)

  constructor(settings: WebPushSettings) {
    const publicKey = vapidPublicKey(settings.privateKey)
    assert(publicKey !== undefined, 'the settings hold no key that is none')
    this.#settings = settings
    this.#publicKey = publicKey
    this.#nowMs = settings.nowMs ?? Date.now
    this.#agent = new Agent({ keepAlive: true, lookup: publicLookup(), ...settings.sockets })
  }

  /** Never rejects. */
  async send(push: WebPush): Promise<DeliveryOutcome> {
    const { hosts, timeoutMs = 10_000, urgentTimeoutMs = 3_000 } = this.#settings
    const { endpoint } = push.subscription
    // The operator may have taken a host from the list since the browser sent this.
    if (!isPushEndpoint(endpoint, hosts)) return { kind: 'refused', reason: 'host-not-allowed' }
    const payload = JSON.stringify(push.payload)
    if (Buffer.byteLength(payload) > WEB_PUSH_BYTES_MAX) return { kind: 'refused', reason: 'too-large' }
    const request = await this.#encrypted(push, payload)
    if (request === undefined) return { kind: 'refused', reason: 'bad-keys' }
    const answer = await post({
      url: endpoint,
      ...request,
      timeoutMs: push.urgency === 'high' ? urgentTimeoutMs : timeoutMs,
      answerBytesMax: ANSWER_BYTES_MAX,
      agent: this.#agent,
    })
    return outcomeOf(answer)
  }

  /** Ends idle connections. */
  close(): void {
    this.#agent.destroy()
  }

  /** Undefined for keys of a subscription that are none. */
  async #encrypted({ subscription, urgency, ttlSeconds, topic }: WebPush, payload: string) {
    const { default: webPush } = await import('web-push')
    const asked = { vapidDetails: null, TTL: ttlSeconds, urgency, ...(topic === undefined ? {} : { topic }) }
    try {
      const { headers, body } = webPush.generateRequestDetails(subscription, payload, asked)
      const sent = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)])
      const authorization = this.#authorization(webPush, new URL(subscription.endpoint).origin)
      return { headers: { ...Object.fromEntries(sent), authorization }, body }
    } catch {
      return undefined
    }
  }

  #authorization(webPush: typeof import('web-push').default, origin: string): string {
    const nowMs = this.#nowMs()
    const known = this.#signed.get(origin)
    // With a clock that was set back, a token would be good for too long for the push services, and be refused.
    const isFresh =
      known !== undefined && nowMs < known.freshUntilMs && nowMs >= known.freshUntilMs - SIGNED_FOR_MS
    if (isFresh) return known.header
    const { contact, privateKey } = this.#settings
    const { Authorization: header } = webPush.getVapidHeaders(
      ...([origin, contact, this.#publicKey, privateKey, 'aes128gcm'] as const),
    )
    this.#signed.set(origin, { header, freshUntilMs: nowMs + SIGNED_FOR_MS })
    return header
  }
}

/** A failure of one push service says nothing about the rest, so each is of its message alone. */
function outcomeOf(answer: PostResult): DeliveryOutcome {
  if (answer.kind === 'failed') return { kind: 'retry', reason: answer.reason, isOfMessage: true }
  const { status, retryAfterMs } = answer
  const reason = `http-${status}`
  if (status >= 200 && status < 300) return { kind: 'sent' }
  if (status === 404 || status === 410) return { kind: 'token-gone', reason }
  // Our key is not taken, or the browser subscribed with an earlier one: until its page is opened again.
  const isOurs = status === 401 || status === 403
  const afterMs = retryAfterMs ?? (isOurs ? CREDENTIAL_PAUSE_MS : undefined)
  const retry: Retry = {
    kind: 'retry',
    reason,
    isOfMessage: true,
    ...(afterMs === undefined ? {} : { afterMs }),
  }
  if (isOurs || status === 429 || status >= 500) return retry
  return { kind: 'refused', reason }
}

const ANSWER_BYTES_MAX = 4_096
/** Half of what the package signs for. */
const SIGNED_FOR_MS = 6 * 3_600_000
const CREDENTIAL_PAUSE_MS = 3_600_000
