/**
 * A tree far too large to build: all leaves are alike but for a few. A subtree without a special leaf depends on its
 * size alone, so any root takes a few hundred hashes, by the recursion of RFC 6962.
 */
import { naiveLeafHash, sha256 } from './naive-tree.ts'

export class VastTree {
  readonly #special: readonly number[]
  readonly #alike = new Map<number, Uint8Array>()

  constructor(special: readonly number[]) {
    this.#special = special
  }

  leafHash(index: number): Uint8Array {
    return naiveLeafHash(Buffer.from(this.#special.includes(index) ? `special ${index}` : 'alike'))
  }

  /** MTH(D[start:end]), end above start. */
  root(start: number, end: number): Uint8Array {
    const isAlike = !this.#special.some(index => index >= start && index < end)
    const known = isAlike ? this.#alike.get(end - start) : undefined
    if (known !== undefined) return known
    const root = end - start === 1 ? this.leafHash(start) : this.#split(start, end)
    if (isAlike) this.#alike.set(end - start, root)
    return root
  }

  /** The hashes of complete subtrees, as `ReadHashes` gives them. */
  readonly readHashes = (nodes: readonly { level: number; index: number }[]): Uint8Array[] =>
    nodes.map(({ level, index }) => this.root(index * 2 ** level, (index + 1) * 2 ** level))

  #split(start: number, end: number): Uint8Array {
    let left = 1
    while (left * 2 < end - start) left *= 2
    return sha256(Uint8Array.of(1), this.root(start, start + left), this.root(start + left, end))
  }
}
