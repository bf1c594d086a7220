/** Requests that name devices, while these change. */

import { hasCode } from '../callsign-error.ts'

/** Acts again when a user's devices, or the epoch of the call, have changed meanwhile. */
export async function withFreshDevices<Value>(act: () => Promise<Value>): Promise<Value> {
  for (let left = TRIES; ; left--) {
    try {
      return await act()
    } catch (error) {
      if (left === 1 || !hasCode(error, 'DEVICE_LIST_MISMATCH', 'EPOCH_CONFLICT')) throw error
    }
  }
}

const TRIES = 3
