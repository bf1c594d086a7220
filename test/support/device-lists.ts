/** Device lists with signing keys that depend on a name alone, for tests and for `test/vectors/device-list.json`. */
import { p256 } from '@noble/curves/nist.js'
import {
  type DeviceListContent,
  deviceListHash,
  deviceListToSign,
  encodeDeviceList,
  type ListedDevice,
} from '../../src/log/device-list.ts'
import { sha256 } from '../../src/log/primitives-node.ts'
import { fromUtf8 } from './bytes.ts'

/** A signing key of P-256. */
export interface ListSigner {
  readonly secret: Uint8Array
  /** The uncompressed point. */
  readonly signingKey: Uint8Array
}

export function listSigner(name: string): ListSigner {
  const secret = sha256(fromUtf8(`signing key of ${name}`))
  return { secret, signingKey: p256.getPublicKey(secret, false) }
}

/** r || s with low s, deterministic (RFC 6979). */
export function signWith({ secret }: ListSigner, message: Uint8Array): Uint8Array {
  return p256.sign(message, secret, { lowS: true })
}

/** A list's entry of the device; its public key is any bytes. */
export function listedDevice(deviceId: bigint, publicKey: Uint8Array, signer: ListSigner): ListedDevice {
  return {
    deviceId,
    algorithm: 'P-256',
    publicKeySha256: sha256(publicKey),
    signingKey: signer.signingKey,
  }
}

/** The list as bytes, signed by `signer`. */
export function signedList(content: DeviceListContent, signer: ListSigner): Uint8Array {
  return encodeDeviceList({ ...content, signature: signWith(signer, deviceListToSign(content)) })
}

/** The content of a list that follows `previous`, or of a first one. */
export function contentAfter(
  previous: { readonly bytes: Uint8Array; readonly seq: number } | undefined,
  content: Pick<DeviceListContent, 'userId' | 'devices' | 'signerDeviceId'>,
): DeviceListContent {
  return {
    ...content,
    seq: previous === undefined ? 0 : previous.seq + 1,
    previousHash: previous === undefined ? new Uint8Array(32) : deviceListHash(previous.bytes),
    createdAtMs: 1_790_000_000_000,
  }
}
