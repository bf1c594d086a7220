/**
 * LiveKit as the media gateway. Its rooms have no list of admitted devices: a token lets its holder in until it expires. So the
 * list is kept here. Each room is looked into every 20 seconds, and soon after a removal, since a removed device may reconnect;
 * participants who are not on the list are removed.
 */

import { type CallDeviceRef, PARTICIPANTS_MAX, type RoomEntry } from '../domain/calls/call.ts'
import { type CallId, parseUint64 } from '../domain/ids.ts'
import { type FoundRoom, GatewayError, type GatewayRoom, type MediaGateway } from './gateway.ts'
import type { LiveKitApi } from './livekit-api.ts'
import type { LiveKitTokens } from './livekit-tokens.ts'

type RoomService = Pick<
  LiveKitApi,
  'createRoom' | 'deleteRoom' | 'listRooms' | 'listParticipants' | 'removeParticipant'
>

/** A room that was opened here. */
interface OpenRoom {
  /** The admitted devices, by identity. */
  readonly entries: Map<string, CallDeviceRef>
  /** The admitted devices that were connected at the last answered look. */
  present: readonly CallDeviceRef[]
  seenAtMs: number
  lookAtMs: number
  pauseMs: number
}

export class LiveKitGateway implements MediaGateway {
  readonly #api: RoomService
  readonly #tokens: Pick<LiveKitTokens, 'identityOf'>
  readonly #monotonicMs: () => number
  readonly #onOutsider: () => void
  readonly #rooms = new Map<number, OpenRoom>()

  /** `onOutsider`: a participant who is not on the list was removed. */
  constructor(
    api: RoomService,
    tokens: Pick<LiveKitTokens, 'identityOf'>,
    monotonicMs: () => number,
    onOutsider: () => void,
  ) {
    this.#api = api
    this.#tokens = tokens
    this.#monotonicMs = monotonicMs
    this.#onOutsider = onOutsider
  }

  readonly open = async (room: GatewayRoom, entries: readonly RoomEntry[]): Promise<void> => {
    const nowMs = this.#monotonicMs()
    const opened: OpenRoom = {
      ...{ entries: new Map(), present: [], seenAtMs: nowMs },
      ...{ lookAtMs: nowMs + LOOK_MS_MAX, pauseMs: LOOK_MS_MAX },
    }
    this.#rooms.set(room.roomId, opened)
    this.#letIn(opened, entries)
    await this.#api.createRoom(roomOf(room), ROOM_FORM)
    // A room that existed before may have participants who are not of this call.
    await this.#look(room.roomId, opened)
  }

  /** LiveKit itself has nothing to do, unless it has lost the room. */
  readonly admit = async (room: GatewayRoom, entries: readonly RoomEntry[]): Promise<void> => {
    const opened = this.#rooms.get(room.roomId)
    if (opened === undefined) throw new GatewayError('no-such-room', 'the room was not opened')
    this.#letIn(opened, entries)
    await this.#api.createRoom(roomOf(room), ROOM_FORM)
  }

  /** Tokens follow from the time alone. */
  readonly renew = (room: GatewayRoom, entries: readonly RoomEntry[]): Promise<void> =>
    this.admit(room, entries)

  readonly remove = async ({ roomId }: GatewayRoom, entry: RoomEntry): Promise<void> => {
    const identity = this.#tokens.identityOf(entry)
    const opened = this.#rooms.get(roomId)
    if (opened !== undefined) {
      opened.entries.delete(identity)
      watchClosely(opened, this.#monotonicMs())
    }
    await this.#api.removeParticipant(String(roomId), identity).catch(ignoreMissing)
  }

  readonly close = async ({ roomId }: GatewayRoom): Promise<void> => {
    this.#rooms.delete(roomId)
    await this.#api.deleteRoom(String(roomId)).catch(ignoreMissing)
  }

  /** Those with a number for a name: any other is of another program that LiveKit serves. */
  readonly rooms = async (): Promise<readonly FoundRoom[]> => {
    const listed = await this.#api.listRooms()
    return listed.flatMap(({ name, metadata }) => {
      const roomId = /^[1-9]\d{0,15}$/.test(name) ? Number(name) : Number.NaN
      if (!Number.isSafeInteger(roomId)) return []
      return [{ roomId, callId: parseUint64(metadata) as CallId | undefined }]
    })
  }

  /** Looks into the rooms that are due. Call this every two seconds. Rejects at the first failure; the rest stays due. */
  async look(): Promise<void> {
    const nowMs = this.#monotonicMs()
    const due = [...this.#rooms].filter(([, { lookAtMs }]) => lookAtMs <= nowMs)
    // Those that wait longest first.
    due.sort(([, one], [, other]) => one.lookAtMs - other.lookAtMs)
    for (let at = 0; at < due.length; at += LOOKS_UNDER_WAY) {
      const looks = due.slice(at, at + LOOKS_UNDER_WAY)
      await Promise.all(looks.map(([roomId, room]) => this.#look(roomId, room)))
    }
  }

  /** Devices that were there at the last look, as long as that is not long ago. */
  present(): readonly CallDeviceRef[] {
    const sinceMs = this.#monotonicMs() - PRESENT_MS
    return [...this.#rooms.values()].flatMap(({ present, seenAtMs }) => (seenAtMs > sinceMs ? present : []))
  }

  /** Forgets all other rooms: one that LiveKit lost before its call took another is never closed. */
  keepOnly(isWanted: (roomId: number) => boolean): void {
    for (const roomId of [...this.#rooms.keys()]) if (!isWanted(roomId)) this.#rooms.delete(roomId)
  }

  async #look(roomId: number, room: OpenRoom): Promise<void> {
    room.lookAtMs = this.#monotonicMs() + room.pauseMs
    room.pauseMs = Math.min(room.pauseMs * 2, LOOK_MS_MAX)
    const identities = await this.#api.listParticipants(String(roomId))
    // Closed or reopened since the request.
    if (this.#rooms.get(roomId) !== room) return
    room.seenAtMs = this.#monotonicMs()
    room.present = identities.flatMap(identity => room.entries.get(identity) ?? [])
    const strangers = identities.filter(identity => !room.entries.has(identity))
    if (strangers.length === 0) return
    watchClosely(room, this.#monotonicMs())
    for (const identity of strangers.slice(0, PARTICIPANTS_MAX)) {
      if (room.entries.has(identity)) continue
      await this.#api.removeParticipant(String(roomId), identity).catch(ignoreMissing)
      this.#onOutsider()
    }
  }

  #letIn({ entries }: OpenRoom, added: readonly RoomEntry[]): void {
    for (const entry of added) entries.set(this.#tokens.identityOf(entry), entry.device)
  }
}

/** A removed participant may reconnect at once. */
function watchClosely(room: OpenRoom, nowMs: number): void {
  room.lookAtMs = nowMs
  room.pauseMs = LOOK_MS_MIN
}

/** The sweep reads the call from `metadata`. */
function roomOf({ callId, roomId }: GatewayRoom) {
  return { name: String(roomId), metadata: String(callId) }
}

function ignoreMissing(error: unknown): void {
  if (!(error instanceof GatewayError && error.failure === 'no-such-room')) throw error
}

/** No room ends before its call: the longest has a day. */
const ROOM_FORM = { empty_timeout: 90_000, departure_timeout: 90_000, max_participants: PARTICIPANTS_MAX }
/** Less than from one call of `look` to the next. */
const LOOK_MS_MIN = 1_500
/** Less than a third of the time after which a silent device is lost. */
const LOOK_MS_MAX = 20_000
const PRESENT_MS = 30_000
/** Half of the requests that may be: steps of calls go on beside them. */
const LOOKS_UNDER_WAY = 16
