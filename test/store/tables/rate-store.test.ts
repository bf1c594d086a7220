/** Rates that survive a restart: several at once, their rows gone when nothing is counted any more. */

import t, { type Test } from 'tap'
import type { BucketRate } from '../../../src/domain/token-bucket.ts'
import { Expiries } from '../../../src/store/engine/expiries.ts'
import { LmdbStore } from '../../../src/store/engine/lmdb-store.ts'
import type { Change } from '../../../src/store/engine/store.ts'
import { RateStore } from '../../../src/store/tables/rate-store.ts'

const HOUR = { count: 20, perMs: 3_600_000, burst: 20 }
const DAY = { count: 50, perMs: 86_400_000, burst: 50 }

function open(t: Test, folder = t.testdir()) {
  const database = LmdbStore.open(folder)
  t.teardown(() => database.close())
  const expiries = new Expiries()
  const rates = new RateStore(expiries)
  return {
    database,
    expiries,
    rates,
    missingMs: (name: string, of: readonly BucketRate[], nowMs: number) =>
      database.view(view => rates.longestWait(view, name, of, nowMs).missingMs),
    rowCount: (table: string) => database.rowCount(database.storedRows(table)),
  }
}

/** Takes as often as it may, in one change each. */
async function takeAll({ database, rates }: ReturnType<typeof open>, name: string, nowMs: number) {
  let taken = 0
  const takeOne = (change: Change) => {
    if (rates.longestWait(change, name, [HOUR, DAY], nowMs).missingMs > 0) return false
    rates.take(change, name, [HOUR, DAY])
    return true
  }
  while (await database.change(takeOne, nowMs)) taken++
  return taken
}

t.test('every one of the rates must have a token', async t => {
  const store = open(t)
  t.equal(await takeAll(store, 'ann', 0), 20)
  t.equal(store.missingMs('ann', [HOUR, DAY], 0), 180_000, 'a twentieth of an hour')
  t.equal(await takeAll(store, 'ann', 3_600_000), 20)
  t.ok((await takeAll(store, 'ann', 7_200_000)) < 20, 'the day is nearly used up')
  t.ok(store.missingMs('ann', [HOUR, DAY], 7_200_000) > 180_000, 'it is the day that is waited for')
})

t.test('to ask takes nothing', async t => {
  const { missingMs } = open(t)
  for (let asked = 0; asked < 100; asked++) t.equal(missingMs('ann', [HOUR, DAY], 0), 0)
})

t.test('names are counted apart', async t => {
  const store = open(t)
  await takeAll(store, 'ann', 0)
  t.equal(store.missingMs('bob', [HOUR, DAY], 0), 0)
})

t.test('counts are there after a restart', async t => {
  const folder = t.testdir()
  const before = LmdbStore.open(folder)
  const rates = new RateStore(new Expiries())
  await before.change(change => {
    for (let taken = 0; taken < 20; taken++) rates.take(change, 'ann', [HOUR])
  }, 0)
  await before.close()
  const after = open(t, folder)
  t.equal(after.missingMs('ann', [HOUR], 0), 180_000)
})

t.test('setting back a wrong clock refuses no one for as long as it was wrong', async t => {
  const [dayMs, store] = [86_400_000, open(t)]
  await takeAll(store, 'ann', 30 * dayMs)
  t.equal(store.missingMs('ann', [HOUR], 30 * dayMs - 1_000), 181_000, 'a second is no reason')
  t.equal(await takeAll(store, 'ann', 0), 20)
  t.equal(store.missingMs('ann', [HOUR], 0), 180_000, 'and it counts as ever')
})

t.test('a row goes when its bucket is full again, not while it counts', async t => {
  const { database, expiries, rates, missingMs, rowCount } = open(t)
  await database.change(change => rates.take(change, 'ann', [HOUR]), 0)
  await database.change(change => rates.take(change, 'ann', [HOUR]), 0)
  t.equal(rowCount('expiries'), 1, 'one ending, however often it is counted')
  await expiries.sweep(database, 180_000, 100)
  t.equal(rowCount('rates'), 1, 'two were taken')
  t.equal(missingMs('ann', [{ ...HOUR, burst: 1 }], 180_000), 180_000)
  await expiries.sweep(database, 360_000, 100)
  t.equal(rowCount('rates'), 0)
  t.equal(await expiries.sweep(database, 9e9, 100), 0, 'and no ending is left behind')
})

t.test('taken at once by many, no more than the burst is given', async t => {
  const { database, rates } = open(t)
  const takes = Array.from({ length: 50 }, () =>
    database.change(change => {
      if (rates.longestWait(change, 'ann', [HOUR], 0).missingMs > 0) return false
      rates.take(change, 'ann', [HOUR])
      return true
    }, 0),
  )
  t.equal((await Promise.all(takes)).filter(isTaken => isTaken).length, 20)
})
