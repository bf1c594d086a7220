/** The assembly of the media gateways in the writer: the gateways, and the actors of calls' rooms at them. */

import { mediaRoomKind } from '../../../actors/calls/media-room.ts'
import type { CallRoomMessage, MediaRoomMessage } from '../../../actors/messages.ts'
import type { CallDeviceRef } from '../../domain/calls/call.ts'
import type { CallId, DeviceId, UserId } from '../../domain/ids.ts'
import { messageOf } from '../../errors.ts'
import { type EventsListener, listenForEvents } from '../../media/events-listener.ts'
import type { GatewayHost } from '../../media/gateway-host.ts'
import type { MediaSettings } from '../../media/media-settings.ts'
import type { Ref } from '../../runtime/actor.ts'
import type { ActorSystem } from '../../runtime/system.ts'
import { forEver } from '../process/for-ever.ts'
import type { Process } from '../process/process.ts'
import { JanusHost, type MediaContext, warnUnlessAway } from './janus-host.ts'

export interface MediaDeps extends MediaContext {
  readonly settings: MediaSettings
  readonly system: Pick<ActorSystem, 'define' | 'ref'>
}

export class Media {
  /** The actor of a call's room, by decimal id. */
  readonly roomOf: (callId: string) => Ref<MediaRoomMessage>
  readonly #deps: MediaDeps
  readonly #janus: readonly JanusHost[]
  #listener: EventsListener | undefined

  constructor(deps: MediaDeps) {
    const { settings, system, monotonicMs, logger } = deps
    this.#deps = deps
    const gateways = settings.kind === 'janus' ? settings.gateways : []
    const watch = { onMissing: this.#onMissing, onFeeds: this.#onFeeds }
    const hasEvents = () => this.#listener !== undefined
    this.#janus = gateways.map(each => new JanusHost(each, watch, deps, hasEvents))
    this.roomOf = system.define<MediaRoomMessage>(
      mediaRoomKind({
        choose: () => this.#hosts[0]?.name,
        gatewayOf: name => this.#hosts.find(host => host.name === name)?.gateway,
        callRoom: callId => system.ref<CallRoomMessage>('call-room', callId),
        monotonicMs,
        onFailed: (callId, step, error) =>
          warnUnlessAway(logger, 'media-step-failed', error, { callId: String(callId), step }),
      }),
    )
  }

  get #hosts(): readonly GatewayHost[] {
    return this.#janus
  }

  /** Takes the gateways' events, sweeps now and each minute, and reports which devices the gateways have. */
  async start(
    context: Pick<Process, 'world' | 'onFault'>,
    onSeen: (userId: UserId, deviceId: DeviceId) => void,
  ): Promise<void> {
    await this.#listen()
    const sweep = async () => void (await Promise.all(this.#hosts.map(host => host.sweep())))
    sweep().catch(context.onFault)
    forEver(context, SWEEP_MS, sweep)
    context.world.every(SEEN_MS, () => {
      for (const host of this.#hosts)
        for (const { userId, deviceId } of host.present()) onSeen(userId, deviceId)
    })
  }

  /** Takes events where the settings say so. Calls work without: the sweep finds the same, later. */
  async #listen(): Promise<void> {
    const { settings, metrics, logger } = this.#deps
    if (settings.kind !== 'janus' || settings.events === undefined) return
    try {
      this.#listener = await listenForEvents(
        settings.events,
        events => this.#janus[0]?.takeEvents(events),
        status => metrics.mediaEvents.inc({ status: String(status) }),
      )
    } catch (error) {
      const { host, port } = settings.events
      const [reason, detail] = ['internal', messageOf(error)]
      logger.error({ event: 'media-events-not-taken', host, port, reason, detail })
    }
  }

  close(): void {
    this.#listener?.close()
  }

  /** Whether each gateway answered last. */
  get isUp(): boolean {
    return this.#hosts.every(host => host.isUp)
  }

  /** As the last sweeps found them. */
  get roomCount(): number {
    return this.#hosts.reduce((sum, host) => sum + host.roomCount, 0)
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
}

const SWEEP_MS = 60_000
/** A third of the time after which a silent device is lost. */
const SEEN_MS = 30_000
