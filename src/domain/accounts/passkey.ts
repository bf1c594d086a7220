/**
 * The rules of passkeys (WebAuthn Level 3; contract 0.1, "2.2 Passkeys"): challenges, and the client data of a ceremony, judged
 * before its signature.
 *
 * Challenges are not stored: they are made for anonymous clients, as often as asked for.
 *
 *     nonce (16) ‖ expiry (6, big-endian, milliseconds since 1970) ‖ HMAC-SHA256 (32)
 *
 * The HMAC covers the purpose, a zero octet, the id of the session that asked, the nonce and the expiry, so a challenge is
 * good for one purpose of one session. A store keeps those that were used until they expire.
 */

import { createHash, createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import type { ErrorCode } from '../../errors.ts'
import type { UserId } from '../ids.ts'

export interface PasskeySettings {
  /** The domain that passkeys are made for. */
  readonly rpId: string
  /** Origins that may use them: `https://…`, and `android:apk-key-hash:…` of apps. */
  readonly origins: readonly string[]
  /** Whether any port of this machine may, in development. */
  readonly takesLoopback: boolean
}

/** A challenge of this use is good for no other. */
export type PasskeyUse =
  | { readonly purpose: 'sign-in' }
  | { readonly purpose: 'register' | 'step-up'; readonly sessionId: Uint8Array }

export function formatPasskeyChallenge(
  key: KeyObject,
  use: PasskeyUse,
  nonce: Uint8Array,
  nowMs: number,
): string {
  const body = Buffer.alloc(BODY_BYTES)
  body.set(nonce)
  body.writeUIntBE(nowMs + PASSKEY_CHALLENGE_LIFETIME_MS, PASSKEY_NONCE_BYTES, EXPIRY_BYTES)
  return Buffer.concat([body, macOf(key, use, body)]).toString('base64url')
}

/** When a challenge of ours for this use expires, in milliseconds since 1970; undefined for any other text. */
export function endOfPasskeyChallenge(key: KeyObject, use: PasskeyUse, text: string): number | undefined {
  if (text.length !== CHALLENGE_CHARS) return undefined
  const bytes = Buffer.from(text, 'base64url')
  const body = bytes.subarray(0, BODY_BYTES)
  const mac = bytes.subarray(BODY_BYTES)
  if (bytes.toString('base64url') !== text || !timingSafeEqual(mac, macOf(key, use, body))) return undefined
  return body.readUIntBE(PASSKEY_NONCE_BYTES, EXPIRY_BYTES)
}

/** A user's name for authenticators: 32 octets that tell nothing. */
export function passkeyUserHandle(key: KeyObject, userId: UserId): Uint8Array {
  return createHmac('sha256', key).update(`user-handle\0${userId}`).digest()
}

/** `CollectedClientData`, as far as the server looks at it. */
export interface ClientData {
  readonly challenge: string
  readonly origin: string
  /** Whether the page is framed by another site's. */
  readonly isFramed: boolean
}

/** The client data of a ceremony; undefined for any other text. */
export function readClientData(text: string): ClientData | undefined {
  const value = jsonOf(Buffer.from(text, 'base64url'))
  if (typeof value !== 'object' || value === null) return undefined
  const { challenge, origin, crossOrigin, topOrigin } = value as Readonly<Record<string, unknown>>
  if (typeof challenge !== 'string' || typeof origin !== 'string') return undefined
  const isFramed = (crossOrigin !== undefined && crossOrigin !== false) || topOrigin !== undefined
  return { challenge, origin, isFramed }
}

/** Why a page or an app may not use the passkeys of this server. Framed by another site it could be clicked unseen. */
export function refusalOfOrigin(
  { origin, isFramed }: ClientData,
  { origins, takesLoopback }: PasskeySettings,
): ErrorCode | undefined {
  const isKnown = origins.includes(origin) || (takesLoopback && LOOPBACK_ORIGIN.test(origin))
  return isKnown && !isFramed ? undefined : 'PASSKEY_ORIGIN_REFUSED'
}

/** Whether the authenticator signed for this domain. */
export function isOfRp(authenticatorData: Uint8Array, { rpId }: PasskeySettings): boolean {
  const hash = createHash('sha256').update(rpId).digest()
  return hash.equals(authenticatorData.subarray(0, hash.length))
}

/** The origin of an Android app that is signed with a certificate of this fingerprint. */
export function androidOrigin(fingerprint: string): string {
  const hash = Buffer.from(fingerprint.replaceAll(':', ''), 'hex')
  return `android:apk-key-hash:${hash.toString('base64url')}`
}

function macOf(key: KeyObject, use: PasskeyUse, body: Uint8Array): Buffer {
  const hmac = createHmac('sha256', key).update(`${use.purpose}\0`)
  if (use.purpose !== 'sign-in') hmac.update(use.sessionId)
  return hmac.update(body).digest()
}

function jsonOf(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    return undefined
  }
}

/** COSE: ES256, EdDSA and RS256, in the order of our preference. */
export const PASSKEY_ALGORITHMS: readonly number[] = [-7, -8, -257]
export const PASSKEY_CHALLENGE_LIFETIME_MS = 300_000
export const PASSKEY_NONCE_BYTES = 16
const EXPIRY_BYTES = 6
const BODY_BYTES = PASSKEY_NONCE_BYTES + EXPIRY_BYTES
/** Base64url of the body and the HMAC. */
const CHALLENGE_CHARS = ((BODY_BYTES + 32) * 4) / 3
const LOOPBACK_ORIGIN = /^http:\/\/localhost(?::\d{1,5})?$/
