/**
 * The user and device of each leaf, on a real table: across blocks of 170, while batches are being written, reopened.
 */

import t, { type Test } from 'tap'
import type { PendingWrites } from '../../src/keyserver/identity-table.ts'
import { IdentityTable, type LoggedIdentity } from '../../src/keyserver/identity-table.ts'
import { indexKey } from '../../src/store/engine/keys.ts'
import { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import { plainBytesTable } from '../support/plain-tables.ts'
import { randomFrom, seedOf } from '../support/seed.ts'

const BLOCKS = plainBytesTable('identities')
const BLOCK_RECORDS = 170
const UINT64_MAX = 2n ** 64n - 1n

interface Store {
  readonly database: LmdbStore
}

function openStore(t: Test): Store {
  const database = LmdbStore.open(t.testdir())
  t.teardown(() => database.close())
  return { database }
}

function commit({ database }: Store, { writes }: PendingWrites): Promise<void> {
  return database.change(change => {
    for (const { key, value } of writes) change.put(BLOCKS, key, value)
  })
}

/** Identities of a log in which about half of the entries replace an earlier one. */
function randomIdentities(
  random: () => number,
  log: readonly LoggedIdentity[],
  count: number,
): LoggedIdentity[] {
  const all = [...log]
  for (let at = 0; at < count; at++) {
    const previousIndex = random() < 0.5 && all.length > 0 ? Math.floor(random() * all.length) : undefined
    const previous = previousIndex === undefined ? undefined : all[previousIndex]
    all.push({
      userId: previous?.userId ?? BigInt(Math.floor(random() * 2 ** 53)),
      deviceId: previous?.deviceId ?? UINT64_MAX - BigInt(Math.floor(random() * 100)),
      previousIndex,
      earlierKeys: previous === undefined ? 0 : previous.earlierKeys + 1,
    })
  }
  return all.slice(log.length)
}

function countWrong(table: IdentityTable, log: readonly LoggedIdentity[]): number {
  return log.filter((identity, index) => textOf(table.read(index)) !== textOf(identity)).length
}

function textOf(identity: LoggedIdentity | undefined): string {
  if (identity === undefined) return 'none'
  const { userId, deviceId, previousIndex, earlierKeys } = identity
  return [userId, deviceId, previousIndex, earlierKeys].join()
}

t.test('random batches read back, being written, committed and reopened', async t => {
  const seed = seedOf()
  const random = randomFrom(seed)
  const store = openStore(t)
  let table = new IdentityTable(store.database, BLOCKS)
  const log: LoggedIdentity[] = []
  const faults: string[] = []
  const check = (when: string) => {
    const wrong = countWrong(table, log)
    if (wrong > 0) faults.push(`${wrong} wrong ${when} at size ${log.length}`)
  }
  for (let round = 0; round < 25; round++) {
    const underWay = Array.from({ length: 1 + Math.floor(random() * 3) }, () => {
      const identities = randomIdentities(random, log, 1 + Math.floor(400 ** random()))
      const pending = table.add(log.length, identities)
      log.push(...identities)
      return pending
    })
    check('before the commits')
    for (const pending of underWay) {
      await commit(store, pending)
      check('committed, not released')
      pending.release()
      check('released')
    }
    if (random() < 0.4) table = new IdentityTable(store.database, BLOCKS)
    check('at the end of the round')
    if (table.read(log.length) !== undefined) faults.push(`one too many at size ${log.length}`)
  }
  t.same(faults, [], `seed ${seed}`)
  t.ok(log.length > 3 * BLOCK_RECORDS, `${log.length} records`)
})

t.test('the ends of every field survive', async t => {
  const store = openStore(t)
  const ends: LoggedIdentity[] = [
    { userId: 0n, deviceId: UINT64_MAX, previousIndex: undefined, earlierKeys: 0 },
    { userId: UINT64_MAX, deviceId: 0n, previousIndex: 0, earlierKeys: 1 },
    { userId: 2n ** 63n, deviceId: 2n ** 32n, previousIndex: 2 ** 48 - 2, earlierKeys: 65_535 },
  ]
  const table = new IdentityTable(store.database, BLOCKS)
  const pending = table.add(0, ends)
  await commit(store, pending)
  pending.release()
  t.same(
    ends.map((_, index) => table.read(index)),
    ends,
  )
})

t.test('a chain is walked back through all its blocks', async t => {
  const store = openStore(t)
  const table = new IdentityTable(store.database, BLOCKS)
  // Every 40th entry replaces the one 40 before it.
  const log = Array.from({ length: 5 * BLOCK_RECORDS }, (_, index): LoggedIdentity => {
    const previousIndex = index % 40 === 0 && index > 0 ? index - 40 : undefined
    return { userId: 1n, deviceId: BigInt(index % 40), previousIndex, earlierKeys: Math.floor(index / 40) }
  })
  for (let at = 0; at < log.length; at += 33) {
    const pending = table.add(at, log.slice(at, at + 33))
    await commit(store, pending)
    pending.release()
  }
  const walked: number[] = []
  let index: number | undefined = 840
  while (index !== undefined) {
    walked.push(index)
    index = table.read(index)?.previousIndex
  }
  t.same(
    walked,
    [
      840, 800, 760, 720, 680, 640, 600, 560, 520, 480, 440, 400, 360, 320, 280, 240, 200, 160, 120, 80, 40,
      0,
    ],
  )
})

t.test('a block is written as long as the log, so that a reopened table ends where it does', async t => {
  const store = openStore(t)
  const identity: LoggedIdentity = { userId: 1n, deviceId: 2n, previousIndex: undefined, earlierKeys: 0 }
  for (const [size, blocks] of [
    [1, [1]],
    [169, [169]],
    [170, [170]],
    [171, [170, 1]],
    [340, [170, 170]],
  ] as const) {
    const { writes } = new IdentityTable(store.database, BLOCKS).add(0, Array(size).fill(identity))
    t.same(
      writes.map(({ value }) => value.length / 24),
      blocks,
    )
  }
})

t.test('two batches in one block: the later one is read until both are released, in any order', async t => {
  for (const order of [
    [0, 1],
    [1, 0],
  ]) {
    const store = openStore(t)
    const random = randomFrom(5)
    const log = randomIdentities(random, [], 100)
    const table = new IdentityTable(store.database, BLOCKS)
    const batches = [table.add(0, log.slice(0, 60)), table.add(60, log.slice(60))]
    for (const batch of batches) await commit(store, batch)
    for (const which of order) {
      batches[which]!.release()
      t.equal(countWrong(table, log), 0, `released ${which} of ${order}`)
    }
  }
})

t.test('a table that ends before the log is not added to', async t => {
  const store = openStore(t)
  const table = new IdentityTable(store.database, BLOCKS)
  const [identity] = randomIdentities(randomFrom(1), [], 1)
  t.throws(() => table.add(1, [identity!]), /ends before the log/)
  await commit(store, table.add(0, Array(50).fill(identity)))
  await store.database.change(change => change.put(BLOCKS, indexKey(0), new Uint8Array(49 * 24)))
  t.throws(() => new IdentityTable(store.database, BLOCKS).add(50, [identity!]), /ends before the log/)
})

t.test('a reader owns the bytes it gets', async t => {
  const store = openStore(t)
  const log = randomIdentities(randomFrom(9), [], 2 * BLOCK_RECORDS)
  const table = new IdentityTable(store.database, BLOCKS)
  const pending = table.add(0, log)
  await commit(store, pending)
  pending.release()
  const first = log.map((_, index) => table.read(index))
  for (let index = log.length - 1; index >= 0; index--) table.read(index)
  t.same(first, log)
})
