/**
 * Janus as the media gateway, by its VideoRoom plugin. A room is private and has a secret that follows from the call's id, so
 * the server stores none. It takes signed tokens that are also on its list: the signature says which device it is, the list
 * that the device is in the call now, and alone can be taken back.
 */

import { createHmac, type KeyObject } from 'node:crypto'
import { CALL_SIZE_MAX, isSameDevice, type RoomEntry } from '../domain/calls/call.ts'
import { type CallId, parseUint64 } from '../domain/ids.ts'
import { type FoundRoom, GatewayError, type GatewayRoom, type MediaGateway } from './gateway.ts'
import { listOf, type Members, membersOf } from './gateway-requests.ts'
import type { JanusAdmin } from './janus-admin.ts'
import { attachedEvent, joinedEvent } from './janus-events.ts'
import type { RoomTokens, TokenDevice } from './room-tokens.ts'

export interface JanusGatewayDeps {
  readonly admin: Pick<JanusAdmin, 'request' | 'videoRoom'>
  readonly adminKey: string
  /** Keys the secrets of rooms. */
  readonly roomKey: KeyObject
  readonly tokens: Pick<RoomTokens, 'roomTokens' | 'endedTokens' | 'deviceOf'>
  /** The device's sessions as the gateway's events tell; undefined for a device that they never told of. */
  readonly sessionsOf: (device: TokenDevice) => readonly number[] | undefined
}

interface FoundHandle {
  readonly handleId: unknown
  readonly token: string
  readonly room: unknown
  /** A publisher's. */
  readonly feedId: unknown
}

export class JanusGateway implements MediaGateway {
  readonly #deps: JanusGatewayDeps

  constructor(deps: JanusGatewayDeps) {
    this.#deps = deps
  }

  readonly open = async (room: GatewayRoom, entries: readonly RoomEntry[]): Promise<void> => {
    try {
      await this.#deps.admin.videoRoom(this.#createRequest(room, this.#tokensOf(entries)))
    } catch (error) {
      if (!isFailure(error, 'room-in-use')) throw error
      await this.#takeOver(room, entries)
    }
  }

  readonly admit = async (room: GatewayRoom, entries: readonly RoomEntry[]): Promise<void> => {
    await this.#ask(room, 'allowed', { action: 'add', allowed: this.#tokensOf(entries) })
  }

  readonly renew = async (room: GatewayRoom, entries: readonly RoomEntry[]): Promise<void> => {
    await this.admit(room, entries)
    const ended = entries.flatMap(entry => this.#deps.tokens.endedTokens(entry))
    await this.#ask(room, 'allowed', { action: 'remove', allowed: ended })
  }

  /** The list first: a device that is put out must not come back at once. */
  readonly remove = async (room: GatewayRoom, entry: RoomEntry): Promise<void> => {
    await this.#ask(room, 'allowed', { action: 'remove', allowed: this.#tokensOf([entry]) })
    await this.#putOut(room, entry.device)
  }

  readonly close = async (room: GatewayRoom): Promise<void> => {
    await this.#ask(room, 'destroy', {}).catch(ignoring('no-such-room'))
  }

  readonly rooms = async (): Promise<readonly FoundRoom[]> => {
    const { admin, adminKey } = this.#deps
    const { list } = await admin.videoRoom({ request: 'list', admin_key: adminKey })
    if (!Array.isArray(list)) throw new GatewayError('malformed', 'janus listed no rooms')
    return list.flatMap(each => {
      const { room, description } = membersOf(each) ?? {}
      if (typeof room !== 'number') return []
      const callId = typeof description === 'string' ? parseUint64(description) : undefined
      return [{ roomId: room, callId: callId as CallId | undefined }]
    })
  }

  /** Ends what the device has in the room. */
  async #putOut(room: GatewayRoom, device: TokenDevice): Promise<void> {
    const sessions = this.#deps.sessionsOf(device) ?? (await this.#allSessions())
    for (const sessionId of sessions) {
      const handles = await this.#handlesIn(room, device, sessionId)
      for (const { feedId } of handles) {
        if (feedId !== undefined) await this.#ask(room, 'kick', { id: feedId }).catch(ignoring('refused'))
      }
      if (handles.length > 0) {
        const destroy = { janus: 'destroy_session', session_id: sessionId }
        await this.#deps.admin.request(destroy).catch(ignoring('refused'))
      }
    }
  }

  /** Events like those that a session’s handles sent, as far as these exist now. */
  readonly eventsOf = async (sessionId: number): Promise<readonly Members[]> => {
    const handles = await this.#handlesOf(sessionId)
    return handles.flatMap(({ handleId, token, room, feedId }) => {
      const ids = { session_id: sessionId, handle_id: handleId }
      return [attachedEvent(ids, token), ...(feedId === undefined ? [] : [joinedEvent(ids, room, feedId)])]
    })
  }

  #createRequest({ callId, roomId }: GatewayRoom, allowed: readonly string[]): Members {
    return {
      request: 'create',
      admin_key: this.#deps.adminKey,
      room: roomId,
      // Names the call of the room, for the sweep.
      description: String(callId),
      secret: this.#secretOf(callId),
      is_private: true,
      signed_tokens: true,
      allowed,
      require_pvtid: true,
      require_e2ee: true,
      notify_joining: true,
      publishers: CALL_SIZE_MAX,
      audiocodec: 'opus',
      videocodec: 'vp8,h264',
      bitrate: BITRATE,
    }
  }

  /** A room of this number is there. Only our secret opens ours. */
  async #takeOver(room: GatewayRoom, entries: readonly RoomEntry[]): Promise<void> {
    const tokens = this.#tokensOf(entries)
    const answer = await this.#ask(room, 'allowed', { action: 'add', allowed: tokens }).catch(error => {
      if (isFailure(error, 'refused')) throw new GatewayError('room-in-use', 'a foreign room has the number')
      throw error
    })
    const wanted = new Set(tokens)
    const strange = listOf(answer.allowed).filter(
      (token): token is string => typeof token === 'string' && !wanted.has(token),
    )
    if (strange.length === 0) return
    await this.#ask(room, 'allowed', { action: 'remove', allowed: strange })
    for (const token of strange) {
      const device = this.#deps.tokens.deviceOf(token)
      if (device === undefined || entries.some(entry => isSameDevice(entry.device, device))) continue
      await this.#putOut(room, device)
    }
  }

  #tokensOf(entries: readonly RoomEntry[]): string[] {
    return entries.flatMap(entry => this.#deps.tokens.roomTokens(entry))
  }

  async #allSessions(): Promise<readonly number[]> {
    const { sessions } = await this.#deps.admin.request({ janus: 'list_sessions' })
    return listOf(sessions)
      .filter(each => typeof each === 'number')
      .slice(0, SESSIONS_SEARCHED_MAX)
  }

  /** The session's handles in the room, if its token says that it is this device's. */
  async #handlesIn(
    { roomId }: GatewayRoom,
    device: TokenDevice,
    sessionId: number,
  ): Promise<{ readonly feedId: unknown }[]> {
    const handles = await this.#handlesOf(sessionId)
    return handles.flatMap(({ token, room, feedId }) => {
      const owner = this.#deps.tokens.deviceOf(token)
      return owner !== undefined && isSameDevice(owner, device) && room === roomId ? [{ feedId }] : []
    })
  }

  async #handlesOf(sessionId: number): Promise<FoundHandle[]> {
    const { admin } = this.#deps
    const listed = await admin
      .request({ janus: 'list_handles', session_id: sessionId })
      .catch(ignoring('refused'))
    const found: FoundHandle[] = []
    for (const handleId of listOf(listed?.handles).slice(0, HANDLES_MAX)) {
      const ids = { session_id: sessionId, handle_id: handleId, plugin_only: true }
      const answer = await admin.request({ janus: 'handle_info', ...ids }).catch(ignoring('refused'))
      const { token, plugin_specific } = membersOf(answer?.info) ?? {}
      const { room, id, type } = membersOf(plugin_specific) ?? {}
      const feedId = type === 'publisher' ? id : undefined
      if (typeof token === 'string') found.push({ handleId, token, room, feedId })
    }
    return found
  }

  #ask({ callId, roomId }: GatewayRoom, request: string, members: Members): Promise<Members> {
    const secret = this.#secretOf(callId)
    return this.#deps.admin.videoRoom({ request, room: roomId, secret, ...members })
  }

  #secretOf(callId: CallId): string {
    return createHmac('sha256', this.#deps.roomKey).update(String(callId)).digest('base64url')
  }
}

function isFailure(error: unknown, failure: GatewayError['failure']): boolean {
  return error instanceof GatewayError && error.failure === failure
}

function ignoring(failure: GatewayError['failure']): (error: unknown) => undefined {
  return error => {
    if (!isFailure(error, failure)) throw error
    return undefined
  }
}

/** Bits in a second of each stream: pictures of 640 by 480. */
const BITRATE = 512_000
/** A device's session that no event told of is looked for among so many. */
const SESSIONS_SEARCHED_MAX = 2_000
const HANDLES_MAX = 16
