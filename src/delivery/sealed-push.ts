/**
 * Pushes that Apple and Google can't read (docs/build/push.md): the members of a push under a key that the device has made.
 * `test/vectors/sealed-push.json` has the form.
 */

import { createCipheriv, createHmac, randomBytes } from 'node:crypto'
import { type PushMembers, withoutKey } from './push-content.ts'

/** A device, in decimal, and the key that its pushes are sealed with, base64 of 32 octets. */
export interface PushSealing {
  readonly deviceId: string
  readonly pushKey: string
}

/**
 * Base64 of nonce, ciphertext and tag. Padded, so that its length tells little; the call's key is left out where the push
 * would be too large with it.
 */
export function sealPush({ deviceId, pushKey }: PushSealing, members: PushMembers): string {
  const whole = Buffer.from(JSON.stringify(members))
  const plain = whole.length <= PLAIN_BYTES_MAX ? whole : Buffer.from(JSON.stringify(withoutKey(members)))
  const padding = Buffer.alloc(-plain.length & (PADDED_BYTES - 1))
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', hmac(pushKey, PURPOSE), nonce)
  cipher.setAAD(Buffer.from(`${PURPOSE}\n${deviceId}`))
  const sealed = [nonce, cipher.update(plain), cipher.update(padding), cipher.final(), cipher.getAuthTag()]
  return Buffer.concat(sealed).toString('base64')
}

/** The same for all pushes of a call to the device, and for nothing else. */
export function sealedCallId({ pushKey }: PushSealing, callId: string): string {
  return hmac(pushKey, callId).subarray(0, 16).toString('base64url')
}

function hmac(pushKey: string, text: string): Buffer {
  return createHmac('sha256', Buffer.from(pushKey, 'base64')).update(text).digest()
}

/** Also names the key, which HMAC makes of the device's, so that no other use of that meets it. */
const PURPOSE = 'callsign sealed push v1'
/** A power of two. */
const PADDED_BYTES = 1_024
const PLAIN_BYTES_MAX = 2_048
