/**
 * LiveKit as the media gateway. Its rooms have no list of those who may enter: a token alone lets in, for as long as it is good.
 * So this keeps the list, looks who is there, and puts out whoever is not on it: soon after somebody was put out, who may have
 * come again, and else now and then.
 */

import { type CallDeviceRef, PARTICIPANTS_MAX, type RoomEntry } from '../domain/calls/call.ts'
import { type CallId, parseUint64 } from '../domain/ids.ts'
import { type FoundRoom, GatewayError, type GatewayRoom, type MediaGateway } from './gateway.ts'
import type { LiveKitApi } from './livekit-api.ts'
import type { LiveKitTokens } from './livekit-tokens.ts'

export interface LiveKitGatewayDeps {
  readonly api: Pick<
    LiveKitApi,
    'createRoom' | 'deleteRoom' | 'listRooms' | 'listParticipants' | 'removeParticipant'
  >
  readonly tokens: Pick<LiveKitTokens, 'identityOf'>
  readonly monotonicMs: () => number
  /** Somebody was put out who may not be in the room. */
  readonly onStranger: () => void
}

/** A room that was opened here. */
interface OpenRoom {
  /** Those who may be there, by identity. */
  readonly entries: Map<string, CallDeviceRef>
  /** Those who were there at the last look. */
  present: readonly CallDeviceRef[]
  lookAtMs: number
  pauseMs: number
}

export class LiveKitGateway implements MediaGateway {
  readonly #deps: LiveKitGatewayDeps
  readonly #rooms = new Map<number, OpenRoom>()

  constructor(deps: LiveKitGatewayDeps) {
    this.#deps = deps
  }

  readonly open = async (room: GatewayRoom, entries: readonly RoomEntry[]): Promise<void> => {
    const { api, monotonicMs } = this.#deps
    const lookAtMs = monotonicMs() + LOOK_MS_MAX
    const opened: OpenRoom = { entries: new Map(), present: [], lookAtMs, pauseMs: LOOK_MS_MAX }
    this.#rooms.set(room.roomId, opened)
    this.#letIn(opened, entries)
    await api.createRoom(roomOf(room), ROOM_FORM)
    // One that was there before may have others in it.
    await this.#look(room.roomId, opened)
  }

  /** LiveKit itself has nothing to do, unless it has lost the room. */
  readonly admit = async (room: GatewayRoom, entries: readonly RoomEntry[]): Promise<void> => {
    const opened = this.#rooms.get(room.roomId)
    if (opened === undefined) throw new GatewayError('no-such-room', 'the room was not opened')
    this.#letIn(opened, entries)
    await this.#deps.api.createRoom(roomOf(room), ROOM_FORM)
  }

  /** Tokens follow from the time alone. */
  readonly renew = (room: GatewayRoom, entries: readonly RoomEntry[]): Promise<void> =>
    this.admit(room, entries)

  readonly remove = async ({ roomId }: GatewayRoom, entry: RoomEntry): Promise<void> => {
    const { api, tokens, monotonicMs } = this.#deps
    const identity = tokens.identityOf(entry)
    const opened = this.#rooms.get(roomId)
    if (opened !== undefined) {
      opened.entries.delete(identity)
      opened.pauseMs = LOOK_MS_MIN
      opened.lookAtMs = monotonicMs() + LOOK_MS_MIN
    }
    await api.removeParticipant(String(roomId), identity).catch(ignoreMissing)
  }

  readonly close = async ({ roomId }: GatewayRoom): Promise<void> => {
    this.#rooms.delete(roomId)
    await this.#deps.api.deleteRoom(String(roomId)).catch(ignoreMissing)
  }

  /** Those with a number for a name: any other is of another program that LiveKit serves. */
  readonly rooms = async (): Promise<readonly FoundRoom[]> => {
    const listed = await this.#deps.api.listRooms()
    return listed.flatMap(({ name, metadata }) => {
      const roomId = /^[1-9]\d{0,15}$/.test(name) ? Number(name) : Number.NaN
      if (!Number.isSafeInteger(roomId)) return []
      return [{ roomId, callId: parseUint64(metadata) as CallId | undefined }]
    })
  }

  /** Looks into the rooms whose turn it is. Rejects with the first failure once it has tried all. */
  async look(): Promise<void> {
    const nowMs = this.#deps.monotonicMs()
    const due = [...this.#rooms].filter(([, { lookAtMs }]) => lookAtMs <= nowMs).slice(0, LOOKED_AT_ONCE)
    const looks = await Promise.allSettled(due.map(([roomId, room]) => this.#look(roomId, room)))
    for (const look of looks) if (look.status === 'rejected') throw look.reason
  }

  /** Devices that were there at the last look. */
  present(): readonly CallDeviceRef[] {
    return [...this.#rooms.values()].flatMap(({ present }) => present)
  }

  async #look(roomId: number, room: OpenRoom): Promise<void> {
    const { api, monotonicMs, onStranger } = this.#deps
    room.lookAtMs = monotonicMs() + room.pauseMs
    room.pauseMs = Math.min(room.pauseMs * 2, LOOK_MS_MAX)
    const identities = await api.listParticipants(String(roomId)).catch(error => {
      room.present = []
      throw error
    })
    // Closed meanwhile, or opened anew.
    if (this.#rooms.get(roomId) !== room) return
    room.present = identities.flatMap(identity => room.entries.get(identity) ?? [])
    const strangers = identities.filter(identity => !room.entries.has(identity))
    if (strangers.length === 0) return
    // They may come again at once.
    room.pauseMs = LOOK_MS_MIN
    room.lookAtMs = monotonicMs() + LOOK_MS_MIN
    for (const identity of strangers) {
      if (room.entries.has(identity)) continue
      await api.removeParticipant(String(roomId), identity).catch(ignoreMissing)
      onStranger()
    }
  }

  #letIn({ entries }: OpenRoom, added: readonly RoomEntry[]): void {
    for (const entry of added) entries.set(this.#deps.tokens.identityOf(entry), entry.device)
  }
}

/** Its text tells the sweep whose room it is. */
function roomOf({ callId, roomId }: GatewayRoom) {
  return { name: String(roomId), metadata: String(callId) }
}

function ignoreMissing(error: unknown): void {
  if (!(error instanceof GatewayError && error.failure === 'no-such-room')) throw error
}

/** No room ends before its call: the longest has a day. */
const ROOM_FORM = { empty_timeout: 90_000, departure_timeout: 90_000, max_participants: PARTICIPANTS_MAX }
const LOOK_MS_MIN = 2_000
/** Less than a third of the time after which a silent device is lost. */
const LOOK_MS_MAX = 20_000
/** The rest waits for its next turn. */
const LOOKED_AT_ONCE = 1_000
