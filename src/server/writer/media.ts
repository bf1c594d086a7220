/** The assembly of the media gateways in the writer: the gateways, and the actors of calls' rooms at them. */

import { isDeepStrictEqual } from 'node:util'
import { mediaRoomKind } from '../../../actors/calls/media-room.ts'
import type { CallRoomMessage, MediaRoomMessage } from '../../../actors/messages.ts'
import type { CallDeviceRef } from '../../domain/calls/call.ts'
import type { CallId, DeviceId, UserId } from '../../domain/ids.ts'
import { messageOf } from '../../errors.ts'
import type { CurrentMedia } from '../../media/current-media.ts'
import {
  type EventLogins,
  type EventsListener,
  eventLoginsOf,
  listenForEvents,
} from '../../media/events-listener.ts'
import { GatewayHealth } from '../../media/gateway-health.ts'
import { callsAt, type GatewayWatch } from '../../media/gateway-host.ts'
import { GatewayPool, type PoolMember } from '../../media/gateway-pool.ts'
import type { JanusSettings } from '../../media/janus-settings.ts'
import type { LiveKitSettings } from '../../media/livekit-settings.ts'
import type { MediaSettings } from '../../media/media-settings.ts'
import type { GatewayFigures } from '../../operations/figures.ts'
import type { Ref } from '../../runtime/actor.ts'
import type { ActorSystem } from '../../runtime/system.ts'
import type { CallIndex } from '../../store/calls/call-index.ts'
import type { Process } from '../process/process.ts'
import { JanusHost, type MediaContext, warnUnlessAway } from './janus-host.ts'
import { LIVEKIT, LiveKitHost } from './livekit-host.ts'

export interface MediaDeps extends MediaContext {
  readonly settings: MediaSettings
  /** Later lists of gateways. */
  readonly current: Pick<CurrentMedia, 'watch'>
  readonly index: CallIndex
  readonly system: Pick<ActorSystem, 'define' | 'ref'>
}

/** A gateway with what it was made of. */
interface MadeJanus {
  readonly settings: JanusSettings
  readonly host: JanusHost
  readonly health: GatewayHealth
}

export class Media {
  /** The actor of a call's room, by decimal id. */
  readonly roomOf: (callId: string) => Ref<MediaRoomMessage>
  readonly #pool: GatewayPool
  readonly #deps: MediaDeps
  readonly #stopWatching: () => void
  #janus: ReadonlyMap<string, MadeJanus> = new Map()
  #logins: EventLogins = new Map()
  #listener: EventsListener | undefined

  constructor(deps: MediaDeps) {
    const { settings, current, index, system, monotonicMs, logger } = deps
    this.#deps = deps
    this.#pool = new GatewayPool({
      ...{ index, monotonicMs },
      onHomeless: (callId, gateway) => this.#roomOf(callId).tellControl({ kind: 'homeless', gateway }),
      onGivenUp: (gateway, calls) => logger.warn({ event: 'media-gateway-given-up', gateway, calls }),
    })
    this.#take(settings, { areNewcomers: false })
    this.#stopWatching = current.watch(next => this.#take(next, { areNewcomers: true }))
    this.roomOf = system.define<MediaRoomMessage>(
      mediaRoomKind({
        choose: (...asked) => this.#pool.choose(...asked),
        gatewayOf: name => this.#pool.of(name)?.host.gateway,
        callRoom: callId => system.ref<CallRoomMessage>('call-room', callId),
        monotonicMs,
        onFailed: ({ callId, gateway, step, error }) =>
          warnUnlessAway(logger, 'media-step-failed', error, { gateway, callId: String(callId), step }),
      }),
    )
  }

  /** The gateway that a call without one gets. */
  readonly gatewayFor = (callId: CallId): string | undefined =>
    this.#pool.choose(callId, undefined, undefined)

  /** Takes the gateways' events, sweeps now and each minute, and reports which devices the gateways have. */
  async start(
    context: Pick<Process, 'world' | 'onFault'>,
    onSeen: (userId: UserId, deviceId: DeviceId) => void,
  ): Promise<void> {
    await this.#listen()
    const sweep = () => void this.#pool.sweep().catch(context.onFault)
    sweep()
    context.world.every(SWEEP_MS, sweep)
    context.world.every(TICK_MS, () => this.#pool.tick())
    context.world.every(SEEN_MS, () => {
      for (const { host } of this.#pool.members)
        for (const { userId, deviceId } of host.present()) onSeen(userId, deviceId)
    })
  }

  /** One for each gateway, in the order of the settings. */
  figures(): readonly GatewayFigures[] {
    const calls = this.#deps.index.gateways()
    return this.#pool.members.map(({ host: { name, roomCount: rooms }, health: { isUp }, isDraining }) => ({
      ...{ name, isUp, isDraining, rooms },
      calls: calls.get(name) ?? 0,
    }))
  }

  close(): void {
    this.#stopWatching()
    this.#listener?.close()
  }

  /** Each by its name, in the order of the settings. A gateway that is as it was stays as it is. */
  #take(settings: MediaSettings, { areNewcomers }: { readonly areNewcomers: boolean }): void {
    if (settings.kind === 'livekit') return this.#takeLiveKit(settings.livekit)
    const { gateways } = settings
    const made = gateways.map(each => {
      const before = this.#janus.get(each.name)
      return before && isSame(before.settings, each) ? before : this.#makeJanus(each, areNewcomers)
    })
    const { metrics } = this.#deps
    for (const name of this.#janus.keys())
      if (gateways.every(each => each.name !== name)) metrics.forgetGateway(name)
    this.#janus = new Map(made.map(each => [each.host.name, each]))
    this.#logins = eventLoginsOf(gateways)
    this.#pool.replace(
      made.map(({ host, health }, at): PoolMember => {
        const { weight, isDraining } = gateways[at]!
        return { host, health, weight, isDraining }
      }),
    )
  }

  /** Once: it can't be replaced while the server runs. */
  #takeLiveKit(settings: LiveKitSettings): void {
    const watch = this.#watchOf(LIVEKIT, false)
    const host = new LiveKitHost(settings, watch, this.#deps)
    this.#pool.replace([{ host, health: watch.health, weight: 1, isDraining: false }])
  }

  #makeJanus(settings: JanusSettings, isNewcomer: boolean): MadeJanus {
    const watch = this.#watchOf(settings.name, isNewcomer)
    const host = new JanusHost(settings, watch, this.#deps, () => this.#listener !== undefined)
    return { settings, host, health: watch.health }
  }

  #watchOf(gateway: string, isNewcomer: boolean): GatewayWatch {
    const { index, monotonicMs, logger } = this.#deps
    const onTurned = (isUp: boolean, reason: string) =>
      isUp
        ? logger.info({ event: 'media-gateway-back', gateway })
        : logger.warn({ event: 'media-gateway-lost', gateway, reason })
    return {
      health: new GatewayHealth(monotonicMs, onTurned, isNewcomer),
      calls: callsAt(index, gateway),
      onMissing: (callId, askedAtMs) =>
        this.#roomOf(callId).tellControl({ kind: 'missing', gateway, askedAtMs }),
      onFeeds: (...feeds) => this.#onFeeds(gateway, ...feeds),
    }
  }

  /** Takes events where the settings say so. Calls work without: the sweep finds the same, later. */
  async #listen(): Promise<void> {
    const { settings, metrics, logger } = this.#deps
    if (settings.kind !== 'janus' || settings.events === undefined) return
    try {
      this.#listener = await listenForEvents(
        settings.events,
        () => this.#logins,
        (gateway, events) => this.#janus.get(gateway)?.host.takeEvents(events),
        (status, gateway = '') => metrics.mediaEvents.inc({ gateway, status: String(status) }),
      )
    } catch (error) {
      const { host, port } = settings.events
      const [reason, detail] = ['internal', messageOf(error)]
      logger.error({ event: 'media-events-not-taken', host, port, reason, detail })
    }
  }

  #roomOf(callId: CallId): Ref<MediaRoomMessage> {
    return this.#deps.system.ref<MediaRoomMessage>('media-room', String(callId))
  }

  /** Events of another gateway may come from the time before the call was here. */
  #onFeeds(gateway: string, device: CallDeviceRef, roomId: number, feedIds: readonly number[]): void {
    const { index, system } = this.#deps
    const callId = index.callInRoom(roomId)
    if (callId === undefined || index.gatewayOf(callId) !== gateway) return
    const room = system.ref<CallRoomMessage>('call-room', String(callId))
    room.tellControl({ kind: 'media-feeds', roomId, gateway, device, feedIds })
  }
}

/** Whether both are one gateway, reached in one way. */
function isSame(one: JanusSettings, other: JanusSettings): boolean {
  const { weight: _, isDraining: __, ...connection } = one
  const { weight: ___, isDraining: ____, ...otherConnection } = other
  return isDeepStrictEqual(connection, otherConnection)
}

const SWEEP_MS = 60_000
const TICK_MS = 1_000
/** A third of the time after which a silent device is lost. */
const SEEN_MS = 30_000
