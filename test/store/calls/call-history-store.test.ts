/** Call history on a real store: order, pages, bounds, missed calls, and a long random run beside a model on paper. */

import t, { type Test } from 'tap'
import { checkRows } from '../../../src/check/rows/row-check.ts'
import type { CallHistoryRow, HistoryEffect } from '../../../src/domain/calls/call-history.ts'
import type { CallId, UserId } from '../../../src/domain/ids.ts'
import { CallHistoryStore } from '../../../src/store/calls/call-history-store.ts'
import type { CallHistoryPlace } from '../../../src/store/calls/history-rows.ts'
import { Expiries } from '../../../src/store/engine/expiries.ts'
import { LmdbStore } from '../../../src/store/engine/lmdb-store.ts'
import type { Change } from '../../../src/store/engine/store.ts'
import { historyEffect } from '../../support/history-effect.ts'
import { randomFrom, seedOf } from '../../support/seed.ts'

const [ANN, BOB, CID] = [5_000_000_001n as UserId, 5_000_000_002n as UserId, 5_000_000_003n as UserId]
const USERS = [ANN, BOB, CID]
const DAY_MS = 86_400_000
const KEPT_MS = 90 * DAY_MS
const TABLES = ['call-history', 'call-history-calls', 'call-history-marks']

type House = ReturnType<typeof open>

function open(t: Test, folder = t.testdir(), historyDays = 90) {
  const database = LmdbStore.open(folder)
  t.teardown(() => database.close())
  const expiries = new Expiries()
  const changes: string[] = []
  const history = new CallHistoryStore({ database, expiries, historyDays })
  const missedOf = (userId: UserId) => database.view(view => history.missedOf(view, userId))
  const list = (...[userId, range, nowMs]: ListArguments) =>
    database.view(view => history.list(view, userId, range, nowMs))
  database.subscribe('badge-changed', ({ userId }) => {
    changes.push(`${userId === ANN ? 'ann' : 'bob'} ${missedOf(userId)}`)
  })
  const sweep = async (nowMs: number) => {
    while ((await expiries.sweep(database, nowMs, 100)) > 0);
  }
  const rowCounts = () => TABLES.map(name => database.rowCount(database.storedRows(name)))
  /** The figures, counted anew. */
  const counted = (userId: UserId) => {
    const anew = new CallHistoryStore({ database, expiries: new Expiries(), historyDays })
    return database.view(view => anew.missedOf(view, userId))
  }
  /** Faults of rows; there are no users here. */
  const faults = () =>
    checkRows(database).told.flatMap(({ detail }) => (detail.startsWith('users does not') ? [] : [detail]))
  const close = () => database.close()
  return { database, history, changes, sweep, rowCounts, missedOf, counted, faults, list, close }
}

type ListArguments = Parameters<CallHistoryStore['list']> extends [unknown, ...infer Rest] ? Rest : never

function row(
  callId: number,
  createdAtMs: number,
  status: CallHistoryRow['status'] = 'ended',
  userId = ANN,
): HistoryEffect {
  const id = BigInt(callId) as CallId
  return historyEffect(userId, { callId: id, createdAtMs, status, endedAtMs: createdAtMs + 5 })
}

function put({ database, history }: House, ...rows: readonly HistoryEffect[]) {
  return database.change(change => {
    for (const one of rows) history.put(change, one)
  })
}

function listed({ list }: House, nowMs = 0, limit = 5_000, after?: CallHistoryPlace): number[] {
  return list(ANN, { limit, after }, nowMs).map(({ callId }) => Number(callId))
}

t.test('calls are listed newest first, in pages, each user their own', async t => {
  const house = open(t)
  await put(house, row(1, 100), row(3, 300), row(2, 200), row(5, 300))
  await put(house, row(9, 100, 'ended', BOB))
  t.same(listed(house), [5, 3, 2, 1])
  t.same(listed(house, 0, 2), [5, 3])
  t.same(listed(house, 0, 2, { atMs: 300, id: 3n }), [2, 1])
  t.same(listed(house, 0, 2, { atMs: 300, id: 4n }), [3, 2], 'behind one that is gone')
  t.same(listed(house, 0, 2, { atMs: 100, id: 1n }), [])
})

t.test('all that each of its people remembers of a call is as it was written', async t => {
  const house = open(t)
  const call = {
    callId: 7n as CallId,
    isVideo: true,
    isGroup: true,
    people: [ANN, BOB, CID],
    createdAtMs: 1_000,
    startedAtMs: 2_000,
  }
  const been = { status: 'ended', hadJoined: true, endedAtMs: 9_000, talkedMs: 7_000 } as const
  const not = { status: 'missed', hadJoined: false, endedAtMs: undefined, talkedMs: 0 } as const
  const memories = [
    { userId: ANN, ...been },
    { userId: BOB, ...not },
  ]
  await put(house, { kind: 'history', call, memories, back: [] })
  const of = (userId: UserId) => house.list(userId, { limit: 5 }, 0)
  const { status, endedAtMs, talkedMs } = been
  t.same(of(ANN), [{ ...call, direction: 'outgoing', status, endedAtMs, talkedMs, seen: true }])
  const never = { startedAtMs: undefined, endedAtMs: undefined, talkedMs: undefined }
  t.same(of(BOB), [{ ...call, ...never, direction: 'incoming', status: 'missed', seen: false }])
  t.same(of(CID), [], 'nothing, while it goes on for them')
  t.same(
    house.database.view(view => house.history.ofCall(view, BOB, call.callId)?.people),
    call.people,
  )
  t.same([house.rowCounts(), house.faults()], [[2, 1, 0], []])
})

t.test('calls that go on stand among those that are over, in pages too', async t => {
  const house = open(t)
  await put(house, row(1, 100), row(3, 300), row(5, 500))
  const [past] = house.list(ANN, { limit: 1 }, 0)
  const active = [2, 6, 4].map(
    at => ({ ...past!, callId: BigInt(at) as CallId, createdAtMs: at * 100, status: 'active' }) as const,
  )
  const ids = (limit: number, after?: CallHistoryPlace, nowMs = 0) =>
    house.list(ANN, { limit, after, active }, nowMs).map(({ callId }) => Number(callId))
  t.same(ids(9), [6, 5, 4, 3, 2, 1])
  t.same(ids(3), [6, 5, 4])
  t.same(ids(3, { atMs: 400, id: 4n }), [3, 2, 1])
  t.same(ids(3, { atMs: 500, id: 5n }), [4, 3, 2])
  t.same(ids(9, undefined, KEPT_MS + 400), [6, 5], 'none is older than the days that are kept')
})

t.test('a call has one row for each, which says how it was over last', async t => {
  const house = open(t)
  await put(house, row(1, 100, 'declined'), row(2, 200))
  await put(house, row(1, 100, 'ended'))
  t.same(
    house.list(ANN, { limit: 10 }, 0).map(({ callId, status }) => `${callId} ${status}`),
    ['2 ended', '1 ended'],
  )
  t.same(house.rowCounts(), [2, 2, 0])
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
  t.same([house.counted(ANN), house.faults()], [0, []])
})

t.test('looking again where nothing is new writes nothing', async t => {
  const house = open(t)
  const { database, history } = house
  const look = () => database.change(change => history.markSeen(change, ANN))
  await look()
  t.same(house.rowCounts(), [0, 0, 0])
  await put(house, row(1, 100, 'missed'), row(2, 200))
  await look()
  const { puts } = database.figures
  await look()
  t.same([database.figures.puts - puts, house.rowCounts()], [0, [2, 2, 1]])
})

t.test('a call that is missed once more counts again, once, though it was looked at', async t => {
  const house = open(t)
  const { database, history } = house
  await put(house, row(1, 100, 'missed'), row(2, 200))
  await put(house, row(1, 100, 'missed'))
  t.equal(house.missedOf(ANN), 1)
  await database.change(change => history.markSeen(change, ANN))
  await put(house, row(1, 100, 'missed'))
  t.same([house.missedOf(ANN), house.counted(ANN), house.faults()], [1, 1, []])
  t.notOk(house.list(ANN, { limit: 5 }, 200)[1]?.seen)
})

t.test('a missed call that was made before one that was looked at counts, however late it ends', async t => {
  const house = open(t)
  await put(house, row(2, 200), row(3, 300))
  await house.database.change(change => house.history.markSeen(change, ANN))
  await house.database.change(change => house.history.remove(change, ANN, 3n as CallId))
  await put(house, row(1, 250, 'missed'))
  t.same([house.missedOf(ANN), house.counted(ANN), house.faults()], [1, 1, []])
})

t.test('a call that was missed and then joined counts as missed no more', async t => {
  const house = open(t)
  await put(house, row(1, 100, 'missed'), row(1, 100, 'active'))
  t.same([house.missedOf(ANN), house.changes, house.rowCounts()], [0, ['ann 0'], [0, 0, 0]])
})

t.test('a call of one’s own without an answer is not missed', async t => {
  const house = open(t)
  const callId = 1n as CallId
  await put(house, historyEffect(ANN, { callId, createdAtMs: 1, status: 'missed', people: [ANN, BOB] }))
  t.same([house.missedOf(ANN), house.changes], [0, []])
  t.match(house.list(ANN, { limit: 1 }, 0), [{ direction: 'outgoing', status: 'missed', seen: true }])
})

t.test('rows can be deleted, one or all, with what they count', async t => {
  const house = open(t)
  const { database, history, changes } = house
  await put(house, row(1, 100, 'missed'), row(2, 200, 'missed'), row(3, 300))
  changes.length = 0
  const remove = (callId: bigint) => database.change(change => history.remove(change, ANN, callId as CallId))
  t.same([await remove(1n), await remove(1n), await remove(3n), await remove(9n)], [true, false, true, false])
  t.same([listed(house), changes], [[2], ['ann 1']])
  await database.change(change => history.removeAll(change, ANN))
  t.same([listed(house), changes], [[], ['ann 1', 'ann 0']])
  await database.change(change => history.removeAll(change, ANN))
  t.equal(changes.length, 2)
  t.same(house.rowCounts(), [0, 0, 0])
  await put(house, row(2, 200, 'missed'))
  t.same([listed(house), house.missedOf(ANN)], [[2], 1], 'it is there again when something becomes of it')
})

t.test('a call is kept as long as one of its people remembers it', async t => {
  const house = open(t)
  const people = [ANN, BOB]
  const of = (userId: UserId) => ({ ...row(1, 100, 'ended', userId), kind: 'history' }) as const
  const call = { ...of(ANN).call, people }
  const memories = [...of(ANN).memories, ...of(BOB).memories]
  await put(house, { kind: 'history', call, memories, back: [] })
  await house.database.change(change => house.history.markSeen(change, ANN))
  await house.database.change(change => house.history.remove(change, ANN, 1n as CallId))
  t.same([house.rowCounts(), house.faults()], [[1, 1, 0], []])
  await house.database.change(change => house.history.eraseOf(change, BOB))
  t.same(house.rowCounts(), [0, 0, 0])
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
  t.same(house.rowCounts(), [1_000, 1_000, 0])
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
  t.same([house.rowCounts(), house.changes], [[1, 1, 0], ['ann 0']])
  await house.database.change(change => house.history.markSeen(change, ANN))
  await house.sweep(2_000 + KEPT_MS)
  t.same(house.rowCounts(), [0, 0, 0], 'nor does the mark stay')
  await put(house, row(3, KEPT_MS * 2))
  await house.sweep(KEPT_MS * 3)
  t.same(house.rowCounts(), [0, 0, 0], 'and so for what comes later')
})

t.test('with zero days nothing is written or listed, and rows of before end by the next sweep', async t => {
  const folder = t.testdir()
  const before = open(t, folder)
  await put(before, row(1, 1_000, 'missed'))
  const [active] = before.list(ANN, { limit: 1 }, 0)
  await before.close()
  const house = open(t, folder, 0)
  await put(house, row(2, 2_000, 'missed'))
  t.same(house.list(ANN, { limit: 9, active: [{ ...active!, createdAtMs: 4_000 }] }, 3_000), [])
  await house.sweep(3_000)
  t.same([house.rowCounts(), house.changes], [[0, 0, 0], ['ann 0']])
})

t.test('a shorter time ends older rows by the next sweep, of however many users', async t => {
  const folder = t.testdir()
  const before = open(t, folder)
  const users = Array.from({ length: 1_201 }, (_, at) => BigInt(at + 1) as UserId)
  await put(before, ...users.map((userId, at) => row(at + 1, DAY_MS, 'ended', userId)))
  await put(before, ...users.map((userId, at) => row(at + 5_001, 40 * DAY_MS, 'ended', userId)))
  await before.sweep(45 * DAY_MS)
  await before.close()
  const house = open(t, folder, 30)
  t.same(house.rowCounts(), [2_402, 2_402, 0], 'as the last setting has it')
  await house.sweep(45 * DAY_MS)
  t.same(house.rowCounts(), [1_201, 1_201, 0])
  await house.sweep(70 * DAY_MS)
  t.same(house.rowCounts(), [0, 0, 0])
})

t.test('a longer time keeps rows that are there for as long', async t => {
  const folder = t.testdir()
  const before = open(t, folder, 30)
  await put(before, row(1, 1_000))
  await before.close()
  const house = open(t, folder)
  await house.sweep(KEPT_MS)
  t.same([listed(house, KEPT_MS), house.rowCounts()], [[1], [1, 1, 0]])
  await house.sweep(1_000 + KEPT_MS)
  t.same(house.rowCounts(), [0, 0, 0])
})

t.test('nothing remains of an erased user, and no device hears of it', async t => {
  const house = open(t)
  await put(house, row(1, 100, 'missed'), row(2, 200))
  await house.database.change(change => house.history.markSeen(change, ANN))
  await put(house, row(3, 300, 'missed'), row(4, 100, 'missed', BOB))
  house.changes.length = 0
  await house.database.change(change => house.history.eraseOf(change, ANN))
  t.same([listed(house), house.missedOf(ANN), house.changes], [[], 0, []])
  t.same([house.missedOf(BOB), house.list(BOB, { limit: 9 }, 0).length], [1, 1])
  t.same(house.rowCounts(), [1, 1, 0])
  await house.sweep(KEPT_MS * 2)
  t.same(house.rowCounts(), [0, 0, 0])
})

/** The histories of a few people as lists on paper. */
class Paper {
  readonly #rows = new Map<UserId, Map<number, { atMs: number; missed: boolean; seen: boolean }>>(
    USERS.map(userId => [userId, new Map()]),
  )

  put({ call, memories, back }: HistoryEffect): void {
    const callId = Number(call.callId)
    for (const userId of back) this.#rows.get(userId)!.delete(callId)
    for (const { userId, status } of memories) {
      const missed = status === 'missed' && userId !== call.people[0]
      this.#rows.get(userId)!.set(callId, { atMs: call.createdAtMs, missed, seen: !missed })
    }
  }

  remove(userId: UserId, callId?: number): void {
    if (callId === undefined) this.#rows.get(userId)!.clear()
    else this.#rows.get(userId)!.delete(callId)
  }

  markSeen(userId: UserId): void {
    for (const one of this.#rows.get(userId)!.values()) one.seen = true
  }

  expire(nowMs: number): void {
    for (const rows of this.#rows.values())
      for (const [callId, { atMs }] of rows) if (atMs + KEPT_MS <= nowMs) rows.delete(callId)
  }

  missed(userId: UserId): number {
    return [...this.#rows.get(userId)!.values()].filter(({ seen }) => !seen).length
  }

  /** Newest first, with places. */
  list(userId: UserId): { readonly atMs: number; readonly id: bigint; readonly seen: boolean }[] {
    return [...this.#rows.get(userId)!]
      .map(([callId, { atMs, seen }]) => ({ atMs, id: BigInt(callId), seen }))
      .sort((one, other) => other.atMs - one.atMs || Number(other.id - one.id))
  }

  /** How many rows there are of people, and of calls. */
  counts(): [number, number] {
    const ids = [...this.#rows.values()].flatMap(rows => [...rows.keys()])
    return [ids.length, new Set(ids).size]
  }
}

t.test('a long random run is as lists on paper have it', async t => {
  const seed = seedOf()
  const random = randomFrom(seed)
  const pick = (count: number) => Math.floor(random() * count)
  const house = open(t)
  const { database, history } = house
  const paper = new Paper()
  const created = new Map<number, number>()
  let nowMs = KEPT_MS
  const newEffect = (): HistoryEffect => {
    const callId = 1 + pick(40)
    const createdAtMs = created.get(callId) ?? nowMs - pick(3) * DAY_MS
    created.set(callId, createdAtMs)
    const caller = callId % 3
    const people = [USERS[caller]!, ...USERS.filter((_, at) => at !== caller)]
    const [memories, back] = [[] as HistoryEffect['memories'][number][], [] as UserId[]]
    for (const userId of people) {
      const status = (['missed', 'missed', 'ended', 'declined', 'active', undefined] as const)[pick(6)]
      const memory = { userId, hadJoined: status === 'ended', endedAtMs: nowMs, talkedMs: pick(9) }
      if (status === 'active') back.push(userId)
      else if (status !== undefined) memories.push({ ...memory, status })
    }
    const call = { callId: BigInt(callId) as CallId, isVideo: false, isGroup: true, people, createdAtMs }
    return { kind: 'history', call: { ...call, startedAtMs: undefined }, memories, back }
  }
  /** A change, with what it is on paper; it may fail when it has written. */
  const newStep = (): { store: (change: Change) => void; paper: () => void } => {
    const [userId, act] = [USERS[pick(3)]!, random()]
    if (act < 0.7) {
      const effect = newEffect()
      return { store: change => history.put(change, effect), paper: () => paper.put(effect) }
    }
    if (act < 0.82) {
      const callId = 1 + pick(40)
      return {
        store: change => void history.remove(change, userId, BigInt(callId) as CallId),
        paper: () => paper.remove(userId, callId),
      }
    }
    if (act < 0.96)
      return { store: change => history.markSeen(change, userId), paper: () => paper.markSeen(userId) }
    const isErased = act < 0.98
    return {
      store: change => (isErased ? history.eraseOf(change, userId) : history.removeAll(change, userId)),
      paper: () => paper.remove(userId),
    }
  }
  const differences: unknown[] = []
  const compare = (what: string, found: unknown, wanted: unknown) => {
    if (JSON.stringify(found) !== JSON.stringify(wanted)) differences.push({ what, found, wanted })
  }
  for (let round = 0; round < 250 && differences.length === 0; round++) {
    // Several changes of one transaction; some are taken back.
    const steps = Array.from({ length: 1 + pick(4) }, () => ({ ...newStep(), fails: random() < 0.15 }))
    const written = steps.map(({ store, fails }) =>
      database.change(change => {
        store(change)
        if (fails) throw new Error('planned')
      }, nowMs),
    )
    if (random() < 0.3) for (const userId of USERS) house.missedOf(userId)
    await Promise.allSettled(written)
    for (const step of steps) if (!step.fails) step.paper()
    nowMs += random() < 0.02 ? pick(95 * DAY_MS) : pick(DAY_MS)
    await house.sweep(nowMs)
    paper.expire(nowMs)
    for (const [callId, atMs] of created) if (atMs + KEPT_MS <= nowMs) created.delete(callId)
    for (const userId of USERS) {
      const wanted = paper.list(userId)
      const from = wanted[pick(wanted.length + 1)]
      const limit = 1 + pick(10)
      const behind = from === undefined ? wanted : wanted.slice(wanted.indexOf(from) + 1)
      const rows = house.list(userId, { limit, after: from }, nowMs)
      compare(
        'list',
        rows.map(({ callId, seen }) => `${callId} ${seen}`),
        behind.slice(0, limit).map(({ id, seen }) => `${id} ${seen}`),
      )
      compare('missed', [house.missedOf(userId), house.counted(userId)], Array(2).fill(paper.missed(userId)))
    }
    compare('rows', house.rowCounts().slice(0, 2), paper.counts())
    if (round % 25 === 0) compare('faults', house.faults(), [])
  }
  t.same(differences, [], `as on paper; CALLSIGN_SEED=${seed} runs it again`)
})
