/**
 * Sees what the rooms of a seeded run do as they do it: which timers they set, how much they have asked the store to
 * write, and whom they answer before that is durable.
 */

import type { CallRoomMessage } from '../../actors/messages.ts'
import type { Call } from '../../src/domain/calls/call.ts'
import type { CallReply, CallRequest } from '../../src/domain/calls/call-command.ts'
import type { CallRecord } from '../../src/domain/calls/call-view.ts'
import type { CallId } from '../../src/domain/ids.ts'
import type { SignalError } from '../../src/errors.ts'
import type { ActorKind, Context, Ref, Reply } from '../../src/runtime/actor.ts'
import type { UntimedCommand } from './call-driver.ts'
import { type Ledger, nameOf, ownerOfKey } from './call-run-ledger.ts'

/** The run's services to its watch. */
export interface WatchRun {
  readonly ledger: Ledger
  /** Lets a mistake made on purpose stand between a room and its timers. */
  readonly contextFor: (context: Context<CallRoomMessage>) => Context<CallRoomMessage>
  violate(what: string): void
}

interface ArmedTimer {
  readonly room: WatchedContext
  readonly key: string
  readonly message: CallRoomMessage
}

export class RoomWatch {
  readonly run: WatchRun
  /** Each call's one timer that may be armed. */
  readonly armed = new Map<CallId, ArmedTimer>()
  /** By call, how many writes there are and will be. */
  readonly asked = new Map<CallId, number>()
  /** The room's current work. */
  command: UntimedCommand | undefined

  constructor(run: WatchRun) {
    this.run = run
  }

  /** The kind with its actors watched. */
  watched(kind: ActorKind<CallRoomMessage>): ActorKind<CallRoomMessage> {
    return {
      ...kind,
      create: (id, context) => {
        const callId = BigInt(id) as CallId
        const watched = new WatchedContext(this, callId, context)
        // A room that is built has all its earlier writes behind it, however they ended.
        this.asked.set(callId, this.writtenOf(callId))
        const room = kind.create(id, this.run.contextFor(watched))!
        return {
          receive: message => this.#receive(callId, message, each => room.receive(each)),
          onStopped() {
            room.onStopped?.()
            watched.onEnded()
          },
        }
      },
    }
  }

  noteAsked(callId: CallId): void {
    this.asked.set(callId, (this.asked.get(callId) ?? 0) + 1)
  }

  /** How many writes of the call are durable. */
  writtenOf(callId: CallId): number {
    return this.run.ledger.calls.get(callId)?.versions.length ?? 0
  }

  #receive(callId: CallId, message: CallRoomMessage, receive: (message: CallRoomMessage) => void): void {
    if (message.kind === 'deadline' && this.armed.get(callId)?.message === message) this.armed.delete(callId)
    this.command = commandOf(message)
    if (message.kind !== 'command' || message.reply === undefined) return receive(message)
    const reply = new WatchedReply(this, callId, message.command, message.reply)
    receive({ ...message, reply })
    reply.needed = this.asked.get(callId) ?? 0
  }
}

class WatchedContext implements Context<CallRoomMessage> {
  readonly #watch: RoomWatch
  readonly #callId: CallId
  readonly #context: Context<CallRoomMessage>

  constructor(watch: RoomWatch, callId: CallId, context: Context<CallRoomMessage>) {
    this.#watch = watch
    this.#callId = callId
    this.#context = context
  }

  get self(): Ref<CallRoomMessage> {
    return this.#context.self
  }

  nowMs(): number {
    return this.#context.nowMs()
  }

  random(): number {
    return this.#context.random()
  }

  commit(durable: PromiseLike<unknown>, effects: () => void): void {
    this.#context.commit(durable, effects)
  }

  tellOutcome<Outcome>(
    work: PromiseLike<Outcome>,
    message: (outcome: Outcome) => CallRoomMessage,
    failed: (error: unknown) => CallRoomMessage,
  ): void {
    this.#context.tellOutcome(work, message, failed)
  }

  startTimer(key: string, ms: number, message: CallRoomMessage): void {
    if (message.kind !== 'deadline') return this.#context.startTimer(key, ms, message)
    const { armed, run } = this.#watch
    const before = armed.get(this.#callId)
    if (before !== undefined && (before.room !== this || before.key !== key)) {
      run.violate(`call ${this.#callId} has two timers`)
    }
    const named = { ...message }
    armed.set(this.#callId, { room: this, key, message: named })
    this.#context.startTimer(key, ms, named)
  }

  cancelTimer(key: string): void {
    const { armed } = this.#watch
    const known = armed.get(this.#callId)
    if (known?.room === this && known.key === key) armed.delete(this.#callId)
    this.#context.cancelTimer(key)
  }

  stop(): void {
    this.#context.stop()
  }

  /** The runtime has cancelled its timers. */
  onEnded(): void {
    const { armed } = this.#watch
    if (armed.get(this.#callId)?.room === this) armed.delete(this.#callId)
  }
}

/** Sees an answer in the moment it is given. */
class WatchedReply implements Reply<CallReply> {
  /** So many of the call's writes have to be durable by then. */
  needed = Number.POSITIVE_INFINITY
  readonly #watch: RoomWatch
  readonly #callId: CallId
  readonly #command: CallRequest
  readonly #reply: Reply<CallReply>

  constructor(watch: RoomWatch, callId: CallId, command: CallRequest, reply: Reply<CallReply>) {
    this.#watch = watch
    this.#callId = callId
    this.#command = command
    this.#reply = reply
  }

  answer(answer: CallReply): void {
    this.#check('answered')
    if (answer.kind === 'record') this.#checkRecord(answer)
    this.#reply.answer(answer)
  }

  refuse(error: SignalError): void {
    this.#check('refused')
    if (error.code === 'CALL_CROSSED') this.#checkCrossed(String(error.members?.callId))
    this.#reply.refuse(error)
  }

  /** How many of the call's writes the answer rests on: an answer in its own turn rests on all that were asked for. */
  get #versions(): number {
    return Math.min(this.needed, this.#watch.asked.get(this.#callId) ?? 0)
  }

  #check(how: string): void {
    const durable = this.#watch.writtenOf(this.#callId)
    if (durable >= this.#versions) return
    this.#watch.run.violate(
      `${this.#command.kind} is ${how} after ${durable} of ${this.#versions} writes of ${this.#callId}`,
    )
  }

  #checkCrossed(callId: string): void {
    const { run } = this.#watch
    if (!run.ledger.calls.has(BigInt(callId) as CallId))
      run.violate(`call ${callId} is named before it is durable`)
  }

  #checkRecord({ record }: Extract<CallReply, { kind: 'record' }>): void {
    const { run } = this.#watch
    const { kind, by } = this.#command
    const owner = record.encryptedAESKey && ownerOfKey(record.encryptedAESKey)
    if (owner !== undefined && owner !== nameOf(by)) {
      run.violate(`${nameOf(by)} is answered ${kind} with a key of ${owner}`)
    }
    const call = run.ledger.calls.get(this.#callId)?.versions[this.#versions - 1]
    if (call === undefined || textOf(record) !== textOf(call)) {
      run.violate(`${kind} is answered ${textOf(record)}, and it is ${call && textOf(call)}`)
    }
  }
}

/** The changing part of a record, as text. */
function textOf({ status, hostUserId, keyEpoch, participants }: Call | CallRecord): string {
  return `${status} ${hostUserId} ${keyEpoch} ${participants.map(({ state }) => state)}`
}

function commandOf(message: CallRoomMessage): UntimedCommand | undefined {
  return message.kind === 'command' ? message.command : message.kind === 'deadline' ? message : undefined
}
