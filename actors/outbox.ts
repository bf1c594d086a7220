/**
 * The outbox of one lane (mail, sms, apns, fcm, webpush, apple): sends the messages waiting in the store, some at a time. A
 * failed one is sent again later, never after it has expired. The mailbox only carries wake-ups.
 *
 * A message leaves the store when its outcome is known. After a crash before that, the next start sends it again with
 * its row's other messages. So a person may get a message twice, but no promised message is lost.
 *
 * During a provider's outage one message probes it, with growing pauses. The rest wait.
 */

import { backOffMs } from '../src/back-off.ts'
import type { DeliveryOutcome, Retry, Skipped } from '../src/delivery/outcome.ts'
import type { Lane, OutboxMessage } from '../src/domain/messages/outbox-message.ts'
import { assert } from '../src/errors.ts'
import type { Actor, ActorKind, Context } from '../src/runtime/actor.ts'
import type { OutboxQueue, Settlement, WaitingMessage } from '../src/store/messages/outbox-queue.ts'
import type { OutboxCommand } from './messages.ts'

export interface OutboxDeps {
  readonly queueOf: (lane: Lane) => Pick<OutboxQueue, 'take' | 'takenCount' | 'settle' | 'nextDueMs'>
  readonly send: (message: OutboxMessage) => Promise<DeliveryOutcome | Skipped>
  /** Called for each try, for the log and the metrics. */
  readonly onTried: (lane: Lane, outcome: DeliveryOutcome | Skipped | TooLate) => void
}

/** The message expired before it could be sent. */
export interface TooLate {
  readonly kind: 'too-late'
}

/** The id of an outbox is its lane. */
export function outboxKind(deps: OutboxDeps): ActorKind<OutboxCommand> {
  return {
    kind: 'outbox',
    mailboxMessagesMax: MAILBOX_MESSAGES_MAX,
    onFailure: 'rebuild',
    create: (id, context) => new Outbox(deps, context, id as Lane),
  }
}

/** The provider accepts nothing. */
interface Outage {
  /** Failed probes in a row, counting the failure that began it. */
  readonly failures: number
  /** When the next probe is due. */
  readonly probeAtMs: number
}

class Outbox implements Actor<OutboxCommand> {
  readonly #deps: OutboxDeps
  readonly #context: Context<OutboxCommand>
  readonly #lane: Lane
  readonly #queue: ReturnType<OutboxDeps['queueOf']>
  /** Taken from the queue, and not handed to the provider yet. */
  readonly #held: WaitingMessage[] = []
  /** Outcomes that no write has taken yet. */
  #settlements: Settlement[] = []
  #isSettling = false
  #outage: Outage | undefined
  /** The message under way that probes the provider. */
  #probe: WaitingMessage | undefined

  constructor(deps: OutboxDeps, context: Context<OutboxCommand>, lane: Lane) {
    assert(lane in IN_FLIGHT_MAX, 'an outbox is of a lane')
    this.#deps = deps
    this.#context = context
    this.#lane = lane
    this.#queue = deps.queueOf(lane)
    this.#sendDue()
  }

  receive(message: OutboxCommand): void {
    switch (message.kind) {
      case 'wake':
        return this.#sendDue()
      case 'outcome':
        this.#note(message.waiting, message.outcome)
        if (this.#held.length > 0) return this.#sendDue()
        return this.#settle()
    }
  }

  #sendDue(): void {
    const nowMs = this.#context.nowMs()
    if (this.#mayTry(nowMs)) this.#take(nowMs)
    while (this.#held.length > 0 && this.#mayTry(nowMs)) {
      const waiting = this.#held.shift()!
      if (nowMs >= waiting.message.expiresAtMs) this.#note(waiting, { kind: 'too-late' })
      else this.#send(waiting)
    }
    this.#settle()
    this.#startTimer(nowMs)
  }

  #mayTry(nowMs: number): boolean {
    return this.#outage === undefined || (this.#probe === undefined && nowMs >= this.#outage.probeAtMs)
  }

  #take(nowMs: number): void {
    // Held messages are tried first.
    if (this.#held.length > 0) return
    const room = IN_FLIGHT_MAX[this.#lane] - this.#queue.takenCount
    this.#held.push(...this.#queue.take(nowMs, room))
  }

  #send(waiting: WaitingMessage): void {
    if (this.#outage !== undefined) this.#probe = waiting
    this.#context.tellOutcome(
      this.#deps.send(waiting.message),
      outcome => ({ kind: 'outcome', waiting, outcome }),
      () => ({ kind: 'outcome', waiting, outcome: { kind: 'retry', reason: 'failed', isOfMessage: true } }),
    )
  }

  #note(waiting: WaitingMessage, outcome: DeliveryOutcome | Skipped | TooLate): void {
    this.#deps.onTried(this.#lane, outcome)
    this.#settlements.push({ waiting, untilMs: this.#nextTryMs(waiting, outcome) })
    const isProbe = waiting === this.#probe
    if (isProbe) this.#probe = undefined
    if (outcome.kind === 'skipped' || outcome.kind === 'too-late') return
    if (outcome.kind !== 'retry' || outcome.isOfMessage) this.#outage = undefined
    // Many messages fail at once; only a failed probe prolongs the outage.
    else if (this.#outage === undefined || isProbe) this.#outage = this.#outageAfter(outcome)
  }

  #outageAfter({ afterMs = 0 }: Retry): Outage {
    const failures = (this.#outage?.failures ?? 0) + 1
    const pauseMs = backOffMs(PROBES, failures, this.#context.random())
    const probeAtMs = this.#context.nowMs() + Math.min(Math.max(pauseMs, afterMs), PAUSE_MS_MAX)
    return { failures, probeAtMs }
  }

  /** Outcomes that arrive during a write go together into the next one. */
  #settle(): void {
    if (this.#isSettling || this.#settlements.length === 0) return
    this.#isSettling = true
    const durable = this.#queue.settle(this.#settlements)
    this.#settlements = []
    this.#context.commit(durable, () => {
      this.#isSettling = false
      this.#sendDue()
    })
  }

  /** When to try the message again; undefined for never: out of tries, or expired by then. */
  #nextTryMs(
    { message, row }: WaitingMessage,
    outcome: DeliveryOutcome | Skipped | TooLate,
  ): number | undefined {
    if (outcome.kind !== 'retry') return undefined
    const tries = row.tries + 1
    const triesMax = Math.min(TRIES_MAX[this.#lane], outcome.triesMax ?? Number.POSITIVE_INFINITY)
    const untilMs = this.#context.nowMs() + pauseAfter(tries, outcome.afterMs)
    return tries >= triesMax || untilMs >= message.expiresAtMs ? undefined : untilMs
  }

  /** Runs also while messages are under way: after a failed write, only a pending timer has the actor built again. */
  #startTimer(nowMs: number): void {
    const { nextDueMs, takenCount } = this.#queue
    if (nextDueMs === undefined && takenCount === 0 && !this.#isSettling) return
    const dueMs = this.#held.length > 0 ? nowMs : nextDueMs
    const wakeMs = dueMs && Math.max(dueMs, this.#outage?.probeAtMs ?? 0)
    // A message that is due waits for room or a wake-up, not for a time.
    const isToCome = wakeMs !== undefined && wakeMs > nowMs
    const waitMs = isToCome ? Math.min(wakeMs - nowMs, LOOK_AGAIN_MS) : LOOK_AGAIN_MS
    this.#context.startTimer('due', waitMs, { kind: 'wake' })
  }
}

/** Milliseconds until the next try: at least the provider's own `afterMs`, within bounds. */
function pauseAfter(tries: number, afterMs: number | undefined): number {
  const usualMs = PAUSES_MS[Math.min(tries, PAUSES_MS.length) - 1]!
  return Math.min(Math.max(usualMs, afterMs ?? 0), PAUSE_MS_MAX)
}

const PAUSES_MS = [1_000, 4_000, 15_000, 60_000, 300_000] as const
const PAUSE_MS_MAX = 3_600_000
const LOOK_AGAIN_MS = 60_000
/** Pauses between probes. */
const PROBES = { firstMs: 1_000, maxMs: 60_000 }
/** All wake-ups say the same, so a few are enough. */
const MAILBOX_MESSAGES_MAX = 64
/** Messages in flight at a sender; for mail, its pool of connections. */
const IN_FLIGHT_MAX: Record<Lane, number> = { mail: 5, sms: 16, apns: 128, fcm: 128, webpush: 128, apple: 2 }
/**
 * Contract 6: four tries for a push. Other messages expire long before their last try, as do pushes to browsers: with the
 * push services of many makers in one lane, no outage of one makes the others wait.
 */
const TRIES_MAX: Record<Lane, number> = {
  mail: 1_000,
  sms: 1_000,
  apns: 4,
  fcm: 4,
  webpush: 1_000,
  apple: 10_000,
}
