/** Lists that this device signs for its own user. */
import {
  type DeviceListContent,
  deviceListHash,
  deviceListToSign,
  encodeDeviceList,
  type ListedDevice,
  parseDeviceList,
  withLowS,
} from '../log/device-list.ts'
import { HASH_BYTES } from '../log/hash.ts'

export interface NextDeviceList {
  readonly userId: bigint
  /** In any order: the signer is one of them. */
  readonly devices: readonly ListedDevice[]
  readonly signerDeviceId: bigint
  readonly createdAtMs: number
  /** The newest list; left out for the first one, or to start over. */
  readonly previous?: Uint8Array
}

/**
 * The bytes of the next list. `sign` gives the ECDSA P-256 signature with SHA-256, as r ‖ s: `crypto.subtle.sign` does. Throws
 * `MALFORMED` for what no list may have.
 */
export async function signDeviceList(
  { previous, ...next }: NextDeviceList,
  sign: (bytes: Uint8Array) => Promise<Uint8Array>,
): Promise<Uint8Array> {
  const content: DeviceListContent = {
    ...next,
    devices: [...next.devices].sort((one, other) => (one.deviceId < other.deviceId ? -1 : 1)),
    seq: previous === undefined ? 0 : parseDeviceList(previous).seq + 1,
    previousHash: previous === undefined ? new Uint8Array(HASH_BYTES) : deviceListHash(previous),
  }
  return encodeDeviceList({ ...content, signature: withLowS(await sign(deviceListToSign(content))) })
}
