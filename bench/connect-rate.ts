/**
 * How many apps a second can come back: a WebSocket, CONNECT with a token, three subscriptions, all confirmed; held
 * against upgrades of bare uWebSockets.js. It decides how long an outage lasts once it is over.
 */

import { join } from 'node:path'
import type { Benchmark, BenchmarkContext, Row } from './support/benchmark.ts'
import type { ConnectLoadFigures, ConnectLoadProtocol } from './support/connect-load.ts'
import type { FanOutServerProtocol } from './support/fan-out-server.ts'
import { prefillPeople } from './support/people.ts'
import { Program } from './support/program.ts'
import { interleaved, withCpu } from './support/rounds.ts'
import { startServer } from './support/server.ts'
import { mean, rounded, sum } from './support/statistics.ts'

const ROW: Row = {
  name: 'connect-rate',
  project: 'connect, sign in, subscribe to three queues',
  limit: 'upgrade by bare uWebSockets.js',
  unit: 'connections/s',
  goal: { of: 'ratio', is: 'at least', value: 0.4 },
  notShown:
    'Of these clients each upgrade costs more than bare uWebSockets.js does for it, and a full connect takes three exchanges to its one. Inboxes are empty, tokens were seen before. No TLS.',
}

const PEOPLE = 500
const DEVICES_EACH = 10
const IN_FLIGHT = 64

export const connectRate: Benchmark = { name: 'connect-rate', run }

async function run(context: BenchmarkContext): Promise<void> {
  const { turns, turnSeconds, warmUpSeconds } = context.scale
  const dataFolder = join(context.folder, 'data')
  const people = await prefillPeople(dataFolder, context.scale.isSmoke ? 20 : PEOPLE, DEVICES_EACH)
  const tokens = people.flatMap(({ devices }) => devices.map(({ token }) => token))
  const server = await startServer({ dataFolder, profilesFolder: context.profilesFolder })
  context.after(() => server.end())
  const ours = await startLoad(context, Number(new URL(server.http).port), tokens)
  const bareServer = await Program.start<FanOutServerProtocol>('fan-out-server', {
    by: 'publish',
    frameBytes: 1,
  })
  context.after(() => bareServer.end())
  const bare = await startLoad(context, await bareServer.ask('port'), [])
  const measure = (load: Program<ConnectLoadProtocol>, pid: number, seconds: number) =>
    withCpu(pid, () => load.ask({ inFlight: IN_FLIGHT, seconds }))
  await measure(ours, server.pid, warmUpSeconds)
  await measure(bare, bareServer.pid, warmUpSeconds)
  for (const round of context.rounds()) {
    const { limit, project } = await interleaved(
      round,
      turns,
      () => measure(bare, bareServer.pid, turnSeconds),
      () => measure(ours, server.pid, turnSeconds),
    )
    const [limitFigures, projectFigures] = [summarise(limit), summarise(project)]
    context.record(ROW, round, {
      limit: limitFigures.perSecond,
      project: projectFigures.perSecond,
      cpuRatio: limitFigures.cpuMicroseconds / projectFigures.cpuMicroseconds,
      parameters: { connectsInFlight: IN_FLIGHT, devices: tokens.length },
      details: {
        limitCpuMicroseconds: limitFigures.cpuMicroseconds,
        projectCpuMicroseconds: projectFigures.cpuMicroseconds,
        limitClientCores: limitFigures.clientCores,
        projectClientCores: projectFigures.clientCores,
        projectP99Ms: projectFigures.p99,
      },
    })
  }
}

async function startLoad(context: BenchmarkContext, port: number, tokens: readonly string[]) {
  const load = await Program.start<ConnectLoadProtocol>('connect-load', { port, tokens })
  context.after(() => load.end())
  return load
}

interface Turn {
  readonly figure: ConnectLoadFigures
  readonly cpu: number
}

function summarise(turns: readonly Turn[]) {
  const count = sum(turns.map(({ figure }) => figure.count))
  return {
    perSecond: mean(turns.map(({ figure }) => figure.perSecond)),
    /** Of the server, for each connection. */
    cpuMicroseconds: rounded((sum(turns.map(({ cpu }) => cpu)) * 1e6) / count),
    clientCores: rounded(mean(turns.map(({ figure }) => figure.clientCores))),
    p99: rounded(mean(turns.map(({ figure }) => figure.latency.p99))),
  }
}
