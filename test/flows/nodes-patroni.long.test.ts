/**
 * Two nodes on the PostgreSQL of deploy/patroni. Under load the primary is lost: its machine, then Patroni alone, so that the
 * old primary goes on. Prints how long changes waited.
 */

import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import t from 'tap'
import { RegisterClient } from '../../scripts/support/register-client.ts'
import { NodeLoad } from '../support/node-load.ts'
import { Cluster, type TestNode, until } from '../support/nodes.ts'
import { type Member, PatroniCluster, skipWithoutPatroni } from '../support/patroni.ts'
import { skipWithoutPostgres } from '../support/postgres.ts'
import { randomFrom, seedOf } from '../support/seed.ts'
import { freshPublicKey } from '../support/server.ts'

const ACKNOWLEDGED = 100
/** As systemd's RestartSec: each start costs processor time, and PostgreSQL is away for a while. */
const RESTART_MS = 2_000

/** Resolves when a key has been registered. */
async function firstWrite(nodes: readonly TestNode[]): Promise<void> {
  for (let count = 0; ; count++) {
    const client = new RegisterClient(nodes[count % nodes.length]!.server.grpc)
    try {
      await client.register(BigInt(3_000_000 + count), 1n, freshPublicKey())
      return
    } catch {
      // Each try costs processor time, and the wait takes long.
      await setTimeout(250)
    } finally {
      client.close()
    }
  }
}

/** A change at one member, past HAProxy, and whether it was acknowledged. */
function writeAt(url: string) {
  const client = new pg.Client({ connectionString: url, application_name: 'past the proxy' })
  client.on('error', () => {})
  const write = { isAcknowledged: false }
  const over = client
    .connect()
    .then(() => client.query('create table callsign.past_the_proxy ()'))
    .then(
      () => {
        write.isAcknowledged = true
      },
      () => {},
    )
  return { write, end: () => client.end().then(() => over) }
}

t.test('the primary is lost', { skip: skipWithoutPostgres || skipWithoutPatroni }, async t => {
  const seed = seedOf()
  const random = randomFrom(seed)
  const postgres = await PatroniCluster.start(t)
  const cluster = await Cluster.start(t, { postgres, environment: { CALLSIGN_RATE_LIMITS: 'off' } })
  const { nodes } = cluster
  for (const node of nodes) t.notOk(node.hasSaid('database'), 'a node finds no fault with its PostgreSQL')

  for (const node of nodes) node.supervise(RESTART_MS)
  const load = await NodeLoad.start(nodes, random)
  await load.acknowledged(ACKNOWLEDGED)
  /** Kills, and resolves when another member is the primary and has taken a change. */
  const failOver = async (what: string, kill: (primary: Member) => Promise<void>) => {
    const primary = (await postgres.memberAs('leader'))!
    const sinceMs = performance.now()
    await kill(primary)
    await until(async () => ![undefined, primary].includes(await postgres.memberAs('leader')))
    await firstWrite(nodes)
    t.pass(`${what}: changes are taken again after ${((performance.now() - sinceMs) / 1_000).toFixed(1)} s`)
    return primary
  }

  const first = await failOver('the machine of the primary is lost', primary => primary.kill())
  first.start()
  await postgres.settled()
  await load.acknowledged(ACKNOWLEDGED)

  const second = await failOver('Patroni of the primary is lost', primary => primary.killPatroni())
  const { write, end } = writeAt(postgres.urlAt(second))
  await until(async () => {
    const waiting = await postgres.query(
      postgres.urlAt(second),
      `select from pg_stat_activity where application_name = 'past the proxy' and wait_event = 'SyncRep'`,
    )
    return waiting.length > 0
  })
  second.start()
  await postgres.settled()
  await end()
  t.equal(write.isAcknowledged, false, 'the old primary acknowledges nothing, and is a standby again')

  await load.acknowledged(ACKNOWLEDGED)
  await load.stop()
  const run = `seed ${seed}, ${JSON.stringify(load.counts)}`
  t.comment(run)
  t.same(await load.messageFaults(), [], run)
  for (const node of nodes) t.same(await load.lostAt(node), [], `${run}: at ${node.name}`)
})
