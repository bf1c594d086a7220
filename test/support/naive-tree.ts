/**
 * RFC 6962, sections 2.1 to 2.1.2, as it stands there: recursive, slow, and sharing nothing with `src/log`. The oracle
 * for roots and proofs.
 */
import { createHash } from 'node:crypto'

export function sha256(...parts: readonly Uint8Array[]): Uint8Array {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return new Uint8Array(hash.digest())
}

export function naiveLeafHash(entry: Uint8Array): Uint8Array {
  return sha256(Uint8Array.of(0), entry)
}

/** A tree over given leaf hashes; MTH, PATH and PROOF are those of any prefix of it. */
export class NaiveTree {
  readonly #leafHashes: readonly Uint8Array[]
  readonly #roots = new Map<string, Uint8Array>()

  constructor(leafHashes: readonly Uint8Array[]) {
    this.#leafHashes = leafHashes
  }

  /** MTH(D[start:end]). */
  root(start: number, end: number): Uint8Array {
    if (end === start) return sha256()
    if (end - start === 1) return this.#leafHashes[start]!
    const key = `${start} ${end}`
    const known = this.#roots.get(key)
    if (known !== undefined) return known
    const middle = start + split(end - start)
    const root = sha256(Uint8Array.of(1), this.root(start, middle), this.root(middle, end))
    this.#roots.set(key, root)
    return root
  }

  /** PATH(index, D[0:size]). */
  inclusion(index: number, size: number): Uint8Array[] {
    return this.#path(index, 0, size)
  }

  /** PROOF(oldSize, D[0:newSize]), defined for 0 < oldSize <= newSize. */
  consistency(oldSize: number, newSize: number): Uint8Array[] {
    return this.#subproof(oldSize, 0, newSize, true)
  }

  /** The hashes of complete subtrees, as `ReadHashes` gives them. */
  readonly readHashes = (nodes: readonly { level: number; index: number }[]): Uint8Array[] =>
    nodes.map(({ level, index }) => this.root(index * 2 ** level, (index + 1) * 2 ** level))

  #path(m: number, start: number, end: number): Uint8Array[] {
    const n = end - start
    if (n === 1) return []
    const k = split(n)
    const middle = start + k
    return m < k
      ? [...this.#path(m, start, middle), this.root(middle, end)]
      : [...this.#path(m - k, middle, end), this.root(start, middle)]
  }

  #subproof(m: number, start: number, end: number, isWhole: boolean): Uint8Array[] {
    const n = end - start
    if (m === n) return isWhole ? [] : [this.root(start, end)]
    const k = split(n)
    const middle = start + k
    return m <= k
      ? [...this.#subproof(m, start, middle, isWhole), this.root(middle, end)]
      : [...this.#subproof(m - k, middle, end, false), this.root(start, middle)]
  }
}

/** Leaf hashes of the tree with the text `entry <i>` as entry i. */
export function numberedLeafHashes(size: number): Uint8Array[] {
  return Array.from({ length: size }, (_, index) => naiveLeafHash(Buffer.from(`entry ${index}`)))
}

/** The largest power of two strictly below n. */
function split(n: number): number {
  let k = 1
  while (k * 2 < n) k *= 2
  return k
}
