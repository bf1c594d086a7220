/**
 * An operator changes the row of the lease by hand while the writer writes, so that two nodes write at once: PostgreSQL
 * refuses one of them for good.
 */

import t from 'tap'
import { signInPerson } from '../support/call-people.ts'
import { NodeLoad } from '../support/node-load.ts'
import { Cluster, register, until } from '../support/nodes.ts'
import { skipWithoutPostgres } from '../support/postgres.ts'
import { randomFrom, seedOf } from '../support/seed.ts'
import { SocketClient } from '../support/socket-client.ts'

/** Columns that the operator sets. */
const FORCED: readonly (readonly [what: string, sql: string])[] = [
  ['the lease is ended', `lease_ends = '-infinity'`],
  [
    'the lease is given to another node',
    `epoch = epoch + 1, node = 'two', lease_ends = clock_timestamp() + interval '1 s'`,
  ],
  [
    'the row is as in a new database',
    `epoch = 0, connection = 0, node = '', address = '', version = '', lease_ends = '-infinity'`,
  ],
]

t.test('the lease is changed by hand', { skip: skipWithoutPostgres }, async t => {
  const seed = seedOf()
  const cluster = await Cluster.start(t, { environment: { CALLSIGN_RATE_LIMITS: 'off' } })
  for (const node of cluster.nodes) node.supervise()
  const load = await NodeLoad.start(cluster.nodes, randomFrom(seed))
  for (const [what, sql] of FORCED) {
    await load.acknowledged(ACKNOWLEDGED)
    const writer = (await cluster.writer())!
    const times = writer.saidTimes('writer-stepped-down')
    const { epoch } = await cluster.lease()
    // The writer may renew a lease that was ended before the other node sees that.
    await until(async () => {
      await cluster.sql(`update callsign.writer set ${sql} where epoch = ${epoch}`)
      return (await cluster.lease()).epoch !== epoch
    })
    await writer.said('writer-stepped-down', times + 1)
    t.pass(`${what}: the writer steps down`)
    await until(async () => (await Promise.all(cluster.nodes.map(node => node.isReady()))).every(Boolean))
    await load.acknowledged(ACKNOWLEDGED)
  }
  await load.stop()
  const run = `seed ${seed}, ${JSON.stringify(load.counts)}`
  t.same(await load.messageFaults(), [], run)
  for (const node of cluster.nodes) t.same(await load.lostAt(node), [], `${run}: at ${node.name}`)
})

const ACKNOWLEDGED = 20

t.test('sockets stay while a node steps down slowly', { skip: skipWithoutPostgres }, async t => {
  const cluster = await Cluster.start(t, { running: 1 })
  const { one } = cluster
  const { app } = await signInPerson(one.server.http, 0)
  const { socket } = await SocketClient.connect('websocket', one.server.http, app.accessToken!)
  let isOpen = true
  socket.on('close', () => {
    isOpen = false
  })
  // A write that is under way as the lease is lost ends two seconds after it began.
  const locked = cluster.sql(
    'begin; lock table callsign.changes in exclusive mode; select pg_sleep(3); commit',
  )
  await until(async () => {
    const [held] = await cluster.sql<object>(`select from pg_locks where mode = 'ExclusiveLock' and granted
      and relation = 'callsign.changes'::regclass`)
    return held !== undefined
  })
  const registered = register(one).catch(() => undefined)
  await until(async () => {
    const [waiting] = await cluster.sql<object>(`select from pg_locks where not granted
      and relation = 'callsign.changes'::regclass`)
    return waiting !== undefined
  })
  await cluster.sql(`update callsign.writer set epoch = epoch + 1, lease_ends = '-infinity'`)
  await one.said('writer', 2)
  t.ok(one.hasSaid('writer-stepped-down'))
  t.notOk(one.hasSaid('copy-may-be-old'))
  t.ok(isOpen)
  await Promise.all([locked, registered])
})
