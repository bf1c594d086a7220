/**
 * The rows of the index's map against the map over the log's entries, made anew: each row must be there as the entries make it,
 * and none beyond.
 *
 * Memory stays flat, whatever the log's size. It takes one part of all keys at a time, reads the entries again for each, and
 * grows the tree in the order of the keys. So a row is done once the keys are past it: it is compared and let go.
 */

import { INDEX_TABLES } from '../../keyserver/index/index-tables.ts'
import { HASH_BYTES, type Hash } from '../../log/hash.ts'
import { indexKeyOfEntry } from '../../log/index-leaf.ts'
import { EMPTY_TREE } from '../../log/patricia.ts'
import { growTree, type IndexedEntry } from '../../log/patricia-rows.ts'
import { parseBundle, TILE_WIDTH } from '../../log/tile.ts'
import { indexKey } from '../../store/engine/keys.ts'
import { type HashRange, rangesFor } from '../log/entry-block.ts'
import type { Findings } from '../log/fault.ts'
import type { RawLog } from '../log/raw-log.ts'
import { firstDifference } from '../log/tree-check.ts'
import { SortedKeys } from './sorted-keys.ts'

/** Called and awaited every few thousand entries; `done` is from 0 to 1. */
export type OnProgress = (done: number) => Promise<void>

export class MapCheck {
  readonly #raw: RawLog
  readonly #entries: number
  readonly #findings: Findings
  /** The rows that further keys may still change. */
  readonly #open = new Map<number, Uint8Array>()
  readonly #done = new Set<number>()
  #root: Hash = EMPTY_TREE

  /** Checks the map over the first `entries` entries, which must be whole. */
  constructor(raw: RawLog, entries: number, findings: Findings) {
    this.#raw = raw
    this.#entries = entries
    this.#findings = findings
  }

  /** How many rows the map has. */
  get rows(): number {
    return this.#done.size
  }

  /** Reports every wrong row with its correction. Resolves with the map's root. So many entries' keys are in memory at a time. */
  async run(entriesPerRange: number, onProgress: OnProgress): Promise<Hash> {
    const ranges = rangesFor(this.#entries, entriesPerRange)
    const keys = new SortedKeys(this.#entries / ranges.length)
    for (const [pass, range] of ranges.entries()) {
      const progress = (done: number) => onProgress((pass + done) / ranges.length)
      keys.clear()
      await this.#collect(keys, range, done => progress(done / 2))
      keys.sort()
      for (let from = 0; from < keys.count; from += ENTRIES_PER_STEP) {
        this.#grow(keys.slice(from, from + ENTRIES_PER_STEP), keys.at(from + ENTRIES_PER_STEP))
        await progress((1 + from / keys.count) / 2)
      }
    }
    this.#finishRows(() => true)
    this.#findStrayRows()
    await onProgress(1)
    return this.#root
  }

  async #collect(keys: SortedKeys, { from, to }: HashRange, progress: OnProgress): Promise<void> {
    for (let first = 0; first < this.#entries; first += TILE_WIDTH) {
      const bundle = parseBundle(this.#raw.bundle(first / TILE_WIDTH)!)
      for (const [at, entry] of bundle.slice(0, this.#entries - first).entries()) {
        const key = indexKeyOfEntry(entry)
        if (key[0]! >= from && key[0]! < to) keys.add(key, first + at)
      }
      if (first % ENTRIES_PER_STEP === 0) await progress(first / this.#entries)
    }
  }

  /** `next` is the first key that is still to come in this part. */
  #grow(entries: readonly IndexedEntry[], next: Uint8Array | undefined): void {
    const { root, rows } = growTree(id => this.#open.get(id), entries)
    this.#root = root
    for (const [id, bytes] of rows) this.#open.set(id, bytes)
    // The first key of the next part is not known yet; it comes after the last one here.
    const key = next ?? entries.at(-1)!.key
    this.#finishRows(id => isBefore(id, key))
  }

  #finishRows(isDone: (id: number) => boolean): void {
    for (const [id, bytes] of this.#open) {
      if (!isDone(id)) continue
      this.#open.delete(id)
      this.#done.add(id)
      this.#judge(id, bytes)
    }
  }

  #judge(id: number, bytes: Uint8Array): void {
    const stored = this.#raw.mapRow(id)
    const offset = firstDifference(stored ?? NO_BYTES, bytes)
    if (stored !== undefined && offset === undefined) return
    const place = stored === undefined ? {} : { offset: offset! }
    const detail = stored === undefined ? 'row is missing' : 'row is not as the entries make it'
    this.#report(id.toString(16), detail, place)
    this.#findings.correct({ kind: 'row', table: INDEX_TABLES.rows, key: indexKey(id), value: bytes })
  }

  #findStrayRows(): void {
    for (const key of this.#raw.keys(INDEX_TABLES.rows)) {
      const bytes = Buffer.from(key)
      const id = bytes.length === ID_BYTES ? bytes.readUIntBE(0, ID_BYTES) : undefined
      if (id !== undefined && this.#done.has(id)) continue
      this.#report(id?.toString(16) ?? bytes.toString('hex'), 'the map has no such row', {})
      this.#findings.correct({ kind: 'row', table: INDEX_TABLES.rows, key: bytes, value: undefined })
    }
  }

  #report(key: string, detail: string, place: { readonly offset?: number }): void {
    this.#findings.report({
      check: 'index-map',
      table: INDEX_TABLES.rows,
      key,
      ...place,
      detail,
      isDerived: true,
    })
  }
}

/** Whether all keys under a row come before this one. Its id is a 1 bit and the bits that they begin with. */
function isBefore(id: number, key: Uint8Array): boolean {
  const bits = id.toString(2).length - 1
  const first = Buffer.from(key.buffer, key.byteOffset, HASH_BYTES).readUIntBE(0, ID_BYTES)
  return id - 2 ** bits < Math.floor(first / 2 ** (8 * ID_BYTES - bits))
}

const NO_BYTES = new Uint8Array(0)
const ID_BYTES = 6
/** A multiple of a bundle's. Neighbours share rows, so these change some hundreds of them. */
const ENTRIES_PER_STEP = 8_192
