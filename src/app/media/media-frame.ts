/**
 * The format `callsign-media-1` of one encoded frame, as docs/protocol/media-frames.md has it: some bytes stay clear, for the gateway and
 * the receiver's depacketizer; an SFrame with all that follows comes after them.
 */

import type { Bytes } from '../devices/device-keys.ts'
import {
  concat,
  openSFrame,
  parseHeader,
  type SFrameHeader,
  type SFrameKey,
  sealSFrame,
  TAG_BYTES,
} from './sframe.ts'

export type FrameFormat = 'opus' | 'vp8' | 'h264'

/** A sealed frame taken apart: nothing of it is known to be true before it is opened. */
export interface SealedFrame extends SFrameHeader {
  readonly clear: Bytes
  /** The clear bytes that are authenticated. */
  readonly metadata: Bytes
  readonly header: Bytes
  /** Ciphertext and tag. */
  readonly sealed: Bytes
}

/** 32 bytes from the call's key, which serves other purposes too. */
export async function deriveMediaBase(callKey: Bytes, callId: string, epoch: number): Promise<Bytes> {
  const { subtle } = globalThis.crypto
  const secret = await subtle.importKey('raw', callKey, 'HKDF', false, ['deriveBits'])
  const info = new TextEncoder().encode(`callsign media v1 ${callId} ${epoch}`)
  const hkdf = { name: 'HKDF', hash: 'SHA-256', salt: new Uint8Array(), info }
  return new Uint8Array(await subtle.deriveBits(hkdf, secret, 256))
}

/** Undefined for a frame that its codec does not make: it must not be sent. */
export async function sealFrame(
  format: FrameFormat,
  key: SFrameKey,
  header: SFrameHeader,
  frame: Bytes,
): Promise<Bytes | undefined> {
  const split = splitOf(format, frame)
  if (split === undefined) return undefined
  const clear = frame.subarray(0, split.end)
  const sframe = await sealSFrame(key, header, clear.subarray(split.from), frame.subarray(split.end))
  return concat(clear, format === 'h264' ? escapeNal(sframe, clear) : sframe)
}

/** Undefined for bytes that no sender makes. */
export function parseFrame(format: FrameFormat, frame: Bytes): SealedFrame | undefined {
  const split = splitOf(format, frame)
  if (split === undefined) return undefined
  const clear = frame.subarray(0, split.end)
  const behind = frame.subarray(split.end)
  const sframe = format === 'h264' ? unescapeNal(behind, clear) : behind
  const header = parseHeader(sframe)
  if (header === undefined || sframe.length < header.size + TAG_BYTES) return undefined
  const { kid, counter, size } = header
  const metadata = clear.subarray(split.from)
  return { kid, counter, clear, metadata, header: sframe.subarray(0, size), sealed: sframe.subarray(size) }
}

/** The encoder's frame. Rejects unless it is authentic. */
export async function openFrame(frame: SealedFrame, key: SFrameKey): Promise<Bytes> {
  const plain = await openSFrame(key, frame.counter, frame.header, frame.metadata, frame.sealed)
  return concat(frame.clear, plain)
}

/**
 * Where the clear bytes end, and from where they are authenticated. Undefined for a frame that is shorter, or has no
 * slice: all of it would be clear.
 */
function splitOf(
  format: FrameFormat,
  frame: Uint8Array,
): { readonly from: number; readonly end: number } | undefined {
  const [from, size] = clearRangeOf(format, frame)
  const end = from + size
  return from < 0 || frame.length < end ? undefined : { from, end }
}

function clearRangeOf(format: FrameFormat, frame: Uint8Array): readonly [from: number, size: number] {
  switch (format) {
    case 'opus':
      return [0, 0]
    case 'vp8':
      // The frame tag of RFC 6386, section 9.1; the start code and size of a key frame: its first bit is 0.
      return [0, ((frame[0] ?? 1) & 1) === 0 ? 10 : 3]
    case 'h264':
      // Parameter sets and start codes before the slice may be written anew on the way.
      return [sliceIn(frame), 3]
  }
}

/** The offset of the first slice's NAL header (ITU-T H.264, table 7-1), or -1. */
function sliceIn(frame: Uint8Array): number {
  for (let at = 0; at + 3 < frame.length; at++) {
    if (frame[at] !== 0 || frame[at + 1] !== 0 || frame[at + 2] !== 1) continue
    const type = frame[at + 3]! & 31
    if (type >= 1 && type <= 5) return at + 3
  }
  return -1
}

/**
 * Emulation prevention (ITU-T H.264, section 7.4.1): 3 comes before a byte below 4 that follows two zeros, for a start code
 * by chance would split the frame. Zeros at the end of the bytes before count.
 */
export function escapeNal(bytes: Bytes, before: Uint8Array): Bytes {
  const escaped = new Uint8Array(bytes.length + Math.ceil((bytes.length + 2) / 2))
  let [size, zeros] = [0, zerosAtEnd(before)]
  for (const byte of bytes) {
    if (zeros >= 2 && byte <= 3) {
      escaped[size++] = 3
      zeros = 0
    }
    escaped[size++] = byte
    zeros = byte === 0 ? zeros + 1 : 0
  }
  return escaped.subarray(0, size)
}

export function unescapeNal(bytes: Bytes, before: Uint8Array): Bytes {
  const unescaped = new Uint8Array(bytes.length)
  let [size, zeros] = [0, zerosAtEnd(before)]
  for (const byte of bytes) {
    if (zeros >= 2 && byte === 3) {
      zeros = 0
      continue
    }
    unescaped[size++] = byte
    zeros = byte === 0 ? zeros + 1 : 0
  }
  return unescaped.subarray(0, size)
}

function zerosAtEnd(bytes: Uint8Array): number {
  return bytes.at(-1) !== 0 ? 0 : bytes.at(-2) !== 0 ? 1 : 2
}
