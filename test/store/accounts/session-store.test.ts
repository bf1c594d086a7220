/**
 * Session rows: found by user, bound, revoked for a while, gone when their time has run out, the same after a
 * restart.
 */

import t, { type Test } from 'tap'
import type { Session } from '../../../src/domain/accounts/session.ts'
import type { DeviceId, UserId } from '../../../src/domain/ids.ts'
import { SessionStore } from '../../../src/store/accounts/session-store.ts'
import { EXPIRY, Expiries } from '../../../src/store/engine/expiries.ts'
import { LmdbStore } from '../../../src/store/engine/lmdb-store.ts'

const NOW_MS = Date.UTC(2026, 0, 1)
const DAY_MS = 86_400_000
const LIFETIMES = { accessS: 3600, refreshS: 60 * 86_400, sessionS: 365 * 86_400 }
const ANN = 7n as UserId
const BOB = (2n ** 64n - 2n) as UserId

function openStage(t: Test, folder = t.testdir()) {
  const database = LmdbStore.open(folder)
  t.teardown(() => database.close())
  const expiries = new Expiries()
  const sessions = new SessionStore({ database, expiries, lifetimes: LIFETIMES })
  expiries.define(EXPIRY.sessionEnding, () => undefined)
  return {
    database,
    sessions,
    create: (id: Uint8Array, userId: UserId, changes: Partial<Session> = {}) =>
      database.change(change => sessions.create(change, id, sessionOf(userId, changes))),
    async sweep(nowMs: number) {
      while ((await expiries.sweep(database, nowMs, 3)) > 0);
    },
    rowCounts: () =>
      ['sessions', 'sessions-by-user', 'expiries'].map(name => database.rowCount(database.storedRows(name))),
  }
}

function sessionOf(userId: UserId, changes: Partial<Session> = {}): Session {
  return {
    userId,
    generation: 1,
    rotatedAtMs: NOW_MS,
    isPairUsed: false,
    createdAtMs: NOW_MS,
    lastUsedAtMs: NOW_MS,
    endsAtMs: NOW_MS + 365 * DAY_MS,
    methods: ['otp'],
    userAgent: 'test',
    ...changes,
  }
}

function idOf(number: number): Buffer {
  return Buffer.alloc(16, number)
}

t.test('a session is read as it was created, ids whole', async t => {
  const { database, sessions, create } = openStage(t)
  const deviceId = (2n ** 63n) as DeviceId
  await create(idOf(1), BOB, { deviceId })
  t.same(
    database.view(view => sessions.read(view, idOf(1))),
    sessionOf(BOB, { deviceId }),
  )
  t.equal(
    database.view(view => sessions.read(view, idOf(2))),
    undefined,
  )
})

t.test('sessions are found by their user, ids of 64 bits too', async t => {
  const { database, sessions, create } = openStage(t)
  await create(idOf(1), ANN)
  await create(idOf(2), ANN)
  await create(idOf(3), BOB)
  await create(idOf(255), 8n as UserId)
  t.same(
    [ANN, BOB, 9n as UserId].map(userId =>
      database.view(view => sessions.idsOf(view, userId)).map(id => id[0]),
    ),
    [[1, 2], [3], []],
  )
})

t.test('a session is bound to a device and stays what it was else', async t => {
  const { database, sessions, create } = openStage(t)
  await create(idOf(1), ANN)
  await database.change(change => sessions.bind(change, idOf(1), 5n as DeviceId))
  t.same(
    database.view(view => sessions.read(view, idOf(1))),
    sessionOf(ANN, { deviceId: 5n as DeviceId }),
  )
  await database.change(change => sessions.bind(change, idOf(2), 5n as DeviceId))
  t.equal(
    database.view(view => sessions.read(view, idOf(2))),
    undefined,
  )
})

t.test('a removed session leaves nothing', async t => {
  const stage = openStage(t)
  await stage.create(idOf(1), ANN)
  await stage.database.change(change => stage.sessions.remove(change, idOf(1)))
  t.same(stage.rowCounts().slice(0, 2), [0, 0])
  await stage.sweep(NOW_MS + 400 * DAY_MS)
  t.same(stage.rowCounts(), [0, 0, 0])
})

t.test('a revoked session says why as long as its access tokens could live, then it is gone', async t => {
  const stage = openStage(t)
  const { sessions, database } = stage
  await stage.create(idOf(1), ANN)
  await database.change(change => sessions.revoke(change, idOf(1), 'device_removed'), NOW_MS)
  await database.change(change => sessions.revoke(change, idOf(1), 'replaced'), NOW_MS + 1000)
  t.equal(
    database.view(view => sessions.read(view, idOf(1)))?.revokedBecause,
    'device_removed',
    'the first reason stays',
  )
  await stage.sweep(NOW_MS + 3_599_999)
  t.not(
    database.view(view => sessions.read(view, idOf(1))),
    undefined,
  )
  await stage.sweep(NOW_MS + 3_600_000)
  t.equal(
    database.view(view => sessions.read(view, idOf(1))),
    undefined,
  )
  await stage.sweep(NOW_MS + 400 * DAY_MS)
  t.same(stage.rowCounts(), [0, 0, 0])
})

t.test('the end of a session is said once, and not where that of its device is said', async t => {
  const { sessions, database, create } = openStage(t)
  const ended: (number | undefined)[] = []
  database.subscribe('session-ended', ({ sessionId }) => ended.push(sessionId[0]))
  for (const at of [1, 2, 3]) await create(idOf(at), ANN)
  await database.change(change => sessions.revoke(change, idOf(1), 'replaced'))
  await database.change(change => sessions.revoke(change, idOf(2), 'device_removed'))
  await database.change(change => sessions.remove(change, idOf(3)))
  for (const at of [1, 2, 3]) await database.change(change => sessions.remove(change, idOf(at)))
  t.same(ended, [1, 3])
})

t.test('a sweep ends sessions without a refresh, and keeps refreshed ones', async t => {
  const stage = openStage(t)
  const { sessions, database } = stage
  await stage.create(idOf(1), ANN)
  await stage.create(idOf(2), ANN)
  const refreshed = sessionOf(ANN, { lastUsedAtMs: NOW_MS + 59 * DAY_MS })
  await database.change(change => sessions.put(change, idOf(2), refreshed))
  await stage.sweep(NOW_MS + 60 * DAY_MS)
  t.same(
    database.view(view => sessions.idsOf(view, ANN)).map(id => id[0]),
    [2],
  )
  await stage.sweep(NOW_MS + 119 * DAY_MS - 1)
  t.equal(database.view(view => sessions.idsOf(view, ANN)).length, 1)
  await stage.sweep(NOW_MS + 119 * DAY_MS)
  t.same(stage.rowCounts(), [0, 0, 0])
})

t.test('that a pair is in use is noted once, and for the current pair only', async t => {
  const { database, sessions, create } = openStage(t)
  await create(idOf(1), ANN, { generation: 4 })
  const markPairUsed = (sessionId: Uint8Array, generation: number) =>
    database.change(change => sessions.markPairUsed(change, sessionId, generation))
  await markPairUsed(idOf(1), 3)
  t.equal(database.view(view => sessions.read(view, idOf(1)))?.isPairUsed, false)
  await markPairUsed(idOf(1), 4)
  t.equal(database.view(view => sessions.read(view, idOf(1)))?.isPairUsed, true)
  await markPairUsed(idOf(9), 1)
  t.equal(
    database.view(view => sessions.read(view, idOf(9))),
    undefined,
    'a session that is gone does not come back',
  )
})

t.test('sessions survive a restart, revoked ones as revoked', async t => {
  const folder = t.testdir()
  const before = openStage(t, folder)
  await before.create(idOf(1), ANN, { generation: 3 })
  await before.create(idOf(2), ANN)
  await before.database.change(change => before.sessions.revoke(change, idOf(2), 'account_deleted'), NOW_MS)
  await before.database.close()
  const { database, sessions } = openStage(t, folder)
  t.equal(database.view(view => sessions.read(view, idOf(1)))?.generation, 3)
  t.equal(database.view(view => sessions.read(view, idOf(2)))?.revokedBecause, 'account_deleted')
})
