/** The assembly of the media gateway in the writer: its rooms' actors, and the sweep that corrects differences. */

import { mediaRoomKind } from '../../../actors/calls/media-room.ts'
import type { CallRoomMessage, MediaRoomMessage } from '../../../actors/messages.ts'
import type { CallDeviceRef } from '../../domain/calls/call.ts'
import type { CallId, DeviceId, UserId } from '../../domain/ids.ts'
import type { Secrets } from '../../domain/secrets.ts'
import { type EventsListener, listenForEvents } from '../../media/events-listener.ts'
import { GatewayError } from '../../media/gateway.ts'
import { JanusAdmin } from '../../media/janus-admin.ts'
import { JanusEvents } from '../../media/janus-events.ts'
import { JanusGateway } from '../../media/janus-gateway.ts'
import type { JanusSettings } from '../../media/janus-settings.ts'
import { RoomSweep } from '../../media/room-sweep.ts'
import { RoomTokens } from '../../media/room-tokens.ts'
import type { Logger } from '../../operations/log.ts'
import type { Metrics } from '../../operations/metrics.ts'
import type { Ref } from '../../runtime/actor.ts'
import type { ActorSystem } from '../../runtime/system.ts'
import type { CallIndex } from '../../store/calls/call-index.ts'
import { forEver } from '../process/for-ever.ts'
import type { Process } from '../process/process.ts'

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
  readonly #sweep: RoomSweep
  #listener: EventsListener | undefined
  /** Undefined before the first answer. */
  #isUp: boolean | undefined

  constructor(deps: MediaDeps) {
    const { settings, secrets, system, monotonicMs } = deps
    const tokens = new RoomTokens(settings)
    this.#deps = deps
    this.#admin = new JanusAdmin(settings, this.#onRequest)
    this.#events = new JanusEvents({
      tokens,
      monotonicMs,
      onRestarted: this.#onRestarted,
      onFeeds: this.#onFeeds,
    })
    this.#gateway = new JanusGateway({
      admin: this.#admin,
      adminKey: settings.adminKey,
      roomKey: secrets.mediaRoom,
      tokens,
      sessionsOf: this.#events.sessionsOf,
    })
    this.#sweep = new RoomSweep({
      admin: this.#admin,
      gateway: this.#gateway,
      events: this.#events,
      hasEvents: () => this.#listener !== undefined,
      index: deps.index,
      monotonicMs,
      onMissing: this.#onMissing,
      onStranger: () => deps.metrics.mediaStrangers.inc(),
      onFailed: error => this.#warn('media-sweep-failed', error),
    })
    this.roomOf = system.define<MediaRoomMessage>(
      mediaRoomKind({
        gateway: this.#gateway,
        callRoom: callId => system.ref<CallRoomMessage>('call-room', callId),
        monotonicMs,
        onFailed: (callId, step, error) =>
          this.#warn('media-step-failed', error, { callId: String(callId), step }),
      }),
    )
  }

  /** Takes the gateway's events, sweeps now and each minute, and reports which devices the gateway has. */
  async start(
    context: Pick<Process, 'world' | 'onFault'>,
    onSeen: (userId: UserId, deviceId: DeviceId) => void,
  ): Promise<void> {
    await this.#listen()
    this.#sweep.run().catch(context.onFault)
    forEver(context, SWEEP_MS, () => this.#sweep.run())
    context.world.every(SEEN_MS, () => {
      for (const { userId, deviceId } of this.#events.present()) onSeen(userId, deviceId)
    })
  }

  /** Takes events where the settings say so. Calls work without: the sweep finds the same, later. */
  async #listen(): Promise<void> {
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

  /** As the last sweep found them. */
  get roomCount(): number {
    return this.#sweep.roomCount
  }

  /** The gateway has begun anew, without a room. */
  readonly #onRestarted = (): void => {
    const { index, monotonicMs } = this.#deps
    const askedAtMs = monotonicMs()
    for (const { callId } of index.rooms()) this.#onMissing(callId, askedAtMs)
  }

  readonly #onMissing = (callId: CallId, askedAtMs: number): void => {
    const room = this.#deps.system.ref<MediaRoomMessage>('media-room', String(callId))
    room.tellControl({ kind: 'missing', askedAtMs })
  }

  readonly #onFeeds = (device: CallDeviceRef, roomId: number, feedIds: readonly number[]): void => {
    const { index, system } = this.#deps
    const callId = index.callInRoom(roomId)
    if (callId === undefined) return
    const room = system.ref<CallRoomMessage>('call-room', String(callId))
    room.tellControl({ kind: 'media-feeds', roomId, device, feedIds })
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

  /** Logs a gateway's outage once, when it begins. */
  #warn(event: string, error: unknown, members: object = {}): void {
    if (!isAway(error)) this.#deps.logger.warn({ event, ...members, ...reasonOf(error) })
  }
}

function isAway(error: unknown): boolean {
  return error instanceof GatewayError && AWAY.has(error.failure)
}

function reasonOf(error: unknown): { readonly reason: string; readonly detail: string } {
  if (error instanceof GatewayError) return { reason: error.failure, detail: error.message }
  return { reason: 'internal', detail: error instanceof Error ? error.message : String(error) }
}

const AWAY: ReadonlySet<string> = new Set(['timeout', 'network', 'busy'])
const SWEEP_MS = 60_000
/** A third of the time after which a silent device is lost. */
const SEEN_MS = 30_000
