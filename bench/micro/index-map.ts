/**
 * What the map of the log's index costs: made from entries in portions as a first build makes it, asked for proofs, and proofs
 * verified as a browser does. Rows lie in memory, so that no disk and no LMDB is among it.
 */

import { createHash, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import { indexValueOf } from '../../src/log/index-leaf.ts'
import { patriciaLeafHash, verifyPatricia } from '../../src/log/patricia.ts'
import { growTree, type IndexedEntry, lookUpIn } from '../../src/log/patricia-rows.ts'
import type { Benchmark, BenchmarkContext, Row } from '../support/benchmark.ts'
import { interleaved, medianOfMany } from '../support/rounds.ts'
import { mean, rounded } from '../support/statistics.ts'

const IN_MEMORY = 'Rows in memory: no LMDB, no disk.'
const BUILD: Row = {
  name: 'index-build',
  project: 'an entry into the map of the index, first build: processor time',
  limit: 'the two hashes of its leaf',
  unit: 'µs',
  goal: { of: 'project', is: 'at most', value: 20 },
  notShown: `${IN_MEMORY} Entries have been read and their keys hashed.`,
}
const ROWS: Row = {
  name: 'index-rows',
  project: 'octets of rows for an entry of the map',
  limit: 'its key, its index and an inner node',
  unit: 'bytes',
  goal: { of: 'project', is: 'at most', value: 100 },
  notShown: 'Rows are longer or shorter as the number of entries stands to the powers of 16.',
}
const LOOKUP: Row = {
  name: 'index-lookup',
  project: 'a lookup in the map of the index with its proof: processor time',
  limit: 'the two hashes of a leaf',
  unit: 'µs',
  goal: { of: 'project', is: 'at most', value: 15 },
  notShown: `${IN_MEMORY} Keys in an order that no cache of the processor knows.`,
}
const PROOF: Row = {
  name: 'index-proof',
  project: 'the longest proof of 20,000 lookups in the map of the index',
  limit: 'a hash and an octet for each halving of the entries',
  unit: 'bytes',
  goal: { of: 'project', is: 'at most', value: 1_200 },
  notShown: 'Octets; base64 makes a third more of them.',
}
const VERIFY: Row = {
  name: 'index-verify',
  project: 'a proof of the index verified, with the hash function of browsers: processor time',
  limit: 'with that of Node',
  unit: 'µs',
  goal: { of: 'project', is: 'at most', value: 1_000 },
  notShown:
    'The map’s proof alone: signatures of two checkpoints, the inclusion of the leaf and its JSON come on top.',
}

const ENTRIES = 1_000_000
const ENTRIES_SMOKE = 5_000
/** As many as a first build takes at a time. */
const PORTION = 131_072
const LOOKUPS = 20_000

export const indexMap: Benchmark = { name: 'index-map', run }

async function run(context: BenchmarkContext): Promise<void> {
  const { turns, isSmoke } = context.scale
  const entries = isSmoke ? ENTRIES_SMOKE : ENTRIES
  const parameters = { entries }
  const portable = await portableVerifier(context.folder)
  for (const round of context.rounds()) {
    const map = new MapInMemory(entries)
    const buildMicroseconds = map.grow()
    const limit = await medianOfMany(() => microsecondsEach(map.sample, hashLeafOf))
    context.record(BUILD, round, { limit, project: buildMicroseconds, parameters })
    context.record(ROWS, round, { limit: 32 + 6 + 32, project: map.bytes / entries, parameters })
    const lookup = await interleaved(
      round,
      turns,
      () => medianOfMany(() => microsecondsEach(map.sample, hashLeafOf)),
      () => medianOfMany(() => microsecondsEach(map.sample, ({ key }) => map.lookUp(key))),
    )
    context.record(LOOKUP, round, { limit: mean(lookup.limit), project: mean(lookup.project), parameters })
    const claims = map.sample.map(({ key }) => map.claim(key))
    const longest = Math.max(...claims.map(({ proof }) => proof.length))
    context.record(PROOF, round, { limit: rounded(33 * Math.log2(entries)), project: longest, parameters })
    const few = claims.slice(0, 500)
    const verify = await interleaved(
      round,
      turns,
      () => medianOfMany(() => microsecondsEach(few, verifyPatricia)),
      () => medianOfMany(() => microsecondsEach(few, portable)),
    )
    context.record(VERIFY, round, { limit: mean(verify.limit), project: mean(verify.project), parameters })
  }
}

type Verify = typeof verifyPatricia

/** `verifyPatricia` as bundles for browsers have it. */
async function portableVerifier(folder: string): Promise<Verify> {
  const outfile = join(folder, 'patricia.mjs')
  const source = join(import.meta.dirname, '../../src/log/patricia.js')
  await build({
    entryPoints: [source],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'neutral',
    logLevel: 'error',
  })
  const bundle = (await import(pathToFileURL(outfile).href)) as { verifyPatricia: Verify }
  return bundle.verifyPatricia
}

/** A map in which each entry has its own key. */
class MapInMemory {
  /** Those that are looked up. */
  readonly sample: readonly IndexedEntry[]
  readonly #entries: readonly IndexedEntry[]
  readonly #rows = new Map<number, Uint8Array>()
  #root: Uint8Array = new Uint8Array(32)

  constructor(entries: number) {
    const salt = randomBytes(8)
    this.#entries = Array.from({ length: entries }, (_, index) => ({
      key: new Uint8Array(createHash('sha256').update(salt).update(`${index}`).digest()),
      index,
    }))
    const step = Math.max(1, Math.floor(entries / LOOKUPS))
    this.sample = this.#entries.filter((_, at) => at % step === 0)
  }

  get bytes(): number {
    return [...this.#rows.values()].reduce((sum, row) => sum + row.length, 0)
  }

  /** Returns the microseconds of processor time for each entry. */
  grow(): number {
    const before = process.cpuUsage()
    for (let at = 0; at < this.#entries.length; at += PORTION) {
      const { root, rows } = growTree(id => this.#rows.get(id), this.#entries.slice(at, at + PORTION))
      for (const [id, row] of rows) this.#rows.set(id, row)
      this.#root = root
    }
    const { user, system } = process.cpuUsage(before)
    return (user + system) / this.#entries.length
  }

  lookUp(key: Uint8Array): ReturnType<typeof lookUpIn> {
    return lookUpIn(id => this.#rows.get(id), key)
  }

  claim(key: Uint8Array): Parameters<Verify>[0] {
    const { indexes, proof } = this.lookUp(key)
    return { root: this.#root, key, value: indexValueOf(indexes), proof }
  }
}

function hashLeafOf({ key, index }: IndexedEntry): void {
  patriciaLeafHash(key, indexValueOf([index]))
}

/** Processor time, so other programs hardly count. */
function microsecondsEach<Item>(items: readonly Item[], act: (item: Item) => unknown): number {
  const before = process.cpuUsage()
  for (const item of items) act(item)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / items.length
}
