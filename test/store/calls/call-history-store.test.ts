/** Call history on a real store: order, pages, bounds, the figure of missed calls, and a long random run. */

import t, { type Test } from 'tap'
import type { CallHistoryRow } from '../../../src/domain/calls/call-history.ts'
import type { CallId, UserId } from '../../../src/domain/ids.ts'
import { type CallHistoryPlace, CallHistoryStore } from '../../../src/store/calls/call-history-store.ts'
import { Expiries } from '../../../src/store/engine/expiries.ts'
import { LmdbStore } from '../../../src/store/engine/lmdb-store.ts'
import { randomFrom, seedOf } from '../../support/seed.ts'

const [ANN, BOB] = [5_000_000_001n as UserId, 5_000_000_002n as UserId]
const DAY_MS = 86_400_000
const KEPT_MS = 90 * DAY_MS
const TABLES = ['call-history', 'call-history-figures', 'expiries']

type House = ReturnType<typeof open>

function open(t: Test, folder = t.testdir(), historyDays = 90) {
  const database = LmdbStore.open(folder)
  t.teardown(() => database.close())
  const expiries = new Expiries()
  const changes: string[] = []
  const history = new CallHistoryStore({ database, expiries, historyDays })
  const missedOf = (userId: UserId) => database.view(view => history.missedOf(view, userId))
  const list = (
    userId: UserId,
    page: { limit: number; after?: CallHistoryPlace | undefined },
    nowMs: number,
  ) => database.view(view => history.list(view, userId, page, nowMs))
  database.subscribe('badge-changed', ({ userId }) => {
    changes.push(`${userId === ANN ? 'ann' : 'bob'} ${missedOf(userId)}`)
  })
  const sweep = async (nowMs: number) => {
    while ((await expiries.sweep(database, nowMs, 100)) > 0);
  }
  const rowCounts = () => TABLES.map(name => database.rowCount(database.storedRows(name)))
  const close = () => database.close()
  return { database, history, changes, sweep, rowCounts, missedOf, list, close }
}

function row(
  callId: number,
  createdAtMs: number,
  status: CallHistoryRow['status'] = 'ended',
): CallHistoryRow {
  return {
    callId: BigInt(callId) as CallId,
    direction: 'incoming',
    status,
    isVideo: false,
    isGroup: false,
    people: [BOB],
    createdAtMs,
    startedAtMs: undefined,
    endedAtMs: createdAtMs + 5,
    talkedMs: undefined,
    seen: status !== 'missed',
  }
}

function put({ database, history }: House, ...rows: readonly CallHistoryRow[]) {
  return database.change(change => {
    for (const one of rows) history.put(change, ANN, one)
  })
}

function listed({ list }: House, nowMs = 0, limit = 5_000, after?: CallHistoryPlace): number[] {
  return list(ANN, { limit, after }, nowMs).map(({ callId }) => Number(callId))
}

t.test('calls are listed newest first, in pages, each user their own', async t => {
  const house = open(t)
  await put(house, row(1, 100), row(3, 300), row(2, 200), row(5, 300))
  await house.database.change(change => house.history.put(change, BOB, row(9, 100)))
  t.same(listed(house), [5, 3, 2, 1])
  t.same(listed(house, 0, 2), [5, 3])
  t.same(listed(house, 0, 2, { atMs: 300, id: 3n }), [2, 1])
  t.same(listed(house, 0, 2, { atMs: 300, id: 4n }), [3, 2], 'behind one that is gone')
  t.same(listed(house, 0, 2, { atMs: 100, id: 1n }), [])
  t.same(house.list(ANN, { limit: 1 }, 0), [row(5, 300)], 'as it was written')
})

t.test('a call has one row, which says what became of it last', async t => {
  const house = open(t)
  await put(house, row(1, 100, 'active'), row(2, 200))
  await put(house, row(1, 100, 'ended'))
  t.same(
    house.list(ANN, { limit: 10 }, 0).map(({ callId, status }) => `${callId} ${status}`),
    ['2 ended', '1 ended'],
  )
  t.same(house.rowCounts(), [2, 1, 1])
})

t.test('missed calls are counted until they are looked at, and every change is announced', async t => {
  const house = open(t)
  const { database, history, changes } = house
  await put(house, row(1, 100, 'missed'), row(2, 200), row(3, 300, 'missed'))
  t.same([house.missedOf(ANN), house.missedOf(BOB)], [2, 0])
  t.same(changes.splice(0), ['ann 2'])
  await database.change(change => history.markSeen(change, ANN))
  t.same(changes.splice(0), ['ann 0'])
  t.ok(house.list(ANN, { limit: 10 }, 0).every(({ seen }) => seen))
  await database.change(change => history.markSeen(change, ANN))
  await put(house, row(4, 400))
  t.same(changes, [], 'nothing is told of what changes nothing')
})

t.test('a call that is missed once more counts again, once, though it was looked at', async t => {
  const house = open(t)
  const { database, history } = house
  await put(house, row(1, 100, 'missed'))
  await put(house, row(1, 100, 'missed'))
  t.equal(house.missedOf(ANN), 1)
  await database.change(change => history.markSeen(change, ANN))
  await put(house, row(1, 100, 'missed'))
  t.equal(house.missedOf(ANN), 1)
  t.notOk(house.list(ANN, { limit: 1 }, 200)[0]?.seen)
})

t.test('a call that was missed and then joined counts as missed no more', async t => {
  const house = open(t)
  await put(house, row(1, 100, 'missed'), row(1, 100, 'active'))
  t.same([house.missedOf(ANN), house.changes], [0, ['ann 0']])
})

t.test('rows can be deleted, one or all, with what they count', async t => {
  const house = open(t)
  const { database, history, changes } = house
  await put(house, row(1, 100, 'missed'), row(2, 200, 'missed'), row(3, 300))
  changes.length = 0
  const remove = (callId: bigint) => database.change(change => history.remove(change, ANN, callId))
  t.same([await remove(1n), await remove(1n), await remove(3n), await remove(9n)], [true, false, true, false])
  t.same([listed(house), changes], [[2], ['ann 1']])
  await database.change(change => history.removeAll(change, ANN))
  t.same([listed(house), changes], [[], ['ann 1', 'ann 0']])
  await database.change(change => history.removeAll(change, ANN))
  t.equal(changes.length, 2)
  t.same(house.rowCounts().slice(0, 2), [0, 0])
  await put(house, row(2, 200, 'missed'))
  t.same([listed(house), house.missedOf(ANN)], [[2], 1], 'it is there again when something becomes of it')
})

t.test('a thousand are kept: the oldest goes', async t => {
  const house = open(t)
  await put(house, row(1, 1, 'missed'), row(2, 2, 'missed'))
  await put(house, ...Array.from({ length: 998 }, (_, at) => row(at + 3, at + 3)))
  t.same([listed(house).length, house.missedOf(ANN)], [1_000, 2])
  await put(house, row(1, 1, 'missed'))
  t.equal(listed(house).length, 1_000, 'a row that is written again needs no room')
  await put(house, row(2_000, 2_000))
  const all = listed(house)
  t.same([all.length, all[0], all.at(-1), house.missedOf(ANN)], [1_000, 2_000, 2, 1])
})

t.test(
  'a missed call that takes the place of a missed one changes no badge, not even for a moment',
  async t => {
    const house = open(t)
    await put(house, row(1, 1, 'missed'))
    await put(house, ...Array.from({ length: 999 }, (_, at) => row(at + 2, at + 2)))
    house.changes.length = 0
    await put(house, row(2_000, 2_000, 'missed'))
    t.same([house.changes, house.missedOf(ANN), listed(house).at(-1)], [[], 1, 2])
    await put(house, ...Array.from({ length: 999 }, (_, at) => row(at + 3_000, at + 3_000)))
    t.same([house.changes, house.missedOf(ANN), listed(house).at(-1)], [[], 1, 2_000])
    await put(house, row(5_000, 5_000))
    t.same([house.changes, listed(house).length], [['ann 0'], 1_000], 'it counts no more once it is gone')
  },
)

t.test('a row is kept for ninety days and not shown longer, whether or not it was swept', async t => {
  const house = open(t)
  await put(house, row(1, 1_000, 'missed'), row(2, 2_000))
  await house.sweep(1_000 + KEPT_MS - 1)
  t.same(listed(house, 1_000 + KEPT_MS - 1), [2, 1])
  t.same(listed(house, 1_000 + KEPT_MS), [2])
  house.changes.length = 0
  await house.sweep(1_000 + KEPT_MS)
  t.same([house.rowCounts(), house.changes], [[1, 1, 1], ['ann 0']])
  await house.sweep(2_000 + KEPT_MS)
  t.same(house.rowCounts(), [0, 0, 0])
  await put(house, row(3, KEPT_MS * 2))
  await house.sweep(KEPT_MS * 3)
  t.same(house.rowCounts(), [0, 0, 0], 'and so for what comes later')
})

t.test('with zero days nothing is written or listed, and rows of before end by the next sweep', async t => {
  const folder = t.testdir()
  const before = open(t, folder)
  await before.history.applyDays(before.database)
  await put(before, row(1, 1_000, 'missed'))
  await before.close()
  const house = open(t, folder, 0)
  await put(house, row(2, 2_000, 'missed'))
  t.same(listed(house, 3_000), [])
  await house.history.applyDays(house.database)
  await house.sweep(3_000)
  t.same([house.rowCounts(), house.changes], [[0, 0, 0], ['ann 0']])
})

t.test('a shorter time ends older rows by the next sweep, of however many users', async t => {
  const folder = t.testdir()
  const before = open(t, folder)
  await before.history.applyDays(before.database)
  const users = Array.from({ length: 1_201 }, (_, at) => BigInt(at + 1) as UserId)
  await before.database.change(change => {
    for (const userId of users) before.history.put(change, userId, row(1, DAY_MS))
    for (const userId of users) before.history.put(change, userId, row(2, 40 * DAY_MS))
  })
  await before.close()
  const house = open(t, folder, 30)
  await house.sweep(45 * DAY_MS)
  t.same(house.rowCounts(), [2_402, 1_201, 1_201], 'as the last setting has it')
  await house.history.applyDays(house.database)
  await house.sweep(45 * DAY_MS)
  t.same(house.rowCounts(), [1_201, 1_201, 1_201])
  await house.sweep(70 * DAY_MS)
  t.same(house.rowCounts(), [0, 0, 0])
})

t.test('however many rows of a user end at once, each change takes some of them', async t => {
  const folder = t.testdir()
  const before = open(t, folder)
  await before.history.applyDays(before.database)
  await put(before, ...Array.from({ length: 50 }, (_, at) => row(at + 1, DAY_MS + at)), row(51, 45 * DAY_MS))
  await before.close()
  const house = open(t, folder, 30)
  await house.history.applyDays(house.database)
  const counts = []
  for (let at = 0; at < 6; at++) {
    await house.sweep(50 * DAY_MS + at)
    counts.push(house.rowCounts())
  }
  t.same(counts, [
    [41, 1, 1],
    [31, 1, 1],
    [21, 1, 1],
    [11, 1, 1],
    [1, 1, 1],
    [1, 1, 1],
  ])
  await house.database.change(change => house.history.removeAll(change, ANN))
  t.same(house.rowCounts(), [0, 0, 0], 'its ending is known')
})

t.test('a longer time keeps rows that are there for as long', async t => {
  const folder = t.testdir()
  const before = open(t, folder, 30)
  await before.history.applyDays(before.database)
  await put(before, row(1, 1_000))
  await before.close()
  const house = open(t, folder)
  await house.history.applyDays(house.database)
  await house.sweep(KEPT_MS)
  t.same([listed(house, KEPT_MS), house.rowCounts()], [[1], [1, 1, 1]])
  await house.sweep(1_000 + KEPT_MS)
  t.same(house.rowCounts(), [0, 0, 0])
})

t.test('deleted rows leave no ending behind, but for the one of the rows that are left', async t => {
  const house = open(t)
  for (let callId = 1; callId <= 20; callId++) await put(house, row(callId, callId))
  await house.database.change(change => {
    for (let callId = 1n; callId <= 19n; callId++) house.history.remove(change, ANN, callId)
  })
  t.same(house.rowCounts(), [1, 1, 1])
  await house.database.change(change => house.history.removeAll(change, ANN))
  t.same(house.rowCounts(), [0, 0, 0])
})

t.test('nothing remains of an erased user, and no device hears of it', async t => {
  const house = open(t)
  await put(house, row(1, 100, 'missed'), row(2, 200))
  await house.database.change(change => house.history.put(change, BOB, row(1, 100, 'missed')))
  house.changes.length = 0
  await house.database.change(change => house.history.eraseOf(change, ANN))
  t.same([listed(house), house.missedOf(ANN), house.changes], [[], 0, []])
  t.same([house.missedOf(BOB), house.list(BOB, { limit: 9 }, 0).length], [1, 1])
  await house.sweep(KEPT_MS * 2)
  t.same(house.rowCounts(), [0, 0, 0])
})

t.test('a long random run is as a list on paper has it', async t => {
  const seed = seedOf()
  const random = randomFrom(seed)
  const pick = (count: number) => Math.floor(random() * count)
  const house = open(t)
  const { database, history } = house
  let paper: CallHistoryRow[] = []
  let nowMs = KEPT_MS
  let differences = 0
  for (let step = 0; step < 400 && differences === 0; step++) {
    const callId = 1 + pick(60)
    const id = BigInt(callId)
    const act = random()
    if (act < 0.6) {
      const atMs = paper.find(one => one.callId === id)?.createdAtMs ?? nowMs
      const written = row(callId, atMs, (['missed', 'active', 'ended', 'declined'] as const)[pick(4)]!)
      paper = [...paper.filter(one => one.callId !== id), written]
      await put(house, written)
    } else if (act < 0.7) {
      const isThere = paper.some(one => one.callId === id)
      paper = paper.filter(one => one.callId !== id)
      if ((await database.change(change => history.remove(change, ANN, id))) !== isThere) differences += 1
    } else if (act < 0.72) {
      paper = []
      await database.change(change => history.removeAll(change, ANN))
    } else if (act < 0.78) {
      paper = paper.map(one => ({ ...one, seen: true }))
      await database.change(change => history.markSeen(change, ANN))
    } else {
      nowMs += random() < 0.05 ? pick(60 * DAY_MS) : pick(DAY_MS)
      // Each ends ten rows at most, and there are sixty.
      for (let portion = 0; portion < 7; portion++) await house.sweep(++nowMs)
      paper = paper.filter(one => nowMs < one.createdAtMs + KEPT_MS)
    }
    const newestFirst = paper.toSorted(
      (one, other) => other.createdAtMs - one.createdAtMs || Number(other.callId - one.callId),
    )
    const missed = paper.filter(({ status, seen }) => status === 'missed' && !seen).length
    const [from, limit] = [pick(Math.max(1, paper.length)), 1 + pick(10)]
    const place = newestFirst[from] && { atMs: newestFirst[from].createdAtMs, id: newestFirst[from].callId }
    const page = newestFirst.slice(place === undefined ? 0 : from + 1).slice(0, limit)
    const pairs = [
      [listed(house, nowMs), newestFirst.map(one => Number(one.callId))],
      [listed(house, nowMs, limit, place), page.map(one => Number(one.callId))],
      [house.missedOf(ANN), missed],
      [house.rowCounts()[0], paper.length],
    ]
    if (!pairs.every(([one, other]) => JSON.stringify(one) === JSON.stringify(other))) differences += 1
  }
  t.equal(differences, 0, `as on paper; CALLSIGN_SEED=${seed} runs it again`)
})
