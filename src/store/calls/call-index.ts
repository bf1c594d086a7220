/**
 * Who has a part in which live call, and which rooms are taken: in memory, since it is asked for with every start, and
 * ahead of the store, since two starts may meet before either is durable. A room keeps its call's entry; one that is
 * built anew, also after a failed write, puts it right from the store.
 */

import { type Call, hasPart, isJoined, isOver } from '../../domain/calls/call.ts'
import type { LiveCalls } from '../../domain/calls/live-calls.ts'
import type { CallId, DeviceId, UserId } from '../../domain/ids.ts'

interface IndexedCall {
  readonly call: Call
  readonly userIds: readonly UserId[]
}

export class CallIndex implements LiveCalls {
  readonly #calls = new Map<CallId, IndexedCall>()
  readonly #callInRoom = new Map<number, CallId>()
  /** Calls by the name of their media gateway. */
  readonly #callsAt = new Map<string, number>()
  /** By user and call: the device that is in it, undefined for a user who is not. */
  readonly #parts = new Map<UserId, Map<CallId, DeviceId | undefined>>()

  /** How many calls are live. */
  get size(): number {
    return this.#calls.size
  }

  /** The call as it is now; one that has ended is forgotten. */
  put(call: Call): void {
    const { callId, roomId, participants } = call
    this.forget(callId)
    if (isOver(call)) return
    const present = participants.filter(({ userId }) => hasPart(call, userId))
    for (const participant of present) {
      const { userId, attendance } = participant
      this.#partsOf(userId).set(callId, isJoined(participant) ? attendance?.deviceId : undefined)
    }
    this.#calls.set(callId, { call, userIds: present.map(({ userId }) => userId) })
    this.#callInRoom.set(roomId, callId)
    this.#count(call, 1)
  }

  all(): readonly Call[] {
    return Array.from(this.#calls.values(), ({ call }) => call)
  }

  forget(callId: CallId): void {
    const known = this.#calls.get(callId)
    if (known === undefined) return
    for (const userId of known.userIds) {
      const parts = this.#partsOf(userId)
      parts.delete(callId)
      if (parts.size === 0) this.#parts.delete(userId)
    }
    this.#callInRoom.delete(known.call.roomId)
    this.#calls.delete(callId)
    this.#count(known.call, -1)
  }

  /** The live calls that the user has a part in, the one with the latest change last. */
  callsOf(userId: UserId): readonly CallId[] {
    return [...(this.#parts.get(userId)?.keys() ?? [])]
  }

  /** Whether there is a live call that both users have a part in. */
  haveInCommon(one: UserId, other: UserId): boolean {
    const calls = this.#parts.get(other)
    return calls !== undefined && this.callsOf(one).some(callId => calls.has(callId))
  }

  /** The live calls, as they were last put, that both users have a part in. */
  callsBetween(one: UserId, other: UserId): readonly Call[] {
    const calls = this.#parts.get(other)
    if (calls === undefined) return []
    return this.callsOf(one).flatMap(callId => (calls.has(callId) ? this.#calls.get(callId)!.call : []))
  }

  /** The live calls that this device is in. */
  callsWith(userId: UserId, deviceId: DeviceId): readonly CallId[] {
    const parts = this.#parts.get(userId)
    if (parts === undefined) return NO_CALLS
    return [...parts].flatMap(([callId, inside]) => (inside === deviceId ? [callId] : []))
  }

  /** A live call that this device is in, other than this one. */
  otherCallWith(userId: UserId, deviceId: DeviceId, callId: CallId): CallId | undefined {
    return this.callsWith(userId, deviceId).find(otherId => otherId !== callId)
  }

  /** A live call that a device of the user is in, other than this one. */
  otherCallOf(userId: UserId, callId: CallId): CallId | undefined {
    for (const [otherId, inside] of this.#parts.get(userId) ?? []) {
      if (otherId !== callId && inside !== undefined) return otherId
    }
    return undefined
  }

  /** Every live call with its room and the media gateway that has it. */
  rooms(): Pick<Call, 'callId' | 'roomId' | 'gateway'>[] {
    return Array.from(this.#calls.values(), ({ call: { callId, roomId, gateway } }) => ({
      callId,
      roomId,
      gateway,
    }))
  }

  isLive(callId: CallId): boolean {
    return this.#calls.has(callId)
  }

  /** Undefined also for a call that is not live. */
  gatewayOf(callId: CallId): string | undefined {
    return this.#calls.get(callId)?.call.gateway
  }

  /** How many live calls each media gateway has; one without calls is left out. */
  gateways(): ReadonlyMap<string, number> {
    return this.#callsAt
  }

  /** The live call whose room it is. */
  callInRoom(roomId: number): CallId | undefined {
    return this.#callInRoom.get(roomId)
  }

  #count({ gateway }: Call, change: number): void {
    if (gateway === undefined) return
    const calls = (this.#callsAt.get(gateway) ?? 0) + change
    if (calls === 0) this.#callsAt.delete(gateway)
    else this.#callsAt.set(gateway, calls)
  }

  #partsOf(userId: UserId): Map<CallId, DeviceId | undefined> {
    let parts = this.#parts.get(userId)
    if (parts === undefined) {
      parts = new Map()
      this.#parts.set(userId, parts)
    }
    return parts
  }
}

const NO_CALLS: readonly CallId[] = []
