/**
 * One STOMP connection (STOMP 1.0, 1.1, 1.2; contract 7; id = the connection's id): octets to frames, frames to what
 * they ask for. Frames are handled in their order, and nothing is after one that was refused, or after DISCONNECT.
 *
 *     connecting ─ CONNECT ─> live ─ a frame is refused, DISCONNECT ─> ending ─ what is under way is done ─> over
 *         │                    └─ dismissed, silent, slow ──────────────────────────────────────────────────> over
 *         └─ refused, too late ─────────────────────────────────────────────────────────────────────────────> over
 *
 * What handlers share is in `desk.ts`; SUBSCRIBE and UNSUBSCRIBE are in `subscribe.ts`, SEND, ACK and NACK in `send.ts`.
 */

import { fullAtAfter, missingMs } from '../../src/domain/token-bucket.ts'
import { SignalError } from '../../src/errors.ts'
import { CONNECT_MS_MAX, FRAME_BYTES_MAX, FRAME_RATE } from '../../src/limits.ts'
import type { Actor, ActorKind, Context, Ref } from '../../src/runtime/actor.ts'
import type { Frame } from '../../src/stomp/frame.ts'
import {
  BEAT,
  beatDueAtMs,
  type HeartBeat,
  negotiateHeartBeat,
  silentAtMs,
} from '../../src/stomp/heart-beat.ts'
import { StompParser } from '../../src/stomp/parser.ts'
import { FrameRefusal } from '../../src/stomp/refusal.ts'
import { encodeFrame } from '../../src/stomp/serializer.ts'
import { SubscriptionHeads } from '../../src/stomp/subscription-heads.ts'
import type { Accept, Connection, ConnectionEvents } from '../../src/transport/connection.ts'
import type { ConnectionTimer, Dismissal, StompConnectionMessage } from '../messages.ts'
import { connectedHeaders, signInWith, versionOf } from './connect.ts'
import type { StompConnectionDeps } from './deps.ts'
import { askedBy, Desk } from './desk.ts'
import { tellBadge } from './live-badge.ts'
import {
  ConnectionRefusal,
  dismissalRefusal,
  overloadRefusal,
  protocolRefusal,
  rateRefusal,
  timeoutRefusal,
} from './refusal.ts'
import { onAcknowledge, onSend, perform } from './send.ts'
import { onSubscribe, onTopicJoined, onTopicMessage, onTopicRefused, onUnsubscribe } from './subscribe.ts'
import { requiredHeader } from './subscription.ts'
import { Transactions } from './transactions.ts'
import { Unread } from './unread.ts'

/** The id of a session is its connection's. */
export function stompConnectionKind(deps: StompConnectionDeps): ActorKind<StompConnectionMessage> {
  const shared: SharedParts = { heads: new SubscriptionHeads(HEADS_KEPT_MAX), heartBeats: new Map() }
  return {
    kind: 'stomp-session',
    mailboxMessagesMax: MAILBOX_MESSAGES_MAX,
    onFailure: 'rebuild',
    create: (_id, context) => new StompConnection(deps, shared, context),
  }
}

/** Parts alike in most connections, since apps are of few kinds; shared by all of them. */
interface SharedParts {
  readonly heads: SubscriptionHeads
  /** By their two periods. */
  readonly heartBeats: Map<string, HeartBeat>
}

/** Gives each socket its actor. */
export function acceptInto(
  connections: (connectionId: string) => Ref<StompConnectionMessage>,
  isDraining: StompConnectionDeps['isDraining'],
): Accept {
  return connection => {
    const ref = connections(connection.id)
    const unread = new Unread()
    // A server that is about to end takes no messages either.
    if (ref.tell({ kind: 'open', connection, unread }) === 'overloaded') {
      if (isDraining()) connection.end(1012, 'draining')
      else connection.end(1013, 'overloaded')
    }
    return new Intake(ref, unread)
  }
}

/** From the socket into the actor's mailbox. */
class Intake implements ConnectionEvents {
  readonly #ref: Ref<StompConnectionMessage>
  readonly #unread: Unread

  constructor(ref: Ref<StompConnectionMessage>, unread: Unread) {
    this.#ref = ref
    this.#unread = unread
  }

  onBytes(bytes: Uint8Array): void {
    // Lent until this returns, and the actor's turn may come later.
    const added = this.#unread.add(Buffer.from(bytes))
    if (added === 'waiting') return
    const isFull = added === 'full' || this.#ref.tell(BYTES) === 'overloaded'
    if (isFull) this.#ref.tellControl({ kind: 'overrun' })
  }

  onDrain(): void {
    this.#ref.tellControl({ kind: 'drained' })
  }

  onClosed(): void {
    // Behind what came before it, as long as there is room.
    if (this.#ref.tell({ kind: 'closed' }) === 'overloaded') this.#ref.tellControl({ kind: 'closed' })
  }
}

class StompConnection implements Actor<StompConnectionMessage> {
  readonly #deps: StompConnectionDeps
  readonly #shared: SharedParts
  readonly #context: Context<StompConnectionMessage>
  readonly #parser = new StompParser()
  /** Undefined before the connection is known, like `#unread`. */
  #desk: Desk | undefined = undefined
  #unread: Unread | undefined = undefined
  #heartBeat: HeartBeat = NO_BEATS
  /** When an octet came last, on the monotonic clock. */
  #heardAtMs = 0
  /** Nothing came in time; what its socket may hold is waited for. */
  #isSilent = false
  /** When the bucket of frames is full again. */
  #framesFullAtMs = 0

  constructor(deps: StompConnectionDeps, shared: SharedParts, context: Context<StompConnectionMessage>) {
    this.#deps = deps
    this.#shared = shared
    this.#context = context
  }

  receive(message: StompConnectionMessage): void {
    if (message.kind === 'open') return this.#onOpen(message.connection, message.unread)
    const desk = this.#desk
    // Sent to a former session: this one has no client.
    if (desk === undefined) return this.#context.stop()
    switch (message.kind) {
      case 'topic-message':
        return onTopicMessage(desk, message.topic, message.broadcast)
      case 'bytes':
        return this.#onBytes(desk, this.#unread!.take())
      case 'attached':
        desk.pump()
        return tellBadge(desk)
      case 'news':
        return desk.pump()
      case 'badge':
        return tellBadge(desk)
      case 'timer':
        return this.#onTimer(desk, message.timer)
      case 'topic-joined':
        return onTopicJoined(desk, message.tag)
      case 'topic-refused':
        return onTopicRefused(desk, message.tag, desk.signalErrorOf(message.error))
      case 'drained':
        desk.confirmWritten()
        return desk.lookAtLag()
      case 'overrun':
        return desk.end(overloadRefusal(this.#pauseMs()))
      case 'dismissed':
        return this.#onDismissed(desk, message.why)
      case 'closed':
        desk.letGo('closed')
        return this.#context.stop()
    }
  }

  /** Whatever drops the session takes its connection with it. */
  onStopped(): void {
    // Most have ended before; an unsent error still costs 5 us (`connect-rate` in `bench/`).
    if (this.#desk === undefined || this.#desk.stage === 'over') return
    this.#desk.end(new SignalError('INTERNAL', 'the session failed'))
  }

  #onOpen(connection: Connection, unread: Unread): void {
    this.#unread = unread
    this.#desk = new Desk(this.#deps, this.#shared.heads, this.#context, connection)
    if (this.#deps.isDraining()) return this.#onDismissed(this.#desk, 'draining')
    this.#desk.startTimer('connect', CONNECT_MS_MAX)
  }

  #onDismissed(desk: Desk, why: Dismissal): void {
    // The event that tells of it is in the inbox, where the device still has one.
    if (why === 'session_revoked') desk.pump()
    desk.end(dismissalRefusal(why, this.#pauseMs()))
  }

  #onBytes(desk: Desk, bytes: Uint8Array): void {
    if (!isReading(desk)) return
    this.#heardAtMs = this.#deps.monotonicMs()
    desk.confirmWritten()
    try {
      this.#parser.feed(bytes)
      while (isReading(desk)) {
        const frame = this.#parser.next()
        if (frame === undefined) return
        this.#onFrame(desk, frame)
      }
    } catch (error) {
      if (!(error instanceof FrameRefusal)) throw error
      desk.refuseAll(error, error.receipt)
    }
  }

  #onFrame(desk: Desk, frame: Frame): void {
    try {
      if (this.#deps.areRatesLimited) this.#countFrame()
      this.#handle(desk, frame)
    } catch (error) {
      if (!(error instanceof SignalError)) throw error
      desk.refuse(askedBy(frame), error)
    }
  }

  #countFrame(): void {
    const waitMs = missingMs(FRAME_RATE, this.#framesFullAtMs, this.#heardAtMs)
    if (waitMs > 0) throw rateRefusal('too many frames', Math.max(waitMs, this.#pauseMs()))
    this.#framesFullAtMs = fullAtAfter(FRAME_RATE, this.#framesFullAtMs, this.#heardAtMs)
  }

  #handle(desk: Desk, frame: Frame): void {
    const { command } = frame
    if (command === 'CONNECT' || command === 'STOMP') return this.#onConnect(desk, frame)
    if (desk.stage !== 'live') throw protocolRefusal('not_connected', 'CONNECT comes first')
    switch (command) {
      case 'SEND':
        return onSend(desk, frame)
      case 'ACK':
      case 'NACK':
        return onAcknowledge(desk, frame)
      case 'SUBSCRIBE':
        return onSubscribe(desk, frame)
      case 'UNSUBSCRIBE':
        return onUnsubscribe(desk, frame)
      case 'BEGIN':
        desk.transactions ??= new Transactions()
        desk.transactions.begin(requiredHeader(frame, 'transaction'))
        return desk.receiptInOrder(frame.header('receipt'))
      case 'COMMIT':
        return perform(desk, takeTransaction(desk, frame), askedBy(frame))
      case 'ABORT':
        takeTransaction(desk, frame)
        return desk.receiptInOrder(frame.header('receipt'))
      case 'DISCONNECT':
        return this.#onDisconnect(desk, frame)
    }
  }

  #onConnect(desk: Desk, frame: Frame): void {
    if (desk.stage === 'live') throw protocolRefusal('connected_already', 'a second CONNECT')
    const { connection } = desk.peer
    const version = versionOf(frame)
    const heartBeat = negotiateHeartBeat(frame.header('heart-beat'), version)
    const { userId, deviceId, sessionName } = this.#signIn(desk, frame)
    desk.device = { userId, deviceId }
    desk.stage = 'live'
    desk.peer.version = version
    this.#parser.version = version
    this.#parser.frameBytesMax = FRAME_BYTES_MAX
    this.#heartBeat = sharedHeartBeat(this.#shared.heartBeats, heartBeat)
    this.#context.cancelTimer('connect')
    this.#deps.users(String(userId)).tellControl({
      kind: 'attached',
      connection: { deviceId, sessionName, ref: desk.self },
    })
    const [{ server }, nowMs, connectionId] = [this.#deps, this.#context.nowMs(), connection.id]
    const facts = { version, userId, deviceId, connectionId, heartBeat: heartBeat.header, server, nowMs }
    const headers = connectedHeaders(facts, this.#deps.inbox.head(userId, deviceId))
    desk.peer.send(encodeFrame('CONNECTED', headers, version), true)
    this.#watchLife(desk)
  }

  /** Bad credentials count against their address; beyond some, it must wait. */
  #signIn(desk: Desk, frame: Frame): ReturnType<typeof signInWith> {
    const { connection } = desk.peer
    try {
      return signInWith(frame, connection.authorization, this.#deps.authenticate)
    } catch (error) {
      const isBad = error instanceof SignalError && !(error instanceof ConnectionRefusal)
      const waitMs = isBad ? this.#deps.noteFailedConnect(connection.network) : 0
      if (waitMs > 0) throw rateRefusal('too many failed CONNECTs from this address', waitMs)
      throw error
    }
  }

  #onDisconnect(desk: Desk, frame: Frame): void {
    const receipt = frame.header('receipt')
    desk.stage = 'ending'
    desk.settleBefore(receipt)
    desk.inOrder(() => {
      desk.peer.receipt(receipt)
      desk.finish(1000, 'disconnected')
    })
  }

  #onTimer(desk: Desk, timer: ConnectionTimer): void {
    switch (timer) {
      case 'connect':
        return desk.end(timeoutRefusal('connect_timeout', 'no CONNECT in time'))
      case 'life':
        return this.#onLifeTimer(desk)
      case 'lag':
        return desk.lookAtLag()
      case 'settle':
        return desk.onSettleTimer()
      case 'mark':
        return desk.onMarkTimer()
    }
  }

  /** Beats when it is time, and ends what has been silent for too long, but not before its socket was looked at. */
  #onLifeTimer(desk: Desk): void {
    const nowMs = this.#deps.monotonicMs()
    if (nowMs >= silentAtMs(this.#heartBeat, this.#heardAtMs)) {
      // A process that was busy finds the timer due before it has read what lies in the socket since.
      if (this.#isSilent) return desk.end(timeoutRefusal('heart_beat_missed', 'nothing was heard in time'))
      this.#isSilent = true
      return desk.startTimer('life', LAST_LOOK_MS)
    }
    this.#isSilent = false
    if (nowMs >= beatDueAtMs(this.#heartBeat, desk.peer.sentAtMs)) desk.peer.send(BEAT, true)
    this.#watchLife(desk)
  }

  #watchLife(desk: Desk): void {
    const dueAtMs = Math.min(
      beatDueAtMs(this.#heartBeat, desk.peer.sentAtMs),
      silentAtMs(this.#heartBeat, this.#heardAtMs),
    )
    if (dueAtMs === Number.POSITIVE_INFINITY || desk.stage === 'over') return
    desk.startTimer('life', Math.max(0, dueAtMs - this.#deps.monotonicMs()))
  }

  /** After which a client may come back: spread, so that they do not all come at once. */
  #pauseMs(): number {
    return Math.floor(PAUSE_MS_MIN + this.#context.random() * (PAUSE_MS_MAX - PAUSE_MS_MIN))
  }
}

function isReading({ stage }: Desk): boolean {
  return stage === 'connecting' || stage === 'live'
}

function sharedHeartBeat(known: Map<string, HeartBeat>, heartBeat: HeartBeat): HeartBeat {
  const name = `${heartBeat.beatEveryMs} ${heartBeat.silenceMsMax}`
  const shared = known.get(name)
  if (shared === undefined && known.size < HEART_BEATS_KEPT_MAX) known.set(name, heartBeat)
  return shared ?? heartBeat
}

/** The work put off until this COMMIT or ABORT. */
function takeTransaction(desk: Desk, frame: Frame): ReturnType<Transactions['take']> {
  const id = requiredHeader(frame, 'transaction')
  return (desk.transactions ?? new Transactions()).take(id)
}

const BYTES: StompConnectionMessage = { kind: 'bytes' }
const NO_BEATS: HeartBeat = { beatEveryMs: 0, silenceMsMax: 0, header: undefined }
/** Heads that connections share; apps number their subscriptions from zero on. */
const HEADS_KEPT_MAX = 4_096
const HEART_BEATS_KEPT_MAX = 256
/** A burst of broadcasts, with room for what the client sends meanwhile. */
const MAILBOX_MESSAGES_MAX = 4_096
const LAST_LOOK_MS = 200
const PAUSE_MS_MIN = 1_000
const PAUSE_MS_MAX = 10_000
