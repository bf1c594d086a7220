/**
 * How many frames a second a topic gives out, one to each subscriber for every SEND, as people in a call hear of one
 * another; held against `publish` of bare uWebSockets.js with frames of the same length. The peer is RabbitMQ.
 */

import { join } from 'node:path'
import { type Benchmark, type BenchmarkContext, peersOf, type Row } from './support/benchmark.ts'
import { clientDetails, sayClientBesideLimit } from './support/client-watch.ts'
import type { FanOutServerProtocol } from './support/fan-out-server.ts'
import { prefillPeople } from './support/people.ts'
import { Program } from './support/program.ts'
import { openRabbitMq } from './support/rabbitmq.ts'
import { interleavedWith } from './support/rounds.ts'
import { startServer } from './support/server.ts'
import { mean, rounded, sum } from './support/statistics.ts'
import { bearerLogin, type Login } from './support/stomp-socket.ts'
import type { TopicLoadFigures, TopicLoadProtocol } from './support/topic-load.ts'
import { comparedCosts, peerDetails, type Usage, withUsage } from './support/usage.ts'

const ROW: Row = {
  name: 'fan-out',
  project: 'STOMP SEND of 300 bytes to a topic, a MESSAGE to each subscriber',
  limit: 'publish of bare uWebSockets.js, frames of the same length',
  unit: 'frames/s',
  notShown: 'Clients whose subscriptions have other ids than their neighbours cost an encoding each. No TLS.',
}
/** The goal is of a hundred. */
const ORDERED: Row = { ...ROW, goal: { of: 'ratio', is: 'at least', value: 0.8 } }

const SHAPES = [
  { receivers: 100, inFlight: 4 },
  { receivers: 100, inFlight: 1 },
  { receivers: 2, inFlight: 4 },
  { receivers: 10, inFlight: 4 },
  { receivers: 32, inFlight: 4 },
  { receivers: 1_000, inFlight: 4 },
]
/** How many receivers a peer is measured with. */
const PEER_RECEIVERS = new Set([100, 1_000])

export const fanOut: Benchmark = { name: 'fan-out', run }

async function run(context: BenchmarkContext): Promise<void> {
  const { isSmoke, shortTurns } = context.scale
  const shapes = isSmoke ? SHAPES.slice(0, 1) : SHAPES
  const dataFolder = join(context.folder, 'data')
  const people = await prefillPeople(dataFolder, Math.max(...shapes.map(({ receivers }) => receivers)), 1)
  const logins = people.map(({ devices: [device] }) => bearerLogin(device!.token))
  const server = await startServer({
    dataFolder,
    mode: 'with-test-topics',
    profilesFolder: context.profilesFolder,
  })
  context.after(() => server.end())
  const ours = await startLoad(context, Number(new URL(server.http).port))
  const frameBytes = await messageBytes(ours, logins)
  const bareServer = await Program.start<FanOutServerProtocol>('fan-out-server', {
    by: 'publish',
    frameBytes,
  })
  context.after(() => bareServer.end())
  const bare = await startLoad(context, await bareServer.ask('port'))
  const loadedPeers = await openPeers(context)

  for (const [at, { receivers, inFlight }] of shapes.entries()) {
    const opening = { kind: 'open', destination: `/topic/dev.t${at}`, receivers } as const
    await bare.ask({ ...opening, logins: [] })
    await ours.ask({ ...opening, logins })
    const peers = PEER_RECEIVERS.has(receivers) ? loadedPeers : []
    for (const { load, login } of peers) {
      await load.ask({ ...opening, logins: Array.from({ length: receivers }, () => login) })
    }
    const measure = (load: Program<TopicLoadProtocol>, pid: number) =>
      withUsage(pid, () => load.ask({ kind: 'run', inFlight, seconds: shortTurns.turnSeconds }))
    const what = `fan-out, ${receivers} receivers, ${inFlight} in flight`
    sayClient(what, await measure(bare, bareServer.pid))
    await measure(ours, server.pid)
    for (const { load, pid } of peers) await measure(load, pid)
    for (const round of context.rounds()) {
      const { limit, project, others } = await interleavedWith(
        round,
        shortTurns.turns,
        { limit: () => measure(bare, bareServer.pid), project: () => measure(ours, server.pid) },
        new Map(peers.map(({ name, load, pid }) => [name, () => measure(load, pid)])),
      )
      const [limitFigures, projectFigures] = [summarise(limit), summarise(project)]
      const peerFigures = [...others].map(([name, turns]) => [name, summarise(turns)] as const)
      context.record(receivers === 100 ? ORDERED : ROW, round, {
        limit: limitFigures.framesPerSecond,
        project: projectFigures.framesPerSecond,
        ...comparedCosts(limitFigures, projectFigures),
        ...peersOf(peerFigures.map(([name, { framesPerSecond }]) => [name, framesPerSecond])),
        parameters: { receivers, inFlight, frameBytes },
        details: {
          ...peerDetails(peerFigures),
          ...clientDetails(what, [
            ['limit', limitFigures.clientCores],
            ['project', projectFigures.clientCores],
            ...peerFigures.map(([name, { clientCores }]) => [name, clientCores] as const),
          ]),
        },
      })
    }
    for (const { load } of [{ load: bare }, { load: ours }, ...peers]) await load.ask({ kind: 'close' })
  }
}

async function startLoad(context: BenchmarkContext, port: number): Promise<Program<TopicLoadProtocol>> {
  const load = await Program.start<TopicLoadProtocol>('topic-load', { port })
  context.after(() => load.end())
  return load
}

async function openPeers(context: BenchmarkContext) {
  const loads = (await openRabbitMq(context)).map(async peer => ({
    ...peer,
    load: await startLoad(context, peer.port),
  }))
  return Promise.all(loads)
}

async function messageBytes(ours: Program<TopicLoadProtocol>, logins: readonly Login[]): Promise<number> {
  const opening = { kind: 'open', destination: '/topic/dev.t0', receivers: 1, logins } as const
  const { messageBytes: bytes } = await ours.ask(opening)
  await ours.ask({ kind: 'close' })
  return bytes
}

type Turn = Usage & { readonly figure: TopicLoadFigures; readonly seconds: number }

function sayClient(what: string, { figure, cpu, seconds }: Turn): void {
  const rate = `${Math.round(figure.framesPerSecond).toLocaleString('en')} frames/s`
  sayClientBesideLimit(what, rate, { clientCores: figure.clientCores, serverCores: cpu / seconds })
}

function summarise(turns: readonly Turn[]) {
  const operations = sum(turns.map(({ figure }) => figure.frames))
  return {
    turns,
    operations,
    framesPerSecond: mean(turns.map(({ figure }) => figure.framesPerSecond)),
    /** How much of its core the client needs: where it is nearly one, the figure is the client's. */
    clientCores: rounded(mean(turns.map(({ figure }) => figure.clientCores))),
  }
}
