/**
 * How many Register calls a second are durable and provable when answered: gRPC, 64 in flight, every key of a new
 * device, held against a grpc-js server that answers the same messages at once. The peer is Tessera.
 */

import { join } from 'node:path'
import { type Benchmark, type BenchmarkContext, type Cost, peersOf, type Row } from './support/benchmark.ts'
import type { EchoServerProtocol } from './support/echo-server.ts'
import { Program } from './support/program.ts'
import type { RegisterLoadFigures, RegisterLoadProtocol } from './support/register-load.ts'
import { interleavedWith } from './support/rounds.ts'
import { type RunningServer, readMetric, startServer } from './support/server.ts'
import { mean, rounded, sum } from './support/statistics.ts'
import { openTessera } from './support/tessera.ts'
import { costOf, type Usage, withUsage } from './support/usage.ts'

const REGISTER: Row = {
  name: 'register',
  project: 'gRPC Register, durable and provable when answered',
  limit: 'empty grpc-js echo of the same messages',
  unit: 'calls/s',
  goal: { of: 'ratio', is: 'at least', value: 0.5 },
  notShown:
    'The grpc-js client costs more than the echo server and shares the cores with it, so both figures are those of a pair, not of a server alone; one connection, no TLS.',
}

const IN_FLIGHT = 64

export const registerThroughput: Benchmark = { name: 'register-throughput', run }

async function run(context: BenchmarkContext): Promise<void> {
  const { scale, profilesFolder } = context
  const server = await startServer({ dataFolder: join(context.folder, 'data'), profilesFolder })
  context.after(() => server.end())
  const echo = await Program.start<EchoServerProtocol>('echo-server', {})
  context.after(() => echo.end())
  const client = await Program.start<RegisterLoadProtocol>('register-load', {})
  context.after(() => client.end())
  const echoAddress = await echo.ask('address')

  const measure = (address: string, pid: number, seconds: number) =>
    withUsage(pid, () => client.ask({ address, inFlight: IN_FLIGHT, seconds }))
  await measure(echoAddress, echo.pid, scale.warmUpSeconds)
  await measure(server.grpc, server.pid, scale.warmUpSeconds)
  const peers = await openTessera(context)
  for (const { address, pid } of peers) await measure(address, pid, scale.warmUpSeconds)
  for (const round of context.rounds()) {
    const before = await readFigures(server)
    const figures = await interleavedWith(
      round,
      scale.turns,
      {
        limit: () => measure(echoAddress, echo.pid, scale.turnSeconds),
        project: () => measure(server.grpc, server.pid, scale.turnSeconds),
      },
      new Map(peers.map(({ name, address, pid }) => [name, () => measure(address, pid, scale.turnSeconds)])),
    )
    const after = await readFigures(server)
    const [limit, project] = [summarise(figures.limit), summarise(figures.project)]
    const peerFigures = [...figures.others].map(([name, turns]) => [name, summarise(turns)] as const)
    context.record(REGISTER, round, {
      limit: limit.callsPerSecond,
      project: project.callsPerSecond,
      cpuRatio: limit.serverCpu / project.serverCpu,
      costs: { limit: limit.cost, project: project.cost },
      ...peersOf(peerFigures.map(([name, { callsPerSecond }]) => [name, callsPerSecond])),
      parameters: { inFlight: IN_FLIGHT },
      details: {
        ...describe('limit', limit),
        ...describe('project', project),
        ...Object.assign({}, ...peerFigures.map(([name, figures]) => describePeer(name, figures))),
        entriesPerBatch: rounded(
          (after.registrations - before.registrations) / (after.batches - before.batches),
        ),
      },
    })
  }
}

type Turn = Usage & { readonly figure: RegisterLoadFigures }

interface Summary {
  readonly callsPerSecond: number
  readonly p50: number
  readonly p99: number
  /** Microseconds per call. */
  readonly serverCpu: number
  readonly clientCpu: number
  readonly cost: Cost
}

function summarise(turns: readonly Turn[]): Summary {
  const calls = sum(turns.map(({ figure }) => figure.calls))
  return {
    callsPerSecond: mean(turns.map(({ figure }) => figure.callsPerSecond)),
    p50: rounded(mean(turns.map(({ figure }) => figure.latency.p50))),
    p99: rounded(mean(turns.map(({ figure }) => figure.latency.p99))),
    serverCpu: rounded((sum(turns.map(({ cpu }) => cpu)) * 1e6) / calls),
    clientCpu: rounded((sum(turns.map(({ figure }) => figure.clientCpuSeconds)) * 1e6) / calls),
    cost: costOf(turns, calls),
  }
}

function describe(whose: string, { p50, p99, serverCpu, clientCpu }: Summary): Record<string, number> {
  return {
    [`${whose}P50Ms`]: p50,
    [`${whose}P99Ms`]: p99,
    [`${whose}ServerCpuMicroseconds`]: serverCpu,
    [`${whose}ClientCpuMicroseconds`]: clientCpu,
  }
}

function describePeer(name: string, figures: Summary): Record<string, number> {
  const { writtenBytes = Number.NaN, fdatasyncs = Number.NaN } = figures.cost
  return {
    ...describe(`${name}: `, figures),
    [`${name}: WrittenBytes`]: writtenBytes,
    [`${name}: Syncs`]: fdatasyncs,
  }
}

async function readFigures({ admin }: RunningServer): Promise<{ registrations: number; batches: number }> {
  const text = await (await fetch(`${admin}/metrics`)).text()
  return {
    registrations: readMetric(text, 'callsign_log_registrations_total'),
    batches: readMetric(text, 'callsign_log_batches_total'),
  }
}
