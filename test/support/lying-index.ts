/** The index of a lying log: its operator signs any leaf, shows any lookup, and may build the map over what he likes. */
import type { IndexProof } from '../../src/client/index-proof.ts'
import { signCheckpoint } from '../../src/log/checkpoint.ts'
import { cosignatureLine } from '../../src/log/cosignature.ts'
import { formatIndexLeaf, indexKeyOf, indexOriginOf } from '../../src/log/index-leaf.ts'
import { formatVerifierKey, type SignerKey, signerKeyFromSeed } from '../../src/log/note.ts'
import { growTree, lookUpIn } from '../../src/log/patricia-rows.ts'
import type { Tile } from '../../src/log/tile.ts'
import { fromUtf8, toBase64 } from './bytes.ts'
import type { LyingLog } from './lying-log.ts'
import { TileLog } from './tile-log.ts'

/** An entry of the map: the hash of a device, in base64, and a leaf of the log. */
export interface MapEntry {
  readonly vrfHash: string
  readonly index: number
}

/** The falsified parts of a new leaf. */
export interface LeafLies {
  /** How much of the log its map has. */
  readonly treeSize?: number
  readonly entries?: (entries: readonly MapEntry[]) => readonly MapEntry[]
  readonly inputNote?: string
  readonly bytes?: Uint8Array
}

interface Leaf {
  readonly bytes: Uint8Array
  readonly rows: ReadonlyMap<number, Uint8Array>
}

/** A signer and the time in POSIX seconds at which it cosigned. */
export type Cosigned = readonly (readonly [SignerKey, number])[]

export class LyingIndex {
  readonly signer: SignerKey
  /** Those of each checkpoint that is shown. */
  cosigned: Cosigned = []
  readonly #leaves: Leaf[] = []

  constructor(origin: string, number = 5) {
    this.signer = signerKeyFromSeed(indexOriginOf(origin), new Uint8Array(32).fill(number))
  }

  get vkey(): string {
    return formatVerifierKey(this.signer)
  }

  get size(): number {
    return this.#leaves.length
  }

  /** Another index with the same key and leaves, which goes its own way from here. */
  fork(leaves = this.size): LyingIndex {
    const twin = new LyingIndex(this.signer.name.replace(/\/index$/, ''), this.signer.seed[0]!)
    twin.#leaves.push(...this.#leaves.slice(0, leaves))
    twin.cosigned = this.cosigned
    return twin
  }

  /** Appends the leaf over all of the log, but for the lies given. */
  append(log: LyingLog, { treeSize = log.size, entries = all => all, ...lies }: LeafLies = {}): this {
    const honest = Array.from({ length: treeSize }, (_, index) => ({
      vrfHash: log.leaf(index).vrfHash,
      index,
    }))
    const keyed = entries(honest).map(({ vrfHash, index }) => ({ key: indexKeyOf(vrfHash), index }))
    const { root, rows } = growTree(() => undefined, keyed)
    const inputCheckpoint = lies.inputNote ?? log.note(treeSize)
    this.#leaves.push({
      bytes: lies.bytes ?? formatIndexLeaf({ inputCheckpoint, root }),
      rows: new Map(rows.map(([id, bytes]) => [id, bytes])),
    })
    return this
  }

  note(treeSize = this.size, cosigned = this.cosigned): string {
    const text = signCheckpoint({ treeSize, rootHash: this.#tiles.tree.root(0, treeSize) }, this.signer)
    const body = text.slice(0, text.indexOf('\n\n') + 1)
    return text + cosigned.map(([witness, seconds]) => cosignatureLine(body, witness, seconds)).join('')
  }

  /** The honest lookup in the map of the newest leaf of that size. */
  proof(vrfHash: string, treeSize = this.size, note = this.note(treeSize)): IndexProof {
    const { bytes, rows } = this.#leaves[treeSize - 1]!
    const { indexes, proof } = lookUpIn(id => rows.get(id), indexKeyOf(vrfHash))
    return {
      output_log_cp: toBase64(fromUtf8(note)),
      output_log_leaf: toBase64(bytes),
      output_log_proof: this.#tiles.tree.inclusion(treeSize - 1, treeSize).map(hash => [...hash]),
      index_value: indexes,
      index_proof: toBase64(proof),
    }
  }

  tile({ level, index, width }: Tile): Uint8Array {
    return this.#tiles.hashTile(level as number, index, width)
  }

  get #tiles(): TileLog {
    return new TileLog(this.#leaves.map(({ bytes }) => bytes))
  }
}
