/** Signals of media on a public topic, encrypted with a key made from the call's. */

import type { Call } from '../../app/app.ts'
import { decodeBase64, encodeBase64 } from '../../log/base64.ts'

export interface SealedSignal {
  readonly epoch: number
  /** base64 of `nonce (12) ‖ ciphertext ‖ tag (16)`. */
  readonly sealed: string
}

/** Undefined when there is no key. */
export async function sealSignal(call: Call, signal: object): Promise<SealedSignal | undefined> {
  const [newest] = call.keys
  if (newest === undefined) return undefined
  const { epoch } = newest
  const key = await signalKeyOf(call, epoch)
  const iv = crypto.getRandomValues(new Uint8Array(IV_BYTES))
  const plain = new TextEncoder().encode(JSON.stringify(signal))
  const sealed = await crypto.subtle.encrypt({ name: 'AES-GCM', iv }, key, plain)
  return { epoch, sealed: encodeBase64(Uint8Array.of(...iv, ...new Uint8Array(sealed))) }
}

/** Rejects for what the call's key of this epoch has not sealed. */
export async function openSignal(call: Call, { epoch, sealed }: SealedSignal): Promise<unknown> {
  const bytes = Uint8Array.from(decodeBase64(sealed))
  const cipher = { name: 'AES-GCM', iv: bytes.subarray(0, IV_BYTES) }
  const key = await signalKeyOf(call, epoch)
  const opened = await crypto.subtle.decrypt(cipher, key, bytes.subarray(IV_BYTES))
  return JSON.parse(new TextDecoder().decode(opened))
}

/** Another key than the call's, of the same strength. */
async function signalKeyOf({ callId, keys }: Call, epoch: number): Promise<CryptoKey> {
  const held = keys.find(one => one.epoch === epoch)
  if (held === undefined) throw new Error('The key is gone.')
  const secret = await crypto.subtle.importKey('raw', Uint8Array.from(held.key), 'HKDF', false, ['deriveKey'])
  const info = new TextEncoder().encode(`callsign media signals v1 ${callId} ${epoch}`)
  const hkdf = { name: 'HKDF', hash: 'SHA-256', salt: new Uint8Array(), info }
  const aes = { name: 'AES-GCM', length: 256 }
  return crypto.subtle.deriveKey(hkdf, secret, aes, false, ['encrypt', 'decrypt'])
}

const IV_BYTES = 12
