/**
 * Access and refresh tokens (contract 2.3): opaque to clients, checked without a store by their MAC, worth only what
 * their session row says. Likewise tokens by which the operator's backend signs a user in, which are good once. Nothing secret
 * is stored.
 *
 *     access   kat_ + base64url(version ‖ session id ‖ generation ‖ expiry ‖ MAC)
 *     refresh  krt_ + base64url(version ‖ session id ‖ generation ‖ MAC)
 *     sign-in  cst_ + base64url(version ‖ user id ‖ nonce ‖ expiry ‖ MAC)
 *
 * Version 1 byte, session id and nonce 16, user id 8, generation 4 big-endian, expiry 6 big-endian (since 1970: seconds, of a
 * sign-in token milliseconds), MAC 32 (HMAC-SHA256 over all before it, a key for each kind).
 */

import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import type { UserId } from '../ids.ts'

export interface AccessToken {
  /** 16 bytes. */
  readonly sessionId: Uint8Array
  readonly generation: number
  /** Seconds since 1970. */
  readonly expiresAtS: number
}

export type RefreshToken = Omit<AccessToken, 'expiresAtS'>

/** The operator's backend gets it, for one sign-in of the user. */
export interface SignInToken {
  readonly userId: UserId
  /** 16 random bytes. */
  readonly nonce: Uint8Array
  readonly expiresAtMs: number
}

export function formatAccessToken(key: KeyObject, { expiresAtS, ...token }: AccessToken): string {
  const bytes = Buffer.alloc(ACCESS_BYTES)
  bytes.set(head(token))
  bytes.writeUIntBE(expiresAtS, HEAD_BYTES, EXPIRY_BYTES)
  return ACCESS_PREFIX + sign(key, bytes)
}

export function formatRefreshToken(key: KeyObject, token: RefreshToken): string {
  const bytes = Buffer.alloc(REFRESH_BYTES)
  bytes.set(head(token))
  return REFRESH_PREFIX + sign(key, bytes)
}

/** A genuine token's content; undefined for anything else. It may have expired. */
export function parseAccessToken(key: KeyObject, text: string): AccessToken | undefined {
  const bytes = verify(key, text, ACCESS_PREFIX, ACCESS_BYTES)
  if (bytes === undefined) return undefined
  return { ...readHead(bytes), expiresAtS: bytes.readUIntBE(HEAD_BYTES, EXPIRY_BYTES) }
}

export function parseRefreshToken(key: KeyObject, text: string): RefreshToken | undefined {
  const bytes = verify(key, text, REFRESH_PREFIX, REFRESH_BYTES)
  return bytes === undefined ? undefined : readHead(bytes)
}

export function formatSignInToken(key: KeyObject, { userId, nonce, expiresAtMs }: SignInToken): string {
  const bytes = Buffer.alloc(SIGN_IN_BYTES)
  bytes[0] = VERSION
  bytes.writeBigUInt64BE(userId, 1)
  bytes.set(nonce, NONCE_AT)
  bytes.writeUIntBE(expiresAtMs, SIGN_IN_EXPIRY_AT, EXPIRY_BYTES)
  return SIGN_IN_PREFIX + sign(key, bytes)
}

export function parseSignInToken(key: KeyObject, text: string): SignInToken | undefined {
  const bytes = verify(key, text, SIGN_IN_PREFIX, SIGN_IN_BYTES)
  return (
    bytes && {
      userId: bytes.readBigUInt64BE(1) as UserId,
      nonce: Uint8Array.prototype.slice.call(bytes, NONCE_AT, SIGN_IN_EXPIRY_AT),
      expiresAtMs: bytes.readUIntBE(SIGN_IN_EXPIRY_AT, EXPIRY_BYTES),
    }
  )
}

/** The session's challenge, base64 of 32 bytes: the same whenever it is asked for, and no other session's. */
export function possessionChallenge(key: KeyObject, sessionId: Uint8Array): string {
  return createHmac('sha256', key).update(sessionId).digest('base64')
}

function head({ sessionId, generation }: RefreshToken): Buffer {
  const bytes = Buffer.alloc(HEAD_BYTES)
  bytes[0] = VERSION
  bytes.set(sessionId, 1)
  bytes.writeUInt32BE(generation, GENERATION_AT)
  return bytes
}

function readHead(bytes: Buffer): RefreshToken {
  return {
    // A copy: genuine tokens are remembered, and each view keeps 8 kB of Node's pool (`connections` in `bench/`).
    sessionId: Uint8Array.prototype.slice.call(bytes, 1, GENERATION_AT),
    generation: bytes.readUInt32BE(GENERATION_AT),
  }
}

function sign(key: KeyObject, bytes: Buffer): string {
  const at = bytes.length - MAC_BYTES
  bytes.set(createHmac('sha256', key).update(bytes.subarray(0, at)).digest(), at)
  return bytes.toString('base64url')
}

function verify(key: KeyObject, text: string, prefix: string, length: number): Buffer | undefined {
  // A bound before the decoder sees it. The byte length fixes the text's length, as there is no padding.
  if (!text.startsWith(prefix) || text.length !== prefix.length + Math.ceil((length * 4) / 3))
    return undefined
  const bytes = Buffer.from(text.slice(prefix.length), 'base64url')
  if (bytes.length !== length || bytes[0] !== VERSION) return undefined
  const at = length - MAC_BYTES
  const mac = createHmac('sha256', key).update(bytes.subarray(0, at)).digest()
  if (!timingSafeEqual(mac, bytes.subarray(at))) return undefined
  // Other spellings of the same bytes are not ours.
  return bytes.toString('base64url') === text.slice(prefix.length) ? bytes : undefined
}

const ACCESS_PREFIX = 'kat_'
const REFRESH_PREFIX = 'krt_'
const SIGN_IN_PREFIX = 'cst_'
const VERSION = 1
const GENERATION_AT = 17
const HEAD_BYTES = 21
const EXPIRY_BYTES = 6
const MAC_BYTES = 32
const ACCESS_BYTES = HEAD_BYTES + EXPIRY_BYTES + MAC_BYTES
const REFRESH_BYTES = HEAD_BYTES + MAC_BYTES
const NONCE_AT = 9
const SIGN_IN_EXPIRY_AT = 25
const SIGN_IN_BYTES = SIGN_IN_EXPIRY_AT + EXPIRY_BYTES + MAC_BYTES
