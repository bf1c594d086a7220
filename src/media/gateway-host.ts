/** One media gateway with what watches it. */

import type { CallDeviceRef } from '../domain/calls/call.ts'
import type { CallId } from '../domain/ids.ts'
import type { GatewayRoom, MediaGateway } from './gateway.ts'
import type { GatewayHealth } from './gateway-health.ts'

/** The parts that watch a gateway, each bound to this gateway alone. */
export interface GatewayWatch {
  /** Told of each answer, and of each request without one. */
  readonly health: GatewayHealth
  readonly calls: GatewayCalls
  /** A live call's room was not at the gateway, which was asked then. */
  readonly onMissing: (callId: CallId, askedAtMs: number) => void
  /** All that the device sends in the room, the newest first. */
  readonly onFeeds: (device: CallDeviceRef, roomId: number, feedIds: readonly number[]) => void
}

/** The live calls that have their room at one gateway, or at none yet. */
export interface GatewayCalls {
  rooms(): Iterable<GatewayRoom>
  callInRoom(roomId: number): CallId | undefined
}

export interface GatewayHost {
  /** As in the settings; a call keeps it. */
  readonly name: string
  readonly gateway: MediaGateway
  /** As the last sweep found them. */
  readonly roomCount: number
  /** Asks it something small, for its health. Never rejects. */
  readonly look: () => Promise<void>
  /** Closes rooms that no live call has here, and reports those of live calls that the gateway lost. Never rejects. */
  readonly sweep: () => Promise<void>
  /** Devices that the gateway hears now. */
  readonly present: () => readonly CallDeviceRef[]
}

interface LiveRooms {
  rooms(): Iterable<GatewayRoom & { readonly gateway: string | undefined }>
  callInRoom(roomId: number): CallId | undefined
  gatewayOf(callId: CallId): string | undefined
}

/** Those of the gateway with this name. Another gateway may have a room of the same number. */
export function callsAt(index: LiveRooms, name: string): GatewayCalls {
  return {
    *rooms() {
      for (const room of index.rooms()) if ((room.gateway ?? name) === name) yield room
    },
    callInRoom(roomId) {
      const callId = index.callInRoom(roomId)
      return callId !== undefined && (index.gatewayOf(callId) ?? name) === name ? callId : undefined
    },
  }
}
