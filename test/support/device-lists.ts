/** Device lists with signing keys that depend on a name alone, for tests and for `test/vectors/device-list.json`. */
import { randomInt } from 'node:crypto'
import { p256 } from '@noble/curves/nist.js'
import {
  type DeviceListContent,
  deviceListHash,
  deviceListToSign,
  encodeDeviceList,
  type ListedDevice,
  parseDeviceList,
} from '../../src/log/device-list.ts'
import { sha256 } from '../../src/log/primitives-node.ts'
import { possessionMessage } from '../../src/log/signing-messages.ts'
import { newPublicKey } from './app.ts'
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

/** A phone that signs device lists. */
export interface ListedPhone {
  readonly signer: ListSigner
  /** Base64. */
  readonly publicKey: string
  /** Once it is registered, or as the phone chose it for its user's first list. */
  deviceId: bigint
}

export function newPhone(name: string): ListedPhone {
  const deviceId = 2n ** 32n + BigInt(randomInt(2 ** 47))
  return { signer: listSigner(name), publicKey: newPublicKey('P-256 X9.63'), deviceId }
}

/** The body of `register_device`. */
export function registrationOf({ signer, publicKey }: ListedPhone, challenge: string, list?: Uint8Array) {
  const message = possessionMessage(Buffer.from(challenge, 'base64'))
  return {
    publicKey,
    signingKey: base64(signer.signingKey),
    possession: base64(signWith(signer, message)),
    ...(list && { deviceList: base64(list) }),
  }
}

/** A list of these phones that the first of them, or `signer`, has signed. It follows `previous`. */
export function listOf(
  userId: bigint | string,
  phones: readonly ListedPhone[],
  { previous, signer = phones[0]! }: { previous?: Uint8Array; signer?: ListedPhone } = {},
): Uint8Array {
  const devices = phones
    .map(phone => listedDevice(phone.deviceId, Buffer.from(phone.publicKey, 'base64'), phone.signer))
    .sort((one, other) => (one.deviceId < other.deviceId ? -1 : 1))
  const before = previous && { bytes: previous, seq: parseDeviceList(previous).seq }
  const content = { userId: BigInt(userId), devices, signerDeviceId: signer.deviceId }
  return signedList(contentAfter(before, content), signer.signer)
}

/** The answer of `GET user/device-lists` where these lists, oldest first, are all that were ever logged. */
export function servedLists(lists: readonly Uint8Array[], after = -1): string[] {
  const line = lists.slice(lists.findLastIndex(list => parseDeviceList(list).seq === 0))
  return line
    .filter(list => parseDeviceList(list).seq > after)
    .slice(0, 64)
    .map(base64)
}

/** The body of `PUT user/device-list`. */
export function listBody(list: Uint8Array): { readonly list: string } {
  return { list: base64(list) }
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64')
}
