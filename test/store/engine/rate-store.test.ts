/** Rates that survive a restart: several at once, their rows gone when nothing is counted any more. */

import t, { type Test } from 'tap'
import { Database } from '../../../src/store/engine/database.ts'
import { Expiries } from '../../../src/store/engine/expiries.ts'
import { RateStore } from '../../../src/store/engine/rate-store.ts'

const HOUR = { count: 20, perMs: 3_600_000, burst: 20 }
const DAY = { count: 50, perMs: 86_400_000, burst: 50 }

function open(t: Test, folder = t.testdir()) {
  const database = Database.open(folder)
  t.teardown(() => database.close())
  const expiries = new Expiries(database)
  return { database, expiries, rates: new RateStore(database, expiries) }
}

/** Takes as often as it may, in one transaction each. */
async function takeAll({ database, rates }: ReturnType<typeof open>, name: string, nowMs: number) {
  let taken = 0
  const takeOne = () => {
    if (rates.longestWait(name, [HOUR, DAY], nowMs).missingMs > 0) return false
    rates.take(name, [HOUR, DAY], nowMs)
    return true
  }
  while (await database.commit(takeOne)) taken++
  return taken
}

t.test('every one of the rates must have a token', async t => {
  const store = open(t)
  t.equal(await takeAll(store, 'ann', 0), 20)
  t.equal(store.rates.longestWait('ann', [HOUR, DAY], 0).missingMs, 180_000, 'a twentieth of an hour')
  t.equal(await takeAll(store, 'ann', 3_600_000), 20)
  t.ok((await takeAll(store, 'ann', 7_200_000)) < 20, 'the day is nearly used up')
  const missingMs = store.rates.longestWait('ann', [HOUR, DAY], 7_200_000).missingMs
  t.ok(missingMs > 180_000, 'it is the day that is waited for')
})

t.test('to ask takes nothing', async t => {
  const { rates } = open(t)
  for (let asked = 0; asked < 100; asked++) t.equal(rates.longestWait('ann', [HOUR, DAY], 0).missingMs, 0)
})

t.test('names are counted apart', async t => {
  const store = open(t)
  await takeAll(store, 'ann', 0)
  t.equal(store.rates.longestWait('bob', [HOUR, DAY], 0).missingMs, 0)
})

t.test('counts are there after a restart', async t => {
  const folder = t.testdir()
  const before = Database.open(folder)
  const rates = new RateStore(before, new Expiries(before))
  await before.commit(() => {
    for (let taken = 0; taken < 20; taken++) rates.take('ann', [HOUR], 0)
  })
  await before.close()
  const after = open(t, folder)
  t.equal(after.rates.longestWait('ann', [HOUR], 0).missingMs, 180_000)
})

t.test('setting back a wrong clock refuses no one for as long as it was wrong', async t => {
  const [dayMs, store] = [86_400_000, open(t)]
  await takeAll(store, 'ann', 30 * dayMs)
  t.equal(
    store.rates.longestWait('ann', [HOUR], 30 * dayMs - 1_000).missingMs,
    181_000,
    'a second is no reason',
  )
  t.equal(await takeAll(store, 'ann', 0), 20)
  t.equal(store.rates.longestWait('ann', [HOUR], 0).missingMs, 180_000, 'and it counts as ever')
})

t.test('a row goes when its bucket is full again, not while it counts', async t => {
  const { database, expiries, rates } = open(t)
  const rows = database.table<number>('rates')
  await database.commit(() => rates.take('ann', [HOUR], 0))
  await database.commit(() => rates.take('ann', [HOUR], 0))
  t.equal(database.table('expiries').getKeysCount(), 1, 'one ending, however often it is counted')
  await expiries.sweep(180_000, 100)
  t.equal(rows.getKeysCount(), 1, 'two were taken')
  t.equal(rates.longestWait('ann', [{ ...HOUR, burst: 1 }], 180_000).missingMs, 180_000)
  await expiries.sweep(360_000, 100)
  t.equal(rows.getKeysCount(), 0)
  t.equal(await expiries.sweep(9e9, 100), 0, 'and no ending is left behind')
})

t.test('taken at once by many, no more than the burst is given', async t => {
  const { database, rates } = open(t)
  const takes = Array.from({ length: 50 }, () =>
    database.commit(() => {
      if (rates.longestWait('ann', [HOUR], 0).missingMs > 0) return false
      rates.take('ann', [HOUR], 0)
      return true
    }),
  )
  t.equal((await Promise.all(takes)).filter(isTaken => isTaken).length, 20)
})
