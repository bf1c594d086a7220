/**
 * kill -9 of nodes, their fronts and PostgreSQL, one after another and together, while all nodes work. `CALLSIGN_NODE_KILLS`
 * sets the number of kills (2), `CALLSIGN_SEED` replays their order and moments.
 */

import t from 'tap'
import { shuffle } from '../../src/domain/shuffle.ts'
import { NodeLoad } from '../support/node-load.ts'
import { Cluster, type TestNode, until } from '../support/nodes.ts'
import { type PostgresServer, skipWithoutPostgres, startPostgres } from '../support/postgres.ts'
import { randomFrom, seedOf } from '../support/seed.ts'

const KILLS = Number(process.env.CALLSIGN_NODE_KILLS ?? 2)
const ACKNOWLEDGED_MAX = 200

type Victim = 'writer' | 'other' | 'front' | 'postgres'
const VICTIMS: readonly (readonly Victim[])[] = [
  ['writer'],
  ['other'],
  ['front'],
  ['postgres'],
  ['writer', 'postgres'],
  ['other', 'postgres'],
  ['writer', 'other', 'postgres'],
]

/** Kills them at one moment, and has PostgreSQL started again. */
async function kill(
  { nodes }: Cluster,
  postgres: PostgresServer,
  writer: TestNode,
  victims: readonly Victim[],
) {
  for (const victim of victims) {
    if (victim === 'writer') writer.kill('SIGKILL')
    if (victim === 'other') nodes.find(node => node !== writer)!.kill('SIGKILL')
    if (victim === 'front') process.kill(writer.frontPids.at(-1)!, 'SIGKILL')
  }
  if (!victims.includes('postgres')) return
  await postgres.kill()
  await postgres.start()
}

t.test(
  `nothing acknowledged is lost, at no node, by ${KILLS} kills`,
  { skip: skipWithoutPostgres },
  async t => {
    const seed = seedOf()
    const random = randomFrom(seed)
    const postgres = await startPostgres(t)
    const cluster = await Cluster.start(t, { postgres, environment: { CALLSIGN_RATE_LIMITS: 'off' } })
    for (const node of cluster.nodes) node.supervise()
    const load = await NodeLoad.start(cluster.nodes, random)
    let order: (readonly Victim[])[] = []
    const killed: string[] = []
    for (let count = 0; count < KILLS; count++) {
      if (order.length === 0) order = shuffle([...VICTIMS], random)
      const victims = order.pop()!
      await load.acknowledged(1 + Math.floor(random() * ACKNOWLEDGED_MAX))
      const writer = (await cluster.writer()) ?? cluster.nodes[0]!
      killed.push(victims.join(' and '))
      await kill(cluster, postgres, writer, victims)
      await until(async () => (await Promise.all(cluster.nodes.map(node => node.isReady()))).every(Boolean))
      await load.acknowledged(ACKNOWLEDGED_MAX / 10)
    }
    await load.stop()
    const run = `seed ${seed}, ${killed.join(', ')}, ${JSON.stringify(load.counts)}`
    t.comment(run)
    t.same(await load.messageFaults(), [], run)
    for (const node of cluster.nodes) t.same(await load.lostAt(node), [], `${run}: at ${node.name}`)
  },
)
