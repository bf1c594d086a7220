/**
 * A stop that is cut off: kill -9 in each stage, under load, of a process that is alone, of a writer with fronts, of a front and of
 * nodes. All that was answered is there afterwards. `CALLSIGN_STOP_STAGES`
 * sets the number of stages (2, 3; there are 14), `CALLSIGN_SEED` chooses them.
 */

import { once } from 'node:events'
import type { Readable } from 'node:stream'
import t, { type Test } from 'tap'
import { shuffle } from '../../src/domain/shuffle.ts'
import { assert } from '../../src/errors.ts'
import { STOP_STAGES, type StopStage } from '../../src/server/process/stages.ts'
import { KillLoad } from '../support/kill-load.ts'
import { NodeLoad } from '../support/node-load.ts'
import { Cluster, eventually, type TestNode, until } from '../support/nodes.ts'
import { skipWithoutPostgres } from '../support/postgres.ts'
import { randomFrom, seedOf } from '../support/seed.ts'
import type { RunningServer } from '../support/server.ts'
import { countOf, long, sized } from '../support/size.ts'

const SEED = seedOf()
const STAGES = shuffle([...STOP_STAGES], randomFrom(SEED)).slice(
  0,
  countOf('CALLSIGN_STOP_STAGES', { short: 2, long: 3 }),
)
const ACKNOWLEDGED_BEFORE = 40
const DEBUG = { CALLSIGN_LOG_LEVEL: 'debug' }

type Victim = 'server' | 'front'

/** Resolves when the victim logs that it is in the stage, or the server has ended. */
async function reaches(
  { process, stderr }: RunningServer,
  stage: StopStage,
  victim: Victim = 'server',
): Promise<void> {
  const isThere = () =>
    stderr()
      .split('\n')
      .some(line => line.includes(`"stage":"${stage}"`) && line.includes('"front":') === (victim === 'front'))
  const ended = once(process, 'close')
  while (process.exitCode === null && process.signalCode === null && !isThere())
    await Promise.race([once(process.stderr as Readable, 'data'), ended])
}

/** Kills the front that stops; resolves with how the server then ends. */
async function endWithoutFront({ process: server, stderr }: RunningServer): Promise<unknown> {
  const ended = once(server, 'close')
  const [, pid] = /"front-started".*"pid":(\d+)/.exec(stderr()) ?? []
  try {
    if (pid !== undefined) process.kill(Number(pid), 'SIGKILL')
  } catch (error) {
    // Its last stage may be over by now.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
  return server.exitCode === null ? await ended : [server.exitCode, null]
}

/** Resolves when all serve; rejects where one has ended unasked, which no wait would mend. */
async function allServe(nodes: readonly TestNode[], stage: StopStage): Promise<void> {
  const endedOf = () => nodes.find(({ server }) => server.process.exitCode !== null)
  await until(
    async () =>
      endedOf() !== undefined || (await Promise.all(nodes.map(each => each.isReady()))).every(Boolean),
  )
  const ended = endedOf()
  if (ended !== undefined)
    throw new Error(
      `${ended.name} ended beside a node that stopped in ${stage}: ${ended.server.stderr().slice(-2_000)}`,
    )
}

async function killInStages(
  t: Test,
  environment: Readonly<Record<string, string>>,
  victim: Victim = 'server',
): Promise<void> {
  const load = await KillLoad.start(t.testdir())
  t.teardown(() => load.end())
  await load.server.end()
  for (const stage of STAGES) {
    const server = await load.startServer({ environment: { ...DEBUG, ...environment } })
    await load.hangUp()
    await load.runWhile(ACKNOWLEDGED_BEFORE, async () => {
      server.process.kill('SIGTERM')
      await reaches(server, stage, victim)
      if (victim === 'front') t.same(await endWithoutFront(server), [0, null], `front killed in ${stage}`)
    })
    await load.startServer({ environment })
    t.same(await load.lost(), [], `seed ${SEED}, killed in ${stage}`)
    await load.server.end('SIGKILL')
  }
  t.comment(`${STAGES.join(', ')}: ${JSON.stringify(load.counts)}`)
}

t.test('a server that is alone loses no answer by a kill in any stage of its stop', sized(), async t => {
  await killInStages(t, { CALLSIGN_FRONTS: '0' })
})

t.test('a writer with fronts loses no answer by a kill in any stage of its stop', long(), async t => {
  await killInStages(t, { CALLSIGN_FRONTS: '1' })
})

t.test(
  'a front that is killed in any stage of its stop costs no answer, and its writer stops',
  long(),
  async t => {
    await killInStages(t, { CALLSIGN_FRONTS: '1' }, 'front')
  },
)

t.test(
  'nodes lose no answer by a kill in any stage of a stop',
  long({ skip: skipWithoutPostgres }),
  async t => {
    const cluster = await Cluster.start(t, { environment: { ...DEBUG, CALLSIGN_RATE_LIMITS: 'off' } })
    const load = await NodeLoad.start(cluster.nodes, randomFrom(SEED))
    for (const stage of STAGES) {
      for (const isWriter of [true, false]) {
        await load.acknowledged(ACKNOWLEDGED_BEFORE)
        const writer = await eventually(async () => {
          const held = await cluster.writer()
          assert(held !== undefined, 'a node writes')
          return held
        })
        const node = cluster.nodes.find(each => (each === writer) === isWriter)!
        const { server } = node
        server.process.kill('SIGTERM')
        await reaches(server, stage)
        await node.end('SIGKILL')
        await node.start()
        await allServe(cluster.nodes, stage)
      }
    }
    await load.stop()
    const run = `seed ${SEED}, ${JSON.stringify(load.counts)}`
    t.same(await load.messageFaults(), [], run)
    for (const node of cluster.nodes) t.same(await load.lostAt(node), [], `${run}: at ${node.name}`)
  },
)
