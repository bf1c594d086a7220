/**
 * What the lookup index costs as the log grows: adding with a durable commit per batch, reading, disk, restart.
 *
 *     node dist/bench/micro/lookup-index.js --entries 1000000,3000000,10000000 --folder DIR
 *
 * Prints one JSON line per size. The table is alone in its environment, so a batch here syncs less than a batch of the
 * whole log; hashes are as good as random, none is replaced, and reads are of rows spread over all the log. A restart
 * is timed from the hashes on, without the reading of their bundles.
 */

import { rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { BATCHES_IN_FLIGHT_MAX } from '../../src/limits.ts'
import { Database } from '../../src/store/database.ts'
import { LookupIndex } from '../../src/store/lookup-index.ts'
import type { PendingWrites } from '../../src/store/pending-writes.ts'
import { describeMachine } from '../support/machine.ts'
import { rounded } from '../support/statistics.ts'

const BATCH_ENTRIES = 1_024
const READS = 200_000

const { values } = parseArgs({
  options: {
    entries: { type: 'string', default: '1000000,3000000,10000000' },
    folder: { type: 'string', default: tmpdir() },
  },
})
const folder = join(values.folder, `lookup-index-${process.pid}`)
const database = Database.open(folder)
const table = database.bytesTable('log-lookup')

try {
  let index = new LookupIndex(table)
  for (const size of values.entries.split(',').map(Number)) {
    const added = await addUpTo(index, size)
    const reads = { hit: readMicroseconds(index, size, 0), miss: readMicroseconds(index, size, 2 ** 40) }
    const restart = reopen(size)
    index = restart.index
    report(size, { ...added, readHitUs: reads.hit, readMissUs: reads.miss, restartMs: restart.ms })
  }
} finally {
  await database.close()
  rmSync(folder, { recursive: true, force: true })
}

function report(entries: number, figures: Record<string, number>): void {
  const bytesPerEntry = statSync(join(folder, 'store/data.mdb')).size / entries
  const measured = Object.entries({ bytesPerEntry, ...figures }).map(([name, value]) => [
    name,
    rounded(value),
  ])
  const parameters = { entries, batchEntries: BATCH_ENTRIES, batchesInFlight: BATCHES_IN_FLIGHT_MAX }
  const line = {
    bench: 'lookup-index',
    ...parameters,
    ...Object.fromEntries(measured),
    machine: describeMachine(),
  }
  process.stdout.write(`${JSON.stringify(line)}\n`)
}

async function addUpTo(index: LookupIndex, size: number): Promise<Record<string, number>> {
  const first = index.nextIndex
  const start = performance.now()
  const underWay: Promise<void>[] = []
  let addMsMax = 0
  let commitMsMax = 0
  let writeBytes = 0
  while (index.nextIndex < size) {
    const count = Math.min(BATCH_ENTRIES, size - index.nextIndex)
    const hashes = hashesFrom(index.nextIndex, count)
    const addStart = performance.now()
    const batch = index.add(index.nextIndex, hashes)
    addMsMax = Math.max(addMsMax, performance.now() - addStart)
    for (const { value } of batch.writes) writeBytes += value.length
    underWay.push(
      commit(batch).then(() => {
        commitMsMax = Math.max(commitMsMax, performance.now() - addStart)
      }),
    )
    if (underWay.length === BATCHES_IN_FLIGHT_MAX) await underWay.shift()
  }
  await Promise.all(underWay)
  const entries = size - first
  const entriesPerSecond = (entries * 1000) / (performance.now() - start)
  return { entriesPerSecond, addMsMax, commitMsMax, nodeBytesWrittenPerEntry: writeBytes / entries }
}

async function commit(batch: PendingWrites): Promise<void> {
  await database.commit(() => {
    for (const { key, value } of batch.writes) table.put(key, value)
  })
  batch.release()
}

function readMicroseconds(index: LookupIndex, size: number, offset: number): number {
  const wanted = hashesFrom(0, READS, i => offset + Math.floor((i * size) / READS))
  let order = 1
  let found = 0
  const start = performance.now()
  for (let i = 0; i < READS; i++) {
    order = (order + 123_457) % READS
    if (index.newest(wanted[order]!) !== undefined) found++
  }
  const microseconds = ((performance.now() - start) * 1000) / READS
  if (found !== (offset === 0 ? READS : 0)) throw new Error(`found ${found} of ${READS}`)
  return microseconds
}

function reopen(size: number): { index: LookupIndex; ms: number } {
  const reopened = new LookupIndex(table)
  const hashes = hashesFrom(reopened.nextIndex, size - reopened.nextIndex)
  const start = performance.now()
  const index = new LookupIndex(table)
  index.add(index.nextIndex, hashes)
  return { index, ms: performance.now() - start }
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
