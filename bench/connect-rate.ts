/**
 * How many apps a second can come back: a WebSocket, CONNECT with a token, three subscriptions, all confirmed; held
 * against upgrades of bare uWebSockets.js. The peer is RabbitMQ, with subscriptions to topics. It decides how soon all clients are back after an outage.
 */

import { join } from 'node:path'
import { type Benchmark, type BenchmarkContext, peersOf, type Row } from './support/benchmark.ts'
import { clientDetails, sayClientBesideLimit } from './support/client-watch.ts'
import type { ConnectLoadFigures, ConnectLoadProtocol } from './support/connect-load.ts'
import type { FanOutServerProtocol } from './support/fan-out-server.ts'
import { prefillPeople } from './support/people.ts'
import { Program } from './support/program.ts'
import { openRabbitMq } from './support/rabbitmq.ts'
import { interleavedWith } from './support/rounds.ts'
import { startServer } from './support/server.ts'
import { mean, rounded, sum } from './support/statistics.ts'
import { bearerLogin } from './support/stomp-socket.ts'
import { comparedCosts, peerDetails, type Usage, withUsage } from './support/usage.ts'

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
  const logins = people.flatMap(({ devices }) => devices.map(({ token }) => bearerLogin(token)))
  const server = await startServer({ dataFolder, profilesFolder: context.profilesFolder })
  context.after(() => server.end())
  const ours = await startLoad(context, {
    port: Number(new URL(server.http).port),
    logins,
    to: 'queues',
  })
  const bareServer = await Program.start<FanOutServerProtocol>('fan-out-server', {
    by: 'publish',
    frameBytes: 1,
  })
  context.after(() => bareServer.end())
  const bare = await startLoad(context, {
    port: await bareServer.ask('port'),
    logins: [],
    to: 'queues',
  })
  const measure = (load: Program<ConnectLoadProtocol>, pid: number, seconds: number) =>
    withUsage(pid, () => load.ask({ inFlight: IN_FLIGHT, seconds }))
  const loadedPeers = await openPeers(context, logins.length)
  await measure(ours, server.pid, warmUpSeconds)
  sayClient(await measure(bare, bareServer.pid, warmUpSeconds))
  const peers = new Map(
    loadedPeers.map(({ name, load, pid }) => [name, () => measure(load, pid, turnSeconds)]),
  )
  for (const measurePeer of peers.values()) await measurePeer()
  for (const round of context.rounds()) {
    const { limit, project, others } = await interleavedWith(
      round,
      turns,
      {
        limit: () => measure(bare, bareServer.pid, turnSeconds),
        project: () => measure(ours, server.pid, turnSeconds),
      },
      peers,
    )
    const [limitFigures, projectFigures] = [summarise(limit), summarise(project)]
    const peerFigures = [...others].map(([name, turns]) => [name, summarise(turns)] as const)
    context.record(ROW, round, {
      limit: limitFigures.perSecond,
      project: projectFigures.perSecond,
      ...comparedCosts(limitFigures, projectFigures),
      ...peersOf(peerFigures.map(([name, { perSecond }]) => [name, perSecond])),
      parameters: { connectsInFlight: IN_FLIGHT, devices: logins.length },
      details: {
        ...peerDetails(peerFigures),
        ...clientDetails(ROW.name, [
          ['limit', limitFigures.clientCores],
          ['project', projectFigures.clientCores],
          ...peerFigures.map(([name, { clientCores }]) => [name, clientCores] as const),
        ]),
        projectP99Ms: projectFigures.p99,
      },
    })
  }
}

async function startLoad(context: BenchmarkContext, setup: ConnectLoadProtocol['setup']) {
  const load = await Program.start<ConnectLoadProtocol>('connect-load', setup)
  context.after(() => load.end())
  return load
}

async function openPeers(context: BenchmarkContext, devices: number) {
  const loads = (await openRabbitMq(context)).map(async ({ name, pid, port, login }) => {
    const logins = Array.from({ length: devices }, () => login)
    return { name, pid, load: await startLoad(context, { port, logins, to: 'topics' }) }
  })
  return Promise.all(loads)
}

type Turn = Usage & { readonly figure: ConnectLoadFigures; readonly seconds: number }

function sayClient({ figure, cpu, seconds }: Turn): void {
  const rate = `${Math.round(figure.perSecond).toLocaleString('en')} connections/s`
  sayClientBesideLimit(ROW.name, rate, { clientCores: figure.clientCores, serverCores: cpu / seconds })
}

function summarise(turns: readonly Turn[]) {
  const operations = sum(turns.map(({ figure }) => figure.count))
  return {
    turns,
    operations,
    perSecond: mean(turns.map(({ figure }) => figure.perSecond)),
    clientCores: rounded(mean(turns.map(({ figure }) => figure.clientCores))),
    p99: rounded(mean(turns.map(({ figure }) => figure.latency.p99))),
  }
}
