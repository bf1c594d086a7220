/**
 * A call's key: how it is sealed for a device, and what people compare. docs/crypto.md has the format, in the manner
 * of HPKE's authenticated mode (RFC 9180): only the receiver can open it, and knows by that who has sealed it.
 */

import { decodeBase64, encodeBase64 } from '../../log/base64.ts'
import { CallsignError } from '../callsign-error.ts'
import type { Bytes, DeviceKeys } from './device-keys.ts'
import { spokenCode } from './spoken-code.ts'

export interface KeyHolder {
  /** `<userId>_<deviceId>` */
  readonly name: string
  /** The uncompressed point of its P-256 key. */
  readonly point: Bytes
}

export interface OwnKeyHolder extends KeyHolder {
  readonly keys: Pick<DeviceKeys, 'agree'>
}

export function keyHolder(userId: string, deviceId: string, publicKey: string): KeyHolder {
  // The last octets of SPKI, and all of the other encoding.
  const point = Uint8Array.from(decodeBase64(publicKey).slice(-POINT_BYTES))
  return { name: `${userId}_${deviceId}`, point }
}

/** 32 random bytes. */
export function makeCallKey(): Bytes {
  return globalThis.crypto.getRandomValues(new Uint8Array(KEY_BYTES))
}

/** Seals a call key, or one with a checkpoint behind it: base64. */
export async function sealCallKey(callKey: Uint8Array, from: OwnKeyHolder, to: KeyHolder): Promise<string> {
  const { subtle } = globalThis.crypto
  const ephemeral = await subtle.generateKey(P256, true, ['deriveBits'])
  const point = new Uint8Array(await subtle.exportKey('raw', ephemeral.publicKey))
  const receiver = await subtle.importKey('raw', to.point, P256, false, [])
  const bits = await subtle.deriveBits({ name: 'ECDH', public: receiver }, ephemeral.privateKey, 256)
  const shared = concat(new Uint8Array(bits), await from.keys.agree(to.point))
  const { key, iv } = await derive(shared, point, from, to)
  const sealed = await subtle.encrypt({ name: 'AES-GCM', iv }, key, Uint8Array.from(callKey))
  return encodeBase64(concat(point, new Uint8Array(sealed)))
}

/** Gives the octets that were sealed. Rejects with `CALL_KEY_INVALID` unless `from` sealed it for `to`. */
export async function openCallKey(sealed: string, from: KeyHolder, to: OwnKeyHolder): Promise<Bytes> {
  try {
    const bytes = Uint8Array.from(decodeBase64(sealed))
    const point = bytes.slice(0, POINT_BYTES)
    const shared = concat(await to.keys.agree(point), await to.keys.agree(from.point))
    const { key, iv } = await derive(shared, point, from, to)
    const cipher = { name: 'AES-GCM', iv }
    return new Uint8Array(await globalThis.crypto.subtle.decrypt(cipher, key, bytes.subarray(POINT_BYTES)))
  } catch (cause) {
    const sentence = 'The call’s key was not sealed by the device that is said to have sent it.'
    throw new CallsignError('CALL_KEY_INVALID', sentence, { cause })
  }
}

/** The fingerprint of the key that people read to each other. */
export function fingerprintOf(callKey: Uint8Array, callId: string, epoch: number): string {
  return spokenCode(`callsign call fingerprint v1 ${callId} ${epoch} `, callKey)
}

/** HKDF-SHA256 over both secrets, bound to who sends, who is to read, and all keys that took part. */
async function derive(shared: Bytes, ephemeral: Bytes, from: KeyHolder, to: KeyHolder) {
  const { subtle } = globalThis.crypto
  const secret = await subtle.importKey('raw', shared, 'HKDF', false, ['deriveBits'])
  const purpose = new TextEncoder().encode(`callsign call key v1 ${from.name} ${to.name} `)
  const info = concat(purpose, ephemeral, from.point, to.point)
  const hkdf = { name: 'HKDF', hash: 'SHA-256', salt: new Uint8Array(), info }
  const bytes = new Uint8Array(await subtle.deriveBits(hkdf, secret, 8 * (KEY_BYTES + IV_BYTES)))
  const raw = bytes.subarray(0, KEY_BYTES)
  const key = await subtle.importKey('raw', raw, 'AES-GCM', false, ['encrypt', 'decrypt'])
  return { key, iv: bytes.subarray(KEY_BYTES) }
}

function concat(...parts: readonly Uint8Array[]): Bytes {
  return Uint8Array.from(parts.flatMap(part => [...part]))
}

const P256 = { name: 'ECDH', namedCurve: 'P-256' }
const [POINT_BYTES, KEY_BYTES, IV_BYTES] = [65, 32, 12]
