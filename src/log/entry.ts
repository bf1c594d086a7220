/**
 * The entry of this log, `<vrfHash base64>\n<publicKey base64>\n`: an identity hash bound to a device's public key.
 * The form is fixed for the life of a log; another form needs another origin.
 */
import { decodeBase64, encodeBase64, isCanonicalBase64 } from '#primitives'
import { SignalError } from '../errors.ts'

/** The hash output of c2sp.org/vrf-r255, never truncated. */
export const VRF_HASH_BYTES = 64
/** Characters of the base64 hash that begins an entry. */
export const VRF_HASH_CHARS = 88
/** The longest key that Register takes. Canonical, bounded base64 leaves little room for foreign content in the log. */
export const PUBLIC_KEY_CHARS_MAX = 1024

export interface Entry {
  /** 64 bytes. */
  readonly vrfHash: Uint8Array
  /** The base64 text exactly as it was registered. */
  readonly publicKey: string
}

/**
 * The bytes of an entry, 134 for a key of 32 bytes. They may share memory with other entries: not to be written to,
 * transferred, or kept for long without a copy. Throws `MALFORMED` unless the hash has 64 bytes and the key is
 * non-empty canonical base64; how long a key may be is Register's affair (`assertPublicKey`).
 */
export function formatEntry(vrfHash: Uint8Array, publicKey: string): Uint8Array {
  if (vrfHash.length !== VRF_HASH_BYTES) {
    throw new SignalError('MALFORMED', `VRF hash has ${vrfHash.length} bytes, not ${VRF_HASH_BYTES}`)
  }
  assertKeyForm(publicKey)
  const hashLine = encodeBase64(vrfHash)
  const bytes = newBytes(hashLine.length + 1 + publicKey.length + 1)
  writeLine(bytes, 0, hashLine)
  writeLine(bytes, hashLine.length + 1, publicKey)
  return bytes
}

/**
 * The parts of an entry, in memory of their own. Throws `MALFORMED` unless it is exactly two lines, both canonical
 * base64, the first of 64 bytes, the second not empty. A key longer than Register takes is still an entry.
 */
export function parseEntry(bytes: Uint8Array): Entry {
  // Whatever is not ASCII, and bytes that are no UTF-8 at all, come out as characters that base64 does not have.
  decoder ??= new TextDecoder('utf-8', { ignoreBOM: true })
  const text = decoder.decode(bytes)
  const hashEnd = text.indexOf('\n')
  const keyEnd = text.indexOf('\n', hashEnd + 1)
  if (hashEnd < 0 || keyEnd !== text.length - 1) throw new SignalError('MALFORMED', 'entry is not two lines')
  const vrfHash = decodeBase64(text.slice(0, hashEnd))
  if (vrfHash.length !== VRF_HASH_BYTES) {
    throw new SignalError('MALFORMED', `VRF hash in entry has ${vrfHash.length} bytes, not ${VRF_HASH_BYTES}`)
  }
  const publicKey = text.slice(hashEnd + 1, keyEnd)
  assertKeyForm(publicKey)
  return { vrfHash, publicKey }
}

/** Throws `MALFORMED` unless the text is canonical base64 of 1 to 1,024 characters, which is what Register takes. */
export function assertPublicKey(text: string): void {
  if (text.length > PUBLIC_KEY_CHARS_MAX) {
    throw new SignalError('MALFORMED', `public key has ${text.length} characters, at most 1024 are taken`)
  }
  assertKeyForm(text)
}

function assertKeyForm(publicKey: string): void {
  if (publicKey === '' || !isCanonicalBase64(publicKey)) {
    throw new SignalError('MALFORMED', 'public key is not canonical base64')
  }
}

function writeLine(bytes: Uint8Array, start: number, line: string): void {
  for (let at = 0; at < line.length; at++) bytes[start + at] = line.charCodeAt(at)
  bytes[start + line.length] = NEWLINE
}

/** Entries are cut from a shared piece of memory: an array of their size by itself costs 0.3 us, a cut 0.03 us. */
function newBytes(length: number): Uint8Array {
  if (length > SLAB_BYTES / 8) return new Uint8Array(length)
  if (slabUsed + length > SLAB_BYTES) {
    slab = new Uint8Array(SLAB_BYTES)
    slabUsed = 0
  }
  slabUsed += length
  return slab.subarray(slabUsed - length, slabUsed)
}

const SLAB_BYTES = 16 * 1024
let slab = new Uint8Array(SLAB_BYTES)
let slabUsed = 0

const NEWLINE = 0x0a
/** Made at the first use: clients only write entries, and React Native's engine has no decoder. */
let decoder: InstanceType<typeof TextDecoder> | undefined
