/** A LiveKit with what watches it: looks into its rooms, for it tells nothing by itself, and the sweep. */

import type { CallDeviceRef } from '../../domain/calls/call.ts'
import type { CallId } from '../../domain/ids.ts'
import type { GatewayHost, GatewayWatch } from '../../media/gateway-host.ts'
import { LiveKitApi } from '../../media/livekit-api.ts'
import { LiveKitGateway } from '../../media/livekit-gateway.ts'
import type { LiveKitSettings } from '../../media/livekit-settings.ts'
import { LiveKitTokens } from '../../media/livekit-tokens.ts'
import { RoomSweep } from '../../media/room-sweep.ts'
import { type MediaContext, warnUnlessAway } from './janus-host.ts'

export class LiveKitHost implements GatewayHost {
  readonly name = LIVEKIT
  readonly gateway: LiveKitGateway
  readonly #watch: GatewayWatch
  readonly #context: MediaContext
  readonly #api: LiveKitApi
  readonly #sweep: RoomSweep
  /** The call whose room the last look asked for. */
  #askedFor: CallId | undefined

  constructor(settings: LiveKitSettings, watch: GatewayWatch, context: MediaContext) {
    const { monotonicMs, metrics } = context
    const gateway = LIVEKIT
    this.#watch = watch
    this.#context = context
    this.#api = new LiveKitApi(settings, outcome => {
      metrics.mediaRequests.inc({ gateway, outcome })
      if (outcome === 'ok') watch.health.answered()
      else watch.health.failed(outcome)
    })
    const onOutsider = () => metrics.mediaOutsiders.inc({ gateway })
    this.gateway = new LiveKitGateway(this.#api, new LiveKitTokens(settings), monotonicMs, onOutsider)
    this.#sweep = new RoomSweep({
      ...{ watch, gateway: this.gateway, monotonicMs },
      alsoPutRight: async () => this.gateway.keepOnly(roomId => watch.calls.callInRoom(roomId) !== undefined),
      onStranger: () => metrics.mediaStrangers.inc({ gateway }),
      onFailed: error => this.#warn('media-sweep-failed', error),
    })
  }

  get roomCount(): number {
    return this.#sweep.roomCount
  }

  /** Asks for the room of one call, another each time: a LiveKit that has begun anew has none of them. */
  readonly look = async (): Promise<void> => {
    const wasUp = this.#watch.health.isUp
    try {
      const room = this.#nextRoom()
      const found = await this.#api.listRooms([String(room?.roomId ?? 0)])
      if (room !== undefined && found.length === 0) await this.#sweep.run()
      await this.gateway.look()
    } catch (error) {
      // While it is away, each look fails alike: `media-gateway-lost` has said so.
      if (wasUp) this.#warn('media-look-failed', error)
    }
  }

  readonly sweep = (): Promise<void> => this.#sweep.run()

  readonly present = (): readonly CallDeviceRef[] => this.gateway.present()

  #nextRoom() {
    const rooms = [...this.#watch.calls.rooms()]
    const at = rooms.findIndex(({ callId }) => callId === this.#askedFor)
    const room = rooms[(at + 1) % rooms.length]
    this.#askedFor = room?.callId
    return room
  }

  #warn(event: string, error: unknown): void {
    warnUnlessAway(this.#context.logger, event, error, { gateway: this.name })
  }
}

/** The name that calls keep of it. */
export const LIVEKIT = 'livekit'
