/**
 * The lookup index against a plain Map, through splits at every depth, late commits and restarts.
 * `CALLSIGN_LOOKUP_RUNS` sets the number of random runs (2), `CALLSIGN_SEED` plays one again.
 */

import t, { type Test } from 'tap'
import type { PendingWrites } from '../../src/keyserver/identity-table.ts'
import { LookupIndex } from '../../src/keyserver/lookup-index.ts'
import { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import { plainBytesTable } from '../support/plain-tables.ts'
import { runsOf, seedOf } from '../support/seed.ts'
import { long, sized } from '../support/size.ts'
import { SeededRandom } from '../support/world.ts'

const NODES = plainBytesTable('lookup')
/** Small nodes and quick turns, so that a short log has all that a long one has. */
const SMALL = { nodeRowsMax: 6, entriesPerStep: 4 }

interface Store {
  readonly database: LmdbStore
}

interface Options {
  readonly nodeRowsMax: number
  readonly entriesPerStep: number
}

/** The oracle: the hashes of the log and the newest index of each. */
class Log {
  #hashes: Uint8Array[] = []
  #newest = new Map<string, number>()

  get size(): number {
    return this.#hashes.length
  }

  append(hashes: readonly Uint8Array[]): void {
    for (const hash of hashes) {
      this.#newest.set(Buffer.from(hash).toString('hex'), this.#hashes.length)
      this.#hashes.push(hash)
    }
  }

  truncate(size: number): void {
    const kept = this.#hashes.slice(0, size)
    this.#hashes = []
    this.#newest = new Map()
    this.append(kept)
  }

  at(index: number): Uint8Array {
    return this.#hashes[index]!
  }

  slice(start: number, end: number): Uint8Array[] {
    return this.#hashes.slice(start, end)
  }

  newest(hash: Uint8Array): number | undefined {
    return this.#newest.get(Buffer.from(hash).toString('hex'))
  }

  /** How many of these hashes, by default all that were ever logged, the index answers otherwise. */
  wrongAnswers(index: LookupIndex, hashes: readonly Uint8Array[] = this.#hashes): number {
    return hashes.filter(hash => index.newest(hash) !== this.newest(hash)).length
  }
}

function openStore(t: Test): Store {
  const database = LmdbStore.open(t.testdir())
  t.teardown(() => database.close())
  return { database }
}

function commit({ database }: Store, { writes }: PendingWrites): Promise<void> {
  return database.change(change => {
    for (const { key, value } of writes) change.put(NODES, key, value)
  })
}

/** Adds the entries that the index has not seen yet, `batchEntries` at a time, and commits each batch. */
async function catchUp(store: Store, index: LookupIndex, log: Log, batchEntries: number): Promise<void> {
  while (index.nextIndex < log.size) {
    const pending = index.add(index.nextIndex, log.slice(index.nextIndex, index.nextIndex + batchEntries))
    if (pending.writes.length > 0) await commit(store, pending)
    pending.release()
  }
}

/** Opens the table again as after a restart; the entries added again must cause no writes. */
function restart({ database }: Store, log: Log, options: Options, batchEntries = 1_000): LookupIndex {
  const index = new LookupIndex(database, NODES, options)
  while (index.nextIndex < log.size) {
    const pending = index.add(index.nextIndex, log.slice(index.nextIndex, index.nextIndex + batchEntries))
    if (pending.writes.length > 0) throw new Error(`a restart at ${log.size} entries wrote nodes`)
  }
  return index
}

function randomHash(random: SeededRandom): Uint8Array {
  const hash = new Uint8Array(64)
  for (let i = 0; i < 20; i++) hash[i] = random.below(256)
  return hash
}

/** Among ten hashes about two are logged again and one shares its first bytes with another, which makes deep nodes. */
function nextHash(random: SeededRandom, log: Log): Uint8Array {
  if (log.size > 0 && random.chance(0.2)) return log.at(random.below(log.size))
  const hash = randomHash(random)
  if (log.size > 0 && random.chance(0.12)) {
    hash.set(log.at(random.below(log.size)).subarray(0, 1 + random.below(8)))
  }
  return hash
}

/** Hashes that all fall into the first partition, which is written down whenever `SIZE_OF_TURN` entries were added. */
function hashesOfFirstPartition(random: SeededRandom, count: number): Uint8Array[] {
  return Array.from({ length: count }, () => {
    const hash = randomHash(random)
    hash[0] = 0
    return hash
  })
}
const SIZE_OF_TURN = 256
const EACH_TURN = { nodeRowsMax: 300, entriesPerStep: 1 }

/** The faults of the table's nodes, found by their bytes alone. */
function faultsOfTable({ database }: Store, log: Log, { nodeRowsMax }: Options): string[] {
  const faults: string[] = []
  const kinds = new Map<number, number>()
  const indexAbove = new Map<string, number>()
  // Keys sort by depth, so a parent is seen before its children.
  for (const { key, value } of database.view(view => [...view.range(NODES)])) {
    const id = Buffer.from(key).readUIntBE(0, 6)
    if (id === 0) continue
    const bits = id.toString(2).slice(1)
    const rows = (value.length - 1) / 22
    const fault = (what: string) => faults.push(`node ${bits}: ${what}`)
    kinds.set(id, value[0]!)
    if (bits.length > 8 && kinds.get(Math.floor(id / 16)) !== 2) fault('its parent does not know of it')
    if (rows > nodeRowsMax && bits.length < 44) fault(`${rows} rows`)
    let previous = ''
    for (let at = 1; at < value.length; at += 22) {
      const row = Buffer.from(value.subarray(at, at + 22))
      const name = row.toString('hex', 0, 16)
      const index = row.readUIntBE(16, 6)
      if (name <= previous) fault('rows out of order')
      if (!bitsOf(row).startsWith(bits)) fault(`row ${name} is not of its prefix`)
      if (!Buffer.from(log.at(index)).toString('hex').startsWith(name)) fault(`entry ${index} is not ${name}`)
      if (index > (indexAbove.get(name) ?? Number.POSITIVE_INFINITY)) fault(`row ${name} is newer than above`)
      indexAbove.set(name, index)
      previous = name
    }
  }
  return faults
}

function bitsOf(row: Uint8Array): string {
  return [...row.subarray(0, 8)].map(byte => byte.toString(2).padStart(8, '0')).join('')
}

t.test('the newest index of a hash is found, and none for a hash that was never logged', async t => {
  const store = openStore(t)
  const random = new SeededRandom(1)
  const log = new Log()
  for (let i = 0; i < 3_000; i++) log.append([nextHash(random, log)])
  const index = new LookupIndex(store.database, NODES, SMALL)
  await catchUp(store, index, log, 100)
  t.equal(log.wrongAnswers(index), 0)
  const strangers = Array.from({ length: 1_000 }, () => randomHash(random))
  t.equal(log.wrongAnswers(index, strangers), 0)
})

t.test('random batches, late commits and restarts agree with a plain map', sized(), async t => {
  const runs = runsOf('CALLSIGN_LOOKUP_RUNS', { short: 1, long: 2 })
  const firstSeed = seedOf()
  for (let seed = firstSeed; seed < firstSeed + runs; seed++) {
    await t.test(`seed ${seed}`, async t => {
      const { wrong, faults, restarts } = await runRandomly(openStore(t), new SeededRandom(seed))
      t.equal(wrong, 0, `wrong answers under seed ${seed}`)
      t.same(faults, [], `nodes under seed ${seed}`)
      t.ok(restarts > 0, `restarts under seed ${seed}`)
    })
  }
})

interface Batch {
  readonly sizeAfter: number
  readonly pending: PendingWrites
  durable: Promise<void> | undefined
}

async function runRandomly(store: Store, random: SeededRandom) {
  const options = { nodeRowsMax: 1 + random.below(40), entriesPerStep: 1 + random.below(64) }
  const log = new Log()
  const underWay: Batch[] = []
  let index = new LookupIndex(store.database, NODES, options)
  let durableSize = 0
  let wrong = 0
  let restarts = 0

  function addBatch(): void {
    const firstIndex = log.size
    const count = Math.floor(2 ** (random.next() * Math.log2(5_000)))
    for (let i = 0; i < count; i++) log.append([nextHash(random, log)])
    const pending = index.add(firstIndex, log.slice(firstIndex, log.size))
    underWay.push({ sizeAfter: log.size, pending, durable: undefined })
  }

  function startCommit(): void {
    const next = underWay.find(batch => batch.durable === undefined)
    if (next !== undefined) next.durable = commit(store, next.pending)
  }

  async function finishCommit(): Promise<void> {
    if (underWay[0]?.durable === undefined) return
    const { sizeAfter, pending, durable } = underWay.shift()!
    await durable
    pending.release()
    durableSize = sizeAfter
  }

  /** Unwritten changes are lost, from the log too; written ones become durable. */
  async function crash(): Promise<void> {
    while (underWay[0]?.durable !== undefined) await finishCommit()
    underWay.length = 0
    log.truncate(durableSize)
    index = restart(store, log, options, 1 + random.below(2_000))
    restarts++
  }

  for (let step = 0; step < 400; step++) {
    const choice = random.below(100)
    if (choice < 35 && underWay.length < 4 && log.size < 30_000) addBatch()
    else if (choice < 65) startCommit()
    else if (choice < 95) await finishCommit()
    else await crash()
    const asked = Array.from({ length: 40 }, (_, i) =>
      log.size === 0 || i % 8 === 0 ? randomHash(random) : log.at(random.below(log.size)),
    )
    wrong += log.wrongAnswers(index, asked)
  }
  await crash()
  wrong += log.wrongAnswers(index)
  return { wrong, restarts, faults: faultsOfTable(store, log, options) }
}

t.test('a restart after each batch loses nothing', async t => {
  const store = openStore(t)
  const random = new SeededRandom(2)
  const log = new Log()
  let index = new LookupIndex(store.database, NODES, SMALL)
  let wrong = 0
  for (let batch = 0; batch < 150; batch++) {
    const size = log.size + 1 + random.below(40)
    while (log.size < size) log.append([nextHash(random, log)])
    await catchUp(store, index, log, 40)
    index = restart(store, log, SMALL)
    wrong += log.wrongAnswers(index)
  }
  t.equal(wrong, 0)
})

t.test('a restart keeps rows added just after their partition was written down', async t => {
  const store = openStore(t)
  const random = new SeededRandom(15)
  const log = new Log()
  let index = new LookupIndex(store.database, NODES, SMALL)
  let wrong = 0
  for (let i = 0; i < 1_500; i++) {
    const hash = randomHash(random)
    // The partition whose turn came last, so that its next turn is a whole round away.
    hash[0] = Math.floor(i / SMALL.entriesPerStep) % 256
    log.append([hash])
    await catchUp(store, index, log, 1)
    if (i < 1_000) continue
    index = restart(store, log, SMALL)
    wrong += log.wrongAnswers(index)
  }
  t.equal(wrong, 0)
})

t.test('rows that wait in memory again after a restart agree with those on disk', async t => {
  const store = openStore(t)
  const random = new SeededRandom(3)
  const log = new Log()
  for (let i = 0; i < 2_000; i++) log.append([nextHash(random, log)])
  await catchUp(store, new LookupIndex(store.database, NODES, SMALL), log, 64)
  const index = restart(store, log, SMALL)
  for (let i = 0; i < 2_000; i++) log.append([nextHash(random, log)])
  await catchUp(store, index, log, 64)
  t.equal(log.wrongAnswers(index), 0)
  t.same(faultsOfTable(store, log, SMALL), [])
})

t.test('no more than 256 steps of entries are added again after a restart', async t => {
  const store = openStore(t)
  const random = new SeededRandom(4)
  const log = new Log()
  // Ten hashes for ever: most partitions never get a row, and must not hold the start back.
  const hashes = Array.from({ length: 10 }, () => randomHash(random))
  for (let i = 0; i < 5_000; i++) log.append([hashes[i % 10]!])
  await catchUp(store, new LookupIndex(store.database, NODES, SMALL), log, 50)
  const { nextIndex } = new LookupIndex(store.database, NODES, SMALL)
  t.ok(nextIndex > log.size - 257 * SMALL.entriesPerStep, `${nextIndex} of ${log.size}`)
  t.equal(log.wrongAnswers(restart(store, log, SMALL)), 0)
})

t.test('over an emptied table the whole log is added again', async t => {
  const store = openStore(t)
  const random = new SeededRandom(5)
  const log = new Log()
  for (let i = 0; i < 3_000; i++) log.append([nextHash(random, log)])
  await catchUp(store, new LookupIndex(store.database, NODES, SMALL), log, 64)
  await store.database.clear(NODES)
  const rebuilt = new LookupIndex(store.database, NODES, SMALL)
  t.equal(rebuilt.nextIndex, 0)
  await catchUp(store, rebuilt, log, 500)
  t.equal(log.wrongAnswers(rebuilt), 0)
  t.equal(log.wrongAnswers(restart(store, log, SMALL)), 0)
})

t.test('a batch of more entries than all partitions take in turn is written whole', async t => {
  const store = openStore(t)
  const random = new SeededRandom(6)
  const log = new Log()
  for (let i = 0; i < 5_000; i++) log.append([nextHash(random, log)])
  await catchUp(store, new LookupIndex(store.database, NODES, SMALL), log, 5_000)
  t.same(faultsOfTable(store, log, SMALL), [])
  t.equal(log.wrongAnswers(restart(store, log, SMALL)), 0)
})

t.test('nodes of batches under way are read from memory, each as its last batch left it', async t => {
  const store = openStore(t)
  const random = new SeededRandom(7)
  const log = new Log()
  const index = new LookupIndex(store.database, NODES, EACH_TURN)
  const replaced = hashesOfFirstPartition(random, SIZE_OF_TURN)
  const batches = [
    hashesOfFirstPartition(random, SIZE_OF_TURN),
    hashesOfFirstPartition(random, SIZE_OF_TURN),
    replaced,
    [...replaced, ...hashesOfFirstPartition(random, SIZE_OF_TURN)],
  ].map(hashes => {
    const firstIndex = log.size
    log.append(hashes)
    return index.add(firstIndex, hashes)
  })
  // The second and the fourth push everything to the children, so the first node is empty in both and full between.
  t.same(
    batches.map(({ writes }) => writes.length > 16),
    [false, true, false, true],
  )
  let wrong = log.wrongAnswers(index)
  for (const batch of batches) {
    await commit(store, batch)
    wrong += log.wrongAnswers(index)
    batch.release()
    wrong += log.wrongAnswers(index)
  }
  t.equal(wrong, 0)
})

t.test('reads find every row at each moment of a commit and right after its release', async t => {
  const store = openStore(t)
  const random = new SeededRandom(8)
  const log = new Log()
  const index = new LookupIndex(store.database, NODES, EACH_TURN)
  let moments = 0
  let wrong = 0
  for (let round = 0; round < 20; round++) {
    log.append(hashesOfFirstPartition(random, SIZE_OF_TURN))
    const pending = index.add(index.nextIndex, log.slice(index.nextIndex, log.size))
    let isReleased = false
    void commit(store, pending).then(() => {
      pending.release()
      isReleased = true
      wrong += log.wrongAnswers(index)
    })
    while (!isReleased) {
      wrong += log.wrongAnswers(index)
      moments++
      await new Promise(resolve => setImmediate(resolve))
    }
  }
  t.equal(wrong, 0)
  t.ok(moments > 20, 'some reads were made while a commit was under way')
})

t.test('a hash that shares 16 bytes with a logged one is answered, for the caller to check', async t => {
  const { database } = openStore(t)
  const hashes = hashesOfFirstPartition(new SeededRandom(9), SIZE_OF_TURN)
  const inMemory = new LookupIndex(database, NODES)
  const inNode = new LookupIndex(database, NODES, EACH_TURN)
  t.equal(inMemory.add(0, hashes).writes.length, 1)
  t.equal(inNode.add(0, hashes).writes.length, 2)
  const stranger = hashes[7]!.slice()
  stranger[16]! ^= 1
  const other = hashes[7]!.slice()
  other[15]! ^= 1
  for (const index of [inMemory, inNode]) {
    t.equal(index.newest(stranger), 7)
    t.equal(index.newest(other), undefined)
  }
})

t.test('hashes that share more bits than the deepest node has are all kept', async t => {
  const store = openStore(t)
  const random = new SeededRandom(10)
  const log = new Log()
  for (let i = 0; i < 3 * SIZE_OF_TURN; i++) {
    const hash = randomHash(random)
    hash.fill(0, 0, 7)
    log.append([hash])
  }
  const index = new LookupIndex(store.database, NODES, EACH_TURN)
  await catchUp(store, index, log, 100)
  t.equal(log.wrongAnswers(index), 0)
  t.equal(log.wrongAnswers(restart(store, log, EACH_TURN)), 0)
  t.same(faultsOfTable(store, log, EACH_TURN), [])
})

t.test(
  'at 210,000 entries no node takes more than four pages, and each row was written a few times',
  long(),
  async t => {
    const store = openStore(t)
    const random = new SeededRandom(11)
    const log = new Log()
    const index = new LookupIndex(store.database, NODES)
    let writtenBytes = 0
    while (log.size < 210_000) {
      log.append(Array.from({ length: 2_000 }, () => randomHash(random)))
      const pending = index.add(index.nextIndex, log.slice(index.nextIndex, log.size))
      for (const { value } of pending.writes) writtenBytes += value.length
      await commit(store, pending)
      pending.release()
    }
    const lengths = store.database.view(view => [...view.range(NODES)].map(({ value }) => value.length))
    const longest = Math.max(...lengths)
    t.ok(longest <= 4 * 4096 - 16, `${longest} bytes`)
    t.ok(longest > 3 * 4096, `${longest} bytes`)
    t.ok(lengths.length > 1 + 256, 'some nodes have children')
    t.ok(writtenBytes < 3 * 22 * log.size, `${writtenBytes / log.size} bytes for each row of 22`)
    t.equal(log.wrongAnswers(index), 0)
  },
)

t.test('a damaged node is an error and not an answer', async t => {
  const store = openStore(t)
  const hashes = hashesOfFirstPartition(new SeededRandom(12), SIZE_OF_TURN)
  const index = new LookupIndex(store.database, NODES, EACH_TURN)
  const whole = index.add(0, hashes)
  await commit(store, whole)
  // From here on nothing is read from memory.
  whole.release()
  const node = whole.writes[0]!
  const damages: Record<string, Uint8Array> = {
    'no bytes': new Uint8Array(0),
    'an unknown kind': Uint8Array.of(3, ...node.value.subarray(1)),
    'a cut row': node.value.subarray(0, -1),
  }
  for (const [damage, value] of Object.entries(damages)) {
    await store.database.change(change => change.put(NODES, node.key, value))
    t.throws(() => index.newest(hashes[0]!), { code: 'STORE_UNAVAILABLE' }, damage)
  }
  t.throws(() => index.add(SIZE_OF_TURN, hashes), { code: 'STORE_UNAVAILABLE' })
})

t.test('a table of another layout is refused', async t => {
  const { database } = openStore(t)
  for (const state of [Uint8Array.of(2, 0, 0, 0, 0, 0, 0), Uint8Array.of(1, 0)]) {
    await database.change(change => change.put(NODES, new Uint8Array(6), state))
    t.throws(() => new LookupIndex(database, NODES), { code: 'STORE_UNAVAILABLE' })
  }
})

t.test('entries out of order, cut hashes and questions before the end of a restart are refused', async t => {
  const store = openStore(t)
  const hashes = hashesOfFirstPartition(new SeededRandom(14), SIZE_OF_TURN)
  const index = new LookupIndex(store.database, NODES, EACH_TURN)
  t.throws(() => index.add(1, hashes), /order of the log/)
  await commit(store, index.add(0, hashes))
  t.throws(() => index.add(0, hashes), /order of the log/)
  t.throws(() => index.newest(hashes[0]!.subarray(0, 63)), /64 bytes/)
  const reopened = new LookupIndex(store.database, NODES, EACH_TURN)
  t.throws(() => reopened.newest(hashes[0]!), /still to be added/)
})
