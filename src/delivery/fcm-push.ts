/** A push to Android, as it is handed to the sender of FCM. */

import type { PushSealing } from './sealed-push.ts'

export interface FcmPush {
  readonly token: string
  readonly priority: 'high' | 'normal'
  /** A call's push is given up soon. */
  readonly isUrgent?: boolean
  readonly ttlSeconds: number
  readonly collapseKey?: string
  /** Shown by the system. Left out: the app gets `data` alone, and decides. */
  readonly notification?: FcmNotification
  readonly channelId?: string
  readonly data: Readonly<Record<string, string | number | boolean>>
  /** The data are sealed for this device. */
  readonly sealing?: PushSealing | undefined
}

/** Words, or the names of words in the app's own resources. */
export interface FcmNotification {
  readonly title?: string
  readonly body?: string
  readonly titleLocKey?: string
  readonly titleLocArgs?: readonly string[]
  readonly bodyLocKey?: string
  readonly bodyLocArgs?: readonly string[]
  /** Takes the place of the app's notification with the same tag, and the id 0. */
  readonly tag?: string
}
