/** The doctor's lines about the PostgreSQL that nodes share. */

import t from 'tap'
import { checkDatabase } from '../../scripts/doctor/database.ts'
import { readConfig } from '../../src/server/settings/config.ts'
import { productionEnvironment } from '../support/outside-world.ts'
import { skipWithoutPgbouncer, startPgbouncer } from '../support/pgbouncer.ts'
import { PASSWORD, sharedPostgres, skipWithoutPostgres } from '../support/postgres.ts'

/** Each finding as `state check`, with its detail. */
async function look(environment: Readonly<Record<string, string>>) {
  const config = readConfig({ ...productionEnvironment(), ...environment }, { dev: false })
  const findings = await checkDatabase({ config, skews: [] })
  const detail = (name: string) => findings.find(({ check }) => check === name)?.detail
  return { lines: findings.map(({ state, check }) => `${state} ${check}`), detail }
}

t.test('a server that is one machine has no line', async t => {
  t.same((await look({})).lines, [])
})

t.test('the database', { skip: skipWithoutPostgres }, async t => {
  const server = await sharedPostgres(t)
  const url = await server.newDatabase()
  const node = { CALLSIGN_DATABASE_URL: url, CALLSIGN_NODE_HOST: '127.0.0.1' }

  t.test('without a standby, and the same where the storage keeps changes', async t => {
    const { lines, detail } = await look(node)
    t.same(lines, [
      'ok database',
      'ok database fsync',
      'ok database pages',
      'fails database standby',
      'ok database writes',
    ])
    t.match(detail('database standby'), /synchronous_standby_names is empty.*CALLSIGN_DATABASE_KEPT_BY/)
    const stored = await look({ ...node, CALLSIGN_DATABASE_KEPT_BY: 'storage' })
    t.same(stored.lines, [
      'ok database',
      'off database fsync',
      'off database pages',
      'off database standby',
      'ok database writes',
    ])
  })

  t.test('that takes no changes', async t => {
    const name = new URL(url).pathname.slice(1)
    await server.query(url, `alter database ${name} set default_transaction_read_only = on`)
    t.teardown(() =>
      server.query(server.urlOf('postgres'), `alter database ${name} reset default_transaction_read_only`),
    )
    const { lines, detail } = await look(node)
    t.ok(lines.includes('fails database writes'))
    t.match(detail('database writes'), /default_transaction_read_only is on/)
  })

  t.test('that does not answer', async t => {
    const { lines, detail } = await look({ ...node, CALLSIGN_DATABASE_URL: server.urlOf('none') })
    t.same(lines, ['fails database'])
    t.match(detail('database'), /database "none" does not exist/)
    t.notMatch(detail('database'), PASSWORD)
  })

  t.test('behind a pooler', { skip: skipWithoutPgbouncer }, async t => {
    const port = await startPgbouncer(t, server, ['pool_mode = transaction'])
    const { lines, detail } = await look({ ...node, CALLSIGN_DATABASE_URL: server.urlOf('postgres', port) })
    t.same(lines, ['fails database'])
    t.match(detail('database'), /pool_mode = session/)
  })
})
