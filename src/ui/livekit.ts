/** The exports of `@callsign/sdk/ui/livekit`, for apps of a server whose gateway is LiveKit. */

import { carryBy } from './media/carrier.ts'

/**
 * Has `Media` carry calls by LiveKit, whose SDK is loaded with the first of them. `newWorker` starts a worker of
 * `livekit-client/e2ee-worker`, which each bundler finds in its own way.
 */
export function useLiveKit(newWorker: () => Worker): void {
  carryBy('livekit', async (call, onChange) => {
    const { LiveKitRoom } = await import('./media/livekit-room.ts')
    return new LiveKitRoom(call, onChange, newWorker())
  })
}
