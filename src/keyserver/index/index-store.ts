/**
 * The tables of the index as its writer has them. Each method that writes is one change, and leaves a state from which the
 * index goes on:
 *
 * - while `leaves` is 0 the map is built: it has the first `entries` of the log, and maybe some behind them;
 * - else the map has the root of leaf `leaves` - 1, the last that is shown, and `entries` is the size of that leaf's input.
 *
 * The output log has as many leaves as are shown, or one more, which waits for witnesses or for its record outside.
 */

import { assert, SignalError } from '../../errors.ts'
import type { LogHead } from '../../log/checkpoint.ts'
import { type IndexLeaf, parseIndexLeaf } from '../../log/index-leaf.ts'
import type { Integration, TailBytes } from '../../log/integrate.ts'
import { lookUpIn, type PatriciaLookup, patriciaRootOf } from '../../log/patricia-rows.ts'
import { indexKey, tileKey } from '../../store/engine/keys.ts'
import type { Change, Store } from '../../store/engine/store.ts'
import type { Table } from '../../store/engine/table.ts'
import { readRightEdge } from '../right-edge.ts'
import { TiledLog } from '../tiled-log.ts'
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
} from './index-tables.ts'

/** Rows of the map, in the order in which they are to be written: those below come first. */
export type MapRows = readonly (readonly [id: number, bytes: Uint8Array])[]

/** The step of the map to a leaf: the rows that change, and the size of the leaf's input. */
export interface MapOfLeaf {
  readonly rows: MapRows
  readonly entries: number
}

export interface LeafBatch {
  /** Its index in the output log. */
  readonly leaf: number
  readonly integration: Integration
  readonly checkpoint: string
}

export class IndexStore {
  readonly #store: Store
  #log: TiledLog

  constructor(store: Store) {
    this.#store = store
    this.#log = this.#newLog()
  }

  get state(): IndexState | undefined {
    return this.#store.view(view => view.get(INDEX_STATE, MAP))
  }

  /** The newest checkpoint of the output log; undefined before the first leaf. */
  head(): LogHead | undefined {
    return this.#store.view(view => view.get(INDEX_HEAD, HEAD))
  }

  shownHead(): LogHead | undefined {
    return this.#store.view(view => view.get(INDEX_HEAD, SHOWN))
  }

  /** Reads hashes of the output log. */
  get readHashes(): TiledLog['readHashes'] {
    return this.#log.readHashes
  }

  /** Throws `CHECKPOINT_INVALID` or `MALFORMED` where there is no such leaf. */
  leaf(index: number): IndexLeaf {
    return parseIndexLeaf(this.#log.entryVolatile(index))
  }

  /** The map's root as its rows have it. Throws `STORE_UNAVAILABLE` for a row that is damaged. */
  mapRoot(): Uint8Array {
    return this.#store.view(view => patriciaRootOf(indexRowsIn(view)).slice())
  }

  lookUp(key: Uint8Array): PatriciaLookup {
    return this.#store.view(view => lookUpIn(indexRowsIn(view), key))
  }

  /** The right edge of the output log. Throws `CHECKPOINT_INVALID` where its tables don't hold what a tree of that size needs. */
  openTail(treeSize: number): TailBytes {
    return readRightEdge(
      {
        tile: (level, index) =>
          this.#store.view(view => view.getVolatile(INDEX_TILES, tileKey(level, index))),
        bundle: index => this.#store.view(view => view.getVolatile(INDEX_BUNDLES, indexKey(index))),
        readHashes: this.readHashes,
      },
      treeSize,
    )
  }

  /** Begins an index of this key, without anything of an earlier one; its rows are to be emptied next. */
  async begin(vkey: string, signers: readonly string[], earlierSigners: readonly string[]): Promise<void> {
    await this.#store.change(change => {
      const state = { vkey, entries: 0, leaves: 0, isHeld: false, signers, earlierSigners }
      change.put(INDEX_STATE, MAP, state)
      change.remove(INDEX_HEAD, HEAD)
      change.remove(INDEX_HEAD, SHOWN)
    })
    this.#log = this.#newLog()
  }

  /** The map is to be built again. Its rows are to be emptied next; the output log stays. */
  async forgetMap(): Promise<void> {
    await this.#change(state => ({ ...state, entries: 0, leaves: 0 }))
  }

  /** Removes the rows of the map, and those of an output log that has no checkpoint. */
  async empty(): Promise<void> {
    const tables = this.head() === undefined ? [INDEX_ROWS, INDEX_TILES, INDEX_BUNDLES] : [INDEX_ROWS]
    for (const table of tables) while ((await this.#emptySome(table)) === ROWS_EMPTIED_AT_ONCE);
  }

  /** Adds rows to a map that is built; the last of a portion come with `entries`, how far the map goes then. */
  async build(rows: MapRows, entries?: number): Promise<void> {
    await this.#change((state, change) => {
      assert(state.leaves === 0, 'the map of a leaf is not written over')
      putRows(change, rows)
      return entries === undefined ? state : { ...state, entries }
    })
  }

  /** The map that was built again belongs to the last leaf that is shown. */
  async built(): Promise<void> {
    await this.#change((state, change) => ({
      ...state,
      leaves: change.get(INDEX_HEAD, SHOWN)?.treeSize ?? 0,
    }))
  }

  /**
   * Appends a leaf. With `map` it is shown at once; else `show` follows, and until then the map stays as it is. The change
   * compares the committed size first.
   */
  async append({ leaf, integration, checkpoint }: LeafBatch, map?: MapOfLeaf): Promise<void> {
    const head: LogHead = { treeSize: integration.treeSize, checkpoint }
    await this.#change((state, change) => {
      const shown = change.get(INDEX_HEAD, SHOWN)?.treeSize ?? 0
      assert(
        (change.get(INDEX_HEAD, HEAD)?.treeSize ?? 0) === leaf && shown === leaf,
        'a leaf has the next index',
      )
      for (const { index, bytes } of integration.bundles) change.put(INDEX_BUNDLES, indexKey(index), bytes)
      for (const { level, index, bytes } of integration.tiles)
        change.put(INDEX_TILES, tileKey(level, index), bytes)
      change.put(INDEX_HEAD, HEAD, head)
      return map === undefined ? state : showIn(change, state, head, map)
    })
  }

  /** Shows the newest leaf with its checkpoint, which may have cosignatures. */
  async show(head: LogHead, map: MapOfLeaf): Promise<void> {
    await this.#change((state, change) => {
      assert(change.get(INDEX_HEAD, HEAD)?.treeSize === head.treeSize, 'only the newest leaf is shown')
      return showIn(change, state, head, map)
    })
  }

  /** From here on the index is of this key, and the signers may sign it. */
  async changeKey(vkey: string, signers: readonly string[]): Promise<void> {
    await this.#change(state => ({
      ...state,
      vkey,
      signers: [...new Set([...state.signers, ...signers])],
    }))
  }

  /** Whether there are leaves, be it without a checkpoint. */
  get hasLeaves(): boolean {
    return this.#store.view(view => [...view.keys(INDEX_BUNDLES, { limit: 1 })].length > 0)
  }

  /** While it is held no process answers from it. */
  async hold(isHeld: boolean): Promise<void> {
    if (this.state !== undefined && this.state.isHeld !== isHeld)
      await this.#change(state => ({ ...state, isHeld }))
  }

  async #change(write: (state: IndexState, change: Change) => IndexState): Promise<void> {
    await this.#store.change(change => {
      const state = change.get(INDEX_STATE, MAP)
      assert(state !== undefined, 'an index was begun')
      const next = write(state, change)
      if (next !== state) change.put(INDEX_STATE, MAP, next)
    })
  }

  #emptySome(table: Table<Uint8Array>): Promise<number> {
    const limit = ROWS_EMPTIED_AT_ONCE
    const some = this.#store.view(view => [...view.keys(table, { limit })])
    if (some.length === 0) return Promise.resolve(0)
    return this.#store.change(change => {
      const keys = [...change.keys(table, { limit })]
      for (const key of keys) change.remove(table, key)
      return keys.length
    })
  }

  #newLog(): TiledLog {
    return new TiledLog(this.#store, { tiles: INDEX_TILES, bundles: INDEX_BUNDLES })
  }
}

/** The one place where a leaf becomes the shown one: map, checkpoint and state change together. */
function showIn(change: Change, state: IndexState, head: LogHead, { rows, entries }: MapOfLeaf): IndexState {
  putRows(change, rows)
  change.put(INDEX_HEAD, SHOWN, head)
  return { ...state, entries, leaves: head.treeSize }
}

function putRows(change: Change, rows: MapRows): void {
  for (const [id, bytes] of rows) change.put(INDEX_ROWS, indexKey(id), bytes)
}

/** The refusal to go on with an index that differs from its signed checkpoint. */
export function damagedIndex(what: string, cause?: unknown): SignalError {
  return new SignalError('CHECKPOINT_INVALID', `the index does not hold what was signed: ${what}`, {
    cause,
  })
}

const ROWS_EMPTIED_AT_ONCE = 512
