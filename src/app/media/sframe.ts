/**
 * SFrame (RFC 9605) with cipher suite 5, AES_256_GCM_SHA512_128: headers, keys, and one frame sealed or opened. Which keys
 * and counters are used is frame-cryptor.ts's to decide.
 */

import type { Bytes } from '../devices/device-keys.ts'

/** The key and salt of one KID (section 4.4.2). */
export interface SFrameKey {
  readonly key: CryptoKey
  readonly salt: Bytes
}

export interface SFrameHeader {
  readonly kid: bigint
  readonly counter: bigint
}

/** Imports the base key of an epoch, from which the keys of its KIDs are derived. */
export function importBaseKey(base: Bytes): Promise<CryptoKey> {
  return globalThis.crypto.subtle.importKey('raw', base, 'HKDF', false, ['deriveBits'])
}

/** Section 4.4.2. An empty salt is HMAC's zeros, as the section's HKDF-Extract has it. */
export async function deriveSFrameKey(baseKey: CryptoKey, kid: bigint): Promise<SFrameKey> {
  const { subtle } = globalThis.crypto
  const derive = async (purpose: string, size: number) => {
    const label = new TextEncoder().encode(`SFrame 1.0 Secret ${purpose} `)
    const info = concat(label, bigEndian(kid, 8), bigEndian(SUITE, 2))
    const hkdf = { name: 'HKDF', hash: 'SHA-512', salt: new Uint8Array(), info }
    return new Uint8Array(await subtle.deriveBits(hkdf, baseKey, 8 * size))
  }
  const raw = await derive('key', KEY_BYTES)
  const key = await subtle.importKey('raw', raw, 'AES-GCM', false, ['encrypt', 'decrypt'])
  return { key, salt: await derive('salt', NONCE_BYTES) }
}

/** Section 4.3: values below 8 are in the config byte, larger ones follow it in as few bytes as they need. */
export function formatHeader({ kid, counter }: SFrameHeader): Bytes {
  const [kidBytes, counterBytes] = [kid, counter].map(value => bigEndian(value, sizeOf(value))) as [
    Bytes,
    Bytes,
  ]
  const field = (value: bigint, bytes: Bytes) => (value < 8n ? Number(value) : 8 | (bytes.length - 1))
  const config = (field(kid, kidBytes) << 4) | field(counter, counterBytes)
  const following = [...(kid < 8n ? [] : kidBytes), ...(counter < 8n ? [] : counterBytes)]
  return Uint8Array.of(config, ...following)
}

/** Undefined when the bytes end within the header. */
export function parseHeader(bytes: Uint8Array): (SFrameHeader & { readonly size: number }) | undefined {
  const config = bytes[0]
  if (config === undefined) return undefined
  let size = 1
  const read = (field: number) => {
    if (field < 8) return BigInt(field)
    const end = size + (field & 7) + 1
    const value = bytes.subarray(size, end).reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n)
    size = end
    return value
  }
  const kid = read(config >> 4)
  const counter = read(config & 15)
  return size <= bytes.length ? { kid, counter, size } : undefined
}

/** Gives header, ciphertext and tag (section 4.4.3). A (KID, counter) may be used once only. */
export async function sealSFrame(
  sframeKey: SFrameKey,
  header: SFrameHeader,
  metadata: Uint8Array,
  plain: Bytes,
): Promise<Bytes> {
  const formatted = formatHeader(header)
  const cipher = cipherOf(sframeKey, header.counter, formatted, metadata)
  const sealed = await globalThis.crypto.subtle.encrypt(cipher, sframeKey.key, plain)
  return concat(formatted, new Uint8Array(sealed))
}

/** Opens ciphertext and tag behind the header's bytes (section 4.4.4). Rejects unless all of it is authentic. */
export async function openSFrame(
  sframeKey: SFrameKey,
  counter: bigint,
  header: Uint8Array,
  metadata: Uint8Array,
  sealed: Bytes,
): Promise<Bytes> {
  const cipher = cipherOf(sframeKey, counter, header, metadata)
  return new Uint8Array(await globalThis.crypto.subtle.decrypt(cipher, sframeKey.key, sealed))
}

export function concat(...parts: readonly Uint8Array[]): Bytes {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  return bytes
}

function cipherOf({ salt }: SFrameKey, counter: bigint, header: Uint8Array, metadata: Uint8Array) {
  const iv = bigEndian(counter, NONCE_BYTES).map((byte, index) => byte ^ salt[index]!)
  return { name: 'AES-GCM', iv, additionalData: concat(header, metadata), tagLength: 8 * TAG_BYTES }
}

function bigEndian(value: bigint, size: number): Bytes {
  const bytes = new Uint8Array(size)
  for (let at = size - 1, rest = value; at >= 0; at--, rest >>= 8n) bytes[at] = Number(rest & 255n)
  return bytes
}

function sizeOf(value: bigint): number {
  return Math.ceil(value.toString(16).length / 2)
}

export const TAG_BYTES = 16
const SUITE = 5n
const [KEY_BYTES, NONCE_BYTES] = [32, 12]
