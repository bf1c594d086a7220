/**
 * What a call in progress sees when all apps come back at once, as after a restart: calls to ten among devices that are
 * connected, twenty a second, in turns with and without a storm of connects (TLS handshake, upgrade, CONNECT with a token,
 * three subscriptions). Without TLS, and with a certificate of ECDSA P-256 and of RSA-2048. Also what each connect costs.
 */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Benchmark, BenchmarkContext, Row } from './support/benchmark.ts'
import type { CallGroup, CallLoadFigures, CallLoadProtocol } from './support/call-load.ts'
import { settle } from './support/call-street.ts'
import { certificateOf } from './support/certificate.ts'
import type { IdleLoadProtocol } from './support/idle-load.ts'
import { targetOf } from './support/load-socket.ts'
import { type Person, prefillPeople } from './support/people.ts'
import { Program } from './support/program.ts'
import { interleaved } from './support/rounds.ts'
import { startServer } from './support/server.ts'
import { mean, rounded, sum } from './support/statistics.ts'
import { bearerLogin, type Login } from './support/stomp-socket.ts'
import type { StormFigures, StormLoadProtocol } from './support/storm-load.ts'
import { type Usage, withUsage } from './support/usage.ts'

const CALLS: Row = {
  name: 'reconnect-storm',
  project:
    'from POST call/start to the invitation of the tenth callee, while all apps come back, p99 of what the main thread spends meanwhile',
  limit: 'the same without a storm',
  unit: 'ms',
  notShown:
    'Processor time of the main thread, which neighbours move less than wall time; wall time is in the details. Callers have their HTTP connections already: a new one waits with the storm. The clients have one thread, which limits them with TLS.',
}
const COST: Row = {
  name: 'reconnect-cost',
  project: 'one app that comes back in a storm: processor time',
  limit: 'the same without TLS',
  unit: 'µs',
  notShown:
    'Computed: the processor time of a storm, less that of as many calls without one. Full handshakes.',
}

const KINDS = ['no TLS', 'ECDSA P-256', 'RSA-2048'] as const
type Kind = (typeof KINDS)[number]
const CLIENTS = 20_000
const CLIENTS_SMOKE = 50
/** Connected before, and beating: none of them may be lost. */
const RESIDENTS = 500
const CALLS_PER_SECOND = 20
/** Open before the storm begins. */
const HTTP_CONNECTIONS = 60
const PLAN = { groups: 10, callersEach: 6, calleesEach: 10, devices: 1 }

export const reconnectStorm: Benchmark = { name: 'reconnect-storm', run }

async function run(context: BenchmarkContext): Promise<void> {
  const { isSmoke } = context.scale
  const clients = isSmoke ? CLIENTS_SMOKE : Math.min(CLIENTS, openableMax())
  if (!isSmoke && clients < CLIENTS) {
    process.stderr.write(`reconnect-storm: ${clients} clients, as a process here may open no more files\n`)
  }
  const dataFolder = join(context.folder, 'data')
  const residents = isSmoke ? 10 : RESIDENTS
  let others: readonly Person[] = []
  const groups = await settle(dataFolder, PLAN, async (folder, count, ...rest) => {
    const people = await prefillPeople(folder, count + residents + clients, ...rest)
    others = people.slice(count)
    return people.slice(0, count)
  })
  const logins = others.map(({ devices: [device] }) => bearerLogin(device!.token))
  let plainMicroseconds: number | undefined
  for (const kind of KINDS) {
    const town = await openTown(context, dataFolder, kind, { groups, logins, residents })
    const seconds = await town.warmUp(isSmoke ? 1 : 3)
    const costs: number[] = []
    for (const round of context.rounds()) {
      const { limit, project } = await interleaved(
        round,
        1,
        () => town.calls(seconds),
        () => town.storm(seconds),
      )
      costs.push(record(context, round, { kind, clients, limit, project, plainMicroseconds }))
      if (round === ROUNDS_MAX) break
    }
    plainMicroseconds ??= mean(costs)
    await town.end()
  }
}

interface CallTurn extends Usage {
  readonly figure: CallLoadFigures
}

interface StormTurn extends CallTurn {
  readonly storm: StormFigures
  /** Connections that were lost, of the storm and of those that were there before. */
  readonly lost: number
}

interface Town {
  /** Resolves with the length of the calls in seconds, as long as a storm. */
  warmUp(callSeconds: number): Promise<number>
  calls(seconds: number): Promise<CallTurn>
  storm(seconds: number): Promise<StormTurn>
  end(): Promise<void>
}

interface Population {
  readonly groups: readonly CallGroup[]
  readonly logins: readonly Login[]
  readonly residents: number
}

async function openTown(
  context: BenchmarkContext,
  dataFolder: string,
  kind: Kind,
  { groups, logins, residents }: Population,
): Promise<Town> {
  const environment = kind === 'no TLS' ? {} : certificateOf(context.folder, kind)
  const server = await startServer({ dataFolder, environment, profilesFolder: context.profilesFolder })
  const target = targetOf(server.http)
  const calls = await Program.start<CallLoadProtocol>('call-load', {
    url: server.http,
    server: 'project',
    groups,
    pid: server.pid,
  })
  const idle = await Program.start<IdleLoadProtocol>('idle-load', {
    ...target,
    to: 'queues',
  })
  await idle.ask({ connections: residents, logins: logins.slice(0, residents) })
  const apps = await Program.start<StormLoadProtocol>('storm-load', {
    ...target,
    logins: logins.slice(residents),
  })
  const end = once(async () => {
    for (const part of [apps, idle, calls, server]) await part.end()
  })
  context.after(end)
  const callsFor = (seconds: number) =>
    calls.ask({
      kind: 'rate',
      callsPerSecond: CALLS_PER_SECOND,
      seconds,
      ends: 'meanwhile',
      connections: HTTP_CONNECTIONS,
    })
  return {
    end,
    async warmUp(callSeconds) {
      await callsFor(callSeconds)
      const { seconds } = await apps.ask('storm')
      await apps.ask('cut')
      return Math.max(1, Math.round(seconds))
    },
    calls: seconds => withUsage(server.pid, () => callsFor(seconds)),
    async storm(seconds) {
      let storm: StormFigures | undefined
      const turn = await withUsage(server.pid, async () => {
        const called = callsFor(seconds)
        await new Promise(resolve => setTimeout(resolve, BEFORE_STORM_MS))
        storm = await apps.ask('storm')
        return called
      })
      const { open } = await idle.ask({ connections: 0, logins: [] })
      const { lost } = await apps.ask('cut')
      return { ...turn, storm: storm!, lost: lost + residents - open }
    },
  }
}

interface Measured {
  readonly kind: Kind
  readonly clients: number
  readonly limit: readonly CallTurn[]
  readonly project: readonly StormTurn[]
  readonly plainMicroseconds: number | undefined
}

/** Returns microseconds of the server for each connect. */
function record(context: BenchmarkContext, round: number, measured: Measured): number {
  const { kind, clients, limit, project, plainMicroseconds } = measured
  const parameters = { tls: kind, clients, callsPerSecond: CALLS_PER_SECOND }
  const latency = (turns: readonly CallTurn[], by: 'latency' | 'latencyCpu', which: 'p50' | 'p99' | 'max') =>
    rounded(mean(turns.map(({ figure }) => figure[by][which])))
  const storms = project.map(({ storm }) => storm)
  const failures = sum(storms.flatMap(({ failures }) => Object.values(failures)))
  context.record(CALLS, round, {
    limit: latency(limit, 'latencyCpu', 'p99'),
    project: latency(project, 'latencyCpu', 'p99'),
    parameters,
    details: {
      limitP50Ms: latency(limit, 'latencyCpu', 'p50'),
      projectP50Ms: latency(project, 'latencyCpu', 'p50'),
      projectMaxMs: latency(project, 'latencyCpu', 'max'),
      limitWallP99Ms: latency(limit, 'latency', 'p99'),
      projectWallP50Ms: latency(project, 'latency', 'p50'),
      projectWallP99Ms: latency(project, 'latency', 'p99'),
      projectWallMaxMs: latency(project, 'latency', 'max'),
      calls: sum(project.map(({ figure }) => figure.calls)),
      secondsUntilAllAreBack: rounded(mean(storms.map(({ seconds }) => seconds))),
      backP50Ms: rounded(mean(storms.map(({ back }) => back.p50))),
      connectsTriedAgain: failures,
      ...(failures === 0 ? {} : { why: JSON.stringify(storms.map(({ failures }) => failures)) }),
      connectionsLost: sum(project.map(({ lost }) => lost)),
      stormClientCores: rounded(mean(storms.map(storm => storm.clientCpuSeconds / storm.seconds))),
    },
  })
  const microseconds =
    (1e6 * (sum(project.map(({ cpu }) => cpu)) - sum(limit.map(({ cpu }) => cpu)))) / clients
  context.record(COST, round, {
    limit: plainMicroseconds ?? microseconds,
    project: microseconds,
    parameters,
    costs: { project: { cpuMicroseconds: rounded(microseconds) } },
  })
  return microseconds
}

/** The server lets in nine tenths of what a process may open; some are the callees' and the residents'. */
function openableMax(): number {
  const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1')) ?? []
  return Math.floor(Number(soft ?? 1_024) * OPENABLE_SHARE)
}

function once(run: () => Promise<void>): () => Promise<void> {
  let ran: Promise<void> | undefined
  return () => {
    ran ??= run()
    return ran
  }
}

/** A round is a minute or more. */
const ROUNDS_MAX = 3
/** In which the callers connect. */
const BEFORE_STORM_MS = 500
const OPENABLE_SHARE = 0.8
