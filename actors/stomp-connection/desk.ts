/**
 * Shared by the handlers of a connection's frames: the client, who it is, what it subscribed to, and the ways to
 * answer.
 *
 * A frame's work may take time: a commit, a room's answer. RECEIPTs of such frames come in the order of the frames,
 * each once its frame's effect is durable, and so does the ERROR for a frame behind them. Choice: the RECEIPT of a
 * SUBSCRIBE waits for none of them, since it has to come before the subscription's first MESSAGE.
 */

import { SignalError } from '../../src/errors.ts'
import type { Context, Ref } from '../../src/runtime/actor.ts'
import type { ClientCommand, Frame } from '../../src/stomp/frame.ts'
import { MessageTemplate } from '../../src/stomp/serializer.ts'
import type { SubscriptionHeads } from '../../src/stomp/subscription-heads.ts'
import type { Connection } from '../../src/transport/connection.ts'
import { leaveTopic } from '../live-topic.ts'
import type { ConnectionTimer, StompConnectionMessage } from '../messages.ts'
import type { ConnectedDevice, StompConnectionDeps } from './deps.ts'
import type { InboxDelivery, QueueSubscription } from './inbox-delivery.ts'
import { tellBadge } from './live-badge.ts'
import { Peer, type PeerOwner } from './peer.ts'
import { ConnectionRefusal, encodeError, refusalOf, slowRefusal } from './refusal.ts'
import type { LiveSubscription } from './subscription.ts'
import type { Transactions } from './transactions.ts'

/** How far a connection is. Frames are read in the first two. */
export type Stage = 'connecting' | 'live' | 'ending' | 'over'

/** A frame, as far as its answer needs it. */
export interface Asked {
  readonly command: ClientCommand
  readonly destination: string | undefined
  readonly receipt: string | undefined
}

export class Desk implements PeerOwner {
  readonly deps: StompConnectionDeps
  readonly heads: SubscriptionHeads
  readonly context: Context<StompConnectionMessage>
  readonly peer: Peer
  stage: Stage = 'connecting'
  live: readonly LiveSubscription[] = NONE
  /** Made by the first subscription to the inbox. */
  inbox: InboxDelivery | undefined = undefined
  /** Whether the badge could not be told, since the client does not read. */
  isBadgeDue = false
  /** Made by the first BEGIN. */
  transactions: Transactions | undefined = undefined
  #device: ConnectedDevice | undefined = undefined
  #lastTag = 0
  /** Works of frames whose outcome is not known. */
  #underWay = 0
  /** Whether what runs now is done because it is its turn among them. */
  #isReleasing = false
  /** Whether something may be on its way to the store that no RECEIPT waits for. */
  #isSettlingSoon = false
  #isSettleDue = false
  #isMarkDue = false

  constructor(
    deps: StompConnectionDeps,
    heads: SubscriptionHeads,
    context: Context<StompConnectionMessage>,
    connection: Connection,
  ) {
    this.deps = deps
    this.heads = heads
    this.context = context
    this.peer = new Peer(connection, this, deps.monotonicMs)
  }

  /** Whose connection it is; to be asked only once it is live. */
  get device(): ConnectedDevice {
    if (this.#device === undefined) throw new Error('nobody has signed in')
    return this.#device
  }

  set device(device: ConnectedDevice) {
    this.#device = device
  }

  /** How the device's user session, rooms and topics reach this connection. */
  get self(): Ref<StompConnectionMessage> {
    return this.context.self
  }

  /** Subscriptions of all kinds. */
  get subscriptionCount(): number {
    return this.live.length + (this.inbox === undefined ? 0 : this.inbox.subscriptions.length)
  }

  hasSubscription(id: string): boolean {
    const isMeant = ({ named }: LiveSubscription | QueueSubscription) => named.id === id
    return this.live.some(isMeant) || (this.inbox?.subscriptions.some(isMeant) ?? false)
  }

  /** A number that no subscription of this connection had before. */
  nextTag(): number {
    this.#lastTag += 1
    return this.#lastTag
  }

  startTimer(timer: ConnectionTimer, ms: number): void {
    this.context.startTimer(timer, ms, TIMER_MESSAGES[timer])
  }

  /** Calls `done` once the work has ended and all earlier work of this connection is done with. */
  after(work: PromiseLike<unknown>, done: (failure: SignalError | undefined) => void): void {
    let failure: SignalError | undefined
    const ended = work.then(undefined, (error: unknown) => {
      failure = this.signalErrorOf(error)
    })
    this.#underWay += 1
    // The order of commits is the order of frames. This one never fails, so a full disk does not drop the connection.
    this.context.commit(ended, () => {
      this.#underWay -= 1
      this.#isReleasing = true
      done(failure)
      this.#isReleasing = false
    })
  }

  /** Calls `run` once all earlier work is done with: at once, most of the time. */
  inOrder(run: () => void): void {
    if (this.#underWay === 0 || this.#isReleasing) run()
    else this.after(NO_WORK, run)
  }

  receiptInOrder(receipt: string | undefined): void {
    this.settleBefore(receipt)
    if (receipt !== undefined) this.inOrder(() => this.peer.receipt(receipt))
  }

  /** Settles these for a device that asked for no RECEIPT. Unsettled ones come again. */
  settleSoon(offsets: readonly number[]): void {
    if (offsets.length === 0) return
    const { userId, deviceId } = this.device
    this.deps.inbox.settleSoon(userId, deviceId, offsets)
    this.#isSettlingSoon = true
  }

  /** A RECEIPT stands for the frames before it too. */
  settleBefore(receipt: string | undefined): void {
    if (receipt === undefined || !this.#isSettlingSoon) return
    this.#isSettlingSoon = false
    this.after(this.deps.inbox.settleNow(), () => undefined)
  }

  /**
   * Answers a frame that is refused. A SEND or SUBSCRIBE that breaks no rule of the protocol is reported on the
   * client's own errors, if it is subscribed to them; everything else ends the connection.
   */
  refuse(asked: Asked, error: SignalError): void {
    const isForgiven = asked.command === 'SEND' || asked.command === 'SUBSCRIBE' || asked.command === 'COMMIT'
    const isFatal = !isForgiven || error instanceof ConnectionRefusal || !this.#hasErrorSubscription
    if (isFatal) return this.refuseAll(error, asked.receipt)
    this.inOrder(() => this.#tellProblem(asked, error))
  }

  /** Ends the connection with an ERROR, behind what is under way. Nothing is read any more. */
  refuseAll(error: SignalError, receipt: string | undefined): void {
    if (this.stage === 'over') return
    this.stage = 'ending'
    this.inOrder(() => this.end(error, receipt))
  }

  /** Ends the connection with an ERROR now. */
  end(error: SignalError, receipt?: string): void {
    if (this.stage === 'over') return
    const refusal = refusalOf(error, this.#problemOf(error).status)
    const problem = this.#problemOf(refusal)
    const frame = encodeError(refusal, problem, this.peer.version, receipt)
    this.finish(refusal.ending.closeCode, refusal.ending.reason, frame)
  }

  /** Ends the connection now, with a last frame or without. */
  finish(closeCode: number, reason: string, lastFrame?: Uint8Array): void {
    this.peer.end(closeCode, reason, lastFrame)
    this.letGo(reason)
  }

  /** The connection has ended: its sources hear so and stop. */
  letGo(reason: string): void {
    if (this.stage === 'over') return
    this.stage = 'over'
    this.#mark()
    for (const subscription of this.live) this.leave(subscription)
    this.live = NONE
    this.inbox = undefined
    this.transactions = undefined
    if (this.#device !== undefined) {
      const connectionId = this.peer.connection.id
      this.deps.users(String(this.#device.userId)).tellControl({ kind: 'detached', connectionId })
    }
    this.deps.onEnded(reason)
  }

  /** Tells the topic of a subscription that it is no more. */
  leave({ topic }: LiveSubscription): void {
    if (topic.startsWith(CALL_TOPIC))
      this.deps.calls.unsubscribe(topic.slice(CALL_TOPIC.length), this.self.id)
    else if (topic !== ERRORS_TOPIC) leaveTopic(this.deps.topics(topic), this.self.id)
  }

  /** Messages that the subscription had open wait for the next one. */
  dropFromInbox(subscription: QueueSubscription): void {
    this.#mark()
    this.inbox?.remove(subscription)
  }

  /** Gives what waits in the inbox to those who have room for it. */
  pump(): void {
    if (this.inbox === undefined) return
    this.settleSoon(this.inbox.pump())
    this.#startInboxTimers()
    if (this.isBadgeDue) tellBadge(this)
  }

  /** Settles what was written to subscriptions that acknowledge nothing, if it has left. */
  confirmWritten(): void {
    if (!this.inbox?.hasUnconfirmed || !this.peer.isDrained) return
    this.settleSoon(this.inbox.confirmWritten())
  }

  onSettleTimer(): void {
    this.#isSettleDue = false
    this.confirmWritten()
    this.#startInboxTimers()
  }

  onMarkTimer(): void {
    this.#isMarkDue = false
    this.#mark()
  }

  onHeld(): void {
    this.startTimer('lag', LOOK_EVERY_MS)
  }

  onOverfull(): void {
    this.end(slowRefusal())
  }

  /** The client has read something, or time has passed since it had not. */
  lookAtLag(): void {
    if (!this.peer.isHeld) return
    switch (this.peer.look()) {
      case 'flowing':
        this.context.cancelTimer('lag')
        this.confirmWritten()
        return this.pump()
      case 'held':
        return this.startTimer('lag', LOOK_EVERY_MS)
      case 'too-slow':
        return this.end(slowRefusal())
    }
  }

  #startInboxTimers(): void {
    if (this.inbox === undefined || this.stage === 'over') return
    if (!this.#isSettleDue && this.inbox.hasUnconfirmed) {
      this.#isSettleDue = true
      this.startTimer('settle', SETTLE_AFTER_MS)
    }
    if (!this.#isMarkDue && this.inbox.hasUnmarked) {
      this.#isMarkDue = true
      this.startTimer('mark', MARK_AFTER_MS)
    }
  }

  /** Has the store know what is to be given again, should this connection or this process end. */
  #mark(): void {
    const marks = this.inbox?.takeMarks()
    if (marks === undefined) return
    const { userId, deviceId } = this.device
    // Without it a message comes again without saying so.
    this.deps.inbox.markDelivered(userId, deviceId, marks).catch(() => undefined)
  }

  /** The error itself, if the peer may hear of it; a fault of ours goes to the log instead. */
  signalErrorOf(error: unknown): SignalError {
    if (error instanceof SignalError) return error
    this.deps.onFault(error, this.peer.connection.id)
    return new SignalError('INTERNAL', 'a fault of the server')
  }

  get #hasErrorSubscription(): boolean {
    return this.live.some(({ topic }) => topic === ERRORS_TOPIC)
  }

  #tellProblem({ destination, receipt }: Asked, error: SignalError): void {
    const eventId = this.deps.newEventId()
    const sentAt = this.context.nowMs()
    const event = { v: 1, type: 'error', eventId, sentAt, destination, receiptId: receipt }
    const problem = this.#problemOf(error).body
    const body = Buffer.from(`${JSON.stringify(event).slice(0, -1)},"problem":${problem}}`)
    const headers = ['type', 'error', 'timestamp', String(sentAt), 'content-type', 'application/json']
    const template = new MessageTemplate(headers, body)
    for (const subscription of this.live) {
      if (subscription.topic !== ERRORS_TOPIC) continue
      subscription.noteGiven(eventId)
      this.peer.send(template.encode(subscription.named.head, eventId), template.isText)
    }
  }

  #problemOf(error: SignalError): { status: number; body: string } {
    return this.deps.problemOf(error, this.peer.connection.id)
  }
}

export function askedBy(frame: Frame): Asked {
  const { command } = frame
  return { command, destination: frame.header('destination'), receipt: frame.header('receipt') }
}

/** The name of a call's topic begins so. */
export const CALL_TOPIC = 'call.'
export const ERRORS_TOPIC = 'errors'

const NONE: readonly LiveSubscription[] = []
const NO_WORK = Promise.resolve()
const TIMER_MESSAGES: Record<ConnectionTimer, StompConnectionMessage> = {
  connect: { kind: 'timer', timer: 'connect' },
  life: { kind: 'timer', timer: 'life' },
  lag: { kind: 'timer', timer: 'lag' },
  settle: { kind: 'timer', timer: 'settle' },
  mark: { kind: 'timer', timer: 'mark' },
}
/** Connections say when a socket has drained that was full, and nothing when it never was. */
const LOOK_EVERY_MS = 100
/** Frames leave at the end of the loop turn; some are collected, so that they are settled together. */
const SETTLE_AFTER_MS = 100
/** An app that is awake has acknowledged by then. */
const MARK_AFTER_MS = 1_000
