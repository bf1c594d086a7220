/**
 * Share tokens (contract 3.1): 128 random bits behind a prefix. The prefix makes sure that no token reads as a uint64,
 * by which apps tell a scanned token from a scanned user id.
 */

import { assert } from '../../errors.ts'

export const SHARE_TOKEN_BYTES = 16

/** `c_` and 22 base64url characters for 16 random bytes. */
export function formatShareToken(bytes: Uint8Array): string {
  assert(bytes.length === SHARE_TOKEN_BYTES, 'a share token has 16 bytes')
  return `${PREFIX}${Buffer.from(bytes).toString('base64url')}`
}

/** The 16 bytes of a token; undefined for a text that `formatShareToken` would not write. */
export function parseShareToken(text: string): Uint8Array | undefined {
  return TOKEN_FORM.test(text)
    ? new Uint8Array(Buffer.from(text.slice(PREFIX.length), 'base64url'))
    : undefined
}

const PREFIX = 'c_'
/** The last character holds two bits: the other four are zero. */
const TOKEN_FORM = /^c_[A-Za-z0-9_-]{21}[AQgw]$/
