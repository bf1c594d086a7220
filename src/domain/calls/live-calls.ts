/**
 * Live calls as this node knows them: which users have a part in which call, and which rooms are taken. A port, since the
 * knowledge is per node and in memory; `src/store/calls/call-index.ts` has it.
 */

import type { CallId, DeviceId, UserId } from '../ids.ts'
import type { Call } from './call.ts'

export interface LiveCalls {
  /** How many calls are live. */
  readonly size: number
  /** Notes the call as it is now; forgets an ended one. */
  put(call: Call): void
  /** Returns the live calls, as last put. */
  all(): readonly Call[]
  forget(callId: CallId): void
  /** Returns the live calls that the user has a part in, the one with the latest change last. */
  callsOf(userId: UserId): readonly CallId[]
  /** Whether both users have a part in one live call. */
  haveInCommon(one: UserId, other: UserId): boolean
  /** Returns the live calls, as last put, that both users have a part in. */
  callsBetween(one: UserId, other: UserId): readonly Call[]
  /** Returns the live calls that this device is in. */
  callsWith(userId: UserId, deviceId: DeviceId): readonly CallId[]
  /** Returns another live call that this device is in. */
  otherCallWith(userId: UserId, deviceId: DeviceId, callId: CallId): CallId | undefined
  /** Returns another live call that any device of the user is in. */
  otherCallOf(userId: UserId, callId: CallId): CallId | undefined
  /** Returns the live call that has the room. */
  callInRoom(roomId: number): CallId | undefined
}
