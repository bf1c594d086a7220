/** A Janus with what watches it: its events, and the sweep that corrects differences. */

import type { CallDeviceRef } from '../../domain/calls/call.ts'
import type { Secrets } from '../../domain/secrets.ts'
import { GatewayError } from '../../media/gateway.ts'
import type { GatewayHost, GatewayWatch } from '../../media/gateway-host.ts'
import { JanusAdmin } from '../../media/janus-admin.ts'
import { JanusEvents, sessionIdsOf } from '../../media/janus-events.ts'
import { JanusGateway } from '../../media/janus-gateway.ts'
import type { JanusSettings } from '../../media/janus-settings.ts'
import { RoomSweep } from '../../media/room-sweep.ts'
import { RoomTokens } from '../../media/room-tokens.ts'
import type { Logger } from '../../operations/log.ts'
import type { Metrics } from '../../operations/metrics.ts'

/** Shared by all hosts of gateways. */
export interface MediaContext {
  readonly secrets: Pick<Secrets, 'mediaRoom'>
  readonly monotonicMs: () => number
  readonly metrics: Metrics
  readonly logger: Logger
}

export class JanusHost implements GatewayHost {
  readonly name: string
  readonly gateway: JanusGateway
  readonly #watch: GatewayWatch
  readonly #context: MediaContext
  readonly #events: JanusEvents
  readonly #admin: JanusAdmin
  readonly #sweep: RoomSweep
  readonly #hasEvents: () => boolean

  /** `hasEvents`: whether the gateways' events are taken here. */
  constructor(settings: JanusSettings, watch: GatewayWatch, context: MediaContext, hasEvents: () => boolean) {
    const { secrets, monotonicMs, metrics } = context
    this.#watch = watch
    this.#context = context
    this.#hasEvents = hasEvents
    this.name = settings.name
    const tokens = new RoomTokens(settings)
    const admin = new JanusAdmin(settings, this.#onRequest)
    const { onFeeds } = watch
    this.#admin = admin
    this.#events = new JanusEvents({ tokens, monotonicMs, onRestarted: this.#onRestarted, onFeeds })
    this.gateway = new JanusGateway({
      admin,
      adminKey: settings.adminKey,
      roomKey: secrets.mediaRoom,
      tokens,
      sessionsOf: this.#events.sessionsOf,
    })
    this.#sweep = new RoomSweep({
      ...{ watch, gateway: this.gateway, monotonicMs },
      alsoPutRight: () => this.#compareSessions(),
      onStranger: () => metrics.mediaStrangers.inc({ gateway: this.name }),
      onFailed: error => this.#warn('media-sweep-failed', error),
    })
  }

  get roomCount(): number {
    return this.#sweep.roomCount
  }

  /** The plugin of the rooms has to answer, with no list of them: there may be thousands. */
  readonly look = async (): Promise<void> => {
    await this.#admin.videoRoom({ request: 'exists', room: 1 }).catch(() => undefined)
  }

  readonly sweep = (): Promise<void> => this.#sweep.run()

  /** A call that went to another gateway may still have devices here. */
  readonly present = (): readonly CallDeviceRef[] =>
    this.#events.present(roomId => this.#watch.calls.callInRoom(roomId) !== undefined)

  /** Events that this gateway has sent, parsed. */
  readonly takeEvents = (events: unknown): void => this.#events.take(events)

  /** The sessions that the gateway has with those that its events told of. */
  async #compareSessions(): Promise<void> {
    if (!this.#hasEvents()) return
    try {
      const sessionIds = sessionIdsOf(await this.#admin.request({ janus: 'list_sessions' }))
      this.#events.keepOnly(sessionIds)
      const unknown = [...sessionIds].filter(id => !this.#events.isKnown(id))
      for (const id of unknown.slice(0, ASKED_AT_ONCE)) {
        const events = await this.gateway.eventsOf(id).catch(error => this.#warn('media-sweep-failed', error))
        this.#events.take(events ?? [])
      }
      this.#events.tellAgain()
    } catch (error) {
      this.#warn('media-sweep-failed', error)
    }
  }

  /** The gateway has begun anew, without a room. */
  readonly #onRestarted = (): void => {
    const askedAtMs = this.#context.monotonicMs()
    for (const { callId } of this.#watch.calls.rooms()) this.#watch.onMissing(callId, askedAtMs)
  }

  readonly #onRequest = (outcome: string): void => {
    this.#context.metrics.mediaRequests.inc({ gateway: this.name, outcome })
    // A proxy in front may answer for one that is away.
    if (outcome === 'ok') this.#watch.health.answered()
    else this.#watch.health.failed(outcome)
  }

  #warn(event: string, error: unknown): void {
    warnUnlessAway(this.#context.logger, event, error, { gateway: this.name })
  }
}

/** A gateway's outage is logged once, when it begins. */
export function warnUnlessAway(logger: Logger, event: string, error: unknown, members: object): void {
  const isAway = error instanceof GatewayError && AWAY.has(error.failure)
  if (!isAway) logger.warn({ event, ...members, ...reasonOf(error) })
}

function reasonOf(error: unknown): { readonly reason: string; readonly detail: string } {
  if (error instanceof GatewayError) return { reason: error.failure, detail: error.message }
  return { reason: 'internal', detail: error instanceof Error ? error.message : String(error) }
}

/** The rest waits for the next sweep. */
const ASKED_AT_ONCE = 200
const AWAY: ReadonlySet<string> = new Set(['timeout', 'network', 'busy'])
