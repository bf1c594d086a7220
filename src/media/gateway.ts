/**
 * The media gateway as the server drives it: a room for each live call, which lets in the devices that are in the call and
 * no other. Every operation may be repeated: it then finds done what it was to do. Operations reject with a `GatewayError`.
 *
 * `actors/calls/media-room.ts` drives it, and knows in which order and how often. Without a gateway there is none of this, and a
 * call's room is its clients' business.
 */

import type { RoomEntry } from '../domain/calls/call.ts'
import type { CallId } from '../domain/ids.ts'

export interface GatewayRoom {
  readonly callId: CallId
  readonly roomId: number
}

export interface MediaGateway {
  /** Makes the room, or takes over the one that it made before. It then lets in these devices alone. */
  readonly open: (room: GatewayRoom, entries: readonly RoomEntry[]) => Promise<void>
  readonly admit: (room: GatewayRoom, entries: readonly RoomEntry[]) => Promise<void>
  /** Lets them in with the tokens of the hour to come, too. */
  readonly renew: (room: GatewayRoom, entries: readonly RoomEntry[]) => Promise<void>
  /** Lets the device in no more, and puts it out. */
  readonly remove: (room: GatewayRoom, entry: RoomEntry) => Promise<void>
  /** Puts everybody out; the room is no more. */
  readonly close: (room: GatewayRoom) => Promise<void>
  /** All rooms that the gateway has; `callId` is undefined for one that the server did not make. */
  readonly rooms: () => Promise<readonly FoundRoom[]>
}

export interface FoundRoom {
  readonly roomId: number
  readonly callId: CallId | undefined
}

export type GatewayFailure =
  /** It did not answer in time, or could not be reached. */
  | 'timeout'
  | 'network'
  /** It answered something else than its protocol has. */
  | 'malformed'
  /** More waits for it than may. */
  | 'busy'
  /** It refused for a reason that a repetition does not mend: a wrong secret, above all. */
  | 'refused'
  /** Another room has the number. */
  | 'room-in-use'
  | 'no-such-room'

export class GatewayError extends Error {
  readonly failure: GatewayFailure

  /** `message` is for the log, and holds no secret. */
  constructor(failure: GatewayFailure, message: string) {
    super(message)
    this.name = 'GatewayError'
    this.failure = failure
  }
}
