/** Tells users whose devices lost their push tokens to another device (contract 2.5). */

import { deviceName, type PushLoss } from '../../domain/devices/device.ts'
import type { DeviceId, UserId } from '../../domain/ids.ts'
import type { Change } from '../../store/engine/store.ts'
import type { Notices } from '../../store/messages/notices.ts'

export interface Takeover {
  /** The user whose device has the tokens now. */
  readonly userId: UserId
  /** A device of theirs that this one replaces: it is about to go, and nobody misses its pushes. */
  readonly replacesDeviceId?: DeviceId | undefined
}

/**
 * In the change that moved the tokens. The losing device hears of it too: its app sends its tokens again. An alert
 * goes to the user's other devices unless the user did it: a phone that was set up anew brings its old token along.
 */
export function tellPushLosses(
  change: Change,
  notices: Pick<Notices, 'tell'>,
  losses: readonly PushLoss[],
  { userId, replacesDeviceId }: Takeover,
): void {
  for (const { userId: loserId, device, tokens } of losses) {
    const { deviceId, info } = device
    if (loserId === userId && deviceId === replacesDeviceId) continue
    const isPushed = loserId !== userId
    const lost = { deviceId, name: deviceName(info), platform: info.platform, tokens, isPushed }
    notices.tell(change, loserId, { kind: 'device_push_lost', ...lost })
  }
}
