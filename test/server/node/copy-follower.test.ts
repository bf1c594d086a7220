/** The copy of a node as it starts, from a ledger that is rows in memory. */

import { existsSync, mkdtempSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import pino from 'pino'
import t, { type Test } from 'tap'
import type { DeviceId, UserId } from '../../../src/domain/ids.ts'
import { LogStore } from '../../../src/keyserver/log-store.ts'
import { ShownHeads } from '../../../src/keyserver/shown-heads.ts'
import { CopyFollower, openFilledCopy } from '../../../src/server/node/copy-follower.ts'
import { Process } from '../../../src/server/process/process.ts'
import { readConfig } from '../../../src/server/settings/config.ts'
import { LmdbStore } from '../../../src/store/engine/lmdb-store.ts'
import type { Following } from '../../../src/store/postgres/follower.ts'
import type { PostgresLedger } from '../../../src/store/postgres/ledger.ts'
import type { OnRows, StoredRow } from '../../../src/store/postgres/snapshot.ts'
import { encodeRows } from '../../../src/store/postgres/written-rows.ts'
import { openLog } from '../../support/log-in-store.ts'
import { SIGNER } from '../../support/stored-log.ts'

/** A ledger with a log of so many entries: a change has all of them, its rows only the first `written`. */
async function ledgerOf(folder: string, entries: number, written = entries): Promise<PostgresLedger> {
  const rows = await rowsOf(folder, written)
  const snapshot = async (onRows: OnRows) => {
    await onRows(rows)
    return { number: written, epoch: 1 }
  }
  const follow = ({ after, onChanges, onCurrent }: Following) => {
    const last = { number: entries, epoch: 1 }
    const caughtUp = async () => {
      if (entries > after.number) {
        const body = Buffer.from(encodeRows(await rowsOf(folder, entries)))
        await onChanges([{ ...last, body }])
      }
      onCurrent?.()
    }
    void caughtUp()
    return { position: last, ended: new Promise(() => undefined), close: async () => undefined }
  }
  return { snapshot, follow } as unknown as PostgresLedger
}

async function rowsOf(folder: string, entries: number): Promise<readonly StoredRow[]> {
  const database = LmdbStore.open(mkdtempSync(join(folder, 'ledger-')))
  const { register } = await openLog(database)
  for (let number = 0; number < entries; number++)
    await register(1n as UserId, BigInt(number) as DeviceId, btoa(`key ${number}`))
  const rows = Array.from(database.rowsInOrder(), ({ table, key, value }) => ({
    table,
    key: Buffer.from(key),
    value: Buffer.from(value),
  }))
  await database.close()
  return rows
}

function nodeIn(t: Test, dataFolder: string) {
  const config = readConfig({ CALLSIGN_DATA_DIR: dataFolder }, { dev: true })
  const context = new Process(config, pino({ level: 'silent' }), () => undefined)
  t.teardown(() => context.close())
  return { context, shownHeads: () => ShownHeads.open(dataFolder, undefined, SIGNER) }
}

const REFUSED = { code: 'CHECKPOINT_INVALID', message: /the log in PostgreSQL is not the one that was shown/ }

t.test('a node that was filled knows the head that it shows, though no change came since', async t => {
  const folder = t.testdir()
  const { context, shownHeads } = nodeIn(t, folder)
  await (await openFilledCopy(context, await ledgerOf(folder, 3), shownHeads())).close()
  const { checkpoint } = new LogStore(LmdbStore.openReadOnly(folder)).head()!
  t.doesNotThrow(() => shownHeads().assertNotBehind(checkpoint))
  t.throws(() => shownHeads().assertNotBehind(undefined), REFUSED)
})

t.test(
  'a node that starts with a copy, such as a store that was moved, knows the head that it shows',
  async t => {
    const folder = t.testdir()
    const { context, shownHeads } = nodeIn(t, folder)
    const database = LmdbStore.open(folder)
    await (await openLog(database)).register(1n as UserId, 1n as DeviceId, btoa('key'))
    await database.filled(1, 1)
    await database.close()
    await (await openFilledCopy(context, await ledgerOf(folder, 0), shownHeads())).close()
    t.throws(() => shownHeads().assertNotBehind(undefined), REFUSED)
  },
)

t.test('a ledger without what was shown is not copied, and the copy before is put back', async t => {
  const folder = t.testdir()
  const { context, shownHeads } = nodeIn(t, folder)
  await (await openFilledCopy(context, await ledgerOf(folder, 3), shownHeads())).close()
  renameSync(join(folder, 'store'), join(folder, 'store-earlier'))
  const short = await ledgerOf(folder, 2)
  for (const start of ['first', 'next']) {
    if (start === 'next') renameSync(join(folder, 'store'), join(folder, 'store-earlier'))
    await t.rejects(openFilledCopy(context, short, shownHeads()), REFUSED, `at the ${start} start`)
    t.equal(new LogStore(LmdbStore.openReadOnly(folder)).head()?.treeSize, 3)
    t.notOk(existsSync(join(folder, 'store-earlier')))
  }
})

t.test('a ledger whose rows lag behind its changes has all that was shown', async t => {
  const folder = t.testdir()
  const { context, shownHeads } = nodeIn(t, folder)
  await (await openFilledCopy(context, await ledgerOf(folder, 3), shownHeads())).close()
  renameSync(join(folder, 'store'), join(folder, 'store-lost'))
  const database = await openFilledCopy(context, await ledgerOf(folder, 3, 1), shownHeads())
  t.equal(new LogStore(database).head()?.treeSize, 3)
  t.equal(database.copyState?.number, 3)
  await database.close()
})

t.test('a copy that is kept while the next one is filled outlasts a machine that stops', async t => {
  const folder = t.testdir()
  const { context, shownHeads } = nodeIn(t, folder)
  const database = await openFilledCopy(context, await ledgerOf(folder, 1), shownHeads())
  t.ok(existsSync(join(folder, 'store', 'unsynced')))
  const ledger = {
    follow: () => ({ ended: Promise.resolve({ kind: 'startAnew', reason: 'of the test' }) }),
    head: async () => Buffer.from(new LogStore(database).head()!.checkpoint),
  }
  const ended = await new Promise<unknown>(resolve => {
    new CopyFollower({
      ledger: ledger as unknown as PostgresLedger,
      database,
      shownHeads: shownHeads(),
      context: { ...context, fatal: resolve as Process['fatal'] },
      onApplied: () => undefined,
      onWriter: () => undefined,
      onCurrent: () => undefined,
    })
  })
  t.match(ended, { name: 'ConfigError', message: /the next start fills it anew/ })
  t.ok(existsSync(join(folder, 'store-earlier')))
  t.notOk(existsSync(join(folder, 'store-earlier', 'unsynced')))
  await database.close()
})
