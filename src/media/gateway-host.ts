/** One media gateway with what watches it. */

import type { CallDeviceRef } from '../domain/calls/call.ts'
import type { CallId } from '../domain/ids.ts'
import type { MediaGateway } from './gateway.ts'

/** What a gateway is watched for. */
export interface GatewayWatch {
  /** A live call's room was not at the gateway, which was asked then. */
  readonly onMissing: (callId: CallId, askedAtMs: number) => void
  /** All that the device sends in the room, the newest first. */
  readonly onFeeds: (device: CallDeviceRef, roomId: number, feedIds: readonly number[]) => void
}

export interface GatewayHost {
  /** As in the settings; a call keeps it. */
  readonly name: string
  readonly gateway: MediaGateway
  /** Whether it answered last. */
  readonly isUp: boolean
  /** As the last sweep found them. */
  readonly roomCount: number
  /** Closes rooms that no live call has, and reports those of live calls that the gateway lost. Never rejects. */
  readonly sweep: () => Promise<void>
  /** Devices that the gateway hears now. */
  readonly present: () => readonly CallDeviceRef[]
}
