/**
 * Merkle trees straight from the definitions of RFC 6962, section 2.1: recursive, slow, and sharing nothing with the
 * product. Hashes are 32-byte Buffers, sizes and indexes safe integers.
 */

import { createHash } from 'node:crypto'
import { check } from './verification-error.ts'

export function leafHash(entry: Uint8Array): Buffer {
  return createHash('sha256').update(Uint8Array.of(0)).update(entry).digest()
}

export function nodeHash(left: Uint8Array, right: Uint8Array): Buffer {
  return createHash('sha256').update(Uint8Array.of(1)).update(left).update(right).digest()
}

/** MTH(D[start:end]) from the leaf hashes. */
export function rootOfLeaves(leaves: readonly Buffer[], start = 0, end = leaves.length): Buffer {
  const size = end - start
  if (size === 0) return createHash('sha256').digest()
  if (size === 1) return leaves[start]!
  const split = start + largestPowerBelow(size)
  return nodeHash(rootOfLeaves(leaves, start, split), rootOfLeaves(leaves, split, end))
}

/** The root that PATH(index, D[size]) leads to; the path runs from the leaf's sibling upwards. Its length is checked. */
export function rootOfPath(leaf: Buffer, index: number, size: number, path: readonly Buffer[]): Buffer {
  check(index >= 0 && index < size, 'index', `${index} is not in a tree of ${size}`)
  if (size === 1) {
    check(path.length === 0, 'path', `${path.length} hashes too many`)
    return leaf
  }
  const sibling = path.at(-1)
  check(sibling !== undefined, 'path', 'too short')
  const split = largestPowerBelow(size)
  const below = path.slice(0, -1)
  return index < split
    ? nodeHash(rootOfPath(leaf, index, split, below), sibling)
    : nodeHash(sibling, rootOfPath(leaf, index - split, size - split, below))
}

/** The largest power of two strictly below a number of at least 2. */
function largestPowerBelow(size: number): number {
  let power = 1
  while (power * 2 < size) power *= 2
  return power
}

/** Bytes of canonical padded standard base64, and of nothing else. */
export function fromBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64')
  return bytes.toString('base64') === text ? bytes : undefined
}

/** A number written in decimal without leading zeros. */
export function fromDecimal(text: string): number | undefined {
  const value = Number(text)
  return /^(0|[1-9]\d*)$/.test(text) && Number.isSafeInteger(value) ? value : undefined
}
