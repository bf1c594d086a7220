/** The construction that docs/crypto.md recommends for a call's key, word for word as it is printed there. */

import type { webcrypto } from 'node:crypto'

type CryptoKey = webcrypto.CryptoKey

/** Bytes of their own buffer, as WebCrypto wants them. */
type Bytes = Uint8Array<ArrayBuffer>

export interface KeyHolder {
  /** `<userId>_<deviceId>` */
  readonly name: string
  /** The X9.63 point of its P-256 key: the last 65 bytes of either encoding. */
  readonly point: Bytes
}

export interface OwnDevice extends KeyHolder {
  readonly privateKey: CryptoKey
}

/** The call's key for one device: base64 of 113 bytes, which are an ephemeral point, the ciphertext and its tag. */
export async function sealCallKey(callKey: Bytes, from: OwnDevice, to: KeyHolder): Promise<string> {
  const ephemeral = await crypto.subtle.generateKey(P256, true, ['deriveBits'])
  const point = new Uint8Array(await crypto.subtle.exportKey('raw', ephemeral.publicKey))
  const shared = [await agree(ephemeral.privateKey, to.point), await agree(from.privateKey, to.point)]
  const { key, iv } = await derive(shared, point, from, to)
  const sealed = await crypto.subtle.encrypt({ name: 'AES-GCM', iv }, key, callKey)
  return btoa(String.fromCharCode(...point, ...new Uint8Array(sealed)))
}

/** Rejects unless `from` sealed it for `to`. */
export async function openCallKey(sealed: string, from: KeyHolder, to: OwnDevice): Promise<Bytes> {
  const bytes = Uint8Array.from(atob(sealed), char => char.charCodeAt(0))
  const point = bytes.subarray(0, POINT_BYTES)
  const shared = [await agree(to.privateKey, point), await agree(to.privateKey, from.point)]
  const { key, iv } = await derive(shared, point, from, to)
  const opened = await crypto.subtle.decrypt({ name: 'AES-GCM', iv }, key, bytes.subarray(POINT_BYTES))
  return new Uint8Array(opened)
}

/** The fingerprint people read to each other: twenty digits in groups of five. */
export async function fingerprintOf(callKey: Bytes, callId: string, epoch: number): Promise<string> {
  const purpose = new TextEncoder().encode(`callsign call fingerprint v1 ${callId} ${epoch} `)
  const digest = new DataView(await crypto.subtle.digest('SHA-256', concat(purpose, callKey)))
  const groups = [0, 4, 8, 12].map(at => digest.getUint32(at) % 100_000)
  return groups.map(group => String(group).padStart(5, '0')).join(' ')
}

/** ECDH: the x-coordinate of the shared point, 32 bytes. */
async function agree(privateKey: CryptoKey, point: Bytes): Promise<Bytes> {
  const publicKey = await crypto.subtle.importKey('raw', point, P256, false, [])
  return new Uint8Array(await crypto.subtle.deriveBits({ name: 'ECDH', public: publicKey }, privateKey, 256))
}

/** HKDF-SHA256 over both secrets, bound to who sends, who is to read, and all keys that took part. */
async function derive(shared: Bytes[], ephemeral: Bytes, from: KeyHolder, to: KeyHolder) {
  const secret = await crypto.subtle.importKey('raw', concat(...shared), 'HKDF', false, ['deriveBits'])
  const purpose = new TextEncoder().encode(`callsign call key v1 ${from.name} ${to.name} `)
  const info = concat(purpose, ephemeral, from.point, to.point)
  const hkdf = { name: 'HKDF', hash: 'SHA-256', salt: new Uint8Array(), info }
  const bytes = new Uint8Array(await crypto.subtle.deriveBits(hkdf, secret, 8 * (KEY_BYTES + IV_BYTES)))
  const key = await crypto.subtle.importKey('raw', bytes.subarray(0, KEY_BYTES), 'AES-GCM', false, [
    'encrypt',
    'decrypt',
  ])
  return { key, iv: bytes.subarray(KEY_BYTES) }
}

function concat(...parts: Bytes[]): Bytes {
  return Uint8Array.from(parts.flatMap(part => [...part]))
}

const P256 = { name: 'ECDH', namedCurve: 'P-256' }
const [POINT_BYTES, KEY_BYTES, IV_BYTES] = [65, 32, 12]
