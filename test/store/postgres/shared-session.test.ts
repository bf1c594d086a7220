/** Poolers between a node and PostgreSQL: one that keeps sessions serves, one that shares them out is refused. */

import t from 'tap'
import { Connection } from '../../../src/store/postgres/connection.ts'
import { skipWithoutPgbouncer, startPgbouncer } from '../../support/pgbouncer.ts'
import { sharedPostgres, skipWithoutPostgres } from '../../support/postgres.ts'
import { acquireNext, bytesOf, openLedger } from '../../support/record.ts'

const REFUSAL = { code: 'STORE_UNAVAILABLE', message: /pooler .* pool_mode = session.* PostgreSQL itself/ }

t.test('poolers', { skip: skipWithoutPostgres || skipWithoutPgbouncer }, async t => {
  const server = await sharedPostgres(t)
  const url = await server.newDatabase()
  const database = new URL(url).pathname.slice(1)
  const throughPooler = async (...settings: string[]) =>
    server.urlOf(database, await startPgbouncer(t, server, settings))

  const shared = [
    ['pool_mode = transaction'],
    ['pool_mode = transaction', 'default_pool_size = 1'],
    ['pool_mode = transaction', 'server_round_robin = 1', 'min_pool_size = 3'],
    ['pool_mode = statement'],
  ]
  for (const settings of shared) {
    t.test(`${settings.join(', ')}: refused`, async t => {
      await t.rejects(openLedger(t, await throughPooler(...settings)), REFUSAL)
    })
  }

  t.test('refused beside other clients of the pooler', async t => {
    const pooled = await throughPooler('pool_mode = transaction', 'default_pool_size = 8')
    const others = await Promise.all(
      Array.from({ length: 8 }, () => Connection.open({ url: pooled, applicationName: 'other' })),
    )
    let isOver = false
    const busy = others.map(async other => {
      while (!isOver) await other.run({ text: 'select pg_sleep(0.002)' })
      await other.close()
    })
    await t.rejects(openLedger(t, pooled), REFUSAL)
    isOver = true
    await Promise.all(busy)
  })

  t.test('pool_mode = session: serves', async t => {
    const ledger = await openLedger(t, await throughPooler('pool_mode = session'))
    const lease = await acquireNext(ledger)
    await lease.append(1, [bytesOf('a change')])
    await lease.release()
    t.match(await ledger.writer(), { last: 1 })
  })

  t.test('a pooler that shares sessions out from later on: failures say so', async t => {
    const pooled = await throughPooler('pool_mode = transaction')
    const open = async () => {
      const connection = await Connection.open({ url: pooled, applicationName: 'test' })
      t.teardown(() => connection.cut())
      return connection
    }
    const [one, two, three] = [await open(), await open(), await open()]
    const statement = { name: 'renew', text: 'select $1::integer as number' }
    await one.run(statement, [1])
    await t.rejects(two.run(statement, [1]), REFUSAL, 'another client has prepared the statement')
    await three.run({ text: 'begin' })
    await t.rejects(one.run(statement, [1]), REFUSAL, 'another client has the session')
  })
})
