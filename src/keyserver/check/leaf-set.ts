/** A set of leaf indexes of one log, a bit each. */

export class LeafSet {
  readonly #bits: Uint8Array

  constructor(treeSize: number) {
    this.#bits = new Uint8Array(Math.ceil(treeSize / 8))
  }

  add(index: number): void {
    const byte = Math.floor(index / 8)
    this.#bits[byte] = this.#bits[byte]! | (1 << (index % 8))
  }

  has(index: number): boolean {
    return ((this.#bits[Math.floor(index / 8)] ?? 0) >> (index % 8)) % 2 === 1
  }
}
