/**
 * HPKE (RFC 9180) in mode Auth, single shot: DHKEM(P-256, HKDF-SHA256), HKDF-SHA256, AES-256-GCM. Libraries of HPKE want the
 * private key itself; a key in hardware has `agree` alone.
 */

import { expand, extract } from '@noble/hashes/hkdf.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { isP256Point } from '../../log/p256.ts'
import type { Bytes, DeviceKeys } from './device-keys.ts'
import { concat } from './octets.ts'

/** A private key of P-256, wherever it is kept, and its public key: an uncompressed point. */
export interface AgreementKey extends Pick<DeviceKeys, 'agree'> {
  readonly point: Uint8Array
}

/** AES-GCM under its number of section 7.3. */
interface Aead {
  readonly id: number
  readonly keyBytes: number
}

interface HpkeContext {
  readonly info: Uint8Array
  /** Empty by default. */
  readonly aad?: Uint8Array
  /** AES-256-GCM by default; appendix A.3 uses AES-128-GCM. */
  readonly aead?: Aead
}

interface SealContext extends HpkeContext {
  readonly sender: AgreementKey
  /** The receiver's public key. */
  readonly receiver: Uint8Array
  /** Made now by default; test vectors give theirs. */
  readonly ephemeral?: AgreementKey
}

interface OpenContext extends HpkeContext {
  /** The sender's public key. */
  readonly sender: Uint8Array
  readonly receiver: AgreementKey
}

/** `SealAuth` (6.1): `enc` of 65 bytes, then the ciphertext. Rejects with `RangeError` for a receiver off the curve. */
export async function sealAuth(plaintext: Uint8Array, context: SealContext): Promise<Bytes> {
  const { sender, receiver, ephemeral = await makeEphemeral() } = context
  // AuthEncap (4.1). The sender's key takes part in one agreement.
  assertOnCurve(receiver)
  const dh = concat(await ephemeral.agree(receiver), await sender.agree(receiver))
  const enc = ephemeral.point
  const sharedSecret = extractAndExpand(dh, concat(enc, receiver, sender.point))
  const { key, nonce } = await keySchedule(sharedSecret, context)
  const cipher = gcm(nonce, context)
  const ciphertext = await globalThis.crypto.subtle.encrypt(cipher, key, Uint8Array.from(plaintext))
  return concat(enc, new Uint8Array(ciphertext))
}

/** `OpenAuth` (6.1) of what `sealAuth` gave. Rejects unless `sender` sealed it for `receiver` with this `info` and `aad`. */
export async function openAuth(sealed: Uint8Array, context: OpenContext): Promise<Bytes> {
  const { sender, receiver } = context
  // AuthDecap (4.1). The receiver's key takes part in both agreements, so it meets no point that was not checked (7.1.4).
  const enc = sealed.slice(0, POINT_BYTES)
  assertOnCurve(enc)
  assertOnCurve(sender)
  const dh = concat(await receiver.agree(enc), await receiver.agree(sender))
  const sharedSecret = extractAndExpand(dh, concat(enc, receiver.point, sender))
  const { key, nonce } = await keySchedule(sharedSecret, context)
  const ciphertext = Uint8Array.from(sealed.subarray(POINT_BYTES))
  return new Uint8Array(await globalThis.crypto.subtle.decrypt(gcm(nonce, context), key, ciphertext))
}

/** `GenerateKeyPair` (4). */
async function makeEphemeral(): Promise<AgreementKey> {
  const { subtle } = globalThis.crypto
  const { privateKey, publicKey } = await subtle.generateKey(P256, false, ['deriveBits'])
  return {
    point: new Uint8Array(await subtle.exportKey('raw', publicKey)),
    async agree(point) {
      const other = await subtle.importKey('raw', Uint8Array.from(point), P256, false, [])
      return new Uint8Array(await subtle.deriveBits({ name: 'ECDH', public: other }, privateKey, 256))
    },
  }
}

/** A platform may take a point off the curve, and then gives the private key away bit by bit (7.1.4). */
function assertOnCurve(point: Uint8Array): void {
  if (!isP256Point(point)) throw new RangeError('not a point on P-256')
}

/** `ExtractAndExpand` (4.1). */
function extractAndExpand(dh: Uint8Array, kemContext: Uint8Array): Uint8Array {
  const suite = concat(ascii('KEM'), I2OSP(KEM_ID, 2))
  const prk = labeledExtract(suite, NOTHING, 'eae_prk', dh)
  return labeledExpand(suite, prk, 'shared_secret', kemContext, HASH_BYTES)
}

/** `KeySchedule` (5.1) of mode Auth: no PSK. The first nonce is the base nonce (5.2). */
async function keySchedule(sharedSecret: Uint8Array, { info, aead = AES_256_GCM }: HpkeContext) {
  const suite = concat(ascii('HPKE'), I2OSP(KEM_ID, 2), I2OSP(KDF_ID, 2), I2OSP(aead.id, 2))
  const pskIdHash = labeledExtract(suite, NOTHING, 'psk_id_hash', NOTHING)
  const infoHash = labeledExtract(suite, NOTHING, 'info_hash', info)
  const context = concat(I2OSP(MODE_AUTH, 1), pskIdHash, infoHash)
  const secret = labeledExtract(suite, sharedSecret, 'secret', NOTHING)
  const raw = labeledExpand(suite, secret, 'key', context, aead.keyBytes)
  return {
    key: await globalThis.crypto.subtle.importKey('raw', raw, 'AES-GCM', false, ['encrypt', 'decrypt']),
    nonce: labeledExpand(suite, secret, 'base_nonce', context, NONCE_BYTES),
  }
}

/** `LabeledExtract` (4). */
function labeledExtract(suite: Uint8Array, salt: Uint8Array, label: string, ikm: Uint8Array): Bytes {
  return Uint8Array.from(extract(sha256, concat(VERSION, suite, ascii(label), ikm), salt))
}

/** `LabeledExpand` (4). */
function labeledExpand(
  suite: Uint8Array,
  prk: Uint8Array,
  label: string,
  info: Uint8Array,
  bytes: number,
): Bytes {
  const labeledInfo = concat(I2OSP(bytes, 2), VERSION, suite, ascii(label), info)
  return Uint8Array.from(expand(sha256, prk, labeledInfo, bytes))
}

function gcm(iv: Bytes, { aad }: HpkeContext) {
  return { name: 'AES-GCM', iv, ...(aad && { additionalData: Uint8Array.from(aad) }) }
}

/** A number in so many bytes, big-endian (RFC 8017, 4.1). */
function I2OSP(value: number, bytes: 1 | 2): Uint8Array {
  return bytes === 1 ? Uint8Array.of(value) : Uint8Array.of(value >> 8, value & 255)
}

function ascii(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}

/** Sections 5, 7.1, 7.2 and 7.3. */
const [MODE_AUTH, KEM_ID, KDF_ID] = [0x02, 0x0010, 0x0001]
const AES_256_GCM: Aead = { id: 0x0002, keyBytes: 32 }
const [POINT_BYTES, HASH_BYTES, NONCE_BYTES] = [65, 32, 12]
const P256 = { name: 'ECDH', namedCurve: 'P-256' }
const VERSION = ascii('HPKE-v1')
const NOTHING = new Uint8Array()
