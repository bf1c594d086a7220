/**
 * The room of a call, one for each live call, id = its decimal callId: puts everything that is done to the call into one
 * order. Each command is decided on the call as the last one left it, kept in memory, written, and told when it is
 * durable. Commands that arrive before then are decided at once.
 *
 *     command ─> decide ─> call and index in memory, timer ─> one change ─> live events, reply
 *
 * A write that fails drops the room with all that was decided since, and the next one begins with what the store has.
 *
 * Time is the wall clock's as it stood when this process came to know the call, moved on by the monotonic clock: a
 * clock that is set during the call neither ends a ring nor prolongs it. A process that starts takes the wall clock
 * anew, so a ring that was under way ends when it was to end.
 */

import {
  type Call,
  type CallDeviceRef,
  isOver,
  joinedDevices,
  joinedOn,
  nextVersionOf,
} from '../../src/domain/calls/call.ts'
import { withPresence } from '../../src/domain/calls/call-attendance.ts'
import {
  type CallAccepted,
  type CallCommand,
  type CallEffect,
  type CallOccurrence,
  type CallRefused,
  type CallReply,
  type ChangedCall,
  type DeviceCommand,
  refused,
} from '../../src/domain/calls/call-command.ts'
import { nextDeadlineMs, recover } from '../../src/domain/calls/call-deadline.ts'
import { decide, refusalOfWatcher } from '../../src/domain/calls/call-decision.ts'
import { effectsOf } from '../../src/domain/calls/call-effect.ts'

import { ended } from '../../src/domain/calls/call-settlement.ts'
import { timed, withMoment } from '../../src/domain/calls/call-time-line.ts'
import type { LiveCalls } from '../../src/domain/calls/live-calls.ts'
import type { Presence } from '../../src/domain/devices/presence.ts'
import { type CallId, parseUint64, type UserId } from '../../src/domain/ids.ts'
import { assert, SignalError } from '../../src/errors.ts'
import type { Actor, ActorKind, Context, Ref, Reply } from '../../src/runtime/actor.ts'
import type { CallFactsReader } from '../../src/store/calls/call-facts.ts'
import type { CallStore, WrittenBeside } from '../../src/store/calls/call-store.ts'
import type {
  CallCommandMessage,
  CallOperatorMessage,
  CallRoomMessage,
  CallSubscribeMessage,
  MediaRoomMessage,
} from '../messages.ts'
import { type CallRates, countKeys, countRings } from './call-rates.ts'
import { CallWatchers, type EventWriting } from './call-watchers.ts'
import { answerAdmitted, asAdmitted, MediaLink } from './media-link.ts'
import { UnreachedCallees } from './unreached-callees.ts'

export interface CallRoomDeps extends CallRates, EventWriting {
  readonly store: Pick<CallStore, 'open' | 'apply' | 'confirm'>
  readonly index: Pick<LiveCalls, 'put' | 'forget'>
  readonly facts: Pick<CallFactsReader, 'read' | 'readForOperator'>
  readonly presence: Presence
  /** The HTTP reply to a command, as text, to be kept. */
  readonly keptReply: (kind: CallCommand['kind'], reply: CallReply) => string
  /** The call's room at the media gateway, by decimal id; left out where there is no gateway. */
  readonly mediaRoom?: ((callId: string) => Ref<MediaRoomMessage>) | undefined
  /** The media gateway that such a room opens at, if it is up then. */
  readonly gatewayFor?: ((callId: CallId) => string | undefined) | undefined
  /** Counts decisions once they are durable, by command. */
  readonly decisions?: { inc(labels: { readonly kind: CallCommand['kind'] }): void }
  /** Counts rings whose push Google lowered. */
  readonly loweredPushes: { inc(): void }
  /** Told of them likewise; absent but in development. */
  readonly console?:
    | { onDecided(command: CallCommand, call: Call, effects: readonly CallEffect[]): void }
    | undefined
}

export function callRoomKind(deps: CallRoomDeps): ActorKind<CallRoomMessage> {
  const lives = new Map<CallId, CallLife>()
  return {
    kind: 'call-room',
    mailboxMessagesMax: MAILBOX_MESSAGES_MAX,
    onFailure: 'rebuild',
    idleMs: IDLE_MS,
    create: (id, context) => new CallRoom(deps, context, callIdOf(id), lives),
    onGivenUp: id => endGivenUp(deps, callIdOf(id), lives),
  }
}

/** Facts about a call that are not stored but survive a rebuilt room: they end with call or process. */
interface CallLife {
  /** The wall clock less the monotonic clock, milliseconds. */
  readonly clockOffsetMs: number
  readonly unreached: UnreachedCallees
  /** Made by the first subscription. */
  watchers?: CallWatchers
  /** The actor object that has the call now. */
  room?: CallRoom | undefined
}

class CallRoom implements Actor<CallRoomMessage> {
  readonly #deps: CallRoomDeps
  readonly #context: Context<CallRoomMessage>
  readonly #callId: CallId
  readonly #lives: Map<CallId, CallLife>
  readonly #life: CallLife
  /** Undefined where there is no gateway. */
  readonly #media: MediaLink | undefined
  /** As the last decision left it; undefined before the start, and for an id that no call has. */
  #call: Call | undefined

  constructor(
    deps: CallRoomDeps,
    context: Context<CallRoomMessage>,
    callId: CallId,
    lives: Map<CallId, CallLife>,
  ) {
    this.#deps = deps
    this.#context = context
    this.#callId = callId
    this.#lives = lives
    this.#media = deps.mediaRoom && new MediaLink(deps.mediaRoom(String(callId)), context, deps.monotonicMs)
    const call = deps.store.open(callId)
    this.#life = lives.get(callId) ?? {
      clockOffsetMs: context.nowMs() - deps.monotonicMs(),
      unreached: new UnreachedCallees(deps.presence),
    }
    this.#life.room = this
    if (call === undefined || isOver(call)) {
      // A start that failed leaves nothing behind.
      if (lives.delete(callId)) deps.index.forget(callId)
      this.#call = call
      return
    }
    lives.set(callId, this.#life)
    this.#call = this.#recovered(call)
    deps.index.put(this.#call)
    this.#setTimer()
    this.#setUnreachedTimer()
    this.#tellMore()
    this.#media?.tell(this.#call)
  }

  receive(message: CallRoomMessage): void {
    switch (message.kind) {
      case 'command':
        return this.#onCommand(message)
      case 'operator':
        return this.#onOperator(message)
      case 'deadline':
        return this.#onOccurrence({ kind: 'deadline', nowMs: this.#nowMs() })
      case 'unreached-due':
        return this.#onUnreachedDue()
      case 'ring-taken':
        return this.#onRingTaken(message.userId)
      case 'inviter-blocked':
      case 'account-ended':
      case 'account-suspended':
      case 'media-lost':
        return this.#onOccurrence({ ...message, nowMs: this.#nowMs() })
      case 'media-feeds':
        return this.#isOfRoom(message) ? this.#onOccurrence({ ...message, nowMs: this.#nowMs() }) : undefined
      case 'media-admitted':
        return this.#isOfRoom(message) ? this.#onAdmitted(message) : undefined
      case 'media-late':
        return this.#media?.answerLate()
      case 'tell-media':
        return this.#call && this.#media?.tell(this.#call)
      case 'subscribe':
        return this.#onSubscribe(message)
      case 'unsubscribe':
        return this.#onUnsubscribe(message.connectionId)
      case 'tell-more':
        return this.#tellMore()
    }
  }

  onStopped(): void {
    if (this.#life.room === this) this.#life.room = undefined
  }

  #onCommand({ command, idempotent, reply }: CallCommandMessage): void {
    const tooOften = countKeys(this.#deps, command)
    if (tooOften !== undefined) return this.#refuse(tooOften, reply)
    if (command.kind === 'device-online') this.#life.unreached.noteReached(command.by.userId)
    const timed: DeviceCommand = { ...command, nowMs: this.#nowMs() }
    const decision = decide(this.#call, timed, this.#deps.facts.read(command, this.#callId))
    if (decision.kind === 'refused') return this.#refuse(decision, reply)
    const refusal = this.#refusalOfEnding(decision) ?? countRings(this.#deps, this.#call, decision, timed)
    if (refusal !== undefined) return this.#refuse(refusal, reply)
    const shown = this.#media ? asAdmitted(decision, command.by, this.#deps.gatewayFor) : decision.reply
    const kept = idempotent && { request: idempotent, reply: this.#deps.keptReply(command.kind, shown) }
    this.#carryOut(this.#withSocket(decision, timed), timed, reply, { kept })
  }

  #onOperator({ command, audit, idempotent, reply }: CallOperatorMessage): void {
    const timed = { ...command, nowMs: this.#nowMs() }
    const decision = decide(this.#call, timed, this.#deps.facts.readForOperator())
    if (decision.kind === 'refused') return this.#refuse(decision, reply)
    const kept = idempotent && {
      request: idempotent,
      reply: this.#deps.keptReply(command.kind, decision.reply),
    }
    const isChanged = decision.call !== this.#call
    this.#carryOut(decision, timed, reply, { kept, audit: isChanged ? audit : undefined })
  }

  /** Nothing is written for it: the time line has it once something else is. */
  #onRingTaken(userId: UserId): void {
    this.#life.unreached.noteReached(userId)
    if (this.#call !== undefined && !isOver(this.#call))
      this.#call = withMoment(this.#call, 'push_taken', [userId], this.#nowMs())
  }

  #onOccurrence(occurrence: CallOccurrence): void {
    if (this.#call === undefined) return this.#context.stop()
    const decision = decide(this.#call, occurrence)
    assert(decision.kind === 'accepted', 'only requests are refused')
    this.#carryOut(decision, occurrence, undefined, {})
  }

  /** Tells those in the call. It changes nothing, so nothing is written. */
  #onUnreachedDue(): void {
    const call = this.#call
    if (call === undefined) return this.#context.stop()
    const nowMs = this.#nowMs()
    const { callId, version } = call
    const unreachable = this.#life.unreached.takeDue(call, nowMs)
    const userIds = unreachable.map(({ userId }) => userId)
    this.#call = withMoment(call, 'unreachable', userIds, nowMs)
    const effects = unreachable.map(one => {
      const event = { kind: 'participant_unreachable' as const, callId, version, ...one }
      return { kind: 'topic' as const, event }
    })
    this.#setUnreachedTimer()
    // In its turn: what watchers are to hear before it may not be durable yet.
    this.#context.commit(NOTHING_TO_WRITE, () => this.#tell(call, effects, nowMs))
  }

  /** False for news of a room that the call has left since. */
  #isOfRoom({ roomId }: { readonly roomId: number }): boolean {
    return this.#call === undefined || this.#call.roomId === roomId
  }

  /** Keeps the decision, writes it, and announces it once the write is durable. */
  #carryOut(
    { call, effects, reply: answer, ended: other }: CallAccepted,
    command: CallCommand,
    reply: Reply<CallReply> | undefined,
    beside: WrittenBeside,
  ): void {
    const before = this.#call
    this.#call = call
    if (before === undefined) this.#lives.set(this.#callId, this.#life)
    // An ended call keeps its people and its room until the end is durable: else they might be in two.
    if (call !== before && !isOver(call)) this.#deps.index.put(call)
    this.#setTimer()
    this.#life.unreached.noteRung(before, call)
    this.#setUnreachedTimer()
    const isChanged = call.version !== before?.version || (call !== before && !isHint(command))
    const isWritten = beside.kept !== undefined || isChanged
    // A decision without a write waits for earlier writes, too: it may report their outcome.
    const durable = isWritten
      ? this.#deps.store.apply({ call, effects, ended: other }, command.nowMs, beside)
      : NOTHING_TO_WRITE
    if (other !== undefined) this.#roomOf(other)?.endBeside(other, command.nowMs, durable)
    this.#context.commit(durable, () => {
      this.#tell(call, effects, command.nowMs)
      if (call !== before) this.#media?.tell(call)
      if (reply !== undefined && !this.#media?.hold(answer, command, reply)) reply.answer(answer)
      this.#report(command, call, effects)
    })
  }

  /** Another call starts in its place. The room of that call decides both, and writes both in one change. */
  endBeside({ call, effects }: ChangedCall, nowMs: number, durable: Promise<void>): void {
    this.#call = call
    this.#setTimer()
    this.#context.commit(durable, () => {
      this.#tell(call, effects, nowMs)
      this.#media?.tell(call)
      this.#report({ kind: 'deadline', nowMs }, call, effects)
    })
  }

  #report(command: CallCommand, call: Call, effects: readonly CallEffect[]): void {
    this.#deps.decisions?.inc({ kind: command.kind })
    if (command.kind === 'ringing' && command.wasLowered) this.#deps.loweredPushes.inc()
    this.#deps.console?.onDecided(command, call, effects)
  }

  /**
   * Another call ends only by its own room's version: a call that is ending anyway, or being rebuilt, has a newer one.
   */
  #refusalOfEnding({ ended: other }: CallAccepted): CallRefused | undefined {
    if (other === undefined) return undefined
    const room = this.#roomOf(other)
    return room !== undefined && room.#call?.version === other.call.version - 1 ? undefined : ENDING
  }

  #roomOf({ call }: ChangedCall): CallRoom | undefined {
    return this.#lives.get(call.callId)?.room
  }

  #onAdmitted({ gateway, devices }: Extract<CallRoomMessage, { kind: 'media-admitted' }>): void {
    if (this.#call === undefined) return this.#context.stop()
    const held = this.#media?.takeOf(devices) ?? []
    const answered = held.map(({ device }) => device)
    this.#onOccurrence({ kind: 'media-admitted', gateway, devices, answered, nowMs: this.#nowMs() })
    const call = this.#call
    this.#context.commit(NOTHING_TO_WRITE, () => answerAdmitted(held, call))
  }

  #tell(call: Call, effects: readonly CallEffect[], nowMs: number): void {
    if (this.#life.watchers?.tell(call, effects, nowMs) === false) this.#tellMoreLater()
    if (!isOver(call)) return
    this.#deps.index.forget(this.#callId)
    this.#context.cancelTimer(TIMER)
    this.#context.cancelTimer(UNREACHED_TIMER)
    this.#media?.answerAll()
    this.#lives.delete(this.#callId)
  }

  #tellMore(): void {
    if (this.#life.watchers?.tellMore() === false) this.#tellMoreLater()
  }

  #tellMoreLater(): void {
    this.#context.self.tellControl({ kind: 'tell-more' })
  }

  #onSubscribe({ by, subscriber, tag, reply }: CallSubscribeMessage): void {
    const refusal = refusalOfWatcher(this.#call, by.userId)
    if (refusal !== undefined) {
      reply.refuse(errorOf(refusal))
      if (this.#call === undefined) this.#context.stop()
      return
    }
    this.#life.watchers ??= new CallWatchers(this.#callId, this.#deps)
    this.#life.watchers.subscribe(by.userId, subscriber, tag)
    reply.answer(undefined)
  }

  #onUnsubscribe(connectionId: string): void {
    this.#life.watchers?.unsubscribe(connectionId)
    if (this.#call === undefined) this.#context.stop()
  }

  #refuse(refusal: CallRefused, reply: Reply<CallReply> | undefined): void {
    const { awaits } = refusal
    const durable = awaits === undefined ? NOTHING_TO_WRITE : this.#deps.store.confirm(awaits)
    // In its turn: what it was refused for may not be durable yet.
    this.#context.commit(durable, () => reply?.refuse(errorOf(refusal)))
    if (this.#call === undefined) this.#context.stop()
  }

  /**
   * The call as a room finds it. Absence counts from here: without a room, no device could show that it was there.
   */
  #recovered(call: Call): Call {
    const nowMs = this.#nowMs()
    const found = recover(call, { nowMs, downForMs: Number.POSITIVE_INFINITY })
    return joinedDevices(found).reduce((next, by) => this.#online(next, by, nowMs), found)
  }

  /** A device that has just joined may have a socket already, and no message will announce that. */
  #withSocket(decision: CallAccepted, command: DeviceCommand): CallAccepted {
    if (isHint(command)) return decision
    const call = this.#online(decision.call, command.by, command.nowMs)
    return call === decision.call ? decision : { ...decision, call }
  }

  #online(call: Call, by: CallDeviceRef, nowMs: number): Call {
    if (joinedOn(call, by)?.attendance?.isOnline !== false) return call
    const isConnected = this.#deps.presence.isConnected(by.userId, by.deviceId)
    return isConnected ? withPresence(call, by, true, nowMs) : call
  }

  /** An ended call keeps its timer until the end is durable: an armed timer makes the runtime rebuild the room. */
  #setTimer(): void {
    if (this.#call === undefined) return
    const deadlineMs = nextDeadlineMs(this.#call)
    const ms = deadlineMs === undefined ? LOOK_AGAIN_MS : Math.max(0, deadlineMs - this.#nowMs())
    this.#context.startTimer(TIMER, ms, { kind: 'deadline' })
  }

  #setUnreachedTimer(): void {
    const { nextAtMs } = this.#life.unreached
    if (nextAtMs === undefined) return this.#context.cancelTimer(UNREACHED_TIMER)
    const ms = Math.max(0, nextAtMs - this.#nowMs())
    this.#context.startTimer(UNREACHED_TIMER, ms, { kind: 'unreached-due' })
  }

  #nowMs(): number {
    return Math.floor(this.#life.clockOffsetMs + this.#deps.monotonicMs())
  }
}

/** A call whose room fails again and again ends, rather than ringing for ever. */
function endGivenUp(deps: CallRoomDeps, callId: CallId, lives: Map<CallId, CallLife>): void {
  const call = deps.store.open(callId)
  const life = lives.get(callId)
  lives.delete(callId)
  deps.index.forget(callId)
  if (call === undefined || isOver(call) || life === undefined) return
  const nowMs = Math.floor(life.clockOffsetMs + deps.monotonicMs())
  const failed = ended(nextVersionOf(call), { status: 'failed', endReason: 'internal' }, nowMs)
  const over = timed(call, failed, nowMs)
  const effects = effectsOf(call, over, undefined, nowMs)
  // If that fails, too, the call is found live at the next start.
  deps.store.apply({ call: over, effects }, nowMs).catch(() => undefined)
}

/** A mere sign of life from a device is not worth a write: a rebuilt room counts from its own start. */
function isHint({ kind }: CallCommand): boolean {
  return kind === 'device-seen'
}

function errorOf({ code, detail, members, errors }: CallRefused): SignalError {
  return new SignalError(code, detail, { ...(members && { members }), ...(errors && { errors }) })
}

function callIdOf(id: string): CallId {
  const callId = parseUint64(id)
  assert(callId !== undefined, 'a room is of a call')
  return callId as CallId
}

const TIMER = 'deadline'
const UNREACHED_TIMER = 'unreached'
const ENDING = refused('OVERLOADED', 'a call of theirs to you is just ending')
const NOTHING_TO_WRITE = Promise.resolve()
/** As many as a call's people send in a second; further callers must come back later. */
const MAILBOX_MESSAGES_MAX = 256
/** Longer than a write takes; a room that looks before finds nothing to do. */
const LOOK_AGAIN_MS = 1_000
/** A live call has a timer and is never idle. An ended one is read again for late commands. */
const IDLE_MS = 1_000
