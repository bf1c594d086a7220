/**
 * A call room's side of its room at the media gateway: says who is in the call, and holds the replies to devices that come
 * in until the gateway lets them in.
 */

import {
  type Call,
  type CallDeviceRef,
  entryOf,
  isOver,
  joinedDevices,
  joinedOn,
} from '../../src/domain/calls/call.ts'
import type { CallAccepted, CallCommand, CallReply } from '../../src/domain/calls/call-command.ts'
import { recordOf } from '../../src/domain/calls/call-view.ts'
import type { CallId } from '../../src/domain/ids.ts'
import type { Context, Ref, Reply } from '../../src/runtime/actor.ts'
import type { CallRoomMessage, MediaRoomMessage } from '../messages.ts'
import { HeldReplies, type HeldReply } from './held-replies.ts'

export class MediaLink {
  readonly #room: Ref<MediaRoomMessage>
  readonly #held: HeldReplies

  /** `context` is the call room's. */
  constructor(room: Ref<MediaRoomMessage>, context: Context<CallRoomMessage>, monotonicMs: () => number) {
    this.#room = room
    this.#held = new HeldReplies(context, monotonicMs)
  }

  /** Tells the media room who is in the call. */
  tell(call: Call): void {
    const { roomId, gateway } = call
    const entries = isOver(call) ? [] : joinedDevices(call).map(device => entryOf(call, device))
    this.#room.tellControl({ kind: 'wanted', roomId, gateway, entries, isOver: isOver(call) })
  }

  /** Holds the reply to a device that comes into the call, unless it is let in already; false for any other reply. */
  hold(answer: CallReply, command: CallCommand, reply: Reply<CallReply>): boolean {
    const isComing = command.kind === 'start' || command.kind === 'join' || command.kind === 'rejoin'
    if (!isComing || answer.kind !== 'record' || answer.record.media.isReady) return false
    this.#held.hold(command.by, reply, answer)
    return true
  }

  /** Answers those that have waited long enough. */
  answerLate(): void {
    this.#held.answerLate()
  }

  answerAll(): void {
    this.#held.answerAll()
  }

  /** Takes out the replies to these devices, for `answerAdmitted`. */
  takeOf(devices: readonly CallDeviceRef[]): readonly HeldReply[] {
    return this.#held.takeOf(devices)
  }
}

/** Answers with the call as it is now that the gateway lets the devices in, and the key that each was to get. */
export function answerAdmitted(held: readonly HeldReply[], call: Call): void {
  for (const { device, reply, answer } of held) {
    const { encryptedAESKey, keyFromUserId, keyFromDeviceId } = answer.record
    const keySets = answer.record.keySets && call.keySets
    const key = { encryptedAESKey, keyFromUserId, keyFromDeviceId, keySets }
    reply.answer({ ...answer, record: { ...recordOf(call, device), ...key } })
  }
}

/** The reply as it is kept: one that is repeated later finds the room open, or is followed by `media_ready`. */
export function asAdmitted(
  { call, reply }: CallAccepted,
  by: CallDeviceRef,
  gatewayFor: (callId: CallId) => string | undefined = () => undefined,
): CallReply {
  if (reply.kind !== 'record' || joinedOn(call, by) === undefined) return reply
  const entry = { ...entryOf(call, by), gateway: call.gateway ?? gatewayFor(call.callId) }
  return { ...reply, record: { ...reply.record, media: { isReady: true, entry } } }
}
