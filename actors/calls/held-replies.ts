/**
 * Replies of a call room that wait for the media gateway, so that they can say that the device is let in. They wait a second
 * at the longest; a gateway that hangs delays neither a ring nor anything else.
 */

import { type CallDeviceRef, isSameDevice } from '../../src/domain/calls/call.ts'
import type { CallReply } from '../../src/domain/calls/call-command.ts'
import type { Context, Reply } from '../../src/runtime/actor.ts'
import type { CallRoomMessage } from '../messages.ts'

/** As a reply stands without the gateway. */
type RecordReply = Extract<CallReply, { kind: 'record' }>

export interface HeldReply {
  readonly device: CallDeviceRef
  readonly reply: Reply<CallReply>
  readonly answer: RecordReply
  readonly untilMs: number
}

export class HeldReplies {
  readonly #context: Context<CallRoomMessage>
  readonly #monotonicMs: () => number
  #held: HeldReply[] = []

  /** The room's own; its timer sends `media-late`. */
  constructor(context: Context<CallRoomMessage>, monotonicMs: () => number) {
    this.#context = context
    this.#monotonicMs = monotonicMs
  }

  hold(device: CallDeviceRef, reply: Reply<CallReply>, answer: RecordReply): void {
    this.#held.push({ device, reply, answer, untilMs: this.#monotonicMs() + HELD_MS_MAX })
    this.answerLate()
  }

  /** Answers those that have waited long enough, and sets the timer for the next one. */
  answerLate(): void {
    const nowMs = this.#monotonicMs()
    for (const { reply, answer } of this.#take(({ untilMs }) => untilMs <= nowMs)) reply.answer(answer)
    const next = this.#held[0]
    if (next === undefined) return
    const ms = Math.max(1, next.untilMs - this.#monotonicMs())
    this.#context.startTimer(MEDIA_TIMER, ms, { kind: 'media-late' })
  }

  answerAll(): void {
    for (const { reply, answer } of this.#take(() => true)) reply.answer(answer)
  }

  /** Takes out those of these devices. */
  takeOf(devices: readonly CallDeviceRef[]): readonly HeldReply[] {
    return this.#take(({ device }) => devices.some(other => isSameDevice(other, device)))
  }

  #take(isTaken: (held: HeldReply) => boolean): readonly HeldReply[] {
    const taken = this.#held.filter(isTaken)
    this.#held = this.#held.filter(held => !isTaken(held))
    return taken
  }
}

const MEDIA_TIMER = 'media'
export const HELD_MS_MAX = 1_000
