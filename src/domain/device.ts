/** A device: one installation with one key, logged under `<userId>_<deviceId>` (contract 2.5). */

import type { DeviceId } from './ids.ts'

export interface DeviceInfo {
  readonly platform: string
  readonly model?: string
  readonly osVersion?: string
  readonly appVersion?: string
  readonly name?: string
  readonly locale?: string
  readonly timeZone?: string
}

/** Where pushes to the device go. */
export interface PushTokens {
  readonly apnsToken?: string
  readonly apnsVoipToken?: string
  readonly apnsEnvironment?: 'production' | 'development'
  readonly bundleId?: string
  readonly fcmToken?: string
  /** When they were registered: a provider's word that a token is gone counts only if it is newer. */
  readonly registeredAtMs: number
}

export interface Device {
  readonly deviceId: DeviceId
  readonly info: DeviceInfo
  /** Base64 of the exact bytes that were sent and logged. */
  readonly publicKey: string
  readonly keyAlgorithm: 'P-256' | 'RSA-2048'
  /** The index of the key's log entry. */
  readonly publicKeyIndex: number
  /** The entry's vrfHash, base64 of 64 bytes. */
  readonly publicKeyHash: string
  readonly push?: PushTokens
  readonly createdAtMs: number
  readonly lastSeenAtMs: number
  /** Set when the device was removed: its row stays, since its id is never given to another. */
  readonly removedAtMs?: number
}
