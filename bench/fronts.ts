/**
 * What the work of one process costs when two fronts share it: messages of calls, connections through TLS, requests that
 * only read. The same server without fronts is the limit, in turns over a copy of the same store.
 *
 * The writer is the one process that can not be had twice, so its main thread is what the figures are of; what all
 * processes need together is in the details.
 */

import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { formatTilePath, TILE_WIDTH } from '../src/log/tile.ts'
import type { Benchmark, BenchmarkContext, Row } from './support/benchmark.ts'
import type { CallGroup, CallLoadFigures } from './support/call-load.ts'
import { settle, startLoad } from './support/call-street.ts'
import { certificateOf } from './support/certificate.ts'
import type { ConnectLoadFigures, ConnectLoadProtocol } from './support/connect-load.ts'
import { type HttpRequest, runHttpLoad, writeRequests } from './support/http-load.ts'
import { targetOf } from './support/load-socket.ts'
import { lookupRequests } from './support/lookups.ts'
import { childrenOf, cpuSeconds, mainThreadMs } from './support/machine.ts'
import { prefilledLog } from './support/prefill.ts'
import { Program, type Protocol } from './support/program.ts'
import { interleaved, type Turns } from './support/rounds.ts'
import { type ServerOptions, startServer } from './support/server.ts'
import { mean, rounded, sum } from './support/statistics.ts'
import { bearerLogin } from './support/stomp-socket.ts'
import type { TopicLoadFigures, TopicLoadProtocol } from './support/topic-load.ts'

const LIMIT = 'the same server without fronts'
const NOT_SHOWN =
  'Server and clients share two cores. All processes together are in the details; a front costs its share of work, and a machine with more cores spreads it.'
const MESSAGES: Row = {
  name: 'fronts-messages',
  project: "a message of a call to ten, acknowledged, with two fronts: the writer's main thread",
  limit: LIMIT,
  unit: 'µs',
  goal: {
    of: 'ratio',
    is: 'at most',
    value: 0.6,
    because:
      'The changes and the decisions stay in the writer: sessions, HTTP and sockets alone can leave it.',
  },
  notShown: `${NOT_SHOWN} The side that has more calls shares more commits. No TLS.`,
}
const ANSWERED: Row = {
  ...MESSAGES,
  name: 'fronts-answered',
  project: "a call to ten that five answer, with two fronts: the writer's main thread",
}
const FRAMES: Row = {
  ...MESSAGES,
  name: 'fronts-frames',
  project: "a frame to each subscriber of a topic, with two fronts: the writer's main thread",
  goal: { of: 'ratio', is: 'at most', value: 0.5 },
  notShown: `${NOT_SHOWN} No TLS.`,
}
const CALL: Row = {
  name: 'fronts-call-start',
  project: 'from POST call/start to the invitation of the tenth callee, with two fronts, p50',
  limit: LIMIT,
  unit: 'ms',
  goal: { of: 'ratio', is: 'at most', value: 1.5 },
  notShown: `${NOT_SHOWN} No TLS.`,
}
const CONNECTS: Row = {
  name: 'fronts-connects',
  project: "TLS handshake, sign-in, three subscriptions, with two fronts: the writer's main thread",
  limit: LIMIT,
  unit: 'µs',
  goal: {
    of: 'ratio',
    is: 'at most',
    value: 0.4,
    because:
      'The writer is told of each that comes and goes, and waking up for a message costs more than it.',
  },
  notShown: `${NOT_SHOWN} A certificate of ECDSA P-256, full handshakes; inboxes are empty.`,
}

function requestRow(name: string, what: string): Row {
  return {
    name: `fronts-${name}`,
    project: `${what}, with two fronts: processor time of all processes`,
    limit: LIMIT,
    unit: 'µs',
    goal: {
      of: 'ratio',
      is: 'at most',
      value: 1.3,
      because: 'Three processes and the client take turns on two cores.',
    },
    notShown: `${NOT_SHOWN} No TLS.`,
  }
}

const FRONTS = 2
/** A caller for each call of a second, and some to spare. */
const PLAN = { groups: 16, callersEach: 8, calleesEach: 10, devices: 1 }
const PLAN_SMOKE = { ...PLAN, groups: 2 }
const CALLS_IN_FLIGHT = 16
/** One for every second group: a device is in one call at a time. */
const ANSWERED_IN_FLIGHT = 8
const CALLS_PER_SECOND = 20
const CONNECTS_IN_FLIGHT = 32
const RECEIVERS = 100
const SENDS_IN_FLIGHT = 4
const HTTP_CONNECTIONS = 64
const ENTRIES = 100_000
const LOG_DEVICES = 10_000
/** So few that both fronts have proven each in the warm-up. */
const TARGETS = 100

export const fronts: Benchmark = { name: 'fronts', run }

async function run(context: BenchmarkContext): Promise<void> {
  const { scale, storesFolder, folder } = context
  const entries = scale.isSmoke ? scale.entries : ENTRIES
  const log = await prefilledLog(storesFolder, { entries, devices: Math.min(LOG_DEVICES, scale.devices) })
  const dataFolder = join(folder, 'alone')
  cpSync(log.dataFolder, dataFolder, { recursive: true })
  const groups = await settle(dataFolder, scale.isSmoke ? PLAN_SMOKE : PLAN)
  cpSync(dataFolder, join(folder, 'fronts'), { recursive: true })

  const plain = await openPair(context)
  await compareCalls(context, plain, groups)
  const tokens = groups.flatMap(({ callers, callees }) => [...callers, ...callees]).map(tokenOf)
  const firstTile = `/${formatTilePath({ level: 0, index: 0, width: TILE_WIDTH })}`
  const targets = log.targets.slice(0, TARGETS)
  for (const [name, what, requests] of [
    ['tile', 'full tile GET', [{ path: firstTile }]],
    ['lookup', 'get-public-keys, 1 target, proof of the VRF in the cache', lookupRequests(targets)],
    ['user', 'GET /app/api/user', tokens.map(token => ({ path: '/app/api/user', token }))],
  ] as const)
    await compareRequests(context, plain, requestRow(name, what), requests)
  await plain.end()

  const withTls = await openPair(context, { environment: certificateOf(folder, 'ECDSA P-256') })
  await compareConnects(context, withTls, tokens)
  await withTls.end()

  const withTopics = await openPair(context, { mode: 'with-test-topics' })
  await compareFrames(context, withTopics, tokens)
}

/** A server; its first process is the writer. */
interface Side {
  readonly url: string
  readonly pids: readonly [writer: number, ...fronts: number[]]
}

interface Pair {
  readonly alone: Side
  readonly fronts: Side
  end(): Promise<void>
}

async function openPair(
  context: BenchmarkContext,
  { environment, ...options }: Pick<ServerOptions, 'environment' | 'mode'> = {},
): Promise<Pair> {
  const open = async (name: string, count: number) => {
    const server = await startServer({
      ...options,
      dataFolder: join(context.folder, name),
      environment: { ...environment, CALLSIGN_FRONTS: String(count) },
      profilesFolder: context.profilesFolder,
    })
    context.after(() => server.end())
    return { server, url: server.http, pids: [server.pid, ...childrenOf(server.pid)] as const }
  }
  const [alone, fronts] = [await open('alone', 0), await open('fronts', FRONTS)]
  return {
    alone,
    fronts,
    async end() {
      for (const { server } of [alone, fronts]) await server.end()
    },
  }
}

/** The result of a run, and its microseconds of processor time. */
interface Turn<Figure> {
  readonly figure: Figure
  /** The main thread of the first process, that process, and all of them. */
  readonly mainThread: number
  readonly writer: number
  readonly all: number
}

async function costOf<Figure>({ pids }: Side, run: () => Promise<Figure>): Promise<Turn<Figure>> {
  const read = () => ({
    mainThread: 1e3 * mainThreadMs(pids[0]),
    writer: 1e6 * cpuSeconds(pids[0]),
    all: 1e6 * sum(pids.map(cpuSeconds)),
  })
  const before = read()
  const figure = await run()
  const after = read()
  return {
    figure,
    mainThread: after.mainThread - before.mainThread,
    writer: after.writer - before.writer,
    all: after.all - before.all,
  }
}

/** Costs of one operation on both sides, and their details. */
function eachOf<Figure>(turns: Turns<Turn<Figure>>, operationsOf: (figure: Figure) => number) {
  const each = (of: readonly Turn<Figure>[], which: 'mainThread' | 'writer' | 'all') =>
    sum(of.map(turn => turn[which])) / sum(of.map(({ figure }) => operationsOf(figure)))
  const { limit, project } = turns
  return {
    mainThread: { limit: each(limit, 'mainThread'), project: each(project, 'mainThread') },
    all: { limit: each(limit, 'all'), project: each(project, 'all') },
    details: {
      limitMainThreadMicroseconds: rounded(each(limit, 'mainThread')),
      limitAllMicroseconds: rounded(each(limit, 'all')),
      writerMainThreadMicroseconds: rounded(each(project, 'mainThread')),
      writerMicroseconds: rounded(each(project, 'writer')),
      allMicroseconds: rounded(each(project, 'all')),
      operations: sum(project.map(({ figure }) => operationsOf(figure))),
    },
  }
}

/** Runs the load on both in turn, after a warm-up. */
async function compare<Figure>(
  context: BenchmarkContext,
  { alone, fronts }: Pair,
  load: (side: Side, seconds: number) => Promise<Figure>,
  record: (round: number, turns: Turns<Turn<Figure>>) => void,
): Promise<void> {
  const { isSmoke, turns, turnSeconds, warmUpSeconds } = context.scale
  for (const side of isSmoke ? [] : [alone, fronts]) await load(side, Math.ceil(warmUpSeconds))
  for (const round of context.rounds()) {
    const measured = await interleaved(
      round,
      turns,
      () => costOf(alone, () => load(alone, turnSeconds)),
      () => costOf(fronts, () => load(fronts, turnSeconds)),
    )
    record(round, measured)
  }
}

async function compareCalls(
  context: BenchmarkContext,
  pair: Pair,
  groups: readonly CallGroup[],
): Promise<void> {
  const loads = await loadsOf(pair, ({ url }) => startLoad(context, url, 'project', groups))
  const people = PLAN.calleesEach + 1
  const callOn =
    (request: { readonly kind: 'in-flight' | 'answered'; readonly calls: number }) =>
    (side: Side, seconds: number) =>
      loads.get(side)!.ask({ ...request, seconds })
  const inFlight = CALLS_IN_FLIGHT
  await compare(context, pair, callOn({ kind: 'in-flight', calls: inFlight }), (round, turns) => {
    const { mainThread, details } = eachOf(turns, figure => figure.messages)
    context.record(MESSAGES, round, {
      ...mainThread,
      parameters: { people, inFlight, fronts: FRONTS },
      details,
    })
  })
  const calls = Math.min(ANSWERED_IN_FLIGHT, groups.length)
  await compare(context, pair, callOn({ kind: 'answered', calls }), (round, turns) => {
    const { mainThread, details } = eachOf(turns, figure => figure.calls)
    const parameters = { people, inFlight: calls, fronts: FRONTS }
    context.record(ANSWERED, round, { ...mainThread, parameters, details })
  })
  const rate = { kind: 'rate', callsPerSecond: CALLS_PER_SECOND, ends: 'meanwhile' } as const
  const callAtRate = (side: Side, seconds: number) =>
    loads.get(side)!.ask({ ...rate, seconds: RATE_TURNS * seconds })
  await compare(context, pair, callAtRate, (round, turns) => {
    const meanOf = (of: readonly Turn<CallLoadFigures>[], which: 'p50' | 'p99') =>
      rounded(mean(of.map(({ figure }) => figure.latency[which])))
    context.record(CALL, round, {
      limit: meanOf(turns.limit, 'p50'),
      project: meanOf(turns.project, 'p50'),
      parameters: { people, callsPerSecond: CALLS_PER_SECOND, fronts: FRONTS },
      details: {
        limitP99Ms: meanOf(turns.limit, 'p99'),
        projectP99Ms: meanOf(turns.project, 'p99'),
        ...eachOf(turns, ({ calls }) => calls).details,
      },
    })
  })
  for (const load of loads.values()) await load.end()
}

async function compareRequests(
  context: BenchmarkContext,
  pair: Pair,
  row: Row,
  list: readonly HttpRequest[],
): Promise<void> {
  const requests = writeRequests(context.folder, row.name, list)
  await compare(
    context,
    pair,
    ({ url }, seconds) => runHttpLoad({ url, requests, connections: HTTP_CONNECTIONS, seconds }),
    (round, turns) => {
      const { all, details } = eachOf(turns, figure => figure.requests)
      context.record(row, round, { ...all, parameters: { fronts: FRONTS }, details })
    },
  )
}

async function compareConnects(
  context: BenchmarkContext,
  pair: Pair,
  tokens: readonly string[],
): Promise<void> {
  // A device that connects twice at a time loses the first connection.
  const inFlight = Math.min(CONNECTS_IN_FLIGHT, tokens.length / 2)
  const clients = { logins: tokens.map(bearerLogin), to: 'queues' } as const
  const loads = await loadsOf(pair, ({ url }) =>
    Program.start<ConnectLoadProtocol>('connect-load', { ...targetOf(url), ...clients }),
  )
  await compare<ConnectLoadFigures>(
    context,
    pair,
    (side, seconds) => loads.get(side)!.ask({ inFlight, seconds }),
    (round, turns) => {
      const { mainThread, details } = eachOf(turns, ({ count }) => count)
      const parameters = { connectsInFlight: inFlight, devices: tokens.length, fronts: FRONTS }
      context.record(CONNECTS, round, { ...mainThread, parameters, details })
    },
  )
  for (const load of loads.values()) await load.end()
}

async function compareFrames(
  context: BenchmarkContext,
  pair: Pair,
  tokens: readonly string[],
): Promise<void> {
  const loads = await loadsOf(pair, ({ url }) =>
    Program.start<TopicLoadProtocol>('topic-load', { port: targetOf(url).port }),
  )
  const receivers = Math.min(RECEIVERS, tokens.length)
  const logins = tokens.slice(0, receivers).map(bearerLogin)
  for (const load of loads.values()) {
    await load.ask({ kind: 'open', destination: '/topic/dev.fronts', receivers, logins })
  }
  await compare<TopicLoadFigures>(
    context,
    pair,
    (side, seconds) => loads.get(side)!.ask({ kind: 'run', inFlight: SENDS_IN_FLIGHT, seconds }),
    (round, turns) => {
      const { mainThread, details } = eachOf(turns, ({ frames }) => frames)
      const parameters = { receivers, inFlight: SENDS_IN_FLIGHT, fronts: FRONTS }
      context.record(FRAMES, round, { ...mainThread, parameters, details })
    },
  )
  for (const load of loads.values()) await load.end()
}

/** A load client for each side. */
async function loadsOf<P extends Protocol>(
  { alone, fronts }: Pair,
  start: (side: Side) => Promise<Program<P>>,
): Promise<ReadonlyMap<Side, Program<P>>> {
  return new Map([
    [alone, await start(alone)],
    [fronts, await start(fronts)],
  ])
}

function tokenOf({ devices: [device] }: CallGroup['callers'][number]): string {
  return device!.token
}

/** A turn at a rate has few calls otherwise. */
const RATE_TURNS = 3
