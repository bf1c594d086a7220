/** Octets put together, compared, and read. */

import { decodeBase64 } from '../../log/base64.ts'
import type { Bytes } from './device-keys.ts'

export function concat(...parts: readonly Uint8Array[]): Bytes {
  return Uint8Array.from(parts.flatMap(part => [...part]))
}

export function isEqual(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((octet, at) => octet === other[at])
}

/** The 16 octets of an id of 22 base64url characters. */
export function idOctets(id: string): Uint8Array {
  return decodeBase64(`${id.replaceAll('-', '+').replaceAll('_', '/')}==`)
}
