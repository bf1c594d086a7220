/**
 * Delivers a device's inbox over a connection (contract 7.1). Each subscription reads the inbox in order at its own
 * pace and gets its own copy of its queue's messages; the inbox keeps a message until no subscription has it open.
 *
 *     waiting ─ given ─> open ─ acknowledged, or written where that is enough ─> settled, and gone from the store
 *                          ├─ refused with requeue:false ──────────────────────> settled
 *                          ├─ refused ──> kept: not given again on this connection, given to the next
 *                          └─ unsubscribed, connection over ──> waiting, and may be acknowledged until the connection ends
 *
 * Choice: a message that two subscriptions got is settled when both are done with it, so that neither loses it.
 */

import { INBOX_MESSAGES_MAX, type NoticeItem } from '../../src/domain/messages/inbox.ts'
import { formatEpoch, type InboxPosition, parsePosition } from '../../src/domain/messages/inbox-position.ts'
import type { Context } from '../../src/runtime/actor.ts'
import { MessageTemplate } from '../../src/stomp/serializer.ts'
import type { InboxMessage } from '../../src/store/messages/inbox-store.ts'
import type { StompConnectionMessage } from '../messages.ts'
import type { ConnectedDevice, StompConnectionDeps } from './deps.ts'
import type { EffectOrder } from './effect-order.ts'
import { type FormerSubscription, FormerSubscriptions } from './former-subscriptions.ts'
import type { Peer } from './peer.ts'
import { QueueSubscription } from './subscription.ts'

/** Whom an acknowledgement is for. */
export type Holder = QueueSubscription | FormerSubscription

type InboxDeliveryDeps = Pick<StompConnectionDeps, 'inbox' | 'frames' | 'badgeOf'>

export class InboxDelivery {
  readonly #deps: InboxDeliveryDeps
  readonly #device: ConnectedDevice
  readonly #peer: Peer
  readonly #order: EffectOrder
  readonly #context: Context<StompConnectionMessage>
  #subscriptions: readonly QueueSubscription[] = NONE
  #epoch = 0
  /** The start of message-ids. */
  #epochText = ''
  /** The highest offset that this connection was given; 0 for none. */
  #highestGiven = 0
  /** Made by the first subscription that ends. */
  #formers: FormerSubscriptions | undefined = undefined
  /** Refused, but not to be dropped. */
  #kept: Set<number> | undefined = undefined
  /** Set while the timers are armed. */
  #isSettleDue = false
  #isMarkDue = false

  /** Messages leave through `peer`, acknowledgements go by `order`, timers are the actor's. */
  constructor(
    deps: InboxDeliveryDeps,
    device: ConnectedDevice,
    peer: Peer,
    order: EffectOrder,
    context: Context<StompConnectionMessage>,
  ) {
    this.#deps = deps
    this.#device = device
    this.#peer = peer
    this.#order = order
    this.#context = context
  }

  get subscriptions(): readonly QueueSubscription[] {
    return this.#subscriptions
  }

  /** Whether something was written to a subscription that asks for no acknowledgement, and is not settled yet. */
  get #hasUnconfirmed(): boolean {
    for (const { mode, openCount } of this.#subscriptions) if (mode === 'auto' && openCount > 0) return true
    return false
  }

  /** Whether something is open that the store does not know to have been given. */
  get #hasUnmarked(): boolean {
    for (const each of this.#subscriptions) if (each.given > each.marked && each.openCount > 0) return true
    return false
  }

  /**
   * Takes a subscription in; `pump` then gives it the waiting messages. `since` is a position the client has seen
   * everything up to. `isRecovered`: nothing is missing behind it; without a `since` nothing ever is. `isEmpty`:
   * nothing waits in any queue.
   */
  add(
    subscription: QueueSubscription,
    since: string | undefined,
  ): { isRecovered: boolean; isEmpty: boolean } {
    const { userId, deviceId } = this.#device
    const head = this.#deps.inbox.head(userId, deviceId)
    subscription.marked = head.delivered?.[subscription.queue] ?? 0
    subscription.givenBefore = Math.max(subscription.marked, this.#givenOf(subscription.queue))
    this.#subscriptions = this.#subscriptions.concat(subscription)
    const isEmpty = head.count === 0
    if (since === undefined) return { isRecovered: true, isEmpty }
    const position = parsePosition(since)
    // An inbox begins its epoch with its first message; a client that was there before has seen everything up to 0.
    const isKnown =
      position !== undefined &&
      (position.epoch === head.epoch || (position.epoch === 0 && position.offset === 0)) &&
      position.offset < head.givenBelow
    if (isKnown) this.#skipTo(subscription, position)
    return { isRecovered: isKnown && position.offset >= head.lostOffset, isEmpty }
  }

  /** Skips messages it has seen; without acknowledgements, there is nothing else to wait for. */
  #skipTo(subscription: QueueSubscription, { epoch, offset }: InboxPosition): void {
    subscription.cursor = offset
    subscription.seenBefore = offset
    if (offset > 0) this.#setEpoch(epoch)
    if (subscription.mode !== 'auto') return
    for (const seen of this.#waitingUpTo(subscription, offset)) subscription.noteGiven(seen)
  }

  /** Offsets of the messages waiting in the subscription's queue. */
  #waitingUpTo({ queue }: Pick<Holder, 'queue'>, offset: number): number[] {
    const { userId, deviceId } = this.#device
    const messages = this.#deps.inbox.after(userId, deviceId, 0, INBOX_MESSAGES_MAX)
    return messages.filter(each => each.offset <= offset && each.queue === queue).map(each => each.offset)
  }

  /** Its open messages wait for the device's next subscription. */
  remove(subscription: QueueSubscription): void {
    this.mark()
    this.#subscriptions = this.#subscriptions.filter(each => each !== subscription)
    this.#formers ??= new FormerSubscriptions()
    this.#formers.add(subscription, this.#subscriptions)
  }

  /** Fills each subscription's room, as far as the client reads. */
  pump(): void {
    this.#giveAll()
    this.#startTimers()
  }

  #giveAll(): void {
    const { userId, deviceId } = this.#device
    for (;;) {
      const cursor = this.#lowestCursor()
      if (cursor === undefined || this.#peer.isHeld) return
      const messages = this.#deps.inbox.after(userId, deviceId, cursor, BATCH_MESSAGES)
      for (const message of messages) {
        this.#offer(message)
        if (this.#peer.isHeld) return
      }
      if (messages.length < BATCH_MESSAGES) return
    }
  }

  /** The last message of the subscription that its client has seen. */
  lastSeenBy({ given, seenBefore }: QueueSubscription): InboxPosition {
    return { epoch: this.#epochNow(), offset: Math.max(given, seenBefore) }
  }

  /**
   * The subscription that an acknowledgement of the message there is for, of that id if one is named: one that has it
   * open, or whose client said that it has seen it, else one that was given it before it ended. `passed` when this
   * connection was given it and is done with it; undefined for any other place.
   */
  find({ epoch, offset }: InboxPosition, subscriptionId: string | undefined): Holder | 'passed' | undefined {
    if (epoch !== this.#epoch) return undefined
    let seeing: QueueSubscription | undefined
    for (const each of this.#subscriptions) {
      const isMeant = subscriptionId === undefined || each.named.id === subscriptionId
      if (!isMeant || each.mode === 'auto') continue
      if (each.hasOpen(offset)) return each
      if (offset <= each.seenBefore) seeing ??= each
    }
    if (seeing !== undefined) return seeing
    const queue = this.#queueOf(offset)
    // Done with, it is in no queue.
    if (queue === undefined) return offset <= this.#highestGiven ? 'passed' : undefined
    if (offset > this.#givenOf(queue)) return undefined
    const isMeant = ({ named }: QueueSubscription) => named.id === subscriptionId
    const isLive = subscriptionId !== undefined && this.#subscriptions.some(isMeant)
    return (isLive ? undefined : this.#formers?.find(queue, offset, subscriptionId)) ?? 'passed'
  }

  /** The queue in which the message waits. */
  #queueOf(offset: number): string | undefined {
    const { userId, deviceId } = this.#device
    const [message] = this.#deps.inbox.after(userId, deviceId, offset - 1, 1)
    const isWaiting = message?.offset === offset && !this.#deps.inbox.isSettling(userId, deviceId, offset)
    return isWaiting ? message.queue : undefined
  }

  /** Ends what an acknowledgement of an offset covers; returns the offsets that are thereby settled. */
  acknowledge(holder: Holder, offset: number): number[] {
    const isSeen = holder instanceof QueueSubscription && offset <= holder.seenBefore
    // It was lost with the connection before this one.
    return this.#settledOf(holder, isSeen ? this.#covered(holder, offset, 0) : this.#take(holder, offset))
  }

  /** Ends what a refusal covers without settling it: it waits for the device's next connection. */
  keep(holder: Holder, offset: number): void {
    this.#kept ??= new Set()
    for (const each of this.#take(holder, offset)) this.#kept.add(each)
  }

  #take(holder: Holder, offset: number): number[] {
    if (holder instanceof QueueSubscription) return holder.takeOpen(offset)
    return this.#covered(holder, offset, holder.seenBefore)
  }

  /** The messages behind `from` that a frame about `offset` covers. */
  #covered(holder: Holder, offset: number, from: number): number[] {
    const waiting = this.#waitingUpTo(holder, offset)
    return waiting.filter(each => (holder.mode === 'client' ? each > from : each === offset))
  }

  /** Goes on with subscriptions that stood still and have room again. */
  pumpIfRoom(): void {
    let hasRoom = false
    for (const each of this.#subscriptions) {
      if (!each.isFull || each.openCount >= each.window) continue
      each.isFull = false
      hasRoom = true
    }
    if (hasRoom) this.pump()
  }

  /** Settles messages that need no acknowledgement (`auto`), once everything sent has left. */
  confirmWritten(): void {
    if (this.#hasUnconfirmed && this.#peer.isDrained) {
      this.#order.settleSoon(this.#device, this.#takeWritten())
    }
  }

  onSettleTimer(): void {
    this.#isSettleDue = false
    this.confirmWritten()
    this.#startTimers()
  }

  onMarkTimer(): void {
    this.#isMarkDue = false
    this.mark()
  }

  /** Has the store note what a next connection has to give again as redelivered. */
  mark(): void {
    const marks = this.#takeMarks()
    if (marks === undefined) return
    const { userId, deviceId } = this.#device
    // Without the mark a message comes again without saying so.
    this.#deps.inbox.markDelivered(userId, deviceId, marks).catch(() => undefined)
  }

  #startTimers(): void {
    if (this.#peer.isOver) return
    if (!this.#isSettleDue && this.#hasUnconfirmed) {
      this.#isSettleDue = true
      this.#context.startTimer('settle', SETTLE_AFTER_MS, SETTLE_TIMER)
    }
    if (!this.#isMarkDue && this.#hasUnmarked) {
      this.#isMarkDue = true
      this.#context.startTimer('mark', MARK_AFTER_MS, MARK_TIMER)
    }
  }

  #takeWritten(): number[] {
    const settled: number[] = []
    for (const subscription of this.#subscriptions) {
      if (subscription.mode !== 'auto' || subscription.openCount === 0) continue
      settled.push(...this.#settledOf(subscription, subscription.takeOpen()))
    }
    return settled
  }

  /**
   * By queue, the last delivered and open offset that the store does not know yet; undefined without any. Returned
   * marks count as noted.
   */
  #takeMarks(): Readonly<Record<string, number>> | undefined {
    let marks: Record<string, number> | undefined
    for (const subscription of this.#subscriptions) {
      const { queue, given, marked, openCount } = subscription
      if (given <= marked || (openCount === 0 && this.#kept === undefined)) continue
      marks ??= {}
      marks[queue] = Math.max(marks[queue] ?? 0, given)
      subscription.marked = given
    }
    return marks
  }

  /** The last offset of a queue that this connection was given. */
  #givenOf(queue: string): number {
    let last = this.#formers?.givenOf(queue) ?? 0
    for (const each of this.#subscriptions) if (each.queue === queue) last = Math.max(last, each.given)
    return last
  }

  #lowestCursor(): number | undefined {
    let lowest: number | undefined
    for (const { isFull, cursor } of this.#subscriptions) {
      if (!isFull && (lowest === undefined || cursor < lowest)) lowest = cursor
    }
    return lowest
  }

  #offer(message: InboxMessage): void {
    const { offset, queue } = message
    const { userId, deviceId } = this.#device
    for (const subscription of this.#subscriptions) {
      if (subscription.isFull || offset <= subscription.cursor) continue
      const isWanted = subscription.queue === queue && !this.#kept?.has(offset)
      if (isWanted && !this.#deps.inbox.isSettling(userId, deviceId, offset)) {
        if (subscription.mode !== 'auto' && subscription.openCount >= subscription.window) {
          subscription.isFull = true
          continue
        }
        this.#give(subscription, message)
      }
      subscription.cursor = offset
    }
  }

  #give(subscription: QueueSubscription, { offset, item, expiresAtMs }: InboxMessage): void {
    const { named, givenBefore } = subscription
    if (this.#epoch === 0) this.#epochNow()
    const messageId = this.#epochText + offset
    const isRedelivered = offset <= givenBefore
    subscription.noteGiven(offset)
    this.#highestGiven = Math.max(this.#highestGiven, offset)
    if (item.kind === 'dev') {
      const template = new MessageTemplate(item.headers.flat(), item.body)
      return this.#peer.send(template.encode(named.head, messageId, isRedelivered), template.isText)
    }
    const badge = carriesBadge(item) ? this.#deps.badgeOf(this.#device.userId) : undefined
    const place = { head: named.head, messageId, isRedelivered }
    this.#peer.send(this.#deps.frames.notice(place, item, expiresAtMs, this.#device, badge), true)
    // A client may pass over what it was given before.
    if (badge === undefined || isRedelivered) return
    for (const each of this.#subscriptions) if (each.badgeTold !== undefined) each.badgeTold = badge
  }

  /** An inbox has none before its first message. */
  #epochNow(): number {
    if (this.#epoch === 0) {
      const { userId, deviceId } = this.#device
      this.#setEpoch(this.#deps.inbox.head(userId, deviceId).epoch)
    }
    return this.#epoch
  }

  #setEpoch(epoch: number): void {
    this.#epoch = epoch
    this.#epochText = formatEpoch(epoch)
  }

  /** Among offsets that one subscription is done with, those that no other one still waits for or has open. */
  #settledOf(holder: Holder, offsets: readonly number[]): number[] {
    return offsets.filter(offset => !this.#kept?.has(offset) && !this.#isWantedBeside(holder, offset))
  }

  #isWantedBeside(holder: Holder, offset: number): boolean {
    for (const each of this.#subscriptions) {
      if (each === holder || each.queue !== holder.queue) continue
      // One that came after it got the message again, or would.
      if (!(holder instanceof QueueSubscription) && !holder.beside.includes(each)) continue
      if (each.hasOpen(offset) || each.cursor < offset) return true
    }
    return false
  }
}

/** Whether the notice's body says the badge, as it is when a device reads it. */
function carriesBadge({ body: { kind } }: NoticeItem): boolean {
  return kind === 'call_cancelled' || kind === 'call_missed'
}

const NONE: readonly QueueSubscription[] = []
/** Read at once; most inboxes have fewer. */
const BATCH_MESSAGES = 64
/** One message each for all connections, since every connection arms some. */
const SETTLE_TIMER: StompConnectionMessage = { kind: 'timer', timer: 'settle' }
const MARK_TIMER: StompConnectionMessage = { kind: 'timer', timer: 'mark' }
/** Frames leave at the end of the loop turn; several turns are settled together. */
const SETTLE_AFTER_MS = 100
/** An app that is awake has acknowledged by then. */
const MARK_AFTER_MS = 1_000
