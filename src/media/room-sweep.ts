/** The sweep of a media gateway: closes rooms that no live call has, and finds the rooms that the gateway lost. */

import type { CallId } from '../domain/ids.ts'
import { type FoundRoom, GatewayError, type MediaGateway } from './gateway.ts'
import type { GatewayWatch } from './gateway-host.ts'

export interface RoomSweepDeps {
  readonly watch: Pick<GatewayWatch, 'health' | 'calls' | 'onMissing'>
  readonly gateway: Pick<MediaGateway, 'rooms' | 'close'>
  /** Further repairs, before rooms are reported or closed. */
  readonly alsoPutRight?: () => Promise<void>
  readonly monotonicMs: () => number
  /** A room of no live call was closed. */
  readonly onStranger: () => void
  readonly onFailed: (error: unknown) => void
}

export class RoomSweep {
  readonly #deps: RoomSweepDeps
  /** Rooms that the last sweep found. */
  roomCount = 0

  constructor(deps: RoomSweepDeps) {
    this.#deps = deps
  }

  async run(): Promise<void> {
    const { gateway, watch, monotonicMs, alsoPutRight, onStranger } = this.#deps
    const { health, calls, onMissing } = watch
    const askedAtMs = monotonicMs()
    const found = await this.#tried(gateway.rooms(), error => {
      if (isRefusal(error)) health.tookSecrets(false)
    })
    if (found === undefined) return
    health.tookSecrets(true)
    this.roomCount = found.length
    await alsoPutRight?.()
    const here = new Set(found.map(({ roomId }) => roomId))
    for (const { callId, roomId } of calls.rooms()) if (!here.has(roomId)) onMissing(callId, askedAtMs)
    const isStranger = ({ roomId, callId }: FoundRoom) =>
      callId === undefined || calls.callInRoom(roomId) !== callId
    for (const stranger of found.filter(isStranger).slice(0, CLOSED_AT_ONCE)) {
      // Its call may have come back to this gateway since.
      if (isStranger(stranger) && (await this.#close(stranger))) onStranger()
    }
  }

  /** A foreign room at a Janus stays: its secret is not known here. */
  async #close({ roomId, callId = NO_CALL }: FoundRoom): Promise<boolean> {
    return (await this.#tried(this.#deps.gateway.close({ roomId, callId }).then(() => true))) ?? false
  }

  /** Undefined for what failed, which the next sweep tries again. */
  #tried<Result>(result: Promise<Result>, onFailed?: (error: unknown) => void): Promise<Result | undefined> {
    return result.catch(error => {
      onFailed?.(error)
      this.#deps.onFailed(error)
      return undefined
    })
  }
}

function isRefusal(error: unknown): boolean {
  return error instanceof GatewayError && (error.failure === 'refused' || error.failure === 'malformed')
}

const NO_CALL = 0n as CallId
/** The rest waits for the next sweep. */
const CLOSED_AT_ONCE = 500
