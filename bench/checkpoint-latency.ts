/**
 * How long `GET /checkpoint` waits while Register runs at full load: the VRF must never block the event loop. The
 * limit is a process that has the same gRPC load and the same GET on one event loop, but computes no VRF, hashes no
 * tree and writes nothing. Two more situations tell the machine's share: the server idle, and the server idle while
 * the echo in another process takes the load.
 */

import { join } from 'node:path'
import type { Benchmark, BenchmarkContext, Row } from './support/benchmark.ts'
import type { EchoServerProtocol } from './support/echo-server.ts'
import { recordAnswer } from './support/http-answer.ts'
import type { HttpProbeProtocol } from './support/http-probe.ts'
import { Program } from './support/program.ts'
import type { RegisterLoadProtocol } from './support/register-load.ts'
import { type RunningServer, readMetric, startServer } from './support/server.ts'
import { rounded } from './support/statistics.ts'

const P99: Row = {
  name: 'checkpoint-p99',
  project: 'p99 of GET /checkpoint under full Register load',
  limit: 'the same GET beside a grpc-js echo under the same load, one event loop',
  unit: 'ms',
  notShown:
    'Load, probe and server share the cores: the idle figures say how much of this is waiting for a core, not for the event loop.',
}
const P50: Row = {
  ...P99,
  name: 'checkpoint-p50',
  project: 'p50 of GET /checkpoint under full Register load',
}

const IN_FLIGHT = 64
const PROBE_INTERVAL_MS = 2

export const checkpointLatency: Benchmark = { name: 'checkpoint-latency', run }

interface Programs {
  readonly server: RunningServer
  readonly echo: { readonly grpc: string; readonly http: string }
  readonly client: Program<RegisterLoadProtocol>
  readonly probe: Program<HttpProbeProtocol>
}

type ProbeFigures = HttpProbeProtocol['answer']

async function run(context: BenchmarkContext): Promise<void> {
  const programs = await startPrograms(context)
  const { server, echo } = programs
  const { turns, turnSeconds } = context.scale
  const seconds = turns * turnSeconds
  const loaded = (grpc: string, http: string) => probeUnderLoad(programs, { grpc, http, seconds })
  for (const round of context.rounds()) {
    const idle = await probeOnce(programs, server.http, seconds)
    const besideEcho = await loaded(echo.grpc, server.http)
    const echoLoop = await loaded(echo.grpc, echo.http)
    await eventLoopLag(server)
    const registering = await loaded(server.grpc, server.http)
    const details = {
      ...withPrefix('idle', idle),
      ...withPrefix('idleBesideEcho', besideEcho.probe),
      ...withPrefix('echoLoop', echoLoop.probe),
      ...withPrefix('registering', registering.probe),
      echoCallsPerSecond: rounded(echoLoop.callsPerSecond),
      registerCallsPerSecond: rounded(registering.callsPerSecond),
      ...(await eventLoopLag(server)),
    }
    const parameters = { inFlight: IN_FLIGHT, probeIntervalMs: PROBE_INTERVAL_MS }
    context.record(P99, round, {
      limit: echoLoop.probe.p99,
      project: registering.probe.p99,
      parameters,
      details,
    })
    context.record(P50, round, {
      limit: echoLoop.probe.p50,
      project: registering.probe.p50,
      parameters,
    })
  }
}

async function startPrograms(context: BenchmarkContext): Promise<Programs> {
  const server = await startServer({ dataFolder: join(context.folder, 'data') })
  context.after(() => server.end())
  const answer = await recordAnswer(`${server.http}/checkpoint`)
  const echo = await Program.start<EchoServerProtocol>('echo-server', { answer })
  context.after(() => echo.end())
  const client = await Program.start<RegisterLoadProtocol>('register-load', {})
  context.after(() => client.end())
  const probe = await Program.start<HttpProbeProtocol>('http-probe', {})
  context.after(() => probe.end())
  return { server, echo: await echo.ask('addresses'), client, probe }
}

function probeOnce({ probe }: Programs, url: string, seconds: number): Promise<ProbeFigures> {
  return probe.ask({ url, path: '/checkpoint', intervalMs: PROBE_INTERVAL_MS, seconds })
}

async function probeUnderLoad(
  programs: Programs,
  { grpc, http, seconds }: { grpc: string; http: string; seconds: number },
): Promise<{ probe: ProbeFigures; callsPerSecond: number }> {
  const load = { address: grpc, inFlight: IN_FLIGHT }
  const calls = programs.client.ask({ ...load, seconds: seconds + 2 * LOAD_MARGIN_SECONDS })
  await new Promise(resolve => setTimeout(resolve, LOAD_MARGIN_SECONDS * 1000))
  const probe = await probeOnce(programs, http, seconds)
  return { probe, callsPerSecond: (await calls).callsPerSecond }
}

/** The server's own measure of its event loop's delay since it was last asked, in milliseconds. */
async function eventLoopLag({ admin }: RunningServer): Promise<Record<string, number>> {
  const text = await (await fetch(`${admin}/metrics`)).text()
  const figures: Record<string, number> = {}
  for (const name of ['mean', 'p50', 'p99', 'max']) {
    figures[`eventLoopLag-${name}Ms`] = rounded(
      readMetric(text, `nodejs_eventloop_lag_${name}_seconds`) * 1000,
    )
  }
  return figures
}

function withPrefix(prefix: string, { p50, p99, p999, max }: ProbeFigures): Record<string, number> {
  return {
    [`${prefix}P50Ms`]: p50,
    [`${prefix}P99Ms`]: p99,
    [`${prefix}P999Ms`]: p999,
    [`${prefix}MaxMs`]: max,
  }
}

/** The load begins so long before the probe and ends so long after it. */
const LOAD_MARGIN_SECONDS = 0.5
