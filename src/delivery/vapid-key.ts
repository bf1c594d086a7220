/** The key by which push services know this server (RFC 8292): base64url of P-256's 32 octets. */

import { createECDH } from 'node:crypto'

/** The point that browsers subscribe with, base64url; undefined where the text is no key. */
export function vapidPublicKey(privateKey: string): string | undefined {
  if (!KEY_FORM.test(privateKey)) return undefined
  const pair = createECDH('prime256v1')
  try {
    pair.setPrivateKey(privateKey, 'base64url')
    return pair.getPublicKey('base64url')
  } catch {
    // Not a number between 0 and the order of the curve.
    return undefined
  }
}

/** A new one. `randomBytes(n)` must come from the system's generator. */
export function generateVapidKey(randomBytes: (length: number) => Uint8Array): string {
  for (;;) {
    const key = Buffer.from(randomBytes(32)).toString('base64url')
    if (vapidPublicKey(key) !== undefined) return key
  }
}

const KEY_FORM = /^[A-Za-z0-9_-]{43}$/
