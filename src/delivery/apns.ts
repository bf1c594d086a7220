/**
 * Push to Apple devices over node-apn. It adds to the library:
 *
 * - The library goes on with a session that has fallen silent, and its own timeout leaves it open
 *   (parse-community/node-apn#202). Here the sockets are ours: a send that fails or has no answer in time takes its
 *   session with it, and is tried once more on a new one. A push that comes while a session is silent goes to another.
 * - The library signs a new provider token after every `403 ExpiredProviderToken`, and Apple refuses tokens that change
 *   more than every 20 minutes. A token lives as long as its `Provider`, so the provider itself is replaced: after 50
 *   minutes, or at once when Apple refuses the token, and then for no refusal within 20 minutes. In these, pushes go
 *   on with the present token: one refusal that was Apple's mistake must not silence every phone.
 * - A device token of the other environment is the usual cause of `BadDeviceToken`: it is tried there once.
 *
 * Header and reason names: Apple, "Sending notification requests to APNs", "Handling notification responses from
 * APNs".
 */

import { createPrivateKey } from 'node:crypto'
import type { ApnsLink, ApnsPush, LinkAnswer } from './apns-link.ts'
import { apnsPayloadBytesMax, finishedApnsPush } from './finished-push.ts'
import type { ApnsEnvironment, DeliveryOutcome } from './outcome.ts'

export interface ApnsOptions {
  /** Text of the .p8 file. */
  readonly key: string
  readonly keyId: string
  readonly teamId: string
  /** Apple's where they are left out. */
  readonly hosts?: Readonly<Partial<Record<ApnsEnvironment, string>>>
  readonly port?: number
  /** PEM of the authority to trust instead of the machine's list. */
  readonly ca?: string
  readonly timeoutMs?: number
  /** A call rings for a minute: its pushes are given up sooner. */
  readonly urgentTimeoutMs?: number
  readonly nowMs?: () => number
}

/** Holds at most one session per environment, opened by the first push, until `close`. */
export class ApnsSender {
  readonly #options: ApnsOptions
  readonly #nowMs: () => number
  readonly #links = new Map<ApnsEnvironment, ApnsLink>()
  /** Replaced ones that still wait for answers. */
  readonly #leaving = new Set<ApnsLink>()
  /** When a token was last replaced because Apple refused it. */
  readonly #renewedAtMs = new Map<ApnsEnvironment, number>()
  #isClosed = false

  /** Throws, with a sentence for the operator, when the key can sign no token. */
  constructor(options: ApnsOptions) {
    // The library would take a text that is no PEM for a file's name, and only at the first push.
    if (!isSigningKey(options.key)) throw new Error('the APNs key is not the text of a .p8 file (P-256, PEM)')
    this.#options = options
    this.#nowMs = options.nowMs ?? Date.now
  }

  /** Never rejects. `sent` names the environment that took the push, to be remembered with the token. */
  async send(unfinished: ApnsPush): Promise<DeliveryOutcome> {
    const push = finishedApnsPush(unfinished)
    const body = JSON.stringify(push.payload)
    if (Buffer.byteLength(body) > apnsPayloadBytesMax(push.pushType)) {
      return { kind: 'refused', reason: 'PayloadTooLarge' }
    }
    if (!TOKEN_FORM.test(push.token)) return { kind: 'token-gone', reason: 'BadDeviceToken' }
    const outcome = await this.#sendTo(push.environment, push, body)
    const isElsewhere = this.#hostOf('production') !== this.#hostOf('development')
    if (outcome.kind !== 'token-unknown' || !isElsewhere) return outcome
    const elsewhere = await this.#sendTo(otherThan(push.environment), push, body)
    // A key of one environment only is refused in the other: then the first answer stands.
    const isRefused = elsewhere.kind === 'refused' || (elsewhere.kind === 'retry' && elsewhere.isOfAccount)
    return isRefused ? outcome : elsewhere
  }

  /** Ends the sessions; a push under way ends with `retry`, as every later one does. */
  close(): void {
    this.#isClosed = true
    for (const link of [...this.#links.values(), ...this.#leaving]) link.close()
    this.#links.clear()
  }

  async #sendTo(environment: ApnsEnvironment, push: ApnsPush, body: string): Promise<DeliveryOutcome> {
    const { ApnsLink } = await import('./apns-link.ts')
    const { timeoutMs = 10_000, urgentTimeoutMs = 3_000 } = this.#options
    const deadlineMs = push.isUrgent ? urgentTimeoutMs : timeoutMs
    const startMs = performance.now()
    let outcome: DeliveryOutcome = { kind: 'retry', reason: 'network' }
    for (let tries = 0; tries < TRIES_MAX && !this.#isClosed; tries++) {
      const link = this.#linkTo(environment, ApnsLink)
      const answer = await link.post(push, body, deadlineMs)
      if (link.isIdle && this.#leaving.delete(link)) link.closeIdle()
      if (answer.kind === 'failed') {
        outcome = { kind: 'retry', reason: answer.reason }
        if (push.isUrgent && performance.now() - startMs >= URGENT_TRIES_MS) return outcome
      } else if (TOKEN_REASONS.has(answer.reason)) {
        outcome = { kind: 'retry', reason: answer.reason, isOfAccount: true }
        if (!this.#renewToken(environment, link, ApnsLink)) return outcome
      } else {
        return outcomeOf(answer, environment)
      }
    }
    return outcome
  }

  /** The environment's link, a new one when the token of the old one is due, or was signed at a time still to come. */
  #linkTo(environment: ApnsEnvironment, Link: typeof ApnsLink): ApnsLink {
    const link = this.#links.get(environment)
    const nowMs = this.#nowMs()
    // A clock that was set back: Apple takes the token no more, and would be asked with it until the old hour comes again.
    const isFresh = link !== undefined && nowMs >= link.signedAtMs && nowMs < link.signedAtMs + TOKEN_MS_MAX
    if (isFresh && !link.isSilent) return link
    return this.#replaceLink(environment, Link, isFresh ? link : undefined)
  }

  /** Apple refuses the token of `link`. Whether there is another to try with: false where that was tried lately. */
  #renewToken(environment: ApnsEnvironment, link: ApnsLink, Link: typeof ApnsLink): boolean {
    const newest = this.#links.get(environment)
    if (newest?.hasTokenOf(link) === false) return true
    const nowMs = this.#nowMs()
    const renewedAtMs = this.#renewedAtMs.get(environment)
    if (renewedAtMs !== undefined && nowMs >= renewedAtMs && nowMs < renewedAtMs + RENEWED_EVERY_MS)
      return false
    this.#renewedAtMs.set(environment, nowMs)
    this.#replaceLink(environment, Link, undefined)
    return true
  }

  /** The new link has the token of `older`, or else a new one. */
  #replaceLink(environment: ApnsEnvironment, Link: typeof ApnsLink, older: ApnsLink | undefined): ApnsLink {
    const replaced = this.#links.get(environment)
    if (replaced?.isIdle) replaced.closeIdle()
    else if (replaced !== undefined) this.#leaving.add(replaced)
    const { key, keyId, teamId, port = 443, ca } = this.#options
    const peer = { host: this.#hostOf(environment), port, ...(ca === undefined ? {} : { ca }) }
    const fresh = new Link(peer, { key, keyId, teamId }, this.#nowMs(), older)
    this.#links.set(environment, fresh)
    return fresh
  }

  #hostOf(environment: ApnsEnvironment): string {
    return this.#options.hosts?.[environment] ?? APPLE_HOSTS[environment]
  }
}

function outcomeOf(
  answer: Extract<LinkAnswer, { kind: 'answered' }>,
  environment: ApnsEnvironment,
): DeliveryOutcome {
  const { status, reason, sinceMs } = answer
  if (status === 200) return { kind: 'sent', environment }
  if (reason === 'BadDeviceToken') return { kind: 'token-unknown', reason }
  if (status === 410 || GONE_REASONS.has(reason)) {
    return { kind: 'token-gone', reason, ...(sinceMs === undefined ? {} : { sinceMs }) }
  }
  if (reason === 'MissingProviderToken') return { kind: 'retry', reason, isOfAccount: true }
  if (status !== 429 && status < 500) return { kind: 'refused', reason }
  // About one device that was pushed to too often.
  return { kind: 'retry', reason, ...(reason === 'TooManyRequests' ? { isOfMessage: true } : {}) }
}

function isSigningKey(pem: string): boolean {
  try {
    return createPrivateKey(pem).asymmetricKeyDetails?.namedCurve === 'prime256v1'
  } catch {
    return false
  }
}

function otherThan(environment: ApnsEnvironment): ApnsEnvironment {
  return environment === 'production' ? 'development' : 'production'
}

const APPLE_HOSTS: Record<ApnsEnvironment, string> = {
  production: 'api.push.apple.com',
  development: 'api.sandbox.push.apple.com',
}
const GONE_REASONS = new Set(['ExpiredToken', 'Unregistered'])
/** Apple takes the provider token no more, or says so by mistake. */
const TOKEN_REASONS = new Set(['ExpiredProviderToken', 'InvalidProviderToken'])
/** Apple: a provider token is good for an hour, and is to be replaced no more often than every 20 minutes. */
const TOKEN_MS_MAX = 50 * 60_000
const RENEWED_EVERY_MS = 20 * 60_000
const TOKEN_FORM = /^[0-9a-f]{1,200}$/i
/** On one session and, when that fails, on the next; likewise with a token and its successor. */
const TRIES_MAX = 2
/** A second try of an urgent push begins within this, or not at all: a ring goes another way soon after. */
const URGENT_TRIES_MS = 1_000
