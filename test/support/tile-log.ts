/** A whole log held in memory, as plain lists: what it has to serve at a size, by the rule of c2sp.org/tlog-tiles. */
import { NaiveTree, naiveLeafHash } from './naive-tree.ts'

export class TileLog {
  readonly #entries: readonly Uint8Array[]
  readonly tree: NaiveTree

  constructor(entries: readonly Uint8Array[]) {
    this.#entries = entries
    this.tree = new NaiveTree(entries.map(naiveLeafHash))
  }

  /** Hash i of tile n of level l is MTH(D[(n*256+i)*256^l : (n*256+i+1)*256^l]). */
  hashTile(level: number, index: number, width: number): Uint8Array {
    const leaves = 256 ** level
    const hashes = Array.from({ length: width }, (_, at) => {
      const start = (index * 256 + at) * leaves
      return this.tree.root(start, start + leaves)
    })
    return new Uint8Array(Buffer.concat(hashes))
  }

  /** The entries from index * 256 on, for `formatBundle`. */
  bundleEntries(index: number, width: number): readonly Uint8Array[] {
    return this.#entries.slice(index * 256, index * 256 + width)
  }
}
