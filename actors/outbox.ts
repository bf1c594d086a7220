/**
 * The outbox of one lane: sends the messages waiting in the store, some at a time. A failed one is sent again later,
 * never after it has expired. The mailbox only carries wake-ups.
 *
 * A message leaves the store when its outcome is known. After a crash before that, the next start sends it again with
 * its row's other messages. So a person may get a message twice, but no promised message is lost. While the store takes no
 * writes, outcomes are kept here: on a full disk, messages would else be sent again and again.
 *
 * During a provider's outage one message probes it, with growing pauses. The rest wait. Rings don't: each is tried by
 * itself, every few seconds until it expires, and a row that it shares stays in the store until then.
 */

import { backOffMs } from '../src/back-off.ts'
import type { DeliveryOutcome, Retry, Skipped } from '../src/delivery/outcome.ts'
import { isOfCalls, type Lane, type OutboxMessage } from '../src/domain/messages/outbox-message.ts'
import { assert } from '../src/errors.ts'
import type { Actor, ActorKind, Context } from '../src/runtime/actor.ts'
import type { OutboxQueue, Settlement, WaitingMessage } from '../src/store/messages/outbox-queue.ts'
import type { OutboxCommand } from './messages.ts'

export interface OutboxDeps {
  readonly queueOf: (lane: Lane) => Pick<OutboxQueue, 'take' | 'takenCount' | 'settle' | 'nextDueMs'>
  readonly send: (message: OutboxMessage) => Promise<DeliveryOutcome | Skipped>
  /** Called for each try, for the log and the metrics. */
  readonly onTried: (lane: Lane, outcome: DeliveryOutcome | Skipped | TooLate) => void
  /** The store did not take outcomes, and is asked again soon. */
  readonly onNotWritten: (error: unknown) => void
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
  /** With the provider. */
  #underWay = 0
  /** How often each failed message of a call was tried. */
  readonly #tries = new Map<WaitingMessage, number>()
  /** Outcomes that no write has taken yet. */
  #settlements: Settlement[] = []
  #isSettling = false
  /** Those of calls that wait for another try, by the tenth of a second that it is due in: an actor has few timers. */
  readonly #again = new Map<number, WaitingMessage[]>()
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
      case 'again':
        this.#held.push(...(this.#again.get(message.slot) ?? []))
        this.#again.delete(message.slot)
        return this.#sendDue()
      case 'written':
        this.#isSettling = false
        return this.#sendDue()
      case 'not-written':
        this.#deps.onNotWritten(message.error)
        return this.#context.startTimer('write', WRITE_AGAIN_MS, { kind: 'write-again' })
      case 'write-again':
        return this.#write()
      case 'outcome':
        this.#underWay--
        this.#note(message.waiting, message.outcome)
        if (this.#held.length > 0 || isOfCalls(this.#lane)) return this.#sendDue()
        return this.#settle()
    }
  }

  #sendDue(): void {
    const nowMs = this.#context.nowMs()
    if (this.#mayTry(nowMs)) this.#take(nowMs)
    while (this.#held.length > 0 && this.#mayTry(nowMs) && this.#underWay < IN_FLIGHT_MAX[this.#lane]) {
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
    const { takenCount } = this.#queue
    const room = IN_FLIGHT_MAX[this.#lane] - (isOfCalls(this.#lane) ? this.#underWay : takenCount)
    this.#held.push(...this.#queue.take(nowMs, Math.min(room, TAKEN_MAX - takenCount)))
  }

  #send(waiting: WaitingMessage): void {
    if (this.#outage !== undefined) this.#probe = waiting
    this.#underWay++
    this.#context.tellOutcome(
      this.#deps.send(waiting.message),
      outcome => ({ kind: 'outcome', waiting, outcome }),
      () => ({ kind: 'outcome', waiting, outcome: { kind: 'retry', reason: 'failed', isOfMessage: true } }),
    )
  }

  #note(waiting: WaitingMessage, outcome: DeliveryOutcome | Skipped | TooLate): void {
    this.#deps.onTried(this.#lane, outcome)
    const untilMs = this.#nextTryMs(waiting, outcome)
    if (isOfCalls(this.#lane)) return this.#noteOfCall(waiting, untilMs)
    this.#settlements.push({ waiting, untilMs })
    const isProbe = waiting === this.#probe
    if (isProbe) this.#probe = undefined
    if (outcome.kind === 'skipped' || outcome.kind === 'too-late') return
    if (outcome.kind !== 'retry' || outcome.isOfMessage) this.#outage = undefined
    // Many messages fail at once; only a failed probe prolongs the outage.
    else if (this.#outage === undefined || isProbe) this.#outage = this.#outageAfter(outcome)
  }

  /** Another try is only remembered here: its row may be of devices that are slow to answer, and would come too late. */
  #noteOfCall(waiting: WaitingMessage, untilMs: number | undefined): void {
    if (untilMs === undefined) {
      this.#tries.delete(waiting)
      this.#settlements.push({ waiting })
      return
    }
    this.#tries.set(waiting, this.#triesOf(waiting) + 1)
    const slot = Math.ceil(untilMs / SLOT_MS)
    const others = this.#again.get(slot)
    if (others !== undefined) {
      others.push(waiting)
      return
    }
    this.#again.set(slot, [waiting])
    this.#context.startTimer(`again ${slot}`, slot * SLOT_MS - this.#context.nowMs(), { kind: 'again', slot })
  }

  #triesOf(waiting: WaitingMessage): number {
    return this.#tries.get(waiting) ?? waiting.row.tries
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
    this.#write()
  }

  #write(): void {
    const durable = this.#queue.settle(this.#settlements)
    this.#settlements = []
    this.#context.tellOutcome(
      durable,
      () => ({ kind: 'written' }),
      error => ({ kind: 'not-written', error }),
    )
  }

  /** When to try the message again; undefined for never: out of tries, or expired by then. */
  #nextTryMs(waiting: WaitingMessage, outcome: DeliveryOutcome | Skipped | TooLate): number | undefined {
    if (outcome.kind !== 'retry') return undefined
    const { expiresAtMs } = waiting.message
    const nowMs = this.#context.nowMs()
    const tries = this.#triesOf(waiting) + 1
    const isCall = isOfCalls(this.#lane)
    const pauseMs = pauseAfter(isCall ? CALL_PAUSES : USUAL_PAUSES, tries, outcome.afterMs)
    // A phone that can still ring is tried, whenever its provider comes back.
    const lastPauseMs = Math.max(expiresAtMs - nowMs - LAST_TRY_MS, LAST_TRY_MS)
    const untilMs = nowMs + (isCall ? Math.min(pauseMs, lastPauseMs) : pauseMs)
    return tries >= TRIES_MAX[this.#lane] || untilMs >= expiresAtMs ? undefined : untilMs
  }

  /** Runs also while messages are under way: after a failure, only a pending timer has the actor built again. */
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
function pauseAfter({ eachMs, maxMs }: Pauses, tries: number, afterMs: number | undefined): number {
  const usualMs = eachMs[Math.min(tries, eachMs.length) - 1]!
  return Math.min(Math.max(usualMs, afterMs ?? 0), maxMs)
}

interface Pauses {
  /** After the first try, the second and so on, then always the last. */
  readonly eachMs: readonly number[]
  /** As long as a provider may ask for. */
  readonly maxMs: number
}

const PAUSE_MS_MAX = 3_600_000
const USUAL_PAUSES: Pauses = { eachMs: [1_000, 4_000, 15_000, 60_000, 300_000], maxMs: PAUSE_MS_MAX }
/** A ring lasts for a minute at most: a provider that asks for more is asked again all the same. */
const CALL_PAUSES: Pauses = { eachMs: [1_000, 2_000, 4_000, 5_000], maxMs: 10_000 }
/** Before a ring expires; closer to its end it is not worth ringing for. */
const LAST_TRY_MS = 1_000
const SLOT_MS = 100
const WRITE_AGAIN_MS = 1_000
const LOOK_AGAIN_MS = 60_000
/** Pauses between probes. */
const PROBES = { firstMs: 1_000, maxMs: 60_000 }
/** All wake-ups say the same, so a few are enough. */
const MAILBOX_MESSAGES_MAX = 64
/** Messages in flight at a sender; for mail, its pool of connections. */
const IN_FLIGHT_MAX: Record<Lane, number> = {
  mail: 5,
  sms: 16,
  apns: 128,
  fcm: 128,
  webpush: 128,
  apple: 2,
  // A silent provider keeps each for some seconds.
  'apns-calls': 1_024,
  'fcm-calls': 1_024,
  'webpush-calls': 1_024,
}
/** Taken in all, with those of calls that wait for another try. */
const TAKEN_MAX = 16_384
/**
 * Contract 6: four tries for a push. Other messages expire long before their last try, as do pushes to browsers: with the
 * push services of many makers in one lane, an outage of one holds up no message to another.
 */
const TRIES_MAX: Record<Lane, number> = {
  mail: 1_000,
  sms: 1_000,
  apns: 4,
  fcm: 4,
  webpush: 1_000,
  apple: 10_000,
  'apns-calls': 1_000,
  'fcm-calls': 1_000,
  'webpush-calls': 1_000,
}
