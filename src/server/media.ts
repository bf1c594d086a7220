/** The media gateway put together, in the writer: its rooms' actors, and the sweep that sets right what differs. */

import { mediaRoomKind } from '../../actors/calls/media-room.ts'
import type { CallRoomMessage, MediaRoomMessage } from '../../actors/messages.ts'
import type { CallDeviceRef } from '../domain/calls/call.ts'
import type { CallId } from '../domain/ids.ts'
import type { Secrets } from '../domain/secrets.ts'
import { type EventsListener, listenForEvents } from '../media/events-listener.ts'
import { type FoundRoom, GatewayError } from '../media/gateway.ts'
import { JanusAdmin } from '../media/janus-admin.ts'
import { JanusEvents, sessionIdsOf } from '../media/janus-events.ts'
import { JanusGateway } from '../media/janus-gateway.ts'
import type { JanusSettings } from '../media/janus-settings.ts'
import { RoomTokens } from '../media/room-tokens.ts'
import type { Logger } from '../operations/log.ts'
import type { Metrics } from '../operations/metrics.ts'
import type { Ref } from '../runtime/actor.ts'
import type { ActorSystem } from '../runtime/system.ts'
import type { CallIndex } from '../store/calls/call-index.ts'

export interface MediaDeps {
  readonly settings: JanusSettings
  readonly secrets: Pick<Secrets, 'mediaRoom'>
  readonly system: Pick<ActorSystem, 'define' | 'ref'>
  readonly index: Pick<CallIndex, 'callInRoom' | 'rooms'>
  readonly monotonicMs: () => number
  readonly metrics: Metrics
  readonly logger: Logger
}

export class Media {
  /** The actor of a call's room, by decimal id. */
  readonly roomOf: (callId: string) => Ref<MediaRoomMessage>
  readonly #deps: MediaDeps
  readonly #admin: JanusAdmin
  readonly #gateway: JanusGateway
  readonly #events: JanusEvents
  #listener: EventsListener | undefined
  /** Undefined before the first answer. */
  #isUp: boolean | undefined
  /** As the last look found them. */
  roomCount = 0

  constructor(deps: MediaDeps) {
    const { settings, secrets, system, monotonicMs, logger } = deps
    const tokens = new RoomTokens(settings)
    this.#deps = deps
    this.#admin = new JanusAdmin(settings, this.#onRequest)
    this.#events = new JanusEvents({
      tokens,
      monotonicMs,
      onRestarted: () => this.#onRestarted(),
      onFeeds: this.#onFeeds,
    })
    this.#gateway = new JanusGateway({
      admin: this.#admin,
      adminKey: settings.adminKey,
      roomKey: secrets.mediaRoom,
      tokens,
      sessionsOf: this.#events.sessionsOf,
    })
    this.roomOf = system.define<MediaRoomMessage>(
      mediaRoomKind({
        gateway: this.#gateway,
        callRoom: callId => system.ref<CallRoomMessage>('call-room', callId),
        monotonicMs,
        onFailed: (callId, step, error) => {
          if (isAway(error)) return
          logger.warn({ event: 'media-step-failed', callId: String(callId), step, ...reasonOf(error) })
        },
      }),
    )
  }

  /** Takes the gateway's events, where the settings say so. Calls go on without: the sweep finds the same, later. */
  async listen(): Promise<void> {
    const { settings, metrics, logger } = this.#deps
    if (settings.events === undefined) return
    try {
      this.#listener = await listenForEvents(
        settings.events,
        events => this.#events.take(events),
        status => metrics.mediaEvents.inc({ status: String(status) }),
      )
    } catch (error) {
      const { host, port } = settings.events
      logger.error({ event: 'media-events-not-taken', host, port, ...reasonOf(error) })
    }
  }

  close(): void {
    this.#listener?.close()
  }

  /** Whether the gateway answered last. */
  get isUp(): boolean {
    return this.#isUp ?? true
  }

  /** Devices that the gateway's events say are there. */
  present(): readonly CallDeviceRef[] {
    return this.#events.present()
  }

  /** Closes rooms that no live call has, and has those made again that the gateway lost. */
  async sweep(): Promise<void> {
    const { index, monotonicMs, metrics } = this.#deps
    const askedAtMs = monotonicMs()
    const found = await this.#gateway.rooms().catch(error => this.#noteFailure(error))
    if (found === undefined) return
    this.roomCount = found.length
    if (this.#listener !== undefined) await this.#compareSessions()
    const here = new Set(found.map(({ roomId }) => roomId))
    for (const { callId, roomId } of index.rooms()) {
      if (!here.has(roomId)) this.roomOf(String(callId)).tellControl({ kind: 'missing', askedAtMs })
    }
    const strangers = found.filter(
      ({ roomId, callId }) => callId === undefined || index.callInRoom(roomId) !== callId,
    )
    for (const stranger of strangers.slice(0, CLOSED_AT_ONCE)) {
      const isClosed = await this.#close(stranger)
      if (isClosed) metrics.mediaStrangers.inc()
    }
  }

  readonly #onFeeds = (device: CallDeviceRef, roomId: number, feedIds: readonly number[]): void => {
    const { index, system } = this.#deps
    const callId = index.callInRoom(roomId)
    if (callId === undefined) return
    const room = system.ref<CallRoomMessage>('call-room', String(callId))
    room.tellControl({ kind: 'media-feeds', roomId, device, feedIds })
  }

  async #compareSessions(): Promise<void> {
    const answer = await this.#admin
      .request({ janus: 'list_sessions' })
      .catch(error => this.#noteFailure(error))
    if (answer === undefined) return
    const sessionIds = sessionIdsOf(answer)
    this.#events.keepOnly(sessionIds)
    const unknown = [...sessionIds].filter(id => !this.#events.isKnown(id))
    for (const id of unknown.slice(0, ASKED_AT_ONCE)) {
      const events = await this.#gateway.eventsOf(id).catch(error => this.#noteFailure(error))
      this.#events.take(events ?? [])
    }
    this.#events.tellAgain()
  }

  /** The gateway has no room. */
  #onRestarted(): void {
    const askedAtMs = this.#deps.monotonicMs()
    for (const { callId } of this.#deps.index.rooms()) {
      this.roomOf(String(callId)).tellControl({ kind: 'missing', askedAtMs })
    }
  }

  /** A foreign room stays: its secret is not known here. */
  async #close({ roomId, callId = NO_CALL }: FoundRoom): Promise<boolean> {
    try {
      await this.#gateway.close({ roomId, callId })
      return true
    } catch (error) {
      this.#noteFailure(error)
      return false
    }
  }

  #noteFailure(error: unknown): undefined {
    if (!isAway(error)) this.#deps.logger.warn({ event: 'media-sweep-failed', ...reasonOf(error) })
    return undefined
  }

  readonly #onRequest = (outcome: string): void => {
    const { metrics, logger } = this.#deps
    metrics.mediaRequests.inc({ outcome })
    const isUp = !AWAY.has(outcome)
    if (isUp === this.#isUp) return
    if (!isUp) logger.warn({ event: 'media-gateway-lost', reason: outcome })
    else if (this.#isUp === false) logger.info({ event: 'media-gateway-back' })
    this.#isUp = isUp
  }
}

/** Said once for all, when it begins. */
function isAway(error: unknown): boolean {
  return error instanceof GatewayError && AWAY.has(error.failure)
}

function reasonOf(error: unknown): { readonly reason: string; readonly detail: string } {
  if (error instanceof GatewayError) return { reason: error.failure, detail: error.message }
  return { reason: 'internal', detail: error instanceof Error ? error.message : String(error) }
}

const AWAY: ReadonlySet<string> = new Set(['timeout', 'network', 'busy'])
const NO_CALL = 0n as CallId
/** The rest waits for the next sweep. */
const CLOSED_AT_ONCE = 500
const ASKED_AT_ONCE = 200
