/**
 * Device lists: which devices a user has, signed by one of them. The log holds a list's hash under the user's reserved
 * device id 0; the list itself travels beside the keys. Server, client and SDK judge a list by the rules below.
 *
 *     "callsign device list v1\n"  userId u64  seq u64  SHA-256(previous list) 32 (zeros at seq 0)  createdAtMs u64  n u8
 *     n x ( deviceId u64, algorithm u8, SHA-256(public key as registered) 32, signing key 65 (uncompressed P-256) )
 *     signerDeviceId u64, ECDSA P-256 signature 64 (r || s, low s) with SHA-256 over everything before the signature
 *
 * Integers are big-endian. A list has 1 to 10 devices in ascending order of id, and names its signer.
 */
import { p256Verify, sha256 } from '#primitives'
import { SignalError } from '../errors.ts'
import { equalHashes, HASH_BYTES, type Hash } from './hash.ts'
import { isP256Point, P256_ORDER, unsignedOf } from './p256.ts'

/** The device id under which the log holds a user's list. Devices have ids from 2^32 on. */
export const DEVICE_LIST_SLOT = 0n
/** As many devices as a user may have. */
const LISTED_DEVICES_MAX = 10
/** An uncompressed P-256 point: 04, x, y. */
const SIGNING_KEY_BYTES = 65
/** r || s of an ECDSA signature. */
export const LIST_SIGNATURE_BYTES = 64

/** By the octet that stands for each in a list. */
const ALGORITHMS = { 1: 'P-256', 2: 'RSA-2048' } as const
export type ListedAlgorithm = (typeof ALGORITHMS)[keyof typeof ALGORITHMS]

export interface ListedDevice {
  readonly deviceId: bigint
  readonly algorithm: ListedAlgorithm
  /** SHA-256 of the bytes of the public key as registered. */
  readonly publicKeySha256: Hash
  /** 65 bytes. */
  readonly signingKey: Uint8Array
}

/** A list without its signature. */
export interface DeviceListContent {
  readonly userId: bigint
  readonly seq: number
  /** `deviceListHash` of the list before; zeros at seq 0. */
  readonly previousHash: Hash
  readonly createdAtMs: number
  /** In ascending order of id. */
  readonly devices: readonly ListedDevice[]
  readonly signerDeviceId: bigint
}

export interface DeviceList extends DeviceListContent {
  /** 64 bytes: r || s with low s. */
  readonly signature: Uint8Array
}

export type DeviceListRefusal =
  /** Not a list: another length, unsorted or repeated devices, a point off the curve, a signer that is not named. */
  | 'malformed'
  | 'another-user'
  | 'wrong-previous-hash'
  | 'seq-jump'
  /** No device of the previous list with this signing key. */
  | 'signer-not-in-previous'
  | 'high-s'
  | 'bad-signature'

export type DeviceListVerdict =
  /** There was no list to compare with. Its seq is above 0 for someone who meets the user later. */
  | { readonly kind: 'first'; readonly list: DeviceList }
  /** The same octets again. */
  | { readonly kind: 'unchanged'; readonly list: DeviceList }
  /** Signed by a device of the previous list. */
  | { readonly kind: 'successor'; readonly list: DeviceList }
  /** The user has started over with a list of seq 0. Contacts are to be told. */
  | { readonly kind: 'reset'; readonly list: DeviceList }
  | { readonly kind: 'refused'; readonly reason: DeviceListRefusal; readonly detail: string }

/** The bytes that the signer signs. Throws `MALFORMED` for content that no list has. */
export function deviceListToSign(content: DeviceListContent): Uint8Array {
  const { devices } = content
  const bytes = new Uint8Array(lengthOf(devices.length) - LIST_SIGNATURE_BYTES)
  const view = new DataView(bytes.buffer)
  bytes.set(MAGIC)
  view.setBigUint64(USER_AT, uint64(content.userId))
  view.setBigUint64(SEQ_AT, uint64(BigInt(content.seq)))
  bytes.set(ofLength(content.previousHash, HASH_BYTES), PREVIOUS_AT)
  view.setBigUint64(CREATED_AT, uint64(BigInt(content.createdAtMs)))
  bytes[COUNT_AT] = devices.length
  let at = DEVICES_AT
  for (const { deviceId, algorithm, publicKeySha256, signingKey } of devices) {
    view.setBigUint64(at, uint64(deviceId))
    bytes[at + 8] = algorithm === 'P-256' ? 1 : 2
    bytes.set(ofLength(publicKeySha256, HASH_BYTES), at + 9)
    bytes.set(ofLength(signingKey, SIGNING_KEY_BYTES), at + 9 + HASH_BYTES)
    at += DEVICE_BYTES
  }
  view.setBigUint64(at, uint64(content.signerDeviceId))
  return bytes
}

/** The bytes of a list. Throws `MALFORMED` for what `parseDeviceList` would not take. */
export function encodeDeviceList(list: DeviceList): Uint8Array {
  const signed = deviceListToSign(list)
  const bytes = new Uint8Array(signed.length + LIST_SIGNATURE_BYTES)
  bytes.set(signed)
  bytes.set(ofLength(list.signature, LIST_SIGNATURE_BYTES), signed.length)
  parseDeviceList(bytes)
  return bytes
}

/**
 * Reads a list, into memory of its own. Throws `MALFORMED` unless the bytes are exactly those that `encodeDeviceList`
 * makes of it. The signature is only read; `judgeDeviceList` verifies it.
 */
export function parseDeviceList(bytes: Uint8Array): DeviceList {
  if (bytes.length < lengthOf(1) || MAGIC.some((octet, at) => bytes[at] !== octet))
    throw malformed('not a device list')
  const count = bytes[COUNT_AT]!
  if (count < 1 || count > LISTED_DEVICES_MAX) throw malformed(`device list has ${count} devices`)
  if (bytes.length !== lengthOf(count)) {
    throw malformed(`device list of ${count} has ${bytes.length} octets, not ${lengthOf(count)}`)
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  const signerAt = DEVICES_AT + count * DEVICE_BYTES
  const list: DeviceList = {
    userId: view.getBigUint64(USER_AT),
    seq: safeNumber(view.getBigUint64(SEQ_AT)),
    previousHash: bytes.slice(PREVIOUS_AT, PREVIOUS_AT + HASH_BYTES),
    createdAtMs: safeNumber(view.getBigUint64(CREATED_AT)),
    devices: Array.from({ length: count }, (_, at) =>
      readDevice(bytes, view, DEVICES_AT + at * DEVICE_BYTES),
    ),
    signerDeviceId: view.getBigUint64(signerAt),
    signature: bytes.slice(signerAt + 8),
  }
  assertContent(list)
  return list
}

/** SHA-256 of the list's bytes. The log has it, as base64, under the user's `DEVICE_LIST_SLOT`. */
export function deviceListHash(bytes: Uint8Array): Hash {
  return sha256(bytes)
}

/** The signature with the lower of its two s. Web Crypto and secure enclaves give either. */
export function withLowS(signature: Uint8Array): Uint8Array {
  const low = ofLength(signature, LIST_SIGNATURE_BYTES).slice()
  let s = unsignedOf(low.subarray(32))
  if (s <= HALF_ORDER || s >= P256_ORDER) return low
  s = P256_ORDER - s
  for (let at = 63; at >= 32; at--) {
    low[at] = Number(s & 0xffn)
    s >>= 8n
  }
  return low
}

/**
 * Judges the bytes of a list of `userId` by those of the list that was the newest so far. No `next` makes it throw. Throws
 * `MALFORMED` when `next` could follow a `previous` that is no list: the caller's own memory is damaged.
 */
export function judgeDeviceList(
  userId: bigint,
  previous: Uint8Array | undefined,
  next: Uint8Array,
): DeviceListVerdict {
  let list: DeviceList
  try {
    list = parseDeviceList(next)
  } catch (error) {
    if (!(error instanceof SignalError)) throw error
    return refused('malformed', error.message)
  }
  if (list.userId !== userId) return refused('another-user', `the list is of user ${list.userId}`)
  if (unsignedOf(list.signature.subarray(32)) > HALF_ORDER)
    return refused('high-s', 'the signature has the higher s')
  const signer = deviceIn(list, list.signerDeviceId)
  if (!p256Verify(signer.signingKey, next.subarray(0, next.length - LIST_SIGNATURE_BYTES), list.signature))
    return refused('bad-signature', 'the signature is not one of the list by its signer')
  if (previous === undefined) return { kind: 'first', list }
  if (equalHashes(previous, next)) return { kind: 'unchanged', list }
  return list.seq === 0 ? { kind: 'reset', list } : judgeSuccessor(previous, list, signer)
}

function judgeSuccessor(
  previousBytes: Uint8Array,
  list: DeviceList,
  signer: ListedDevice,
): DeviceListVerdict {
  const previous = parseDeviceList(previousBytes)
  if (list.seq !== previous.seq + 1) return refused('seq-jump', `seq ${list.seq} follows seq ${previous.seq}`)
  if (!equalHashes(list.previousHash, deviceListHash(previousBytes)))
    return refused('wrong-previous-hash', 'the list follows another one')
  const known = previous.devices.find(({ deviceId }) => deviceId === signer.deviceId)
  if (known === undefined || !equalHashes(known.signingKey, signer.signingKey))
    return refused('signer-not-in-previous', 'the signer is no device of the list before')
  return { kind: 'successor', list }
}

function refused(reason: DeviceListRefusal, detail: string): DeviceListVerdict {
  return { kind: 'refused', reason, detail }
}

function readDevice(bytes: Uint8Array, view: DataView, at: number): ListedDevice {
  const algorithm = ALGORITHMS[bytes[at + 8] as keyof typeof ALGORITHMS]
  if (algorithm === undefined) throw malformed(`device list has an algorithm ${bytes[at + 8]}`)
  const keyAt = at + 9 + HASH_BYTES
  return {
    deviceId: view.getBigUint64(at),
    algorithm,
    publicKeySha256: bytes.slice(at + 9, keyAt),
    signingKey: bytes.slice(keyAt, keyAt + SIGNING_KEY_BYTES),
  }
}

function assertContent({ seq, previousHash, devices, signerDeviceId }: DeviceList): void {
  if ((seq === 0) !== previousHash.every(octet => octet === 0))
    throw malformed('the hash of the previous list is zeros at seq 0 alone')
  for (const [at, { deviceId, signingKey }] of devices.entries()) {
    const before = at === 0 ? DEVICE_LIST_SLOT : devices[at - 1]!.deviceId
    if (deviceId <= before) throw malformed('device ids are not ascending')
    if (!isP256Point(signingKey)) throw malformed('a signing key is not a point on P-256')
  }
  if (!devices.some(({ deviceId }) => deviceId === signerDeviceId))
    throw malformed('the signer is not in the list')
}

function deviceIn({ devices }: DeviceList, wanted: bigint): ListedDevice {
  // A list that was parsed names its signer.
  return devices.find(({ deviceId }) => deviceId === wanted)!
}

function lengthOf(devices: number): number {
  if (devices < 1 || devices > LISTED_DEVICES_MAX) throw malformed(`device list has ${devices} devices`)
  return DEVICES_AT + devices * DEVICE_BYTES + 8 + LIST_SIGNATURE_BYTES
}

function ofLength(bytes: Uint8Array, length: number): Uint8Array {
  if (bytes.length !== length) throw malformed(`${bytes.length} octets where ${length} belong`)
  return bytes
}

function uint64(value: bigint): bigint {
  if (value < 0n || value > UINT64_MAX) throw malformed(`${value} is no unsigned 64-bit integer`)
  return value
}

function safeNumber(value: bigint): number {
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw malformed(`${value} is not below 2^53`)
  return Number(value)
}

function malformed(message: string): SignalError {
  return new SignalError('MALFORMED', message)
}

/** The octets of an ASCII text. */
function octetsOf(text: string): Uint8Array {
  return Uint8Array.from(text, character => character.charCodeAt(0))
}

const UINT64_MAX = 2n ** 64n - 1n
const MAGIC = octetsOf('callsign device list v1\n')
const USER_AT = MAGIC.length
const SEQ_AT = USER_AT + 8
const PREVIOUS_AT = SEQ_AT + 8
const CREATED_AT = PREVIOUS_AT + HASH_BYTES
const COUNT_AT = CREATED_AT + 8
const DEVICES_AT = COUNT_AT + 1
const DEVICE_BYTES = 8 + 1 + HASH_BYTES + SIGNING_KEY_BYTES
const HALF_ORDER = P256_ORDER / 2n
