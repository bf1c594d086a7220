/**
 * Replies of a call room that wait for the media gateway, so that they can say that the device is let in. They wait a second
 * at the longest; a gateway that hangs delays neither a ring nor anything else.
 */

import { type CallDeviceRef, isSameDevice } from '../../src/domain/calls/call.ts'
import type { CallReply } from '../../src/domain/calls/call-command.ts'
import type { Reply } from '../../src/runtime/actor.ts'

export interface HeldReply {
  readonly device: CallDeviceRef
  readonly reply: Reply<CallReply>
  /** As it stands without the gateway. */
  readonly answer: Extract<CallReply, { kind: 'record' }>
  readonly untilMs: number
}

export class HeldReplies {
  #held: HeldReply[] = []

  get nextMs(): number | undefined {
    return this.#held[0]?.untilMs
  }

  hold(held: HeldReply): void {
    this.#held.push(held)
  }

  /** Takes out those of these devices. */
  takeOf(devices: readonly CallDeviceRef[]): readonly HeldReply[] {
    return this.#take(({ device }) => devices.some(other => isSameDevice(other, device)))
  }

  takeLate(nowMs: number): readonly HeldReply[] {
    return this.#take(({ untilMs }) => untilMs <= nowMs)
  }

  takeAll(): readonly HeldReply[] {
    return this.#take(() => true)
  }

  #take(isTaken: (held: HeldReply) => boolean): readonly HeldReply[] {
    const taken = this.#held.filter(isTaken)
    this.#held = this.#held.filter(held => !isTaken(held))
    return taken
  }
}

export const HELD_MS_MAX = 1_000
