/**
 * The outbox of one channel (mail, sms, push, apple): has what waits in the store sent, some at a time, again later when
 * it failed, and never after its time. The mailbox carries only the word that there is something.
 *
 * A message leaves the store when its outcome is known; a crash before that has it sent again at the next start, so a
 * person may get a message twice, but none that was promised is lost.
 */

import type { DeliveryOutcome } from '../src/delivery/outcome.ts'
import type { Channel, Outgoing } from '../src/domain/outgoing.ts'
import { assert } from '../src/errors.ts'
import type { Actor, ActorKind, Context } from '../src/runtime/actor.ts'
import type { OutboxQueue, WaitingMessage } from '../src/store/outbox-queue.ts'
import type { Settlement } from '../src/store/outbox-store.ts'

export type OutboxMessage =
  /** Something was added, or its time has come. */
  | { readonly kind: 'wake' }
  | { readonly kind: 'outcome'; readonly waiting: WaitingMessage; readonly outcome: DeliveryOutcome }

export interface OutboxWorld {
  readonly queueOf: (channel: Channel) => Pick<OutboxQueue, 'take' | 'takenCount' | 'settle' | 'nextDueMs'>
  readonly send: (message: Outgoing) => Promise<DeliveryOutcome>
  /** Told of each try, for the log and the metrics. */
  readonly onTried: (channel: Channel, outcome: DeliveryOutcome | TooLate) => void
}

/** The message's time was over before it could be sent. */
export interface TooLate {
  readonly kind: 'too-late'
}

/** The id of an outbox is its channel. */
export function outboxKind(world: OutboxWorld): ActorKind<OutboxMessage> {
  return {
    kind: 'outbox',
    mailboxMessagesMax: MAILBOX_MESSAGES_MAX,
    onFailure: 'rebuild',
    create: (id, context) => new Outbox(world, context, id as Channel),
  }
}

class Outbox implements Actor<OutboxMessage> {
  readonly #world: OutboxWorld
  readonly #context: Context<OutboxMessage>
  readonly #channel: Channel
  readonly #queue: ReturnType<OutboxWorld['queueOf']>
  /** What became of messages, and is not being written yet. */
  #settlements: Settlement[] = []
  #isSettling = false

  constructor(world: OutboxWorld, context: Context<OutboxMessage>, channel: Channel) {
    assert(channel in IN_FLIGHT_MAX, 'an outbox is of a channel')
    this.#world = world
    this.#context = context
    this.#channel = channel
    this.#queue = world.queueOf(channel)
    this.#sendDue()
  }

  receive(message: OutboxMessage): void {
    switch (message.kind) {
      case 'wake':
        return this.#sendDue()
      case 'outcome':
        this.#note(message.waiting, message.outcome)
        return this.#settle()
    }
  }

  #sendDue(): void {
    const nowMs = this.#context.nowMs()
    const room = IN_FLIGHT_MAX[this.#channel] - this.#queue.takenCount
    for (const waiting of this.#queue.take(nowMs, room)) {
      if (nowMs >= waiting.message.expiresAtMs) this.#note(waiting, { kind: 'too-late' })
      else this.#send(waiting)
    }
    this.#settle()
    this.#startTimer(nowMs)
  }

  #send(waiting: WaitingMessage): void {
    this.#context.tellOutcome(
      this.#world.send(waiting.message),
      outcome => ({ kind: 'outcome', waiting, outcome }),
      () => ({ kind: 'outcome', waiting, outcome: { kind: 'retry', reason: 'failed' } }),
    )
  }

  #note(waiting: WaitingMessage, outcome: DeliveryOutcome | TooLate): void {
    this.#world.onTried(this.#channel, outcome)
    this.#settlements.push({ key: waiting.key, untilMs: this.#nextTryMs(waiting, outcome) })
  }

  /** What comes while one change is being written is written together in the next. */
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

  /** When the message is tried again; undefined when it is not, and never after its time. */
  #nextTryMs({ message, tries }: WaitingMessage, outcome: DeliveryOutcome | TooLate): number | undefined {
    if (outcome.kind !== 'retry') return undefined
    const triesMax = Math.min(TRIES_MAX[this.#channel], outcome.triesMax ?? Number.POSITIVE_INFINITY)
    const untilMs = this.#context.nowMs() + pauseAfter(tries + 1, outcome.afterMs)
    return tries + 1 >= triesMax || untilMs >= message.expiresAtMs ? undefined : untilMs
  }

  /** Also while messages are under way: an actor whose write failed is built again only for what it was about to do. */
  #startTimer(nowMs: number): void {
    const { nextDueMs, takenCount } = this.#queue
    if (nextDueMs === undefined && takenCount === 0) return
    // What is due already waits for room or for a word of the queue, not for a time.
    const isToCome = nextDueMs !== undefined && nextDueMs > nowMs
    const waitMs = isToCome ? Math.min(nextDueMs - nowMs, LOOK_AGAIN_MS) : LOOK_AGAIN_MS
    this.#context.startTimer('due', waitMs, { kind: 'wake' })
  }
}

/** Milliseconds until the next try; what the other side asks for, within bounds, where it asks. */
function pauseAfter(tries: number, afterMs: number | undefined): number {
  const usualMs = PAUSES_MS[Math.min(tries, PAUSES_MS.length) - 1]!
  return Math.min(Math.max(usualMs, afterMs ?? 0), PAUSE_MS_MAX)
}

const PAUSES_MS = [1_000, 4_000, 15_000, 60_000, 300_000] as const
const PAUSE_MS_MAX = 3_600_000
const LOOK_AGAIN_MS = 60_000
/** Each is a word that there is something: beyond a few they say nothing new. */
const MAILBOX_MESSAGES_MAX = 64
/** What one sender takes at once; mail is bounded by its pool of connections. */
const IN_FLIGHT_MAX: Record<Channel, number> = { mail: 5, sms: 16, push: 128, apple: 2 }
/** Contract 6 has a push tried four times; the others are bounded by their expiry, which takes longer. */
const TRIES_MAX: Record<Channel, number> = { mail: 1_000, sms: 1_000, push: 4, apple: 10_000 }
