/**
 * The keys of the application, each for one use, derived from the operator's one secret (HKDF-SHA256, RFC 5869), and
 * sealing at rest with one of them (AES-256-GCM).
 */

import { createCipheriv, createDecipheriv, createSecretKey, hkdfSync, type KeyObject } from 'node:crypto'
import { assert } from '../errors.ts'

export interface Secrets {
  readonly accessToken: KeyObject
  readonly refreshToken: KeyObject
  /** Keys the tokens by which the operator's backend signs users in. */
  readonly signInToken: KeyObject
  /** Keys the hash of one-time codes: a stolen store does not tell them. */
  readonly codePepper: KeyObject
  /** Keys the share tokens, which are not stored. */
  readonly shareToken: KeyObject
  /** Keys the hashes of networks and sessions by which a user is known again. */
  readonly knownSignIn: KeyObject
  /** Keys the challenges by which a device shows that it has its signing key. */
  readonly possession: KeyObject
  /** Keys the challenges that passkeys sign. */
  readonly passkeyChallenge: KeyObject
  /** Keys the secrets of rooms at the media gateway. */
  readonly mediaRoom: KeyObject
  /** Keys the credentials of the operator's own command, and of the operators' page. */
  readonly operatorCommand: KeyObject
  readonly consoleSession: KeyObject
  /** Seals data that must be read again: waiting messages, kept replies, refresh tokens of identity providers. */
  readonly seal: KeyObject
}

/** `secret` has at least 32 bytes. */
export function deriveSecrets(secret: Uint8Array): Secrets {
  assert(secret.length >= 32, 'the secret has at least 32 bytes')
  const derive = (use: string): KeyObject =>
    createSecretKey(Buffer.from(hkdfSync('sha256', secret, '', `callsign/v1/${use}`, 32)))
  return {
    accessToken: derive('access-token'),
    refreshToken: derive('refresh-token'),
    signInToken: derive('sign-in-token'),
    codePepper: derive('code-pepper'),
    shareToken: derive('share-token'),
    knownSignIn: derive('known-sign-in'),
    possession: derive('possession'),
    passkeyChallenge: derive('passkey-challenge'),
    mediaRoom: derive('media-room'),
    operatorCommand: derive('operator-command'),
    consoleSession: derive('console-session'),
    seal: derive('seal'),
  }
}

/** `iv` (12 bytes, never used twice) ‖ ciphertext ‖ tag (16 bytes). Opens only with the same `use`. */
export function seal(key: KeyObject, use: string, iv: Uint8Array, plain: Uint8Array): Uint8Array {
  const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(use))
  return Buffer.concat([iv, cipher.update(plain), cipher.final(), cipher.getAuthTag()])
}

/** The plain bytes; undefined for what this key did not seal for this use. */
export function openSealed(key: KeyObject, use: string, sealed: Uint8Array): Uint8Array | undefined {
  if (sealed.length < IV_BYTES + TAG_BYTES) return undefined
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, IV_BYTES))
  decipher.setAAD(Buffer.from(use)).setAuthTag(sealed.subarray(sealed.length - TAG_BYTES))
  try {
    const plain = decipher.update(sealed.subarray(IV_BYTES, sealed.length - TAG_BYTES))
    return Buffer.concat([plain, decipher.final()])
  } catch {
    return undefined
  }
}

/** Bytes of `iv` that `seal` takes. */
export const IV_BYTES = 12
const TAG_BYTES = 16
