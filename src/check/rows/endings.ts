/**
 * Whether rows that expire have an ending in `expiries`, whose keys are in order of time. The check walks the endings
 * once per part and keeps that part's hashes, so that memory stays flat.
 */

import { TIME_BYTES } from '../../store/engine/expiries.ts'

export class EndingSet {
  readonly #part: number
  readonly #parts: number
  readonly #hashes = new Set<number>()

  /** Holds one of `parts` parts of all endings. */
  constructor(part: number, parts: number) {
    this.#part = part
    this.#parts = parts
  }

  /** Takes a key of `expiries`. */
  add(ending: Buffer): void {
    const hash = hashOf(ending[TIME_BYTES]!, ending, TIME_BYTES + 1)
    if (this.#isOurs(hash)) this.#hashes.add(hash)
  }

  /** Whether the row lacks its ending, as far as this part can tell. */
  lacks(kind: number, key: Buffer): boolean {
    const hash = hashOf(kind, key, 0)
    return this.#isOurs(hash) && !this.#hashes.has(hash)
  }

  #isOurs(hash: number): boolean {
    return hash % this.#parts === this.#part
  }
}

export function partsFor(endings: number): number {
  return Math.max(1, Math.ceil(endings / ENDINGS_PER_PART))
}

/** Two hashes of 26 bits, made as FNV-1a is: among a million endings, a missing one goes unnoticed once in 4 billion. */
function hashOf(kind: number, bytes: Buffer, from: number): number {
  let [one, other] = [0x811c9dc5, 0x9dc5811c ^ kind]
  one = Math.imul(one ^ kind, 0x01000193)
  for (let at = from; at < bytes.length; at++) {
    one = Math.imul(one ^ bytes[at]!, 0x01000193)
    other = Math.imul(other ^ bytes[at]!, 0x85ebca6b)
    other ^= other >>> 15
  }
  return ((one >>> 6) & LOW_BITS) * 2 ** 26 + ((other >>> 6) & LOW_BITS)
}

const LOW_BITS = 2 ** 26 - 1
/** A set of so many numbers takes some 40 MB. */
const ENDINGS_PER_PART = 2 ** 20
