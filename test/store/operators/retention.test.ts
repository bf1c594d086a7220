/** How long reports and audit rows are kept, also where the setting changes. */

import t, { type Test } from 'tap'
import { checkRows } from '../../../src/check/rows/row-check.ts'
import type { UserId } from '../../../src/domain/ids.ts'
import { deriveSecrets } from '../../../src/domain/secrets.ts'
import { Expiries } from '../../../src/store/engine/expiries.ts'
import { LmdbStore } from '../../../src/store/engine/lmdb-store.ts'
import { AuditLog } from '../../../src/store/operators/audit-log.ts'
import { ReportStore } from '../../../src/store/operators/reports.ts'

const NOW = 1_800_000_000_000
const DAY_MS = 86_400_000
const [ANN, BOB] = [(2n ** 40n) as UserId, (2n ** 40n + 1n) as UserId]
const TABLES = ['reports', 'reports-by-state', 'reports-by-user', 'audit']

/** A process over the folder with this setting; it closes before the next one opens. */
function open(t: Test, folder: string, days: number) {
  const database = LmdbStore.open(folder)
  t.teardown(() => database.close())
  const expiries = new Expiries()
  const secrets = deriveSecrets(Buffer.alloc(32, 7))
  let made = 0
  const randomBytes = (length: number) => Buffer.alloc(length, ++made)
  const deps = { database, expiries, secrets, randomBytes, webhooks: { add: () => undefined } }
  const [audit, reports] = [new AuditLog(deps, days * DAY_MS), new ReportStore(deps, days * DAY_MS)]
  return {
    database,
    audit,
    reports,
    report: (atMs = NOW) => {
      const report = { reporterId: ANN, reportedId: BOB, reason: 'spam', isCallKnown: false } as const
      return database.change(change => reports.add(change, report), atMs)
    },
    close: (reportId: bigint, atMs = NOW) =>
      database.change(change => {
        reports.handle(change, reportId, { state: 'resolved', handledBy: 'Mara' })
      }, atMs),
    act: (atMs = NOW) =>
      database.change(change => {
        audit.add(change, { keyId: 'a', operation: 'o', target: 't', requestId: 'r' })
      }, atMs),
    applySettings: (atMs: number) =>
      database.change(change => {
        audit.applyRetention(change)
        reports.applyRetention(change)
      }, atMs),
    async sweep(nowMs: number, countMax = 100) {
      while ((await expiries.sweep(database, nowMs, countMax)) > 0);
    },
    rows: () => TABLES.map(name => database.rowCount(database.storedRows(name))),
  }
}

t.test('a closed report ends its days after it was closed, an open one never', async t => {
  const { report, close, sweep, rows } = open(t, t.testdir(), 30)
  const [closed, _open] = [await report(), await report()]
  await sweep(NOW + 20 * DAY_MS)
  await close(closed, NOW + 20 * DAY_MS)
  await sweep(NOW + 50 * DAY_MS - 1)
  t.same(rows(), [2, 2, 4, 0])
  await sweep(NOW + 50 * DAY_MS)
  t.same(rows(), [1, 1, 2, 0])
  await sweep(NOW + 400 * DAY_MS)
  t.same(rows(), [1, 1, 2, 0])
})

t.test('an audit row ends its days after it was written', async t => {
  const { act, sweep, rows } = open(t, t.testdir(), 30)
  await act()
  await sweep(NOW + 30 * DAY_MS - 1)
  t.equal(rows()[3], 1)
  await sweep(NOW + 30 * DAY_MS)
  t.equal(rows()[3], 0)
})

t.test('a longer setting keeps older rows for longer, too', async t => {
  const folder = t.testdir()
  const before = open(t, folder, 30)
  await before.act()
  await before.close(await before.report())
  await before.database.close()
  const after = open(t, folder, 60)
  await after.applySettings(NOW + 30 * DAY_MS)
  await after.sweep(NOW + 60 * DAY_MS - 1)
  t.same(after.rows(), [1, 1, 2, 1])
  await after.sweep(NOW + 60 * DAY_MS)
  t.same(after.rows(), [0, 0, 0, 0])
})

t.test('a shorter setting ends all older rows by the next sweep', async t => {
  const folder = t.testdir()
  const before = open(t, folder, 300)
  const waiting = await before.report()
  for (let count = 0; count < 20; count++) {
    await before.act()
    await before.close(await before.report())
  }
  const nowMs = NOW + 60 * DAY_MS
  await before.act(nowMs - DAY_MS)
  await before.close(await before.report(nowMs - DAY_MS), nowMs - DAY_MS)
  await before.database.close()
  const after = open(t, folder, 30)
  await after.sweep(nowMs)
  t.same(after.rows(), [22, 22, 44, 21], 'their endings say the old time')
  await after.applySettings(nowMs)
  const ofEndings = checkRows(after.database).told.filter(({ table }) => table === 'expiries')
  t.same(ofEndings, [], '`fsck` knows the endings')
  await after.sweep(nowMs)
  t.same(after.rows(), [2, 2, 4, 1])
  t.ok(after.database.view(view => after.reports.read(view, waiting)))
  await after.applySettings(nowMs)
  await after.sweep(nowMs + 400 * DAY_MS)
  t.same(after.rows(), [1, 1, 2, 0], 'endings of what is gone end nothing else')
})
