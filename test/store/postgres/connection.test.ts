/** Connections: by TLS where the URL says so, and to a server that keeps what it acknowledges. */

import { join } from 'node:path'
import t from 'tap'
import { Connection } from '../../../src/store/postgres/connection.ts'
import { skipWithoutPostgres, startPostgres } from '../../support/postgres.ts'
import { openLedger } from '../../support/record.ts'
import { PROJECT_ROOT } from '../../support/vectors.ts'

const TLS = join(PROJECT_ROOT, 'test/support/tls')

t.test('connections', { skip: skipWithoutPostgres }, async t => {
  const server = await startPostgres(t)

  t.test('the URL decides on TLS, and on the trusted authority', async t => {
    const url = await server.newDatabase()
    const connections = async (wanted: string) => {
      const record = await openLedger(t, `${url}?${wanted}`)
      const rows = await server.query<{ ssl: boolean }>(
        url,
        `select ssl from pg_stat_ssl join pg_stat_activity using (pid) where application_name = 'callsign one'`,
      )
      await record.close()
      return rows
    }
    t.same(await connections(`sslmode=verify-full&sslrootcert=${join(TLS, 'ca.crt')}`), [{ ssl: true }])
    t.same(await connections('sslmode=disable'), [{ ssl: false }])
    await t.rejects(connections(`sslmode=verify-full`), { code: 'STORE_UNAVAILABLE', message: /certificate/ })
    const other = `sslmode=verify-full&sslrootcert=${join(TLS, 'other.crt')}`
    await t.rejects(connections(other), { code: 'STORE_UNAVAILABLE', message: /certificate/ })
  })

  t.test(
    'a session waits for the disks, here and at a standby, even where the role says otherwise',
    async t => {
      const url = await server.newDatabase()
      t.teardown(() => server.query(url, 'alter role callsign reset synchronous_commit'))
      const inSession = async (ofRole: string) => {
        await server.query(url, `alter role callsign set synchronous_commit = ${ofRole}`)
        const connection = await Connection.open({ url, applicationName: 'test' })
        const rows = await connection.run({ text: 'show synchronous_commit' })
        await connection.close()
        return rows
      }
      for (const weaker of ['off', 'local', 'remote_write'])
        t.same(await inSession(weaker), [{ synchronous_commit: 'on' }], weaker)
      t.same(await inSession('remote_apply'), [{ synchronous_commit: 'remote_apply' }])
    },
  )

  t.test('a standby is refused', async t => {
    const url = await server.newDatabase()
    await openLedger(t, url)
    await server.restartAsStandby()
    await t.rejects(openLedger(t, url), { code: 'STORE_UNAVAILABLE', message: /standby/ })
    await server.query(url, 'select pg_promote()')
    await openLedger(t, url)
  })
})
