/**
 * Sessions of the operators' page: a server key is traded for a token that ends by itself. Nothing is stored: the token names
 * its key, and each request asks what that key may do now, so a revoked key ends its sessions.
 */

import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'

export interface ConsoleSession {
  readonly keyId: string
  readonly expiresAtMs: number
}

/** `cos_<key id>_<Unix seconds>_<HMAC>`. */
export function formatConsoleToken(key: KeyObject, { keyId, expiresAtMs }: ConsoleSession): string {
  const claim = `${keyId}_${Math.floor(expiresAtMs / 1000)}`
  return `cos_${claim}_${macOf(key, claim).toString('hex')}`
}

/** Undefined for a text that is no such token, or not one of this server's. */
export function parseConsoleToken(key: KeyObject, text: string): ConsoleSession | undefined {
  const [, claim, keyId, seconds, mac] = TOKEN_FORM.exec(text) ?? []
  if (claim === undefined || keyId === undefined || mac === undefined) return undefined
  if (!timingSafeEqual(Buffer.from(mac, 'hex'), macOf(key, claim))) return undefined
  return { keyId, expiresAtMs: Number(seconds) * 1000 }
}

export function isConsoleToken(text: string): boolean {
  return text.startsWith('cos_')
}

function macOf(key: KeyObject, claim: string): Buffer {
  return createHmac('sha256', key).update(claim).digest()
}

const TOKEN_FORM = /^cos_(([0-9a-f]{12})_([0-9]{1,12}))_([0-9a-f]{64})$/
export const CONSOLE_SESSION_MS = 15 * 60_000
