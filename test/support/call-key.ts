/** The code that docs/check/crypto.md prints to seal and open a call's key, word for word. */

import type { webcrypto } from 'node:crypto'

type CryptoKey = webcrypto.CryptoKey

/** Bytes of their own buffer, as WebCrypto wants them. */
type Bytes = Uint8Array<ArrayBuffer>

export interface KeyHolder {
  /** `<userId>_<deviceId>` */
  readonly name: string
  /** As it was registered. Its last 65 bytes are the point, in either encoding. */
  readonly publicKey: Bytes
}

export interface OwnDevice extends KeyHolder {
  readonly privateKey: CryptoKey
}

/** The use of a sealed key: it opens for no other. */
export interface KeyBinding {
  readonly callId: string
  readonly epoch: number
  /** 16 bytes, only in the answer to a device that asked with them. */
  readonly nonce?: Bytes
}

export interface CallKey {
  readonly callKey: Bytes
  readonly setHash: Bytes
}

export interface OpenedCallKey extends CallKey {
  readonly sealedAtMs: number
}

/** The set of devices that a key is sealed for, the sealer's own among them: base64. */
export async function keyMembersOf(holders: readonly KeyHolder[]): Promise<string> {
  if (new Set(holders.map(({ name }) => name)).size < holders.length) throw new Error('a device comes twice')
  const hashOf = async ({ publicKey }: KeyHolder) =>
    new Uint8Array(await crypto.subtle.digest('SHA-256', publicKey))
  const entries = holders.map(async holder => concat(idsOf(holder), await hashOf(holder)))
  // Texts of one character a byte have the order of the bytes.
  const sorted = (await Promise.all(entries)).map(entry => String.fromCharCode(...entry)).sort()
  return btoa(String.fromCharCode(sorted.length >> 8, sorted.length & 255) + sorted.join(''))
}

export async function hashOfSet(keyMembers: string): Promise<Bytes> {
  const set = concat(ascii('callsign call members v1\n'), fromBase64(keyMembers))
  return new Uint8Array(await crypto.subtle.digest('SHA-256', set))
}

/** Names in a set. Look these devices up in the log, make the set of them, and compare: that checks all of it. */
export function namesIn(keyMembers: string): string[] {
  const view = new DataView(fromBase64(keyMembers).buffer)
  return Array.from({ length: view.getUint16(0) }, (_, index) => {
    const at = 2 + 48 * index
    return `${view.getBigUint64(at)}_${view.getBigUint64(at + 8)}`
  })
}

/** Base64 of 154 bytes: 02, `enc`, the ciphertext of 72 and its tag. */
export async function sealCallKey(
  { callKey, setHash }: CallKey,
  from: OwnDevice,
  to: KeyHolder,
  binding: KeyBinding,
): Promise<string> {
  const ephemeral = await crypto.subtle.generateKey(P256, false, ['deriveBits'])
  const enc = new Uint8Array(await crypto.subtle.exportKey('raw', ephemeral.publicKey))
  const dh = concat(await agree(ephemeral.privateKey, pointOf(to)), await agree(from.privateKey, pointOf(to)))
  const kemContext = concat(enc, pointOf(to), pointOf(from))
  const { key, iv } = await keySchedule(dh, kemContext, infoOf(from, to, binding))
  const content = concat(callKey, setHash, uint64(Date.now()))
  const ciphertext = await crypto.subtle.encrypt({ name: 'AES-GCM', iv }, key, content)
  return btoa(String.fromCharCode(2, ...enc, ...new Uint8Array(ciphertext)))
}

/** Rejects unless `from` sealed it for `to`, and for this call, epoch and nonce. The set is still to be checked. */
export async function openCallKey(
  sealed: string,
  from: KeyHolder,
  to: OwnDevice,
  binding: KeyBinding,
): Promise<OpenedCallKey> {
  const bytes = fromBase64(sealed)
  if (bytes[0] !== 2) throw new Error('a sealed key of another form')
  const enc = bytes.subarray(1, 66)
  const dh = concat(await agree(to.privateKey, enc), await agree(to.privateKey, pointOf(from)))
  const kemContext = concat(enc, pointOf(to), pointOf(from))
  const { key, iv } = await keySchedule(dh, kemContext, infoOf(from, to, binding))
  const opened = await crypto.subtle.decrypt({ name: 'AES-GCM', iv }, key, bytes.subarray(66))
  // Behind the 72 bytes is a checkpoint, or nothing.
  if (opened.byteLength !== 72 && opened.byteLength !== 180) throw new Error('a call key of another form')
  const sealedAtMs = Number(new DataView(opened).getBigUint64(64))
  return {
    callKey: new Uint8Array(opened.slice(0, 32)),
    setHash: new Uint8Array(opened.slice(32, 64)),
    sealedAtMs,
  }
}

/** Thirty digits that people read to each other, in groups of five. */
export async function fingerprintOf(
  { callKey, setHash }: CallKey,
  { callId, epoch }: KeyBinding,
): Promise<string> {
  const purpose = ascii('callsign call fingerprint v2\n')
  let digest: Bytes = concat(purpose, uint64(callId), uint32(epoch), setHash, callKey)
  for (let times = 0; times < 5_200; times++)
    digest = new Uint8Array(await crypto.subtle.digest('SHA-512', digest))
  const valueAt = (at: number) => digest.subarray(at, at + 5).reduce((value, octet) => 256 * value + octet, 0)
  return [0, 5, 10, 15, 20, 25].map(at => String(valueAt(at) % 100_000).padStart(5, '0')).join(' ')
}

/** `DH`: the x-coordinate of the shared point, 32 bytes. Rejects for a point that is not on the curve. */
async function agree(privateKey: CryptoKey, point: Bytes): Promise<Bytes> {
  // WebCrypto looks whether the point is on the curve. It takes compressed points too, which RFC 9180 does not.
  if (point[0] !== 4) throw new Error('not an uncompressed point')
  const publicKey = await crypto.subtle.importKey('raw', point, P256, false, [])
  return new Uint8Array(await crypto.subtle.deriveBits({ name: 'ECDH', public: publicKey }, privateKey, 256))
}

/** `info`: all that a sealed key is bound to. */
function infoOf(from: KeyHolder, to: KeyHolder, { callId, epoch, nonce }: KeyBinding): Bytes {
  const call = concat(uint64(callId), uint32(epoch))
  return concat(ascii('callsign call key v2\n'), call, idsOf(from), idsOf(to), nonce ?? new Uint8Array(16))
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

function pointOf({ publicKey }: KeyHolder): Bytes {
  return publicKey.slice(-65)
}

function idsOf({ name }: KeyHolder): Bytes {
  return concat(...name.split('_').map(uint64))
}

function uint64(value: string | number): Bytes {
  const view = new DataView(new ArrayBuffer(8))
  view.setBigUint64(0, BigInt(value))
  return new Uint8Array(view.buffer)
}

function uint32(value: number): Bytes {
  return uint64(value).slice(4)
}

function fromBase64(text: string): Bytes {
  return Uint8Array.from(atob(text), char => char.charCodeAt(0))
}

function ascii(text: string): Bytes {
  return new TextEncoder().encode(text)
}

function concat(...parts: readonly Bytes[]): Bytes {
  return Uint8Array.from(parts.flatMap(part => [...part]))
}

const P256 = { name: 'ECDH', namedCurve: 'P-256' }
const VERSION = ascii('HPKE-v1')
/** `suite_id` of the KEM (4.1) and of HPKE (5.1). */
const KEM = concat(ascii('KEM'), Uint8Array.of(0, 0x10))
const HPKE = concat(ascii('HPKE'), Uint8Array.of(0, 0x10, 0, 1, 0, 2))
const NOTHING = new Uint8Array()
