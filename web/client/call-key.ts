/**
 * A call's key: how it is sealed for a device, what people compare, and what else is encrypted with it.
 *
 * Sealing is as `docs/crypto.md` recommends, in the manner of HPKE's authenticated mode (RFC 9180): the sealed key is
 * `ephemeral point (65) ‖ ciphertext (32) ‖ tag (16)`, base64. Key and nonce of AES-256-GCM come from HKDF-SHA256 over
 * ECDH(ephemeral, receiver) ‖ ECDH(sender, receiver), with
 * `callsign call key v1 <sender> <receiver> ` ‖ ephemeral ‖ sender's point ‖ receiver's point as info, where a device is
 * named `<userId>_<deviceId>`. So only the receiver can open it, and knows by that who has sealed it.
 */

import { type Bytes, base64FromBytes, bytesFromBase64 } from './device-key.ts'

export interface KeyHolder {
  /** `<userId>_<deviceId>` */
  readonly name: string
  /** The X9.63 point of its P-256 key. */
  readonly point: Bytes
}

export interface OwnDevice extends KeyHolder {
  readonly privateKey: CryptoKey
}

/** 32 random bytes. */
export function makeCallKey(): Bytes {
  return crypto.getRandomValues(new Uint8Array(KEY_BYTES))
}

/** The call's key for one device: base64 of 113 bytes. */
export async function sealCallKey(callKey: Bytes, from: OwnDevice, to: KeyHolder): Promise<string> {
  const ephemeral = await crypto.subtle.generateKey(P256, true, ['deriveBits'])
  const point = new Uint8Array(await crypto.subtle.exportKey('raw', ephemeral.publicKey))
  const shared = [await agree(ephemeral.privateKey, to.point), await agree(from.privateKey, to.point)]
  const { key, iv } = await derive(shared, point, from, to)
  const sealed = await crypto.subtle.encrypt({ name: 'AES-GCM', iv }, key, callKey)
  return base64FromBytes(concat(point, new Uint8Array(sealed)))
}

/** Rejects unless `from` sealed it for `to`. */
export async function openCallKey(sealed: string, from: KeyHolder, to: OwnDevice): Promise<Bytes> {
  const bytes = bytesFromBase64(sealed)
  const point = bytes.subarray(0, POINT_BYTES)
  const shared = [await agree(to.privateKey, point), await agree(to.privateKey, from.point)]
  const { key, iv } = await derive(shared, point, from, to)
  const opened = await crypto.subtle.decrypt({ name: 'AES-GCM', iv }, key, bytes.subarray(POINT_BYTES))
  return new Uint8Array(opened)
}

/** The fingerprint people read to each other: twenty digits in groups of five, from the key, its call and its epoch. */
export async function fingerprintOf(callKey: Bytes, callId: string, epoch: number): Promise<string> {
  const purpose = text(`callsign call fingerprint v1 ${callId} ${epoch} `)
  const digest = new DataView(await crypto.subtle.digest('SHA-256', concat(purpose, callKey)))
  const groups = [0, 4, 8, 12].map(at => digest.getUint32(at) % 100_000)
  return groups.map(group => String(group).padStart(5, '0')).join(' ')
}

/** The key that media's signals are encrypted with: another one than the call's, of the same strength. */
export async function mediaKeyOf(callKey: Bytes, callId: string, epoch: number): Promise<CryptoKey> {
  const secret = await crypto.subtle.importKey('raw', callKey, 'HKDF', false, ['deriveKey'])
  const info = text(`callsign media signals v1 ${callId} ${epoch}`)
  const hkdf = { name: 'HKDF', hash: 'SHA-256', salt: new Uint8Array(), info }
  return crypto.subtle.deriveKey(hkdf, secret, { name: 'AES-GCM', length: 256 }, false, [
    'encrypt',
    'decrypt',
  ])
}

/** base64 of `nonce (12) ‖ ciphertext ‖ tag (16)`. */
export async function sealText(plain: string, key: CryptoKey): Promise<string> {
  const iv = crypto.getRandomValues(new Uint8Array(IV_BYTES))
  const sealed = await crypto.subtle.encrypt({ name: 'AES-GCM', iv }, key, text(plain))
  return base64FromBytes(concat(iv, new Uint8Array(sealed)))
}

/** Rejects for what this key has not sealed. */
export async function openText(sealed: string, key: CryptoKey): Promise<string> {
  const bytes = bytesFromBase64(sealed)
  const iv = bytes.subarray(0, IV_BYTES)
  const opened = await crypto.subtle.decrypt({ name: 'AES-GCM', iv }, key, bytes.subarray(IV_BYTES))
  return new TextDecoder().decode(opened)
}

/** ECDH: the x-coordinate of the shared point, 32 bytes. */
async function agree(privateKey: CryptoKey, point: Bytes): Promise<Bytes> {
  const publicKey = await crypto.subtle.importKey('raw', point, P256, false, [])
  return new Uint8Array(await crypto.subtle.deriveBits({ name: 'ECDH', public: publicKey }, privateKey, 256))
}

/** HKDF-SHA256 over both secrets, bound to who sends, who is to read, and all keys that took part. */
async function derive(shared: readonly Bytes[], ephemeral: Bytes, from: KeyHolder, to: KeyHolder) {
  const secret = await crypto.subtle.importKey('raw', concat(...shared), 'HKDF', false, ['deriveBits'])
  const purpose = text(`callsign call key v1 ${from.name} ${to.name} `)
  const info = concat(purpose, ephemeral, from.point, to.point)
  const hkdf = { name: 'HKDF', hash: 'SHA-256', salt: new Uint8Array(), info }
  const bytes = new Uint8Array(await crypto.subtle.deriveBits(hkdf, secret, 8 * (KEY_BYTES + IV_BYTES)))
  const key = await crypto.subtle.importKey('raw', bytes.subarray(0, KEY_BYTES), 'AES-GCM', false, [
    'encrypt',
    'decrypt',
  ])
  return { key, iv: bytes.subarray(KEY_BYTES) }
}

function text(characters: string): Bytes {
  return new TextEncoder().encode(characters)
}

function concat(...parts: readonly Uint8Array[]): Bytes {
  return Uint8Array.from(parts.flatMap(part => [...part]))
}

const P256 = { name: 'ECDH', namedCurve: 'P-256' }
const [POINT_BYTES, KEY_BYTES, IV_BYTES] = [65, 32, 12]
