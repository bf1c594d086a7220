/** Given by the app when it makes its `Callsign`. */

import type { CompletenessDemand, PublishedKeys, PublishedPolicy } from '../client/client.ts'
import type { WebSocketClass } from './connection/stomp-socket.ts'
import type { DeviceKeysOf } from './devices/device-keys.ts'
import type { DeviceDetails } from './devices/device-registration.ts'
import type { KeyLogDeps, OnReset } from './devices/key-log.ts'
import type { PasskeyAuthenticator } from './session/passkeys.ts'
import type { ServerOptions } from './session/server.ts'
import type { AppStorage } from './storage/storage.ts'

export interface CallsignOptions extends Omit<ServerOptions, 'url'> {
  /** Such as `https://call.example.org`. */
  readonly server: string
  /** The keys of the server's log, or the policy that names them, built into the app (docs/check/client.md). */
  readonly pins: PublishedKeys | PublishedPolicy
  /**
   * Whether the log has to prove by its index that keys are the newest; left out: `demand` where the policy of `pins` names the
   * index, else `when-offered`.
   */
  readonly completeness?: CompletenessDemand
  /** How long ago the policy's quorum may have seen the newest leaf of the index; left out: a day. */
  readonly maxIndexAgeMs?: number
  readonly storage: AppStorage
  /** The device's keys, where another module keeps them, such as a phone's keystore. */
  readonly keysOf?: DeviceKeysOf
  /** Makes passkeys and signs with them; left out: the browser's own, where there is one. */
  readonly passkeys?: PasskeyAuthenticator | undefined
  /** Facts about the device and its push tokens, sent at each start. */
  readonly device?: DeviceDetails
  /**
   * Whether Apple and Google get this device's pushes sealed, with a key that the storage keeps. On iOS the app needs code for
   * it (docs/build/push.md). Left out: as it was before.
   */
  readonly sealedPushes?: boolean
  /**
   * Whether new keys of a contact that nothing known vouches for are asked about, as `KEYS_RESET`; left out: `ask`. A bot
   * goes on.
   */
  readonly onReset?: OnReset
  /** For platforms that have none of their own: the one of the package `ws`. */
  readonly webSocket?: WebSocketClass
}

/** How the app knows its log. */
export function logOf({ pins, fetch, completeness, maxIndexAgeMs }: CallsignOptions): KeyLogDeps['log'] {
  return {
    ...pins,
    ...(fetch && { fetch }),
    ...(completeness && { completeness }),
    ...(maxIndexAgeMs !== undefined && { maxIndexAgeMs }),
  }
}
