/** The code that docs/crypto.md prints to seal and open a call's key, word for word. */

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

export interface KeyBinding {
  readonly callId: string
  readonly epoch: number
}

export interface OwnDevice extends KeyHolder {
  readonly privateKey: CryptoKey
}

/** The call's key for one device: base64 of 114 bytes, which are 02, `enc`, the ciphertext and its tag. */
export async function sealCallKey(
  callKey: Bytes,
  from: OwnDevice,
  to: KeyHolder,
  binding: KeyBinding,
): Promise<string> {
  const ephemeral = await crypto.subtle.generateKey(P256, false, ['deriveBits'])
  const enc = new Uint8Array(await crypto.subtle.exportKey('raw', ephemeral.publicKey))
  const dh = concat(await agree(ephemeral.privateKey, to.point), await agree(from.privateKey, to.point))
  const { key, iv } = await keySchedule(dh, concat(enc, to.point, from.point), infoOf(from, to, binding))
  const ciphertext = await crypto.subtle.encrypt({ name: 'AES-GCM', iv }, key, callKey)
  return btoa(String.fromCharCode(2, ...enc, ...new Uint8Array(ciphertext)))
}

/** Rejects unless `from` sealed it for `to`, and for this call and epoch. */
export async function openCallKey(
  sealed: string,
  from: KeyHolder,
  to: OwnDevice,
  binding: KeyBinding,
): Promise<Bytes> {
  const bytes = Uint8Array.from(atob(sealed), char => char.charCodeAt(0))
  if (bytes[0] !== 2) throw new Error('a sealed key of another form')
  const enc = bytes.subarray(1, 66)
  const dh = concat(await agree(to.privateKey, enc), await agree(to.privateKey, from.point))
  const { key, iv } = await keySchedule(dh, concat(enc, to.point, from.point), infoOf(from, to, binding))
  return new Uint8Array(await crypto.subtle.decrypt({ name: 'AES-GCM', iv }, key, bytes.subarray(66)))
}

/** The fingerprint people read to each other: twenty digits in groups of five. */
export async function fingerprintOf(callKey: Bytes, callId: string, epoch: number): Promise<string> {
  const purpose = ascii(`callsign call fingerprint v1 ${callId} ${epoch} `)
  const digest = new DataView(await crypto.subtle.digest('SHA-256', concat(purpose, callKey)))
  const groups = [0, 4, 8, 12].map(at => digest.getUint32(at) % 100_000)
  return groups.map(group => String(group).padStart(5, '0')).join(' ')
}

/** `DH`: the x-coordinate of the shared point, 32 bytes. Rejects for a point that is not on the curve. */
async function agree(privateKey: CryptoKey, point: Bytes): Promise<Bytes> {
  // WebCrypto looks whether the point is on the curve. It takes compressed points too, which RFC 9180 does not.
  if (point[0] !== 4) throw new Error('not an uncompressed point')
  const publicKey = await crypto.subtle.importKey('raw', point, P256, false, [])
  return new Uint8Array(await crypto.subtle.deriveBits({ name: 'ECDH', public: publicKey }, privateKey, 256))
}

/** `info`: a sealed key opens for this call and epoch, and with exactly these names. */
function infoOf(from: KeyHolder, to: KeyHolder, { callId, epoch }: KeyBinding): Bytes {
  const view = new DataView(new ArrayBuffer(44))
  view.setBigUint64(0, BigInt(callId))
  view.setUint32(8, epoch)
  const ids = [from, to].flatMap(({ name }) => name.split('_'))
  for (const [at, id] of ids.entries()) view.setBigUint64(12 + 8 * at, BigInt(id))
  return concat(ascii('callsign call key v2\n'), new Uint8Array(view.buffer))
}

/** `ExtractAndExpand` and `KeySchedule`: key and nonce for AES-256-GCM. */
async function keySchedule(dh: Bytes, kemContext: Bytes, info: Bytes) {
  const prk = await labeledExtract(KEM, NOTHING, 'eae_prk', dh)
  const sharedSecret = await labeledExpand(KEM, prk, 'shared_secret', kemContext, 32)
  const pskIdHash = await labeledExtract(HPKE, NOTHING, 'psk_id_hash', NOTHING)
  const infoHash = await labeledExtract(HPKE, NOTHING, 'info_hash', info)
  const context = concat(Uint8Array.of(2), pskIdHash, infoHash)
  const secret = await labeledExtract(HPKE, sharedSecret, 'secret', NOTHING)
  const raw = await labeledExpand(HPKE, secret, 'key', context, 32)
  const key = await crypto.subtle.importKey('raw', raw, 'AES-GCM', false, ['encrypt', 'decrypt'])
  return { key, iv: await labeledExpand(HPKE, secret, 'base_nonce', context, 12) }
}

function labeledExtract(suite: Bytes, salt: Bytes, label: string, ikm: Bytes): Promise<Bytes> {
  // HMAC fills its key with zeros, so zeros are as good as no salt, which WebCrypto does not take.
  return hmac(salt.length > 0 ? salt : new Uint8Array(32), concat(VERSION, suite, ascii(label), ikm))
}

/** Up to 32 bytes, which HKDF-Expand makes in one step. */
async function labeledExpand(suite: Bytes, prk: Bytes, label: string, info: Bytes, length: number) {
  const labeledInfo = concat(Uint8Array.of(0, length), VERSION, suite, ascii(label), info)
  return (await hmac(prk, concat(labeledInfo, Uint8Array.of(1)))).slice(0, length)
}

async function hmac(secret: Bytes, data: Bytes): Promise<Bytes> {
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  const key = await crypto.subtle.importKey('raw', secret, algorithm, false, ['sign'])
  return new Uint8Array(await crypto.subtle.sign('HMAC', key, data))
}

function ascii(text: string): Bytes {
  return new TextEncoder().encode(text)
}

function concat(...parts: Bytes[]): Bytes {
  return Uint8Array.from(parts.flatMap(part => [...part]))
}

const P256 = { name: 'ECDH', namedCurve: 'P-256' }
const VERSION = ascii('HPKE-v1')
/** `suite_id` of the KEM (4.1) and of HPKE (5.1). */
const KEM = concat(ascii('KEM'), Uint8Array.of(0, 0x10))
const HPKE = concat(ascii('HPKE'), Uint8Array.of(0, 0x10, 0, 1, 0, 2))
const NOTHING = new Uint8Array()
