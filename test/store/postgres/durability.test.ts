/** How PostgreSQL says that it keeps changes, and commits whose standby does not answer. */

import { once } from 'node:events'
import { chownSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Connection } from '../../../src/store/postgres/connection.ts'
import { durabilityFaults, readDurability } from '../../../src/store/postgres/durability.ts'
import { until } from '../../support/nodes.ts'
import {
  asUnprivileged,
  binFolder,
  PASSWORD,
  type Postgres,
  skipWithoutPostgres,
  startPostgres,
  unprivileged,
} from '../../support/postgres.ts'
import { openLedger } from '../../support/record.ts'

async function set(server: Postgres, setting: string, value: string): Promise<void> {
  const url = server.urlOf('postgres')
  await server.query(url, `alter system set ${setting} = '${value}'`)
  await server.query(url, 'select pg_reload_conf()')
  // New sessions have it.
  await until(async () => {
    const [row] = await server.query<{ now: string }>(url, `select current_setting('${setting}') as now`)
    return row!.now === value
  })
}

/** Receives all that is written, as a standby does, and syncs it. */
function startReceiver(t: Test, server: Postgres): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'callsign-receiver-'))
  const owner = unprivileged()
  if (owner !== undefined) chownSync(folder, owner.uid, owner.gid)
  const args = [
    ...['-d', `${server.urlOf('')}?application_name=standby`],
    ...['-D', folder, '--synchronous', '--no-loop'],
  ]
  const receiver = asUnprivileged(join(binFolder()!, 'pg_receivewal'), args)
  receiver.stderr!.resume()
  const ended = once(receiver, 'exit')
  t.teardown(async () => {
    receiver.kill('SIGKILL')
    await ended
    rmSync(folder, { recursive: true })
  })
  return () => void receiver.kill('SIGKILL')
}

t.test('how PostgreSQL keeps changes', { skip: skipWithoutPostgres }, async t => {
  const server = await startPostgres(t, ['fsync=off', 'full_page_writes=off'])
  const url = await server.newDatabase()
  const read = async (as = url) => {
    const connection = await Connection.open({ url: as, applicationName: 'test' })
    const durability = await readDurability(connection)
    await connection.close()
    return durability
  }

  t.test('settings of the disk', async t => {
    const durability = await read()
    t.same(durability, {
      hasFsync: false,
      hasFullPageWrites: false,
      waitsForStandby: false,
      standbys: 0,
      isReadOnly: false,
    })
    t.same(durabilityFaults(durability, 'standbys'), [
      'fsync-off',
      'full-page-writes-off',
      'standby-not-awaited',
    ])
    t.same(durabilityFaults(durability, 'disk'), [])
  })

  t.test('a database that takes no changes', async t => {
    const readOnly = await server.newDatabase()
    await openLedger(t, readOnly)
    await server.query(
      readOnly,
      `alter database ${new URL(readOnly).pathname.slice(1)} set default_transaction_read_only = on`,
    )
    t.match(await read(readOnly), { isReadOnly: true })
    t.same(durabilityFaults(await read(readOnly), 'disk'), ['read-only'])
    const ledger = await openLedger(t, readOnly)
    await t.rejects(ledger.acquire(), {
      code: 'STORE_UNAVAILABLE',
      message: /takes no changes \(25006\).*default_transaction_read_only/,
    })
  })

  t.test('standbys, and a role that may not see them', async t => {
    await openLedger(t, url)
    await server.query(url, `create role plain login password '${PASSWORD}'`)
    const asPlain = url.replace('//callsign:', '//plain:')
    await set(server, 'synchronous_standby_names', 'standby')
    t.teardown(() => set(server, 'synchronous_standby_names', ''))
    t.match(await read(), { waitsForStandby: true, standbys: 0 })
    t.same(durabilityFaults({ ...(await read()), hasFsync: true, hasFullPageWrites: true }, 'standbys'), [
      'standby-missing',
    ])
    t.match(await read(asPlain), { waitsForStandby: true, standbys: undefined })

    const stop = startReceiver(t, server)
    await until(async () => (await read()).standbys === 1)
    await server.query(url, 'grant pg_monitor to plain')
    t.match(await read(asPlain), { standbys: 1 })
    t.same(durabilityFaults({ ...(await read()), hasFsync: true, hasFullPageWrites: true }, 'standbys'), [])

    stop()
    await until(async () => (await read()).standbys === 0)
    const connection = await Connection.open({ url, applicationName: 'cancelled' })
    const written = connection.run({ text: `update callsign.writer set version = 'written'` })
    written.catch(() => {})
    await until(async () => {
      const rows = await server.query(
        url,
        `select pg_cancel_backend(pid) from pg_stat_activity where application_name = 'cancelled' and wait_event = 'SyncRep'`,
      )
      return rows.length > 0
    })
    await t.rejects(written, { message: /cancelled while it waited for its synchronous standby/ })
    t.equal(connection.isOpen, false, 'its outcome is unknown')
  })
})
