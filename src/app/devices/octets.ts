/** Octets put together, compared, and read. */

import { decodeBase64 } from '../../log/base64.ts'
import type { Bytes } from './device-keys.ts'

export function concat(...parts: readonly Uint8Array[]): Bytes {
  return Uint8Array.from(parts.flatMap(part => [...part]))
}

export function isEqual(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((octet, at) => octet === other[at])
}

/** Reads base64url without padding, the form of ids and of WebAuthn. */
export function fromBase64Url(text: string): Bytes {
  const base64 = text.replaceAll('-', '+').replaceAll('_', '/')
  return Uint8Array.from(decodeBase64(base64.padEnd(Math.ceil(text.length / 4) * 4, '=')))
}
