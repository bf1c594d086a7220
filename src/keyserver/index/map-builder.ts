/** Builds a map over the entries there are, in portions; and grows one that is built. */

import { SignalError } from '../../errors.ts'
import type { Hash } from '../../log/hash.ts'
import { rootHash } from '../../log/tree.ts'
import type { IndexEvent } from './index-event.ts'
import type { Grow } from './index-growth.ts'
import { hasMapRoot, type IndexSigners, type InputLog, inputOf } from './index-opening.ts'
import { damagedIndex, type IndexStore, type MapRows } from './index-store.ts'
import type { IndexState } from './index-tables.ts'

/** The parts that building a map takes. */
export interface MapBuilding {
  readonly store: IndexStore
  readonly log: InputLog
  readonly signers: IndexSigners
  readonly grow: Grow
  readonly world: { monotonicMs(): number }
  readonly report: (event: IndexEvent) => void
  /** For tests. */
  readonly sizes?: Partial<IndexSizes>
}

export interface IndexSizes {
  /** Entries of one leaf: its change stays below five megabytes. */
  readonly leafEntries: number
  /** Entries that are grown at once while a map is built: the process that does it keeps their rows in memory, a kilobyte each. */
  readonly portionEntries: number
  /** Rows and bytes of a change while a map is built, between which other changes come. */
  readonly rowsAtOnce: number
  readonly bytesAtOnce: number
}

interface Target {
  readonly entries: number
  /** The root that the map has to have there; undefined where a leaf follows, which has it. */
  readonly root: Hash | undefined
}

export class MapBuilder {
  readonly #deps: MapBuilding
  readonly sizes: IndexSizes
  #isEmptied = false
  /** Whether it has begun again since the last leaf: a second time would end as the first did. */
  #hasBegunAgain = false
  #progress: { readonly done: number; readonly of: number } | undefined
  #reportedAtMs = Number.NEGATIVE_INFINITY

  constructor(deps: MapBuilding) {
    this.#deps = deps
    this.sizes = { ...SIZES, ...deps.sizes }
  }

  get progress(): { readonly done: number; readonly of: number } | undefined {
    return this.#progress
  }

  /** A leaf is shown: the map is built. */
  onLeaf(): void {
    this.#hasBegunAgain = false
    this.#progress = undefined
  }

  /** Has the map built again because of damage. Throws `CHECKPOINT_INVALID` where that has been tried. */
  async beginAgain(reason: string): Promise<void> {
    if (this.#hasBegunAgain) throw damagedIndex(`${reason}, though the map was built again from the entries`)
    const { store, report } = this.#deps
    report({ event: 'index-damaged', reason })
    await store.forgetMap()
    this.#hasBegunAgain = true
    this.#isEmptied = false
  }

  /** Adds a portion to a map that has no leaf; false where it has all that it needs. */
  async advance(): Promise<boolean> {
    const { store, report } = this.#deps
    const { entries } = store.state!
    if (entries === 0 && !this.#isEmptied) {
      // An earlier map left rows, or a first portion that was cut short.
      await store.empty()
      this.#isEmptied = true
    }
    const target = this.#target()
    const missing = target.entries - entries
    if (missing > (target.root === undefined ? this.sizes.leafEntries : 0)) {
      await this.#addPortion(entries, target.entries)
      return true
    }
    if (target.root === undefined) return false
    if (!hasMapRoot(store, target.root)) {
      await this.beginAgain('the last leaf has another root than the entries of its input lead to')
      return true
    }
    await store.built()
    this.#progress = undefined
    report({ event: 'index-rebuilt', entries })
    return false
  }

  /**
   * The map with the entries up to `to`, and its rows. Undefined where it is damaged and is built again. Throws
   * `CHECKPOINT_INVALID` where the log is.
   */
  async grow(
    { entries: from, leaves }: IndexState,
    to: number,
  ): Promise<{ readonly root: Hash; readonly rows: MapRows } | undefined> {
    const { store } = this.#deps
    const mapRoot = leaves === 0 ? undefined : store.leaf(leaves - 1).root
    if (from === to) return { root: mapRoot ?? store.mapRoot(), rows: [] }
    const rows: MapRows[number][] = []
    const root = await this.#growInto({ from, to, mapRoot }, portion => {
      for (const row of portion) rows.push(row)
      return undefined
    })
    return root && { root, rows }
  }

  /** Where the map is to stand: at the last leaf that is shown, at a leaf that waits, or at the log. */
  #target(): Target {
    const { store, log, signers } = this.#deps
    const shown = store.shownHead()
    const last = shown ?? store.head()
    if (last === undefined) return { entries: log.head.treeSize, root: undefined }
    const leaf = store.leaf(last.treeSize - 1)
    const { treeSize } = inputOf(leaf, log, signers.log.name)
    return { entries: treeSize, root: shown && leaf.root }
  }

  async #addPortion(from: number, of: number): Promise<void> {
    const { store } = this.#deps
    const { rowsAtOnce, bytesAtOnce } = this.sizes
    const to = Math.min(of, from + this.sizes.portionEntries)
    this.#tell(from, of)
    let [rows, bytes]: [MapRows[number][], number] = [[], 0]
    const root = await this.#growInto({ from, to, mapRoot: undefined }, async portion => {
      for (const row of portion) bytes += row[1].length
      rows.push(...portion)
      if (rows.length < rowsAtOnce && bytes < bytesAtOnce) return
      await store.build(rows)
      ;[rows, bytes] = [[], 0]
    })
    if (root === undefined) return
    await store.build(rows, to)
    this.#tell(to, of)
  }

  async #growInto(
    { from, to, mapRoot }: { readonly from: number; readonly to: number; readonly mapRoot: Hash | undefined },
    onRows: (rows: MapRows) => Promise<void> | undefined,
  ): Promise<Hash | undefined> {
    const { log, grow } = this.#deps
    const logRoot = rootHash(to, log.readHashes)
    const end = await grow({ from, to, logRoot, mapRoot }, onRows)
    if (end.kind === 'grown') return end.root
    if (end.kind === 'log damaged') throw new SignalError('CHECKPOINT_INVALID', end.reason)
    await this.beginAgain(end.reason)
    return undefined
  }

  #tell(done: number, of: number): void {
    const { world, report } = this.#deps
    this.#progress = { done, of }
    const nowMs = world.monotonicMs()
    if (nowMs - this.#reportedAtMs < TOLD_MS) return
    this.#reportedAtMs = nowMs
    report({ event: 'index-building', done, of })
  }
}

const SIZES: IndexSizes = {
  leafEntries: 2_048,
  portionEntries: 65_536,
  rowsAtOnce: 512,
  bytesAtOnce: 1_000_000,
}
const TOLD_MS = 1_000
