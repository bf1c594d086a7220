/**
 * How many events a second call rooms of 2, 10 and 32 people tell those who watch: whole calls, started, rung, joined
 * by all and ended, each change durable before it is told. Held against `publish` of bare uWebSockets.js to as many, and
 * against rooms of fewer people.
 */

import { join } from 'node:path'
import type { Benchmark, BenchmarkContext, Row } from './support/benchmark.ts'
import { settle } from './support/call-street.ts'
import { clientDetails } from './support/client-watch.ts'
import type { FanOutServerProtocol } from './support/fan-out-server.ts'
import { Program } from './support/program.ts'
import type { RoomLoadFigures, RoomLoadProtocol } from './support/room-load.ts'
import { interleaved, withCpu } from './support/rounds.ts'
import { startServer } from './support/server.ts'
import { mean, rounded, sum } from './support/statistics.ts'
import type { TopicLoadFigures, TopicLoadProtocol } from './support/topic-load.ts'

const EVENTS: Row = {
  name: 'room-events',
  project: 'events of calls to all who watch, whole calls, rooms of',
  limit: 'publish of bare uWebSockets.js, frames of the same length',
  unit: 'frames/s',
  notShown:
    'Each change of a call is durable before it is told, asked for by HTTP, and tells the devices of the people too; the limit does nothing of this. No TLS.',
}
const GROWTH: Row = {
  ...EVENTS,
  name: 'room-events-growth',
  limit: 'the same with fewer people',
  goal: { of: 'ratio', is: 'at least', value: 0.9 },
  notShown: 'The more people, the more are told of each change; as many people at a time in all.',
}

const ROOMS = [
  { people: 2, rooms: 32 },
  { people: 10, rooms: 6 },
  { people: 32, rooms: 2 },
]
const ROOMS_SMOKE = [
  { people: 2, rooms: 2 },
  { people: 4, rooms: 1 },
]
const IN_FLIGHT = 4

export const rooms: Benchmark = { name: 'rooms', run }

interface Turn<Figure> {
  readonly figure: Figure
  readonly cpu: number
}

/** Rooms of one size, and what they are held against. */
interface Sides {
  readonly people: number
  readonly rooms: number
  readonly bare: (seconds: number) => Promise<Turn<TopicLoadFigures>>
  readonly ours: (seconds: number) => Promise<Turn<RoomLoadFigures>>
}

async function run(context: BenchmarkContext): Promise<void> {
  const { isSmoke, turns, turnSeconds, warmUpSeconds } = context.scale
  const sizes: Sides[] = []
  for (const plan of isSmoke ? ROOMS_SMOKE : ROOMS) sizes.push(await open(context, plan.people, plan.rooms))
  for (const { ours } of sizes) await ours(warmUpSeconds)
  for (const round of context.rounds()) {
    let smaller: { people: number; framesPerSecond: number; cpuMicroseconds: number } | undefined
    for (const { people, rooms, bare, ours } of sizes) {
      const { limit, project } = await interleaved(
        round,
        turns,
        () => bare(turnSeconds),
        () => ours(turnSeconds),
      )
      const [bareFigures, figures] = [summarise(limit), summarise(project)]
      const cpuRatio = bareFigures.cpuMicroseconds / figures.cpuMicroseconds
      context.record(EVENTS, round, {
        limit: bareFigures.framesPerSecond,
        project: figures.framesPerSecond,
        cpuRatio,
        parameters: { people, rooms },
        details: {
          calls: sum(project.map(({ figure }) => figure.calls)),
          frameBytes: rounded(mean(project.map(({ figure }) => figure.frameBytes))),
          limitCpuMicroseconds: bareFigures.cpuMicroseconds,
          projectCpuMicroseconds: figures.cpuMicroseconds,
          ...clientDetails(`rooms of ${people}`, [
            ['limit', bareFigures.clientCores],
            ['project', figures.clientCores],
          ]),
        },
      })
      if (smaller !== undefined) {
        context.record(GROWTH, round, {
          limit: smaller.framesPerSecond,
          project: figures.framesPerSecond,
          cpuRatio: smaller.cpuMicroseconds / figures.cpuMicroseconds,
          parameters: { people, than: smaller.people, rooms },
        })
      }
      smaller = { people, ...figures }
    }
  }
}

async function open(context: BenchmarkContext, people: number, count: number): Promise<Sides> {
  const dataFolder = join(context.folder, `rooms-${people}`)
  const plan = { groups: count, callersEach: 1, calleesEach: people - 1, devices: 1 }
  const groups = await settle(dataFolder, plan)
  const server = await startServer({ dataFolder, profilesFolder: context.profilesFolder })
  context.after(() => server.end())
  const ours = await Program.start<RoomLoadProtocol>('room-load', { url: server.http, rooms: groups })
  context.after(() => ours.end())
  const { frameBytes } = await ours.ask({ seconds: 0.1 })
  const bareServer = await Program.start<FanOutServerProtocol>('fan-out-server', {
    by: 'publish',
    frameBytes,
  })
  context.after(() => bareServer.end())
  const bare = await Program.start<TopicLoadProtocol>('topic-load', { port: await bareServer.ask('port') })
  context.after(() => bare.end())
  await bare.ask({ kind: 'open', destination: '', receivers: people, logins: [] })
  return {
    people,
    rooms: count,
    bare: seconds => withCpu(bareServer.pid, () => bare.ask({ kind: 'run', inFlight: IN_FLIGHT, seconds })),
    ours: seconds => withCpu(server.pid, () => ours.ask({ seconds })),
  }
}

interface Frames {
  readonly frames: number
  readonly framesPerSecond: number
  readonly clientCores: number
}

function summarise(turns: readonly Turn<Frames>[]) {
  const frames = sum(turns.map(({ figure }) => figure.frames))
  return {
    framesPerSecond: mean(turns.map(({ figure }) => figure.framesPerSecond)),
    /** Of the server, per frame. */
    cpuMicroseconds: rounded((sum(turns.map(({ cpu }) => cpu)) * 1e6) / frames),
    clientCores: rounded(mean(turns.map(({ figure }) => figure.clientCores))),
  }
}
