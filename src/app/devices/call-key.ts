/**
 * A call's key: how it is sealed for a device, and what people compare. docs/crypto.md has the format: HPKE (RFC 9180) in mode
 * Auth, so only the receiver can open it, and opening proves which device sealed it.
 */

import { decodeBase64, encodeBase64 } from '../../log/base64.ts'
import { isP256Point } from '../../log/p256.ts'
import { CallsignError } from '../callsign-error.ts'
import type { Bytes, DeviceKeys } from './device-keys.ts'
import { type AgreementKey, openAuth, sealAuth } from './hpke.ts'
import { spokenCode } from './spoken-code.ts'

export interface KeyHolder {
  readonly userId: string
  readonly deviceId: string
  /** `<userId>_<deviceId>` */
  readonly name: string
  /** The uncompressed point of its P-256 key. */
  readonly point: Bytes
}

export interface OwnKeyHolder extends KeyHolder {
  readonly keys: Pick<DeviceKeys, 'agree'>
}

/** The use that a sealed key is for: it opens for no other call, and for no other epoch of it. */
export interface KeyBinding {
  readonly callId: string
  readonly epoch: number
}

export function keyHolder(userId: string, deviceId: string, publicKey: string): KeyHolder {
  // The last octets of SPKI, and all of the other encoding.
  const point = Uint8Array.from(decodeBase64(publicKey).slice(-POINT_BYTES))
  return { userId, deviceId, name: `${userId}_${deviceId}`, point }
}

/** 32 random bytes. */
export function makeCallKey(): Bytes {
  return globalThis.crypto.getRandomValues(new Uint8Array(KEY_BYTES))
}

/**
 * Seals a call key, or one with a checkpoint behind it: base64. Rejects with `KEY_UNSUPPORTED` where the receiver's key is no
 * point of P-256.
 */
export async function sealCallKey(
  callKey: Uint8Array,
  from: OwnKeyHolder,
  to: KeyHolder,
  binding: KeyBinding,
): Promise<string> {
  const { userId, deviceId, point } = to
  if (!isP256Point(point)) {
    const sentence = `The key of device ${deviceId} is not one of P-256.`
    throw new CallsignError('KEY_UNSUPPORTED', sentence, { members: { userId, deviceId } })
  }
  const info = infoOf(from, to, binding)
  const sealed = await sealAuth(callKey, { sender: agreementKey(from), receiver: point, info })
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
    const info = infoOf(from, to, binding)
    return await openAuth(bytes.subarray(1), { sender: from.point, receiver: agreementKey(to), info })
  } catch (cause) {
    const sentence =
      'This is no key that the device which is said to have sent it has sealed for this call and epoch.'
    throw new CallsignError('CALL_KEY_INVALID', sentence, { cause })
  }
}

/** The fingerprint of the key that people read to each other. */
export function fingerprintOf(callKey: Uint8Array, callId: string, epoch: number): string {
  return spokenCode(`callsign call fingerprint v1 ${callId} ${epoch} `, callKey)
}

/** `info` of HPKE: the one place that says what a sealed key is bound to. */
function infoOf(sender: KeyHolder, receiver: KeyHolder, { callId, epoch }: KeyBinding): Bytes {
  const names = [sender, receiver].flatMap(({ userId, deviceId }) => [uint64(userId), uint64(deviceId)])
  return concat(PURPOSE, uint64(callId), uint32(epoch), ...names)
}

/** Four octets, big-endian. */
function uint32(value: number): Bytes {
  const bytes = new Uint8Array(4)
  new DataView(bytes.buffer).setUint32(0, value)
  return bytes
}

/** Eight octets, big-endian. Throws for a text that is no uint64 in decimal. */
function uint64(decimal: string): Bytes {
  const value = BigInt(decimal)
  if (BigInt.asUintN(64, value) !== value) throw new RangeError(`${decimal} is not a uint64`)
  const bytes = new Uint8Array(8)
  new DataView(bytes.buffer).setBigUint64(0, value)
  return bytes
}

function agreementKey({ point, keys }: OwnKeyHolder): AgreementKey {
  return { point, agree: other => keys.agree(other) }
}

function concat(...parts: readonly Uint8Array[]): Bytes {
  return Uint8Array.from(parts.flatMap(part => [...part]))
}

const PURPOSE = new TextEncoder().encode('callsign call key v2\n')
/** The first octet of a sealed key. */
const FORM = 2
const [POINT_BYTES, KEY_BYTES] = [65, 32]
