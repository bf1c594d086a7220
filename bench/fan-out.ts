/**
 * How many frames a second a topic gives out, one to each subscriber for every SEND, as people in a call hear of one
 * another; held against `publish` of bare uWebSockets.js with frames of the same length.
 */

import { join } from 'node:path'
import type { Benchmark, BenchmarkContext, Row } from './support/benchmark.ts'
import type { FanOutServerProtocol } from './support/fan-out-server.ts'
import { prefillPeople } from './support/people.ts'
import { Program } from './support/program.ts'
import { interleaved, withCpu } from './support/rounds.ts'
import { startServer } from './support/server.ts'
import { mean, rounded, sum } from './support/statistics.ts'
import type { TopicLoadFigures, TopicLoadProtocol } from './support/topic-load.ts'

const ROW: Row = {
  name: 'fan-out',
  project: 'STOMP SEND of 300 bytes to a topic, a MESSAGE to each subscriber',
  limit: 'publish of bare uWebSockets.js, frames of the same length',
  unit: 'frames/s',
  notShown: 'Clients whose subscriptions have other ids than their neighbours cost an encoding each. No TLS.',
}
/** What was ordered: of a hundred. */
const ORDERED: Row = { ...ROW, goal: { of: 'ratio', is: 'at least', value: 0.8 } }

const SHAPES = [
  { receivers: 100, inFlight: 4 },
  { receivers: 100, inFlight: 1 },
  { receivers: 2, inFlight: 4 },
  { receivers: 10, inFlight: 4 },
  { receivers: 32, inFlight: 4 },
  { receivers: 1_000, inFlight: 4 },
]

export const fanOut: Benchmark = { name: 'fan-out', run }

async function run(context: BenchmarkContext): Promise<void> {
  const { isSmoke } = context.scale
  const shapes = isSmoke ? SHAPES.slice(0, 1) : SHAPES
  const dataFolder = join(context.folder, 'data')
  const people = await prefillPeople(dataFolder, Math.max(...shapes.map(({ receivers }) => receivers)), 1)
  const tokens = people.map(({ devices: [device] }) => device!.token)
  const server = await startServer({ dataFolder, profilesFolder: context.profilesFolder })
  context.after(() => server.end())
  const ours = await startLoad(context, Number(new URL(server.http).port))
  const frameBytes = await messageBytes(ours, tokens)
  const bareServer = await Program.start<FanOutServerProtocol>('fan-out-server', {
    by: 'publish',
    frameBytes,
  })
  context.after(() => bareServer.end())
  const bare = await startLoad(context, await bareServer.ask('port'))

  for (const [at, { receivers, inFlight }] of shapes.entries()) {
    const opening = { kind: 'open', destination: `/topic/dev.t${at}`, receivers } as const
    await bare.ask({ ...opening, tokens: [] })
    await ours.ask({ ...opening, tokens })
    const measure = (load: Program<TopicLoadProtocol>, pid: number) =>
      withCpu(pid, () => load.ask({ kind: 'run', inFlight, seconds: context.scale.turnSeconds }))
    await measure(ours, server.pid)
    await measure(bare, bareServer.pid)
    for (const round of context.rounds()) {
      const { limit, project } = await interleaved(
        round,
        context.scale.turns,
        () => measure(bare, bareServer.pid),
        () => measure(ours, server.pid),
      )
      const [limitFigures, projectFigures] = [summarise(limit), summarise(project)]
      context.record(receivers === 100 ? ORDERED : ROW, round, {
        limit: limitFigures.framesPerSecond,
        project: projectFigures.framesPerSecond,
        cpuRatio: limitFigures.cpuMicroseconds / projectFigures.cpuMicroseconds,
        parameters: { receivers, inFlight, frameBytes },
        details: {
          limitCpuMicroseconds: limitFigures.cpuMicroseconds,
          projectCpuMicroseconds: projectFigures.cpuMicroseconds,
          limitClientCores: limitFigures.clientCores,
          projectClientCores: projectFigures.clientCores,
        },
      })
    }
    for (const load of [bare, ours]) await load.ask({ kind: 'close' })
  }
}

async function startLoad(context: BenchmarkContext, port: number): Promise<Program<TopicLoadProtocol>> {
  const load = await Program.start<TopicLoadProtocol>('topic-load', { port })
  context.after(() => load.end())
  return load
}

async function messageBytes(ours: Program<TopicLoadProtocol>, tokens: readonly string[]): Promise<number> {
  const opening = { kind: 'open', destination: '/topic/dev.t0', receivers: 1, tokens } as const
  const { messageBytes: bytes } = await ours.ask(opening)
  await ours.ask({ kind: 'close' })
  return bytes
}

interface Turn {
  readonly figure: TopicLoadFigures
  readonly cpu: number
}

function summarise(turns: readonly Turn[]) {
  const frames = sum(turns.map(({ figure }) => figure.frames))
  return {
    framesPerSecond: mean(turns.map(({ figure }) => figure.framesPerSecond)),
    /** Of the server, per frame. */
    cpuMicroseconds: rounded((sum(turns.map(({ cpu }) => cpu)) * 1e6) / frames),
    /** How much of its core the client needs: where it is nearly one, the client is what is measured. */
    clientCores: rounded(mean(turns.map(({ figure }) => figure.clientCores))),
  }
}
