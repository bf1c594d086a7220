/** Codes that people read to each other, or compare on two screens. */

import { sha256 } from '#primitives'

/** Twenty digits in groups of five: of SHA-256, the first four 32-bit words, each modulo 100,000. */
export function spokenCode(text: string, bytes: Uint8Array = new Uint8Array()): string {
  const digest = sha256(Uint8Array.of(...new TextEncoder().encode(text), ...bytes))
  const view = new DataView(digest.buffer, digest.byteOffset)
  const groups = [0, 4, 8, 12].map(at => view.getUint32(at) % 100_000)
  return groups.map(group => String(group).padStart(5, '0')).join(' ')
}
