/**
 * An index in a store, consistent with the log there, as the server leaves it behind each leaf. Made at once, without the
 * server's own parts.
 */

import {
  HEAD,
  INDEX_BUNDLES,
  INDEX_HEAD,
  INDEX_ROWS,
  INDEX_STATE,
  INDEX_TILES,
  type IndexState,
  indexRowsIn,
  MAP,
  SHOWN,
} from '../../src/keyserver/index/index-tables.ts'
import { LogReader } from '../../src/keyserver/log-store.ts'
import { type LogHead, signCheckpoint } from '../../src/log/checkpoint.ts'
import { formatIndexLeaf, indexKeyOfEntry, indexOriginOf } from '../../src/log/index-leaf.ts'
import { TreeTail } from '../../src/log/integrate.ts'
import { formatVerifierKey, type SignerKey, signerKeyFromSeed, statedKeys } from '../../src/log/note.ts'
import { growTree } from '../../src/log/patricia-rows.ts'
import { RightEdge } from '../../src/log/tree.ts'
import { indexKey, tileKey } from '../../src/store/engine/keys.ts'
import type { Change, Store } from '../../src/store/engine/store.ts'
import { SIGNER } from './stored-log.ts'

/** The key of the index of the test log of `stored-log.ts`. */
export const INDEX_SIGNER = signerKeyFromSeed(indexOriginOf(SIGNER.name), Buffer.alloc(32, 52))

export interface LeafChoices {
  /** Changes the state before it is written. */
  readonly state?: Partial<IndexState>
  /** Makes the shown checkpoint of the output log, such as one with cosignatures. */
  readonly shown?: (note: string) => string
  /** The root that the leaf says, by the right one. */
  readonly root?: (root: Uint8Array) => Uint8Array
}

export class FilledIndex {
  readonly #store: Store
  readonly #log: LogReader
  readonly #signer: SignerKey
  readonly #output = new TreeTail({ edge: new RightEdge(0, []), tiles: [], bundle: undefined })
  #entries = 0
  /** The leaves of the output log. */
  readonly leaves: Uint8Array[] = []

  /** The store has a log and no index. */
  constructor(store: Store, signer: SignerKey = INDEX_SIGNER) {
    this.#store = store
    this.#log = new LogReader(store)
    this.#signer = signer
  }

  /** Appends and shows a leaf of the map over this checkpoint of the log, in one change. */
  addLeaf(
    head: LogHead,
    { state, shown = note => note, root: said = root => root }: LeafChoices = {},
  ): Promise<void> {
    const entries = Array.from({ length: head.treeSize - this.#entries }, (_, at) => {
      const index = this.#entries + at
      return { key: indexKeyOfEntry(this.#log.entryVolatile(index)), index }
    })
    this.#entries = head.treeSize
    const { root, rows } = this.#store.view(view => growTree(indexRowsIn(view), entries))
    const leaf = formatIndexLeaf({ inputCheckpoint: head.checkpoint, root: said(root) })
    this.leaves.push(leaf)
    const { treeSize, rootHash, tiles, bundles } = this.#output.integrate([leaf])
    const checkpoint = signCheckpoint({ treeSize, rootHash }, this.#signer)
    const vkey = formatVerifierKey(this.#signer)
    return this.#store.change(change => {
      for (const [id, bytes] of rows) change.put(INDEX_ROWS, indexKey(id), bytes)
      for (const { level, index, bytes } of tiles) change.put(INDEX_TILES, tileKey(level, index), bytes)
      for (const { index, bytes } of bundles) change.put(INDEX_BUNDLES, indexKey(index), bytes)
      change.put(INDEX_HEAD, HEAD, { treeSize, checkpoint })
      change.put(INDEX_HEAD, SHOWN, { treeSize, checkpoint: shown(checkpoint) })
      setState(change, {
        vkey,
        entries: head.treeSize,
        leaves: treeSize,
        isHeld: false,
        signers: statedKeys(checkpoint),
        earlierSigners: [],
        ...state,
      })
    })
  }
}

/** Writes what the state says. */
export function setState(change: Change, state: IndexState): void {
  change.put(INDEX_STATE, MAP, state)
}
