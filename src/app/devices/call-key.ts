/**
 * A call's key: how it is sealed for a device, and what people compare. docs/check/crypto.md has the format: HPKE (RFC 9180) in mode
 * Auth, so only the receiver can open it, and opening proves which device sealed it. `rsa-seal.ts` has the form for RSA keys.
 */

import { sha256, sha512 } from '@noble/hashes/sha2.js'
import { decodeBase64, encodeBase64 } from '../../log/base64.ts'
import { isP256Point } from '../../log/p256.ts'
import { CallsignError } from '../callsign-error.ts'
import type { Bytes, DeviceKeys } from './device-keys.ts'
import { type AgreementKey, openAuth, sealAuth } from './hpke.ts'
import { concat } from './octets.ts'
import { type RsaKey, readRsaKey, sealForRsa } from './rsa-seal.ts'

export type { Bytes } from './device-keys.ts'

export interface KeyHolder {
  readonly userId: string
  readonly deviceId: string
  /** `<userId>_<deviceId>` */
  readonly name: string
  readonly key: P256Key | RsaKey
  /** SHA-256 of the logged public key. */
  readonly keyHash: Bytes
}

interface P256Key {
  readonly kind: 'P-256'
  /** Uncompressed. Sealing and opening check that it is on the curve. */
  readonly point: Bytes
}

export interface OwnKeyHolder extends KeyHolder {
  readonly keys: Pick<DeviceKeys, 'agree' | 'sign' | 'signingKey'>
}

/** The use that a sealed key is for: it opens for no other call, and for no other epoch of it. */
export interface KeyBinding {
  readonly callId: string
  /** 1 to 65,535. */
  readonly epoch: number
  /** 16 random octets of the device that asked for the key, in the answer to it. */
  readonly nonce?: Uint8Array
}

export function keyHolder(userId: string, deviceId: string, publicKey: string): KeyHolder {
  const octets = decodeBase64(publicKey)
  // The last octets of SPKI, and all of the other encoding.
  const point = Uint8Array.from(octets.slice(-POINT_BYTES))
  const key = readRsaKey(octets) ?? ({ kind: 'P-256', point } as const)
  const keyHash = Uint8Array.from(sha256(octets))
  return { userId, deviceId, name: `${userId}_${deviceId}`, key, keyHash }
}

/** 32 random bytes. */
export function makeCallKey(): Bytes {
  return globalThis.crypto.getRandomValues(new Uint8Array(KEY_BYTES))
}

/**
 * Seals a call key and the members that `packCallKey` packs with it: base64. Rejects with `KEY_UNSUPPORTED` where the
 * receiver's key is no point of P-256 and no RSA-2048 key, and where this device's own is not of P-256.
 */
export async function sealCallKey(
  content: Uint8Array,
  from: OwnKeyHolder,
  to: KeyHolder,
  binding: KeyBinding,
): Promise<string> {
  const sender = agreementKey(from)
  const info = infoOf(from, to, binding)
  const { key: receiver, keyHash } = to
  if (receiver.kind === 'RSA-2048') {
    const sealing = sealForRsa(content, { info, sender: from.keys, receiver, keyHash })
    return encodeBase64(
      await sealing.catch(error => {
        throw error instanceof RangeError ? keyUnsupported(to, 'is no RSA key to encrypt for') : error
      }),
    )
  }
  if (!isP256Point(receiver.point)) throw keyUnsupported(to, 'is no point of P-256')
  const sealed = await sealAuth(content, { sender, receiver: receiver.point, info })
  return encodeBase64(concat(Uint8Array.of(FORM), sealed))
}

/** Gives the octets that were sealed. Rejects with `CALL_KEY_INVALID` unless `from` sealed it for `to`, and for this use. */
export async function openCallKey(
  sealed: string,
  from: KeyHolder,
  to: OwnKeyHolder,
  binding: KeyBinding,
): Promise<Bytes> {
  try {
    const bytes = decodeBase64(sealed)
    if (bytes[0] !== FORM) throw new RangeError(`a sealed key of form ${bytes[0]}`)
    if (from.key.kind !== 'P-256') throw new RangeError('a sender without a key of P-256')
    const info = infoOf(from, to, binding)
    return await openAuth(bytes.subarray(1), { sender: from.key.point, receiver: agreementKey(to), info })
  } catch (cause) {
    const sentence =
      'This is no key that the device which is said to have sent it has sealed for this call and epoch.'
    throw new CallsignError('CALL_KEY_INVALID', sentence, { cause })
  }
}

/**
 * The thirty digits that people read to each other: they are the same where key, call, epoch and the set of devices are. The
 * hash is repeated, which makes two keys with the same digits hard to find.
 */
export function fingerprintOf(
  callKey: Uint8Array,
  setHash: Uint8Array,
  { callId, epoch }: KeyBinding,
): string {
  let digest = concat(FINGERPRINT, uint64(callId), uint32(epoch), setHash, callKey)
  for (let times = 0; times < FINGERPRINT_HASHES; times++) digest = Uint8Array.from(sha512(digest))
  const groups = [0, 5, 10, 15, 20, 25].map(at => digest.subarray(at, at + 5))
  const values = groups.map(octets => octets.reduce((value, octet) => value * 256 + octet, 0) % 100_000)
  return values.map(value => String(value).padStart(5, '0')).join(' ')
}

/** `info` of HPKE: the one place that says what a sealed key is bound to. */
function infoOf(
  sender: KeyHolder,
  receiver: KeyHolder,
  { callId, epoch, nonce = NO_NONCE }: KeyBinding,
): Bytes {
  const names = [sender, receiver].flatMap(({ userId, deviceId }) => [uint64(userId), uint64(deviceId)])
  return concat(PURPOSE, uint64(callId), uint32(epoch), ...names, nonce)
}

/** Four octets, big-endian. Throws for a server's number that is no epoch: it would be cut to a different epoch. */
function uint32(epoch: number): Bytes {
  if (!Number.isInteger(epoch) || epoch < 1 || epoch > EPOCH_MAX) throw new RangeError(`${epoch} is no epoch`)
  const bytes = new Uint8Array(4)
  new DataView(bytes.buffer).setUint32(0, epoch)
  return bytes
}

/**
 * Eight octets, big-endian. Throws for a text that is no uint64 in decimal, as it is written: under another spelling of its id
 * a call that has ended would be a new one.
 */
function uint64(decimal: string): Bytes {
  const value = BigInt(decimal)
  if (BigInt.asUintN(64, value) !== value || `${value}` !== decimal)
    throw new RangeError(`${decimal} is not a uint64`)
  const bytes = new Uint8Array(8)
  new DataView(bytes.buffer).setBigUint64(0, value)
  return bytes
}

/** Throws `KEY_UNSUPPORTED` for a device that has no such key: it makes no call. */
function agreementKey(own: OwnKeyHolder): AgreementKey {
  const { key, keys } = own
  if (key.kind !== 'P-256') throw keyUnsupported(own, 'is not one of P-256, so it seals nothing')
  return { point: key.point, agree: other => keys.agree(other) }
}

/** Names the device. */
export function keyUnsupported(
  { userId, deviceId }: Pick<KeyHolder, 'userId' | 'deviceId'>,
  fault: string,
): CallsignError {
  const sentence = `The key of device ${deviceId} ${fault}.`
  return new CallsignError('KEY_UNSUPPORTED', sentence, { members: { userId, deviceId } })
}

const PURPOSE = new TextEncoder().encode('callsign call key v2\n')
const FINGERPRINT = new TextEncoder().encode('callsign call fingerprint v2\n')
const FINGERPRINT_HASHES = 5_200
/** For a key that no device has asked for. */
const NO_NONCE = new Uint8Array(16)
/** The first octet of a sealed key. */
const FORM = 2
const [POINT_BYTES, KEY_BYTES] = [65, 32]
const EPOCH_MAX = 65_535
