/** The repair of a stored log: tables derived from entries are made anew, others are left alone. */

import t from 'tap'
import type { TableName } from '../../../src/check/log/raw-log.ts'
import { reasonAgainstRepair, repairLog } from '../../../src/check/log/repair.ts'
import { LOG_TABLES, LogStore } from '../../../src/keyserver/log-store.ts'
import { brokenOf, check, mixedKeys, namesOf, storeLog } from '../../support/checked-log.ts'
import { nameOfKey } from '../../support/damage.ts'
import { faultsOfStore, freshKeys, LogWriter } from '../../support/stored-log.ts'

t.test('a repair derives every table but the entries, and a log goes on from it', async t => {
  const { database, tables, log } = await storeLog(t, mixedKeys(2_560), 512)
  const rowsOf = (table: TableName) =>
    tables.keys(table).map(key => [nameOfKey(table, key), tables.get(table, key)!.toString('hex')])
  const before = {
    tiles: rowsOf(LOG_TABLES.tiles),
    bundles: rowsOf(LOG_TABLES.bundles),
    head: rowsOf(LOG_TABLES.head),
  }
  for (const table of [LOG_TABLES.tiles, LOG_TABLES.lookup]) {
    for (const key of tables.keys(table)) await tables.remove(table, key)
  }
  for (const key of tables.keys(LOG_TABLES.identities)) {
    const block = tables.get(LOG_TABLES.identities, key)!
    for (let at = 0; at < block.length; at += 24) block.fill(7, at + 16, at + 24)
    await tables.put(LOG_TABLES.identities, key, block)
  }
  const report = await check(database)
  t.same(
    brokenOf(report).map(({ check }) => check),
    ['tiles', 'identities', 'lookup'],
  )
  t.equal(reasonAgainstRepair(report), undefined)
  await repairLog(database, report)
  t.same(namesOf(await check(database)), [])
  t.same(
    { tiles: rowsOf(LOG_TABLES.tiles), bundles: rowsOf(LOG_TABLES.bundles), head: rowsOf(LOG_TABLES.head) },
    before,
    'tiles are byte for byte what they were, entries and checkpoint were not touched',
  )
  const store = new LogStore(database)
  await new LogWriter(store, log).append(mixedKeys(2_000))
  t.same(faultsOfStore(store, log), [])
})

t.test(
  'a repair that was cut off in the lookup table is refused by the server and finished by the next',
  async t => {
    const { database, tables, log } = await storeLog(t, mixedKeys(2_560), 512)
    for (const key of tables.keys(LOG_TABLES.lookup)) await tables.remove(LOG_TABLES.lookup, key)
    t.throws(() => new LogStore(database).openTail(log.size), {
      code: 'CHECKPOINT_INVALID',
      message: /lags behind/,
    })
    await repairLog(database, await check(database))
    t.same(namesOf(await check(database)), [])
  },
)

t.test('a log that has grown since it was checked is checked again first', async t => {
  const { database, tables, log } = await storeLog(t, mixedKeys(600))
  const before = tables.get(LOG_TABLES.head, 'head')
  const report = await check(database)
  await new LogWriter(new LogStore(database), log).append(freshKeys(7_000, 10))
  await t.rejects(repairLog(database, report), { code: 'STORE_UNAVAILABLE', message: /has grown since/ })
  await repairLog(database, await check(database))
  t.not(tables.get(LOG_TABLES.head, 'head')?.equals(before!), true)
})
