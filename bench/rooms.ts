/**
 * How many events a second call rooms of 2, 10 and 32 people tell those who watch: whole calls, started, rung, joined
 * by all and ended, each change durable before it is told. Held against LMDB alone that commits as many rows, and against
 * rooms of fewer people.
 */

import { join } from 'node:path'
import type { Benchmark, BenchmarkContext, Row } from './support/benchmark.ts'
import { openCalled } from './support/call-street.ts'
import { clientDetails } from './support/client-watch.ts'
import type { CommitLimitProtocol } from './support/commit-limit.ts'
import { Program } from './support/program.ts'
import type { RoomLoadFigures, RoomLoadProtocol } from './support/room-load.ts'
import { interleaved } from './support/rounds.ts'
import { mean, rounded, sum } from './support/statistics.ts'
import { comparedCosts, type Usage, withUsage } from './support/usage.ts'

const EVENTS: Row = {
  name: 'room-events',
  project: 'changes of a call (started, rung, joined, ended), each told to all who watch',
  limit: 'LMDB alone, a row of 200 bytes for each person in a transaction for each change',
  unit: 'changes/s',
  notShown:
    'Each change is asked for by HTTP or STOMP, decided, and its call and what waits for devices written anew; the limit tells nobody. No TLS.',
}
const GROWTH: Row = {
  ...EVENTS,
  name: 'room-events-growth',
  project: 'what rooms tell those who watch, whole calls',
  unit: 'frames/s',
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
  { people: 3, rooms: 1 },
]
/** The limit's: about as many as a second takes. */
const COMMITS_PER_TURN = 20_000
const COMMITS_PER_TURN_SMOKE = 500
const BYTES_PER_PERSON = 200

export const rooms: Benchmark = { name: 'rooms', run }

type Turn = Usage & { readonly figure: RoomLoadFigures }
type LimitTurn = Usage & { readonly figure: CommitLimitProtocol['answer'] }

/** Rooms of one size, and what they are held against. */
interface Sides {
  readonly people: number
  readonly rooms: number
  /** So many changes. */
  readonly commitsPerTurn: number
  readonly bare: () => Promise<LimitTurn>
  readonly ours: (seconds: number) => Promise<Turn>
}

async function run(context: BenchmarkContext): Promise<void> {
  const { isSmoke, turns, turnSeconds, warmUpSeconds } = context.scale
  const sizes: Sides[] = []
  for (const plan of isSmoke ? ROOMS_SMOKE : ROOMS) sizes.push(await open(context, plan.people, plan.rooms))
  for (const { ours } of isSmoke ? [] : sizes) await ours(warmUpSeconds)
  for (const round of context.rounds()) {
    let smaller: (ReturnType<typeof summarise> & { readonly people: number }) | undefined
    for (const { people, rooms, commitsPerTurn, bare, ours } of sizes) {
      const { limit, project } = await interleaved(round, turns, bare, () => ours(turnSeconds))
      const figures = summarise(project, people)
      context.record(EVENTS, round, {
        limit: mean(limit.map(({ figure }) => figure.perSecond)),
        project: figures.changesPerSecond,
        ...comparedCosts({ turns: limit, operations: limit.length * commitsPerTurn }, figures.changes),
        parameters: { people, rooms },
        details: {
          calls: sum(project.map(({ figure }) => figure.calls)),
          frameBytes: rounded(mean(project.map(({ figure }) => figure.frameBytes))),
          framesPerSecond: rounded(figures.framesPerSecond),
          ...clientDetails(`rooms of ${people}`, [
            ['project', mean(project.map(({ figure }) => figure.clientCores))],
          ]),
        },
      })
      if (smaller !== undefined) {
        context.record(GROWTH, round, {
          limit: smaller.framesPerSecond,
          project: figures.framesPerSecond,
          ...comparedCosts(smaller.frames, figures.frames),
          parameters: { people, than: smaller.people, rooms },
        })
      }
      smaller = { people, ...figures }
    }
  }
}

async function open(context: BenchmarkContext, people: number, count: number): Promise<Sides> {
  const plan = { groups: count, callersEach: 1, calleesEach: people - 1, devices: 1 }
  const { server, groups } = await openCalled(context, plan, { folder: `rooms-${people}` })
  const ours = await Program.start<RoomLoadProtocol>('room-load', { url: server.http, rooms: groups })
  context.after(() => ours.end())
  const call = { table: 'calls', puts: 1, removes: 0, keyBytes: 8, valueBytes: people * BYTES_PER_PERSON }
  const limit = await Program.start<CommitLimitProtocol>('commit-limit', {
    folder: join(context.folder, `limit-${people}`),
    transactions: [[call]],
  })
  context.after(() => limit.end())
  const operations = context.scale.isSmoke ? COMMITS_PER_TURN_SMOKE : COMMITS_PER_TURN
  return {
    people,
    rooms: count,
    // So many are asked for at a time: everybody but the caller joins at once.
    commitsPerTurn: operations,
    bare: () => withUsage(limit.pid, () => limit.ask({ operations, inFlight: count * (people - 1) })),
    ours: seconds => withUsage(server.pid, () => ours.ask({ course: 'joined', seconds })),
  }
}

function summarise(turns: readonly Turn[], people: number) {
  // Started and ended once, rung and joined by everybody but the caller.
  const changes = sum(turns.map(({ figure }) => figure.calls * 2 * people))
  const frames = sum(turns.map(({ figure }) => figure.frames))
  const framesPerSecond = mean(turns.map(({ figure }) => figure.framesPerSecond))
  return {
    framesPerSecond,
    changesPerSecond: (framesPerSecond * changes) / frames,
    changes: { turns, operations: changes },
    frames: { turns, operations: frames },
  }
}
