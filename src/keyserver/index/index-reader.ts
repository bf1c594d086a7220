/**
 * The index as the outside may see it: the output log as far as it is shown, and lookups in the map of its last leaf. Every
 * process that serves clients has one, over its own store.
 *
 * A lookup is one view of the store, so its rows, leaf and checkpoint belong together, whatever the writer does. No proof leaves
 * that does not verify: where a row is damaged there is no index, and the first fault goes to the process's log.
 */

import { SignalError } from '../../errors.ts'
import { type LogHead, openCheckpoint } from '../../log/checkpoint.ts'
import { equalHashes, hashLeaf } from '../../log/hash.ts'
import { proveInclusion, rootFromPath } from '../../log/inclusion.ts'
import { indexKeyOf } from '../../log/index-leaf.ts'
import { formatVerifierKey, type VerifierKey } from '../../log/note.ts'
import { type Tile, tileWidth } from '../../log/tile.ts'
import type { ReadStore, View } from '../../store/engine/store.ts'
import { TiledLog } from '../tiled-log.ts'
import { IndexProofs } from './index-proofs.ts'
import {
  HEAD,
  INDEX_BUNDLES,
  INDEX_HEAD,
  INDEX_STATE,
  INDEX_TILES,
  type IndexState,
  indexRowsIn,
  MAP,
  SHOWN,
} from './index-tables.ts'

/** A state of the index that was looked at: what it shows, or nothing where that does not hold. */
interface Opened {
  readonly vkey: string
  readonly head: LogHead
  readonly proofs: IndexProofs | undefined
}

type Whole = Opened & { readonly proofs: IndexProofs }

export class IndexReader {
  readonly #store: Pick<ReadStore, 'view'>
  /** By their texts. */
  readonly #verifiers: ReadonlyMap<string, VerifierKey>
  readonly #onFault: (error: unknown) => void
  #log: TiledLog
  #opened: Opened | undefined
  #isTold = false

  /**
   * `verifiers` are the keys that an index may be of; none where the server has no index. `onFault` is called with the first
   * failure to read or to prove.
   */
  constructor(
    store: Pick<ReadStore, 'view'>,
    verifiers: readonly VerifierKey[],
    onFault: (error: unknown) => void,
  ) {
    this.#store = store
    this.#verifiers = new Map(verifiers.map(verifier => [formatVerifierKey(verifier), verifier]))
    this.#onFault = onFault
    this.#log = this.#newLog()
  }

  /** Whether there is an index to answer from now. */
  get isThere(): boolean {
    return this.#store.view(view => this.#open(view)) !== undefined
  }

  /** The output log as it is shown. Throws `INDEX_UNAVAILABLE` where there is none. */
  get head(): LogHead {
    return this.#read(({ head }) => head)
  }

  /**
   * As `PublishedLog.tileVolatile`, of the output log, also of leaves that are not shown yet: a witness that rebuilds the map
   * before cosigning reads them. Throws `INDEX_UNAVAILABLE` where there is none, or where it is damaged.
   */
  tileVolatile({ level, index, width }: Tile): Uint8Array | undefined {
    return this.#store.view(view => {
      const head = this.#stateIn(view) && view.get(INDEX_HEAD, HEAD)
      if (head === undefined) throw unavailable(NOT_THERE)
      if (width > tileWidth(level, index, head.treeSize)) return undefined
      try {
        return level === 'entries'
          ? this.#log.bundleVolatile(index, width)
          : this.#log.tileVolatile(level, index, width)
      } catch (cause) {
        this.#tell(cause)
        throw unavailable(DAMAGED, cause)
      }
    })
  }

  /**
   * What the index has under these VRF hashes (base64), each as the JSON of a lookup, and all of one leaf. Undefined where
   * there is no index to answer from.
   */
  lookUpAll(vrfHashes: readonly string[]): readonly string[] | undefined {
    return this.#store.view(view => {
      const opened = this.#open(view)
      const rows = indexRowsIn(view)
      try {
        return opened && vrfHashes.map(vrfHash => opened.proofs.inJson(indexKeyOf(vrfHash), rows))
      } catch (error) {
        // A key that is proved to be in the log is as good without the index: who demands one refuses it.
        this.#tell(error)
        return undefined
      }
    })
  }

  /** The JSON of a lookup of a key of 32 octets. Throws `INDEX_UNAVAILABLE`. */
  lookUp(key: Uint8Array): string {
    return this.#read((opened, view) => opened.proofs.inJson(key, indexRowsIn(view)))
  }

  #read<Result>(read: (opened: Whole, view: View) => Result): Result {
    return this.#store.view(view => {
      const opened = this.#open(view)
      if (opened === undefined) throw unavailable(NOT_THERE)
      try {
        return read(opened, view)
      } catch (cause) {
        this.#tell(cause)
        throw unavailable(DAMAGED, cause)
      }
    })
  }

  #open(view: View): Whole | undefined {
    try {
      const state = this.#stateIn(view)
      if (state === undefined || state.leaves === 0) return undefined
      const head = view.get(INDEX_HEAD, SHOWN)
      if (head?.treeSize !== state.leaves)
        throw new SignalError('CHECKPOINT_INVALID', `index of ${state.leaves} leaves shows ${head?.treeSize}`)
      const opened = this.#openedAt(state, head)
      return opened.proofs === undefined ? undefined : { ...opened, proofs: opened.proofs }
    } catch (error) {
      this.#tell(error)
      return undefined
    }
  }

  /** Undefined without an index of a known key, and where it is held. */
  #stateIn(view: View): IndexState | undefined {
    const state = view.get(INDEX_STATE, MAP)
    return state !== undefined && this.#verifiers.has(state.vkey) && !state.isHeld ? state : undefined
  }

  /** Looks once at each checkpoint, also where it does not hold. */
  #openedAt({ vkey }: IndexState, head: LogHead): Opened {
    const last = this.#opened
    if (last?.head.checkpoint === head.checkpoint && last.vkey === vkey) return last
    // Another log's tiles stand under the same keys.
    if (last !== undefined && (last.vkey !== vkey || last.head.treeSize > head.treeSize))
      this.#log = this.#newLog()
    this.#opened = { vkey, head, proofs: undefined }
    this.#opened = { vkey, head, proofs: this.#proofsUnder(head, this.#verifiers.get(vkey)!) }
    return this.#opened
  }

  /** Throws where the checkpoint does not cover the last leaf. */
  #proofsUnder({ checkpoint, treeSize }: LogHead, verifier: VerifierKey): IndexProofs {
    const { rootHash } = openCheckpoint(checkpoint, verifier)
    const index = treeSize - 1
    const leaf = Uint8Array.from(this.#log.entryVolatile(index))
    const path = proveInclusion(index, treeSize, this.#log.readHashes)
    if (!equalHashes(rootFromPath(hashLeaf(leaf), index, treeSize, path), rootHash))
      throw new SignalError(
        'CHECKPOINT_INVALID',
        `leaf ${index} of the index is not what its checkpoint covers`,
      )
    return new IndexProofs({ checkpoint, leaf, path })
  }

  #tell(error: unknown): void {
    if (this.#isTold) return
    this.#isTold = true
    this.#onFault(error)
  }

  #newLog(): TiledLog {
    return new TiledLog(this.#store, { tiles: INDEX_TILES, bundles: INDEX_BUNDLES })
  }
}

function unavailable(detail: string, cause?: unknown): SignalError {
  return new SignalError('INDEX_UNAVAILABLE', detail, { cause })
}

const NOT_THERE = 'there is no index of the log, or it is being built or held'
const DAMAGED = 'the index can’t prove what it has'
