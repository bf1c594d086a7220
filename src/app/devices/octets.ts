/** Octets put together, and compared. */

import type { Bytes } from './device-keys.ts'

export function concat(...parts: readonly Uint8Array[]): Bytes {
  return Uint8Array.from(parts.flatMap(part => [...part]))
}

export function isEqual(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((octet, at) => octet === other[at])
}
