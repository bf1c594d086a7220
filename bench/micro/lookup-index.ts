/**
 * What the lookup index costs as the log grows: adding with a durable commit per batch, reading, disk, restart. Held
 * against LMDB alone, which puts and commits the same nodes in the same batches, and reads one of them.
 */

import { mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { PendingWrites } from '../../src/keyserver/identity-table.ts'
import { LookupIndex } from '../../src/keyserver/lookup-index.ts'
import { BATCHES_IN_FLIGHT_MAX } from '../../src/limits.ts'
import { Database } from '../../src/store/engine/database.ts'
import { bytesTable } from '../../src/store/engine/store.ts'
import type { Benchmark, BenchmarkContext, Row } from '../support/benchmark.ts'
import { rounded } from '../support/statistics.ts'

const NODES = bytesTable('nodes')
const ADD: Row = {
  name: 'lookup-index-add',
  project: 'lookup index, adding durably',
  limit: 'LMDB alone, same nodes, same batches',
  unit: 'entries/s',
  notShown:
    'The table is alone in its environment, so a batch syncs less than one of the whole log; no hash is replaced.',
}
const READ: Row = {
  name: 'lookup-index-read',
  project: 'lookup index, reading a row',
  limit: 'one get of LMDB alone',
  unit: 'µs',
  notShown: 'Rows are read from all over the log, but all of it is in memory.',
}
const BYTES: Row = {
  name: 'lookup-index-bytes',
  project: 'lookup index, bytes on disk per entry',
  limit: '16 bytes of hash and 6 of index',
  unit: 'bytes',
  notShown: 'The file also holds pages that LMDB will use again.',
}

const BATCH_ENTRIES = 1_024
const READS = 200_000

export const lookupIndex: Benchmark = { name: 'lookup-index', run }

async function run(context: BenchmarkContext): Promise<void> {
  const { sizes, appendedEntries } = context.scale
  const indexed = new IndexedTable(join(context.folder, 'indexed'))
  context.after(() => indexed.close())
  const bare = new BareTable(join(context.folder, 'bare'))
  context.after(() => bare.close())
  for (const entries of sizes) {
    while (indexed.size < entries) {
      await bare.replay(await indexed.add(Math.min(appendedEntries, entries - indexed.size)))
    }
    const parameters = { entries, batchEntries: BATCH_ENTRIES }
    for (const round of context.rounds()) {
      const read = { limit: bare.readMicroseconds(), project: indexed.readMicroseconds(0) }
      const missMicroseconds = rounded(indexed.readMicroseconds(MISSING))
      context.record(READ, round, { ...read, parameters, details: { missMicroseconds } })
      const added = await indexed.add(appendedEntries)
      const limit = await bare.replay(added)
      context.record(ADD, round, { limit, project: added.entriesPerSecond, parameters })
    }
    const project = indexed.fileBytes() / indexed.size
    const restartMs = rounded(indexed.reopen())
    context.record(BYTES, 1, { limit: 22, project, parameters, details: { restartMs } })
  }
}

interface Added {
  readonly entriesPerSecond: number
  readonly entries: number
  readonly batches: readonly PendingWrites[]
}

class IndexedTable {
  readonly #folder: string
  readonly #database: Database
  #index: LookupIndex

  constructor(folder: string) {
    this.#folder = folder
    this.#database = Database.open(folder)
    this.#index = new LookupIndex(this.#database, NODES)
  }

  get size(): number {
    return this.#index.nextIndex
  }

  /** Adds so many entries in batches, two commits under way at a time as in the log appender. */
  async add(entries: number): Promise<Added> {
    const end = this.size + entries
    const batches: PendingWrites[] = []
    const startMs = performance.now()
    await commitInTurn(this.#database, () => {
      if (this.size === end) return undefined
      const hashes = hashesFrom(this.size, Math.min(BATCH_ENTRIES, end - this.size))
      const batch = this.#index.add(this.size, hashes)
      batches.push(batch)
      return batch
    })
    return { entriesPerSecond: (entries * 1000) / (performance.now() - startMs), entries, batches }
  }

  /** Reads rows from all over the index, `offset` beyond the entries that are there. */
  readMicroseconds(offset: number): number {
    const wanted = hashesFrom(0, READS, i => offset + Math.floor((i * this.size) / READS))
    let order = 1
    let found = 0
    const startMs = performance.now()
    for (let i = 0; i < READS; i++) {
      order = (order + ORDER_STEP) % READS
      if (this.#index.newest(wanted[order]!) !== undefined) found++
    }
    const microseconds = ((performance.now() - startMs) * 1000) / READS
    if (found !== (offset === 0 ? READS : 0)) throw new Error(`found ${found} of ${READS}`)
    return microseconds
  }

  /** Milliseconds to open the index, without reading the bundles that the last hashes come from. */
  reopen(): number {
    const { size } = this
    const { nextIndex } = new LookupIndex(this.#database, NODES)
    const hashes = hashesFrom(nextIndex, size - nextIndex)
    const startMs = performance.now()
    this.#index = new LookupIndex(this.#database, NODES)
    this.#index.add(nextIndex, hashes)
    return performance.now() - startMs
  }

  fileBytes(): number {
    return statSync(join(this.#folder, 'store/data.mdb')).size
  }

  close(): Promise<void> {
    return this.#database.close()
  }
}

class BareTable {
  readonly #database: Database
  readonly #keys = new Map<string, Uint8Array>()

  constructor(folder: string) {
    mkdirSync(folder)
    this.#database = Database.open(folder)
  }

  /** Entries a second, had LMDB alone to write what they brought. */
  async replay({ batches, entries }: Added): Promise<number> {
    const startMs = performance.now()
    let next = 0
    await commitInTurn(this.#database, () => batches[next++])
    const seconds = (performance.now() - startMs) / 1000
    for (const { writes } of batches) {
      for (const { key } of writes) this.#keys.set(Buffer.from(key).toString('latin1'), key)
    }
    return entries / seconds
  }

  readMicroseconds(): number {
    const keys = [...this.#keys.values()]
    const startMs = performance.now()
    this.#database.view(view => {
      for (let i = 0; i < READS; i++) view.getVolatile(NODES, keys[(i * ORDER_STEP) % keys.length]!)
    })
    return ((performance.now() - startMs) * 1000) / READS
  }

  close(): Promise<void> {
    return this.#database.close()
  }
}

async function commitInTurn(database: Database, nextBatch: () => PendingWrites | undefined): Promise<void> {
  const underWay: Promise<void>[] = []
  for (let batch = nextBatch(); batch !== undefined; batch = nextBatch()) {
    const { writes, release } = batch
    const committed = database.change(change => {
      for (const { key, value } of writes) change.put(NODES, key, value)
    })
    underWay.push(committed.then(release))
    if (underWay.length === BATCHES_IN_FLIGHT_MAX) await underWay.shift()
  }
  await Promise.all(underWay)
}

function hashesFrom(first: number, count: number, numberOf = (i: number) => first + i): Uint8Array[] {
  const words = new Uint32Array(count * 16)
  return Array.from({ length: count }, (_, i) => {
    for (let word = 0; word < 4; word++) words[i * 16 + word] = mix(numberOf(i), word)
    return new Uint8Array(words.buffer, i * 64, 64)
  })
}

/** The finaliser of MurmurHash3 twice: 32 bits that look random, the same for the same arguments. */
function mix(number: number, word: number): number {
  return finalise(finalise((number + word * 0x9e3779b9) >>> 0) ^ Math.floor(number / 2 ** 32) ^ word)
}

function finalise(value: number): number {
  let h = value
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return (h ^ (h >>> 16)) >>> 0
}

/** Added to an index, it names an entry that no log has. */
const MISSING = 2 ** 40
const ORDER_STEP = 123_457
