/**
 * Sends the waiting events of one endpoint of webhooks, some at a time, so that an endpoint that is slow or down holds up no other. The
 * mailbox carries wake-ups and outcomes only.
 *
 * An event leaves the store when its outcome is known, with its whole batch: after a crash before that it is sent again,
 * under the same id. While the store takes no writes, outcomes are kept here.
 *
 * An endpoint that fails often in a row, with no success between, is probed with one event at a time until it takes one.
 */

import { backOffMs } from '../src/back-off.ts'
import type { WebhookOutcome } from '../src/delivery/webhook.ts'
import type { Actor, ActorKind, Context } from '../src/runtime/actor.ts'
import type { WebhookEndpoint } from '../src/store/operators/webhook-endpoints.ts'
import type { StoredWebhook } from '../src/store/operators/webhook-events.ts'
import type { TakenWebhook, WebhookQueue } from '../src/store/operators/webhook-queue.ts'
import { type Died, LIFETIME_MS, type WebhookSettlement } from '../src/store/operators/webhook-store.ts'
import type { WebhookCommand } from './messages.ts'

export interface WebhookSending {
  readonly queueOf: (
    endpointId: bigint,
  ) => Pick<WebhookQueue, 'endpoint' | 'take' | 'nextDueMs' | 'settle' | 'purge'>
  readonly send: (endpoint: WebhookEndpoint, seq: number, webhook: StoredWebhook) => Promise<WebhookOutcome>
  /** Called for each try, for the log and the metrics. */
  readonly onTried: (endpointId: bigint, outcome: WebhookOutcome) => void
  readonly onDied: (died: readonly Died[]) => void
  /** The store did not take outcomes, and is asked again soon. */
  readonly onNotWritten: (error: unknown) => void
}

/** An actor has its endpoint's id, in decimal. */
export function webhookKind(sending: WebhookSending): ActorKind<WebhookCommand> {
  return {
    kind: 'webhook',
    mailboxMessagesMax: MAILBOX_MESSAGES_MAX,
    onFailure: 'rebuild',
    create: (id, context) => new WebhookSender(sending, context, BigInt(id)),
  }
}

class WebhookSender implements Actor<WebhookCommand> {
  readonly #sending: WebhookSending
  readonly #context: Context<WebhookCommand>
  readonly #endpointId: bigint
  readonly #queue: ReturnType<WebhookSending['queueOf']>
  #underWay = 0
  /** Outcomes that no write has taken yet. */
  readonly #settlements: WebhookSettlement[] = []
  #isSettling = false
  #isPurging = false
  /** It has said so, and the store does not know it yet. */
  #isGone = false
  /** Failed tries since the last success. */
  #failures = 0
  /** While the endpoint is down: when it is probed next. */
  #probeAtMs = 0

  constructor(sending: WebhookSending, context: Context<WebhookCommand>, endpointId: bigint) {
    this.#sending = sending
    this.#context = context
    this.#endpointId = endpointId
    this.#queue = sending.queueOf(endpointId)
  }

  receive(message: WebhookCommand): void {
    switch (message.kind) {
      case 'wake':
        return this.#sendDue()
      case 'outcome':
        this.#underWay--
        this.#note(message.taken, message.outcome)
        this.#settle()
        return this.#sendDue()
      case 'written':
        this.#isSettling = false
        this.#isGone = false
        this.#settlements.splice(0, message.count)
        this.#sending.onDied(message.died)
        this.#settle()
        return this.#sendDue()
      case 'not-written':
        this.#sending.onNotWritten(message.error)
        return this.#context.startTimer('write', WRITE_AGAIN_MS, { kind: 'write-again' })
      case 'write-again':
        this.#isSettling = false
        this.#isPurging = false
        this.#settle()
        return this.#sendDue()
      case 'purged':
        this.#isPurging = false
        if (message.isEmpty && this.#queue.endpoint() === undefined) return this.#context.stop()
        return this.#sendDue()
    }
  }

  get #isDown(): boolean {
    return this.#failures >= FAILURES_MAX
  }

  #sendDue(): void {
    const endpoint = this.#queue.endpoint()
    if (endpoint === undefined) return
    if (endpoint.state === 'deleted') return this.#purge()
    if (endpoint.state === 'gone') return
    const nowMs = this.#context.nowMs()
    const isWaiting = this.#isDown && nowMs < this.#probeAtMs
    const atOnce = this.#isDown ? 1 : IN_FLIGHT_MAX
    // Those whose outcomes the store does not take yet count, too.
    const room = isWaiting ? 0 : atOnce - this.#underWay - this.#settlements.length
    for (const taken of this.#queue.take(nowMs, room)) this.#send(endpoint, taken)
    this.#startTimer(nowMs)
  }

  #send(endpoint: WebhookEndpoint, taken: TakenWebhook): void {
    this.#underWay++
    const { seq, webhook } = taken
    const tried: Promise<WebhookOutcome> =
      webhook === undefined
        ? Promise.resolve({ kind: 'hopeless', reason: 'unreadable' })
        : this.#sending.send(endpoint, seq, webhook)
    this.#context.tellOutcome(
      tried,
      outcome => ({ kind: 'outcome', taken, outcome }),
      () => ({ kind: 'outcome', taken, outcome: { kind: 'retry', reason: 'failed' } }),
    )
  }

  #note(taken: TakenWebhook, outcome: WebhookOutcome): void {
    this.#sending.onTried(this.#endpointId, outcome)
    const { seq } = taken
    switch (outcome.kind) {
      case 'sent':
        this.#failures = 0
        this.#settlements.push({ kind: 'sent', seq })
        return
      case 'hopeless':
        this.#settlements.push({ kind: 'died', seq, reason: outcome.reason })
        return
      case 'gone':
        this.#isGone = true
        this.#settlements.push({ kind: 'kept', seq })
        return
      case 'retry':
        this.#noteFailure()
        this.#settlements.push(this.#failed(taken, outcome.afterMs ?? 0))
    }
  }

  #noteFailure(): void {
    this.#failures++
    if (!this.#isDown) return
    const pauseMs = backOffMs(PROBES, this.#failures - FAILURES_MAX + 1, this.#context.random())
    this.#probeAtMs = this.#context.nowMs() + pauseMs
  }

  #failed({ seq, tries, sinceMs }: TakenWebhook, afterMs: number): WebhookSettlement {
    const nowMs = this.#context.nowMs()
    const endsAtMs = sinceMs + LIFETIME_MS
    if (nowMs >= endsAtMs) return { kind: 'died', seq, reason: 'expired' }
    const pauseMs = Math.max(backOffMs(TRIES, tries + 1, this.#context.random()), afterMs)
    // The last try is at the end of its time.
    return { kind: 'failed', seq, dueMs: Math.min(Math.ceil(nowMs + pauseMs), endsAtMs) }
  }

  /** Outcomes that arrive during a write go together into the next one. */
  #settle(): void {
    if (this.#isSettling || this.#settlements.length === 0) return
    this.#isSettling = true
    const settlements = this.#settlements.slice()
    this.#context.tellOutcome(
      this.#queue.settle(settlements, { isGone: this.#isGone, isDown: this.#isDown }),
      died => ({ kind: 'written', count: settlements.length, died }),
      error => ({ kind: 'not-written', error }),
    )
  }

  #purge(): void {
    if (this.#isPurging) return
    this.#isPurging = true
    this.#context.tellOutcome(
      this.#queue.purge(),
      isEmpty => ({ kind: 'purged', isEmpty }),
      error => ({ kind: 'not-written', error }),
    )
  }

  /** Runs also while events are under way: after a failure, only a pending timer has the actor built again. */
  #startTimer(nowMs: number): void {
    const dueMs = this.#queue.nextDueMs()
    if (dueMs === undefined && this.#underWay === 0 && !this.#isSettling) return
    const wakeMs = Math.max(dueMs ?? 0, this.#isDown ? this.#probeAtMs : 0)
    // An event that is due waits for room, not for a time.
    const waitMs = wakeMs > nowMs ? Math.min(wakeMs - nowMs, LOOK_AGAIN_MS) : LOOK_AGAIN_MS
    this.#context.startTimer('due', waitMs, { kind: 'wake' })
  }
}

/** All wake-ups say the same, so a few are enough. */
const MAILBOX_MESSAGES_MAX = 64
/** With the endpoint, or waiting for the store. */
const IN_FLIGHT_MAX = 16
/** As many in a row, and the endpoint is taken to be down. */
const FAILURES_MAX = 10
/** Pauses between probes of an endpoint that is down. */
const PROBES = { firstMs: 1_000, maxMs: 60_000 }
/** Pauses between tries of one event; about two dozen in three days. */
const TRIES = { firstMs: 5_000, maxMs: 6 * 3_600_000 }
const WRITE_AGAIN_MS = 1_000
const LOOK_AGAIN_MS = 60_000
