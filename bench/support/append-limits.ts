/**
 * Program, the limits of appending: LMDB alone putting and committing the same bytes in the same batches, and SHA-256
 * alone of the same bytes.
 */

import { hash, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { type Database, open, type RootDatabase } from 'lmdb'
import { BATCHES_IN_FLIGHT_MAX } from '../../src/limits.ts'
import { TILE_WIDTH, type Tile } from '../../src/log/tile.ts'
import { indexKey, tileKey } from '../../src/store/engine/keys.ts'
import { tilesBetween } from '../../test/support/tiles.ts'
import { serveParent } from './program.ts'

export interface AppendLimitsProtocol {
  readonly setup: { readonly folder: string }
  readonly request:
    | { readonly kind: 'lmdb'; readonly batchSizes: readonly number[] }
    | { readonly kind: 'sha256'; readonly entries: number }
  readonly answer: LimitFigures
}

export interface LimitFigures {
  readonly entriesPerSecond: number
  /** Of this process, with LMDB's threads. */
  readonly cpuMicrosecondsPerEntry: number
}

serveParent<AppendLimitsProtocol>(async ({ folder }) => {
  const tables = new BareTables(folder)
  return async request => {
    const cpuBefore = process.cpuUsage()
    const startedAt = performance.now()
    const entries =
      request.kind === 'lmdb' ? await tables.write(request.batchSizes) : hashEntries(request.entries)
    const seconds = (performance.now() - startedAt) / 1000
    const cpu = process.cpuUsage(cpuBefore)
    return { entriesPerSecond: entries / seconds, cpuMicrosecondsPerEntry: (cpu.user + cpu.system) / entries }
  }
})

type Table = Database<Uint8Array, Uint8Array>

/** The log's tables as the store has them, without the code that fills them. */
class BareTables {
  readonly #environment: RootDatabase
  readonly #tiles: Table
  readonly #bundles: Table
  readonly #heads: Table
  readonly #bytes = randomBytes(TILE_WIDTH * BUNDLED_ENTRY_BYTES)
  #treeSize = 0

  constructor(folder: string) {
    this.#environment = open({ path: join(folder, 'store'), overlappingSync: false, encoding: 'binary' })
    const options = { encoding: 'binary', keyEncoding: 'binary' } as const
    this.#tiles = this.#environment.openDB('log-tiles', options)
    this.#bundles = this.#environment.openDB('log-bundles', options)
    this.#heads = this.#environment.openDB('log-head', options)
  }

  /** Returns how many entries the batches had. */
  async write(batchSizes: readonly number[]): Promise<number> {
    const first = this.#treeSize
    const underWay: Promise<unknown>[] = []
    for (const entries of batchSizes) {
      const tiles = tilesBetween(this.#treeSize, this.#treeSize + entries)
      this.#treeSize += entries
      underWay.push(this.#environment.transaction(() => this.#put(tiles)))
      if (underWay.length === BATCHES_IN_FLIGHT_MAX) await underWay.shift()
    }
    await Promise.all(underWay)
    return this.#treeSize - first
  }

  #put(tiles: readonly Tile[]): void {
    for (const { level, index, width } of tiles) {
      if (level === 'entries') {
        this.#bundles.put(indexKey(index), this.#bytes.subarray(0, width * BUNDLED_ENTRY_BYTES))
      } else {
        this.#tiles.put(tileKey(level, index), this.#bytes.subarray(0, width * 32))
      }
    }
    this.#heads.put(HEAD_KEY, this.#bytes.subarray(0, HEAD_BYTES))
  }
}

/** A leaf and an inner node for each entry, as many as the tree gets. */
function hashEntries(entries: number): number {
  const leaf = randomBytes(1 + ENTRY_BYTES)
  const node = randomBytes(1 + 2 * 32)
  for (let index = 0; index < entries; index++) {
    hash('sha256', leaf, 'binary')
    hash('sha256', node, 'binary')
  }
  return entries
}

/** An entry with a key of 32 bytes, and its length before it. */
const ENTRY_BYTES = 134
const BUNDLED_ENTRY_BYTES = 2 + ENTRY_BYTES
const HEAD_BYTES = 260
const HEAD_KEY = Buffer.from('head')
