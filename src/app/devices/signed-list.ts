/** Device lists that this device signs for its user, as base64. */

import { sha256 } from '#primitives'
import { signDeviceList } from '../../client/own-device-list.ts'
import { decodeBase64, encodeBase64 } from '../../log/base64.ts'
import type { ListedDevice } from '../../log/device-list.ts'
import type { DeviceKeys } from './device-keys.ts'
import { readRsaKey } from './rsa-seal.ts'

/** How a device is named to its owner: base64. */
export interface OwnDeviceKeys {
  readonly deviceId: string
  readonly publicKey: string
  readonly signingKey: string
}

export interface ListSigner {
  readonly userId: string
  readonly deviceId: string
  readonly keys: Pick<DeviceKeys, 'sign'>
}

export function listedDevice({ deviceId, publicKey, signingKey }: OwnDeviceKeys): ListedDevice {
  const octets = decodeBase64(publicKey)
  return {
    deviceId: BigInt(deviceId),
    algorithm: readRsaKey(octets)?.kind ?? 'P-256',
    publicKeySha256: sha256(octets),
    signingKey: decodeBase64(signingKey),
  }
}

/** The list that follows `previous`; without one, a first list. */
export async function signedList(
  { userId, deviceId, keys }: ListSigner,
  devices: readonly ListedDevice[],
  createdAtMs: number,
  previous?: string,
): Promise<string> {
  const next = {
    userId: BigInt(userId),
    devices,
    signerDeviceId: BigInt(deviceId),
    createdAtMs,
    ...(previous !== undefined && { previous: decodeBase64(previous) }),
  }
  return encodeBase64(await signDeviceList(next, bytes => keys.sign(bytes)))
}
