/**
 * What an idle connection weighs that is signed in, subscribed to the three queues of its device and beating: resident
 * bytes of the server, held against a bare WebSocket of uWebSockets.js; and whether it weighs the same however many there
 * are. The peer is RabbitMQ, with subscriptions to topics.
 */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  type Benchmark,
  type BenchmarkContext,
  type Parameters,
  peersOf,
  type Row,
} from './support/benchmark.ts'
import {
  collectedMemory,
  collectingArguments,
  collectingEnvironment,
  type Memory,
  type Scales,
} from './support/collected-memory.ts'
import type { ConnectLoadProtocol } from './support/connect-load.ts'
import type { SubscribingTo } from './support/device-queues.ts'
import type { FanOutServerProtocol } from './support/fan-out-server.ts'
import { runHttpLoad, writeRequests } from './support/http-load.ts'
import type { IdleLoadFigures, IdleLoadProtocol } from './support/idle-load.ts'
import { residentMemory } from './support/machine.ts'
import { prefillPeople } from './support/people.ts'
import { Program } from './support/program.ts'
import { openRabbitMq, type RabbitMq } from './support/rabbitmq.ts'
import { startServer } from './support/server.ts'
import { rounded } from './support/statistics.ts'
import { bearerLogin, type Login } from './support/stomp-socket.ts'

const ROW: Row = {
  name: 'connections',
  project: 'resident memory of an idle connection: signed in, three subscriptions, heart-beats',
  limit: 'idle WebSocket of bare uWebSockets.js',
  unit: 'bytes',
  goal: { of: 'project', is: 'at most', value: 4_096 },
  notShown:
    'Growth of the resident bytes of the process, after collections, from a fifth of the connections on; what the kernel holds of a socket is not among them. Ten devices to a user; no TLS.',
}

/** The goal is of fifteen thousand. */
const SMALLER: Row = {
  name: ROW.name,
  project: ROW.project,
  limit: ROW.limit,
  unit: ROW.unit,
  notShown: ROW.notShown,
}
const GROWTH: Row = {
  ...ROW,
  name: 'connections-growth',
  limit: 'the same with fewer',
  goal: { of: 'ratio', is: 'at most', value: 1.2 },
}

const FRESH: Row = {
  name: 'connections-fresh',
  project: `${ROW.project}, in a process that has just started`,
  limit: ROW.limit,
  unit: ROW.unit,
  goal: { of: 'project', is: 'at most', value: 8_192 },
  notShown:
    'Growth of the resident bytes of the process, after collections, from no connection on: the code that the first ones bring in counts, and the room that V8 takes to work in.',
}
const WARM: Row = {
  name: 'connections-warm',
  project: `${ROW.project}, in a process after load`,
  limit: 'the same in one that has just started',
  unit: ROW.unit,
  notShown:
    'The load was all these connections, then connects and GET user for some seconds; all of it was closed and the garbage collected. What was in use before is used again, so less is added.',
}

/** The weight of a thousand is lost in the process's other work. */
const COUNTS = [5_000, 15_000]
const COUNTS_SMOKE = [40, 200]
/** A peer's connections are weighed up to so many. */
const PEER_COUNT_MAX = 5_000
/** Open already when it is first weighed, so that neither code nor the room that V8 takes to work in counts. */
const OPEN_BEFORE_SHARE = 0.2
const DEVICES_EACH = 10
/** The time for each load between two weighings. */
const LOAD_SECONDS = 5
const LOAD_SECONDS_SMOKE = 0.5

export const connections: Benchmark = { name: 'connections', run }

async function run(context: BenchmarkContext): Promise<void> {
  const openable = openableMax()
  const counts = (context.scale.isSmoke ? COUNTS_SMOKE : COUNTS).map(count => Math.min(count, openable))
  const dataFolder = join(context.folder, 'data')
  const people = await prefillPeople(dataFolder, Math.ceil(Math.max(...counts) / DEVICES_EACH), DEVICES_EACH)
  const logins = people.flatMap(({ devices }) => devices.map(({ token }) => bearerLogin(token)))
  const scales = {
    path: join(context.folder, 'memory.json'),
    collections: context.scale.isSmoke ? 1 : COLLECTIONS,
  }
  for (const round of context.rounds()) {
    // The weight of few bare ones is lost in the process's other work; many weigh the same.
    const most = counts.at(-1)!
    const [bareFresh, limit] = await bareWeights(scales, [ofAll(most), ofLast(most)])
    const { fresh, warm, project } = await serverWeights(context, scales, dataFolder, logins, counts)
    const parametersOfMost = { connections: most, devicesEach: DEVICES_EACH }
    context.record(FRESH, round, {
      limit: bareFresh!.rss,
      project: fresh.rss,
      parameters: parametersOfMost,
      details: detailsOf(fresh),
    })
    context.record(WARM, round, {
      limit: fresh.rss,
      project: warm.rss,
      parameters: parametersOfMost,
      details: detailsOf(warm),
    })
    const peers = await peersWeights(context, counts)
    for (const [at, count] of counts.entries()) {
      record(context, round, count, { limit: limit!, project: project[at]!, peers })
      const smaller = project[at - 1]
      if (smaller === undefined) continue
      const parameters = { connections: count, than: counts[at - 1]!, devicesEach: DEVICES_EACH }
      context.record(GROWTH, round, { limit: smaller.rss, project: project[at]!.rss, parameters })
    }
  }
}

interface Weighed {
  readonly limit: Weight
  readonly project: Weight
  readonly peers: readonly (readonly [name: string, weights: readonly Weight[]])[]
}

function record(
  context: BenchmarkContext,
  round: number,
  count: number,
  { limit, project, peers }: Weighed,
): void {
  const peerFigures = peers.flatMap(([name, weights]) =>
    weights.filter(weight => weight.count === count).map(({ rss }) => [name, rss] as const),
  )
  context.record(count === COUNTS.at(-1) ? ROW : SMALLER, round, {
    limit: limit.rss,
    project: project.rss,
    ...peersOf(peerFigures),
    parameters: { connections: count, devicesEach: DEVICES_EACH },
    details: detailsOf(project),
  })
}

function detailsOf({ heapUsed, external, rssAtEnd }: Weight): Parameters {
  return {
    projectHeapBytes: rounded(heapUsed),
    projectExternalBytes: rounded(external),
    projectResidentMegabytes: rounded(rssAtEnd / 1e6),
  }
}

/** Bytes of one connection more, and of the process when so many were open. */
type Weight = Memory & { readonly count: number; readonly rssAtEnd: number }

/** The connections that are weighed: those that come after the first few, until there are so many. */
interface Span {
  readonly first: number
  readonly count: number
}

function ofLast(count: number): Span {
  return { first: Math.floor(OPEN_BEFORE_SHARE * count), count }
}

function ofAll(count: number): Span {
  return { first: 0, count }
}

async function bareWeights(scales: Scales, spans: readonly Span[]): Promise<Weight[]> {
  const setup = { by: 'publish', frameBytes: 1 } as const
  const environment = collectingEnvironment(scales)
  const server = await Program.start<FanOutServerProtocol>(
    'fan-out-server',
    setup,
    collectingArguments(),
    environment,
  )
  try {
    return await weigh(spans, {
      port: await server.ask('port'),
      loginOf: () => [],
      to: 'queues',
      memory: () => collectedMemory(server.pid, scales),
    })
  } finally {
    await server.end()
  }
}

async function serverWeights(
  context: BenchmarkContext,
  scales: Scales,
  dataFolder: string,
  logins: readonly Login[],
  counts: readonly number[],
): Promise<{ readonly fresh: Weight; readonly warm: Weight; readonly project: readonly Weight[] }> {
  const environment = collectingEnvironment(scales)
  const server = await startServer({ dataFolder, environment, nodeArguments: collectingArguments() })
  try {
    const weighing = {
      port: Number(new URL(server.http).port),
      loginOf: (at: number) => [logins[at]!],
      to: 'queues',
      memory: () => collectedMemory(server.pid, scales),
    } as const
    const most = ofAll(counts.at(-1)!)
    const [fresh, ...project] = await weigh([most, ...counts.map(ofLast)], weighing)
    await loadServer(context, server.http, logins)
    const [warm] = await weigh([most], weighing)
    return { fresh: fresh!, warm: warm!, project }
  } finally {
    await server.end()
  }
}

/** Resolves when all of the load is gone again. */
async function loadServer(
  { scale, folder }: BenchmarkContext,
  url: string,
  logins: readonly Login[],
): Promise<void> {
  const seconds = scale.isSmoke ? LOAD_SECONDS_SMOKE : LOAD_SECONDS
  const port = Number(new URL(url).port)
  const connects = await Program.start<ConnectLoadProtocol>('connect-load', { port, logins, to: 'queues' })
  await connects.ask({ inFlight: LOAD_IN_FLIGHT, seconds })
  await connects.end()
  const path = '/app/api/user'
  const asked = logins.map(([, authorization]) => ({
    path,
    token: authorization!.slice('authorization:Bearer '.length),
  }))
  const requests = writeRequests(folder, 'connections', asked)
  await runHttpLoad({ url, requests, connections: LOAD_IN_FLIGHT, seconds: Math.ceil(seconds) })
}

async function peersWeights(context: BenchmarkContext, counts: readonly number[]): Promise<Weighed['peers']> {
  const weighed: (readonly [string, readonly Weight[]])[] = []
  for (const peer of await openRabbitMq(context)) weighed.push([peer.name, await peerWeights(peer, counts)])
  return weighed
}

async function peerWeights(peer: RabbitMq, counts: readonly number[]): Promise<Weight[]> {
  try {
    return await weigh(counts.filter(count => count <= PEER_COUNT_MAX).map(ofLast), {
      port: peer.port,
      loginOf: () => [peer.login],
      to: 'topics',
      async memory() {
        await peer.collectGarbage()
        return { rss: residentMemory(peer.pid).all, heapUsed: 0, external: 0 }
      },
    })
  } finally {
    await peer.end()
  }
}

interface Weighing {
  readonly port: number
  /** None for bare uWebSockets.js. */
  readonly loginOf: (at: number) => readonly Login[]
  readonly to: SubscribingTo
  /** After collections. */
  readonly memory: () => Promise<Memory>
}

/** Opens more and more connections, and weighs those of each span. */
async function weigh(spans: readonly Span[], { port, loginOf, to, memory }: Weighing): Promise<Weight[]> {
  const load = await Program.start<IdleLoadProtocol>('idle-load', { port, to })
  try {
    const steps = [...new Set(spans.flatMap(({ first, count }) => [first, count]))].sort((a, b) => a - b)
    const memories = new Map<number, Memory>()
    let open = 0
    for (const step of steps) {
      const logins = Array.from({ length: step - open }, (_, at) => loginOf(open + at)).flat()
      const figures = await load.ask({ connections: step - open, logins })
      if (figures.open !== step) throw new Error(`only ${figures.open} of ${step} connections are open`)
      if (logins.length === 0 && step === steps.at(-1)) sayClient(figures)
      open = step
      memories.set(step, await memory())
    }
    return spans.map(({ first, count }) =>
      weightBetween(first, memories.get(first)!, count, memories.get(count)!),
    )
  } finally {
    await load.end()
  }
}

function weightBetween(first: number, before: Memory, count: number, after: Memory): Weight {
  const perConnection = (of: keyof Memory) => (after[of] - before[of]) / (count - first)
  return {
    count,
    rss: perConnection('rss'),
    heapUsed: perConnection('heapUsed'),
    external: perConnection('external'),
    rssAtEnd: after.rss,
  }
}

/** Once: that so many idle connections are nothing to the client. */
function sayClient({ open, openedPerSecond, clientCores }: IdleLoadFigures): void {
  if (isClientSaid) return
  isClientSaid = true
  const rate = `${open} idle connections, opened at ${Math.round(openedPerSecond).toLocaleString('en')}/s,`
  process.stderr.write(
    `connections: the load client takes ${rate} from bare uWebSockets.js with ${clientCores.toFixed(2)} cores of its own
`,
  )
}

/** So many sockets as this machine lets a process open, less what else it has open. */
function openableMax(): number {
  const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1')) ?? []
  return Math.floor(Number(soft ?? 1_024) * 0.8)
}

const COLLECTIONS = 3
const LOAD_IN_FLIGHT = 64
let isClientSaid = false
