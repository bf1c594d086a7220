/**
 * What Janus says of its sessions: which device each is of, by the token that it was opened with, and whether it is in
 * a room and sends. Events are hints from outside: they may be lost or made up, so we check each member that we read,
 * keep a bounded number, and rest nothing on them alone.
 */

import { Recent } from '../recent.ts'
import { listOf, type Members, membersOf } from './gateway-requests.ts'
import type { RoomTokens, TokenDevice } from './room-tokens.ts'

export interface JanusEventsDeps {
  readonly tokens: Pick<RoomTokens, 'deviceOf'>
  readonly monotonicMs: () => number
  /** Janus began anew, without a room or session. */
  readonly onRestarted: () => void
  /** All that the device sends in the room, the newest first. */
  readonly onFeeds: (device: TokenDevice, roomId: number, feedIds: readonly number[]) => void
}

interface Session {
  readonly device: TokenDevice
  readonly handles: Map<number, Handle>
}

interface Feed {
  readonly roomId: number
  readonly feedId: number
}

interface Handle {
  readonly device: TokenDevice
  /** In a room, as a publisher. */
  feed: Feed | undefined
  /** By its number in the session description: whether packets come. */
  readonly media: Map<string, boolean>
  silentSinceMs: number | undefined
}

export class JanusEvents {
  readonly #deps: JanusEventsDeps
  readonly #sessions = new Map<number, Session>()
  /** By name; an empty set for a device whose sessions have ended. */
  readonly #ofDevice = new Recent<string, Set<number>>(SESSIONS_MAX)
  readonly #handleOfFeed = new Map<string, Handle>()

  constructor(deps: JanusEventsDeps) {
    this.#deps = deps
  }

  /** One event or a list of them, parsed. */
  take(events: unknown): void {
    for (const each of Array.isArray(events) ? events.slice(0, EVENTS_MAX) : [events]) {
      const event = membersOf(each)
      if (event !== undefined) this.#take(event)
    }
  }

  /** The device's sessions; undefined for a device that no event told of. */
  readonly sessionsOf = (device: TokenDevice): readonly number[] | undefined => {
    const sessions = this.#ofDevice.get(nameOf(device))
    return sessions && [...sessions]
  }

  /** Devices that are in one of these rooms and have not been silent for ten seconds. */
  present(isWanted: (roomId: number) => boolean): TokenDevice[] {
    const sinceMs = this.#deps.monotonicMs() - SILENT_MS
    const isThere = ({ feed, silentSinceMs = Number.POSITIVE_INFINITY }: Handle) =>
      feed !== undefined && isWanted(feed.roomId) && silentSinceMs > sinceMs
    return [...this.#sessions.values()]
      .filter(({ handles }) => [...handles.values()].some(isThere))
      .map(({ device }) => device)
  }

  /** Tells of all feeds once more. */
  tellAgain(): void {
    for (const { device, feed } of this.#handleOfFeed.values()) this.#tellFeeds(device, feed!.roomId)
  }

  /** Whether a feed of the session is known. */
  isKnown(sessionId: number): boolean {
    const handles = this.#sessions.get(sessionId)?.handles.values() ?? []
    return [...handles].some(({ feed }) => feed !== undefined)
  }

  /** Forgets sessions that are not among these: the word of their end was lost. */
  keepOnly(sessionIds: ReadonlySet<number>): void {
    for (const id of [...this.#sessions.keys()]) if (!sessionIds.has(id)) this.#forget(id)
  }

  #take({ type, subtype, session_id, handle_id, event }: Members): void {
    const members = membersOf(event)
    if (members === undefined) return
    if (type === CORE && subtype === STARTED) return this.#restart()
    const data = membersOf(members.data)
    if (type === PLUGIN && data?.event === 'leaving') return this.#leave(data)
    if (!isId(session_id) || !isId(handle_id)) return
    if (type === HANDLE) return this.#onHandle(session_id, handle_id, members)
    const session = this.#sessions.get(session_id)
    const handle = session?.handles.get(handle_id)
    if (session === undefined || handle === undefined) return
    if (type === PLUGIN && data?.event === 'joined') this.#join(handle, data)
    if (type === MEDIA && subtype === MEDIA_STATE) this.#onMedia(handle, members)
  }

  #onHandle(sessionId: number, handleId: number, { name, token }: Members): void {
    if (name === 'detached') return this.#detach(sessionId, handleId)
    if (name !== 'attached' || typeof token !== 'string') return
    const device = this.#deps.tokens.deviceOf(token)
    if (device === undefined) return
    const session = this.#sessions.get(sessionId) ?? this.#open(sessionId, device)
    if (nameOf(session.device) !== nameOf(device) || session.handles.has(handleId)) return
    if (session.handles.size >= HANDLES_MAX) return
    session.handles.set(handleId, { device, feed: undefined, media: new Map(), silentSinceMs: undefined })
  }

  #open(sessionId: number, device: TokenDevice): Session {
    if (this.#sessions.size >= SESSIONS_MAX) this.#forget(this.#sessions.keys().next().value!)
    const session: Session = { device, handles: new Map() }
    this.#sessions.set(sessionId, session)
    const name = nameOf(device)
    const sessions = this.#ofDevice.get(name) ?? new Set()
    sessions.add(sessionId)
    this.#ofDevice.set(name, sessions)
    return session
  }

  #join(handle: Handle, { room, id }: Members): void {
    if (!isId(room) || !isId(id)) return
    const feed = { roomId: room, feedId: id }
    // A feed that left; its farewell was lost.
    this.#unfeed(this.#handleOfFeed.get(nameOfFeed(feed)))
    this.#unfeed(handle)
    handle.feed = feed
    this.#handleOfFeed.set(nameOfFeed(feed), handle)
    this.#tellFeeds(handle.device, room)
  }

  /** Comes without the session. */
  #leave({ room, id }: Members): void {
    if (isId(room) && isId(id)) this.#unfeed(this.#handleOfFeed.get(nameOfFeed({ roomId: room, feedId: id })))
  }

  #unfeed(handle: Handle | undefined): void {
    if (handle?.feed === undefined) return
    const { feed, device } = handle
    handle.feed = undefined
    this.#handleOfFeed.delete(nameOfFeed(feed))
    this.#tellFeeds(device, feed.roomId)
  }

  #tellFeeds(device: TokenDevice, roomId: number): void {
    const feeds = (this.sessionsOf(device) ?? [])
      .flatMap(id => [...(this.#sessions.get(id)?.handles.values() ?? [])])
      .flatMap(({ feed }) => (feed?.roomId === roomId ? [feed.feedId] : []))
    this.#deps.onFeeds(device, roomId, feeds.slice(-FEEDS_MAX).toReversed())
  }

  #onMedia(handle: Handle, { mid, receiving }: Members): void {
    if (typeof mid !== 'string' || mid.length > MID_CHARACTERS_MAX || typeof receiving !== 'boolean') return
    if (handle.media.size >= MEDIA_MAX && !handle.media.has(mid)) return
    handle.media.set(mid, receiving)
    const isSilent = [...handle.media.values()].every(comes => !comes)
    handle.silentSinceMs = isSilent ? (handle.silentSinceMs ?? this.#deps.monotonicMs()) : undefined
  }

  #detach(sessionId: number, handleId: number): void {
    const session = this.#sessions.get(sessionId)
    const handle = session?.handles.get(handleId)
    if (session === undefined || handle === undefined) return
    this.#unfeed(handle)
    session.handles.delete(handleId)
    if (session.handles.size === 0) this.#forget(sessionId)
  }

  #forget(sessionId: number): void {
    const session = this.#sessions.get(sessionId)
    if (session === undefined) return
    for (const handle of session.handles.values()) this.#unfeed(handle)
    this.#sessions.delete(sessionId)
    this.#ofDevice.get(nameOf(session.device))?.delete(sessionId)
  }

  #restart(): void {
    this.#sessions.clear()
    this.#ofDevice.clear()
    this.#handleOfFeed.clear()
    this.#deps.onRestarted()
  }
}

export function attachedEvent(ids: Members, token: string): Members {
  return { type: HANDLE, ...ids, event: { name: 'attached', token } }
}

export function joinedEvent(ids: Members, room: unknown, id: unknown): Members {
  return { type: PLUGIN, ...ids, event: { data: { event: 'joined', room, id } } }
}

/** The ids of `list_sessions`. */
export function sessionIdsOf(answer: Members): ReadonlySet<number> {
  return new Set(listOf(answer.sessions).filter(isId))
}

function isId(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0
}

function nameOfFeed({ roomId, feedId }: Feed): string {
  return `${roomId} ${feedId}`
}

function nameOf({ userId, deviceId }: TokenDevice): string {
  return `${userId}_${deviceId}`
}

/** Types of events, and subtypes, as the manual of Janus has them. */
const HANDLE = 2
const MEDIA = 32
const MEDIA_STATE = 1
const PLUGIN = 64
const CORE = 256
const STARTED = 1
const SILENT_MS = 10_000
const EVENTS_MAX = 10_000
const SESSIONS_MAX = 50_000
const HANDLES_MAX = 16
/** A device that comes back has two until the lost one is given up. */
const FEEDS_MAX = 4
const MEDIA_MAX = 16
const MID_CHARACTERS_MAX = 16
