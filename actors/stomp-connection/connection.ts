/**
 * The actor of one STOMP connection (STOMP 1.0, 1.1, 1.2; contract 7; id = the connection's id): octets to frames, each
 * frame to the handler of its command. Frames are handled in order, and none after a refused one or after DISCONNECT.
 *
 *     connecting ─ CONNECT ─> live ─ a frame is refused, DISCONNECT ─> ending ─ earlier work is done ─> over
 *         │                    └─ dismissed, silent, slow ────────────────────────────────────────────> over
 *         └─ refused, too late ───────────────────────────────────────────────────────────────────────> over
 *
 * Each command has its file. They share `state.ts`, `effect-order.ts` (effects wait for durability),
 * `inbox-delivery.ts` and `ending.ts`.
 */

import { fullAtAfter, missingMs } from '../../src/domain/token-bucket.ts'
import { SignalError } from '../../src/errors.ts'
import { CONNECT_MS_MAX, FRAME_BYTES_MAX, FRAME_RATE } from '../../src/limits.ts'
import type { Actor, ActorKind, Context } from '../../src/runtime/actor.ts'
import type { Frame } from '../../src/stomp/frame.ts'
import { BEAT, beatDueAtMs, type HeartBeat, silentAtMs } from '../../src/stomp/heart-beat.ts'
import { StompParser } from '../../src/stomp/parser.ts'
import { FrameRefusal } from '../../src/stomp/refusal.ts'
import { SubscriptionHeads } from '../../src/stomp/subscription-heads.ts'
import type { Connection } from '../../src/transport/connection.ts'
import type { ConnectionTimer, Dismissal, StompConnectionMessage } from '../messages.ts'
import { onAcknowledge } from './acknowledge.ts'
import { tellBadge } from './badge.ts'
import { onAbort, onBegin, onCommit } from './begin-commit-abort.ts'
import { onConnect } from './connect.ts'
import type { StompConnectionDeps } from './deps.ts'
import { onDisconnect } from './disconnect.ts'
import { EffectOrder } from './effect-order.ts'
import { end, endInOrder, letGo, refuse } from './ending.ts'
import { askedBy } from './headers.ts'
import { Peer, type PeerOwner } from './peer.ts'
import {
  dismissalRefusal,
  overloadRefusal,
  protocolRefusal,
  rateRefusal,
  slowRefusal,
  timeoutRefusal,
} from './refusal.ts'
import { onSend } from './send.ts'
import { ConnectionState } from './state.ts'
import { onSubscribe, onTopicJoined, onTopicMessage, onTopicRefused } from './subscribe.ts'
import type { Unread } from './unread.ts'
import { onUnsubscribe } from './unsubscribe.ts'

export function stompConnectionKind(deps: StompConnectionDeps): ActorKind<StompConnectionMessage> {
  const heads = new SubscriptionHeads(HEADS_KEPT_MAX)
  const heartBeats: HeartBeats = new Map()
  return {
    // Operators know the kind by this name: metrics carry it as a label.
    kind: 'stomp-connection',
    mailboxMessagesMax: MAILBOX_MESSAGES_MAX,
    onFailure: 'rebuild',
    create: (_id, context) => new StompConnection(deps, heads, heartBeats, context),
  }
}

/** By their two periods: alike in most connections, since apps are of few kinds. */
type HeartBeats = Map<string, HeartBeat>

class StompConnection implements Actor<StompConnectionMessage>, PeerOwner {
  readonly #deps: StompConnectionDeps
  readonly #heads: SubscriptionHeads
  readonly #heartBeats: HeartBeats
  readonly #context: Context<StompConnectionMessage>
  readonly #parser = new StompParser()
  /** Undefined before `open`, like `#unread`. */
  #state: ConnectionState | undefined = undefined
  #unread: Unread | undefined = undefined
  #heartBeat: HeartBeat = NO_BEATS
  /** When an octet came last, on the monotonic clock. */
  #heardAtMs = 0
  /** Set when nothing came in time; the actor then looks once at what the socket may hold. */
  #isSilent = false
  /** When the bucket of frames is full again. */
  #framesFullAtMs = 0

  /** Connections share `heads` and `heartBeats`. */
  constructor(
    deps: StompConnectionDeps,
    heads: SubscriptionHeads,
    heartBeats: HeartBeats,
    context: Context<StompConnectionMessage>,
  ) {
    this.#deps = deps
    this.#heads = heads
    this.#heartBeats = heartBeats
    this.#context = context
  }

  receive(message: StompConnectionMessage): void {
    if (message.kind === 'open') return this.#onOpen(message.connection, message.unread)
    const state = this.#state
    // For an earlier actor of this id: this one has no client.
    if (state === undefined) return this.#context.stop()
    switch (message.kind) {
      case 'topic-message':
        return onTopicMessage(state, message.topic, message.broadcast)
      case 'bytes':
        return this.#onBytes(state, this.#unread!.take())
      case 'attached':
      case 'badge':
        // A message that waits may carry the badge: its news may still be on the way.
        state.inbox?.pump()
        return tellBadge(state)
      case 'news':
        return state.inbox?.pump()
      case 'timer':
        return this.#onTimer(state, message.timer)
      case 'topic-joined':
        return onTopicJoined(state, message.tag)
      case 'topic-refused':
        return onTopicRefused(state, message.tag, state.order.signalErrorOf(message.error))
      case 'drained':
        state.inbox?.confirmWritten()
        return this.#lookAtLag(state)
      case 'overrun':
        return end(state, overloadRefusal(this.#pauseMs()))
      case 'dismissed':
        return this.#onDismissed(state, message.why)
      case 'moved':
        return this.#onMoved(state)
      case 'writer-lost':
        return state.live.length > 0 ? this.#onDismissed(state, 'draining') : undefined
      case 'closed':
        letGo(state, 'closed')
        return this.#context.stop()
    }
  }

  /** However the actor ends, its connection ends with it. */
  onStopped(): void {
    // Most have ended before; an unsent error still costs 5 us (`connect-rate` in `bench/`).
    if (this.#state === undefined || this.#state.stage === 'over') return
    end(this.#state, new SignalError('INTERNAL', 'the session failed'))
  }

  onHeld(): void {
    this.#startTimer('lag', LOOK_EVERY_MS)
  }

  onOverfull(): void {
    if (this.#state !== undefined) end(this.#state, slowRefusal())
  }

  #onOpen(connection: Connection, unread: Unread): void {
    this.#unread = unread
    const peer = new Peer(connection, this, this.#deps.monotonicMs)
    const order = new EffectOrder(this.#deps, this.#context, peer, (failure, receiptId) =>
      endInOrder(state, failure, receiptId),
    )
    const state = new ConnectionState(this.#deps, this.#heads, this.#context, peer, order)
    this.#state = state
    if (this.#deps.isDraining()) return this.#onDismissed(state, 'draining')
    this.#startTimer('connect', CONNECT_MS_MAX)
  }

  #onDismissed(state: ConnectionState, why: Dismissal): void {
    // The event that says so is in the inbox, where the device still has one.
    if (why === 'session_revoked') state.inbox?.pump()
    end(state, dismissalRefusal(why, this.#pauseMs()))
  }

  /** One that is coming or leaving is left alone, like one that follows a call: any other will do. */
  #onMoved(state: ConnectionState): void {
    if (state.stage === 'live' && state.live.length === 0)
      endInOrder(state, dismissalRefusal('moved', 0), undefined)
  }

  #onBytes(state: ConnectionState, bytes: Uint8Array): void {
    if (!state.isReading) return
    this.#heardAtMs = this.#deps.monotonicMs()
    state.inbox?.confirmWritten()
    try {
      this.#parser.feed(bytes)
      while (state.isReading) {
        const frame = this.#parser.next()
        if (frame === undefined) return
        this.#onFrame(state, frame)
      }
    } catch (error) {
      if (!(error instanceof FrameRefusal)) throw error
      endInOrder(state, error, error.receipt)
    }
  }

  #onFrame(state: ConnectionState, frame: Frame): void {
    try {
      if (this.#deps.areRatesLimited) this.#countFrame()
      this.#handle(state, frame)
    } catch (error) {
      if (!(error instanceof SignalError)) throw error
      refuse(state, askedBy(frame), error)
    }
  }

  #countFrame(): void {
    const waitMs = missingMs(FRAME_RATE, this.#framesFullAtMs, this.#heardAtMs)
    if (waitMs > 0) throw rateRefusal('too many frames', Math.max(waitMs, this.#pauseMs()))
    this.#framesFullAtMs = fullAtAfter(FRAME_RATE, this.#framesFullAtMs, this.#heardAtMs)
  }

  #handle(state: ConnectionState, frame: Frame): void {
    const { command } = frame
    // STOMP 1.2, "CONNECT or STOMP Frame": servers treat a STOMP frame as a CONNECT.
    if (command === 'CONNECT' || command === 'STOMP') return this.#onConnect(state, frame)
    if (state.stage !== 'live') throw protocolRefusal('not_connected', 'CONNECT comes first')
    switch (command) {
      case 'SEND':
        return onSend(state, frame)
      case 'ACK':
      case 'NACK':
        return onAcknowledge(state, frame)
      case 'SUBSCRIBE':
        return onSubscribe(state, frame)
      case 'UNSUBSCRIBE':
        return onUnsubscribe(state, frame)
      case 'BEGIN':
        return onBegin(state, frame)
      case 'COMMIT':
        return onCommit(state, frame)
      case 'ABORT':
        return onAbort(state, frame)
      case 'DISCONNECT':
        return onDisconnect(state, frame)
    }
  }

  #onConnect(state: ConnectionState, frame: Frame): void {
    this.#heartBeat = onConnect(state, frame, this.#heartBeats)
    this.#parser.version = state.peer.version
    this.#parser.frameBytesMax = FRAME_BYTES_MAX
    this.#watchLife(state)
  }

  #onTimer(state: ConnectionState, timer: ConnectionTimer): void {
    switch (timer) {
      case 'connect':
        // A server that is busy has not read it yet.
        if (!this.#unread!.isEmpty) return this.#startTimer('connect', CONNECT_MS_MAX)
        return end(state, timeoutRefusal('connect_timeout', 'no CONNECT in time'))
      case 'life':
        return this.#onLifeTimer(state)
      case 'lag':
        return this.#lookAtLag(state)
      case 'settle':
        return state.inbox?.onSettleTimer()
      case 'mark':
        return state.inbox?.onMarkTimer()
    }
  }

  /** STOMP 1.2, "Heart-beating": beats in time, and ends a silent connection, but only after a look at its socket. */
  #onLifeTimer(state: ConnectionState): void {
    const nowMs = this.#deps.monotonicMs()
    if (nowMs >= silentAtMs(this.#heartBeat, this.#heardAtMs)) {
      // After a busy stretch the timer is due before the process has read its socket.
      if (this.#isSilent) return end(state, timeoutRefusal('heart_beat_missed', 'nothing was heard in time'))
      this.#isSilent = true
      return this.#startTimer('life', LAST_LOOK_MS)
    }
    this.#isSilent = false
    if (nowMs >= beatDueAtMs(this.#heartBeat, state.peer.sentAtMs)) state.peer.send(BEAT, true)
    this.#watchLife(state)
  }

  #watchLife({ peer, stage }: ConnectionState): void {
    const dueAtMs = Math.min(
      beatDueAtMs(this.#heartBeat, peer.sentAtMs),
      silentAtMs(this.#heartBeat, this.#heardAtMs),
    )
    if (dueAtMs === Number.POSITIVE_INFINITY || stage === 'over') return
    this.#startTimer('life', Math.max(0, dueAtMs - this.#deps.monotonicMs()))
  }

  /** The client may have read something, or has had more time for it. */
  #lookAtLag(state: ConnectionState): void {
    if (!state.peer.isHeld) return
    switch (state.peer.look()) {
      case 'flowing':
        this.#context.cancelTimer('lag')
        state.inbox?.confirmWritten()
        state.inbox?.pump()
        return tellBadge(state)
      case 'held':
        return this.#startTimer('lag', LOOK_EVERY_MS)
      case 'too-slow':
        return end(state, slowRefusal())
    }
  }

  #startTimer(timer: keyof typeof TIMERS, ms: number): void {
    this.#context.startTimer(timer, ms, TIMERS[timer])
  }

  /** After which a client may come back: spread, so that they do not all come at once. */
  #pauseMs(): number {
    return Math.floor(PAUSE_MS_MIN + this.#context.random() * (PAUSE_MS_MAX - PAUSE_MS_MIN))
  }
}

/** One message each for all connections, since every connection arms some. */
const TIMERS = {
  connect: { kind: 'timer', timer: 'connect' },
  life: { kind: 'timer', timer: 'life' },
  lag: { kind: 'timer', timer: 'lag' },
} as const satisfies Partial<Record<ConnectionTimer, StompConnectionMessage>>
const NO_BEATS: HeartBeat = { beatEveryMs: 0, silenceMsMax: 0, header: undefined }
/** Heads that connections share; apps number their subscriptions from zero on. */
const HEADS_KEPT_MAX = 4_096
/** A burst of broadcasts, with room for the client's own frames. */
const MAILBOX_MESSAGES_MAX = 4_096
/** Connections say when a socket has drained that was full, and nothing when it never was. */
const LOOK_EVERY_MS = 100
const LAST_LOOK_MS = 200
const PAUSE_MS_MIN = 1_000
const PAUSE_MS_MAX = 10_000
