/** Connected devices and live calls, as far as the console has heard. */

import { Recent } from '../../recent.ts'
import type { DecidedCall } from './facts.ts'

export interface ConnectedDevice {
  readonly userId: bigint
  readonly deviceId: bigint
  readonly connectedAtMs: number
}

export class LiveView {
  readonly #nowMs: () => number
  /** By device, the last that came last. */
  readonly #devices = new Map<bigint, ConnectedDevice>()
  /**
   * The last that changed last. A call of a room that was given up ends without a word; such ones must not add up.
   */
  readonly #calls = new Recent<bigint, DecidedCall>(CALLS_KEPT_MAX)

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  putDevice(userId: bigint, deviceId: bigint, isOnline: boolean): void {
    this.#devices.delete(deviceId)
    if (isOnline) this.#devices.set(deviceId, { userId, deviceId, connectedAtMs: this.#nowMs() })
  }

  /** The call as it is now; an ended call is forgotten. */
  putCall(call: DecidedCall): void {
    this.#calls.delete(call.callId)
    if (call.endedAtMs !== undefined) return
    // Keep only the call's shown values: its keys live no longer than in the room.
    const { callId, status, endedAtMs, participants } = call
    this.#calls.set(callId, {
      callId,
      status,
      endedAtMs,
      participants: participants.map(({ userId, displayName, state }) => ({ userId, displayName, state })),
    })
  }

  /** The newest of each, newest first, and how many there are in all. */
  newest() {
    return {
      devices: [...this.#devices.values()].slice(-DEVICES_SHOWN_MAX).reverse(),
      deviceCount: this.#devices.size,
      calls: [...this.#calls.values()].slice(-CALLS_SHOWN_MAX).reverse(),
      callCount: this.#calls.size,
    }
  }
}

const DEVICES_SHOWN_MAX = 500
const CALLS_SHOWN_MAX = 200
/** Thousands are live at once when the simulator makes load: 50 a second that last for a minute. */
const CALLS_KEPT_MAX = 5_000
