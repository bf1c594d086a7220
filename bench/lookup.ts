/**
 * How fast `POST /api/get-public-keys` answers for one target in a log of a million entries.
 *
 * Warm: 10,000 targets, each asked once before, so that every VRF proof is in the cache; held against bare
 * uWebSockets.js that reads the same body and sends the same bytes.
 * With the index: the same targets, each with its proof in the index; compared with the same server without proofs.
 * Cold: every target for the first time since the server started, so that every answer waits for a proof; held against
 * the same number of threads that do nothing but prove.
 */

import { cpSync, rmSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { developmentKeys } from '../src/server/development/development-keys.ts'
import type { Benchmark, BenchmarkContext, Row } from './support/benchmark.ts'
import { recordAnswer } from './support/http-answer.ts'
import { compareHttp } from './support/http-comparison.ts'
import { loadGenerator, type RequestList, runHttpLoad, writeRequests } from './support/http-load.ts'
import { askEachOnce, LOOKUP_PATH, lookupBody, lookupRequests } from './support/lookups.ts'
import { type PrefilledLog, prefilledLog } from './support/prefill.ts'
import { Program } from './support/program.ts'
import type { RawHttpProtocol } from './support/raw-http.ts'
import { interleaved } from './support/rounds.ts'
import { type RunningServer, startServer } from './support/server.ts'
import { comparedCosts, type Work, withUsage } from './support/usage.ts'
import type { VrfLimitProtocol } from './support/vrf-limit.ts'

const WARM: Row = {
  name: 'lookup-warm',
  project: 'get-public-keys, 1 target, proof of the VRF in the cache',
  limit: 'bare uWebSockets.js, same bytes to the same POST, body read',
  unit: 'requests/s',
  goal: { of: 'ratio', is: 'at least', value: 0.5 },
  notShown:
    'All 10,000 targets fit the caches of proofs and inner hashes; lookups spread over more devices fall towards the cold figure.',
}
const COLD: Row = {
  name: 'lookup-cold',
  project: 'get-public-keys, 1 target, first lookup of each',
  limit: 'VRF proofs alone, same number of threads',
  unit: 'requests/s',
  goal: { of: 'ratio', is: 'at least', value: 0.8 },
  notShown: "The log's file is in the page cache; a log larger than memory would also wait for its disk.",
}

const INDEXED: Row = {
  name: 'lookup-index',
  project: 'get-public-keys, 1 target, with its proof in the index',
  limit: 'the same server and targets, without the index',
  unit: 'requests/s',
  goal: { of: 'ratio', is: 'at least', value: 1 / 1.6 },
  notShown:
    'The index gets no new leaf during the run. After a new leaf, the first request for a key makes its proof anew.',
}

const COLD_CONNECTIONS = 256
const INDEX_LOOK_MS = 100
/** The server's default number of threads, and so the limit's. */
const VRF_THREADS = Math.max(1, availableParallelism() - 1)

export const lookup: Benchmark = { name: 'lookup', run }

async function run(context: BenchmarkContext): Promise<void> {
  const { entries, devices } = context.scale
  const log = await prefilledLog(context.storesFolder, { entries, devices })
  const server = await startServer({ dataFolder: log.dataFolder, profilesFolder: context.profilesFolder })
  try {
    await measureWarm(context, log, server)
  } finally {
    await server.end()
  }
  await measureIndexed(context, log)
  await measureCold(context, log)
}

async function measureWarm(
  context: BenchmarkContext,
  log: PrefilledLog,
  server: RunningServer,
): Promise<void> {
  const targets = log.targets.slice(0, context.scale.warmTargets)
  const requests = writeLookups(context, 'warm', targets)
  const answer = await recordAnswer(server.http + LOOKUP_PATH, lookupBody(targets[0]!))
  const raw = await Program.start<RawHttpProtocol>('raw-http', { answers: new Map([[LOOKUP_PATH, answer]]) })
  context.after(() => raw.end())
  await askEachOnce(server.http, targets)
  await compareHttp(context, WARM, {
    limit: { url: await raw.ask('address'), pid: raw.pid },
    project: { url: server.http, pid: server.pid },
    requests,
    parameters: { entries: context.scale.entries },
  })
}

async function measureIndexed(context: BenchmarkContext, log: PrefilledLog): Promise<void> {
  const { entries, warmTargets } = context.scale
  const dataFolder = join(context.folder, 'indexed')
  cpSync(log.dataFolder, dataFolder, { recursive: true })
  const { ktIndexPrivateKey } = developmentKeys(dataFolder).keys
  const environment = { KT_INDEX_PRIVATE_KEY: ktIndexPrivateKey!, CALLSIGN_INDEX_SECONDS: '1' }
  const { profilesFolder } = context
  const server = await startServer({ dataFolder, environment, profilesFolder })
  try {
    await indexOf(server)
    const targets = log.targets.slice(0, warmTargets)
    await askEachOnce(server.http, targets, { index: true })
    const side = { url: server.http, pid: server.pid }
    const requests = writeRequests(context.folder, 'indexed', lookupRequests(targets, { index: true }))
    await compareHttp(context, INDEXED, {
      limit: side,
      project: { ...side, requests },
      requests: writeLookups(context, 'unindexed', targets),
      parameters: { entries },
    })
  } finally {
    await server.end()
    rmSync(dataFolder, { recursive: true })
  }
}

/** Resolves once the server has built its index. */
async function indexOf({ http }: RunningServer): Promise<void> {
  for (;;) {
    const answer = await fetch(`${http}/index/checkpoint`)
    await answer.arrayBuffer()
    if (answer.ok) return
    if (answer.status !== 503) throw new Error(`/index/checkpoint answered ${answer.status}`)
    await sleep(INDEX_LOOK_MS)
  }
}

async function measureCold(context: BenchmarkContext, log: PrefilledLog): Promise<void> {
  const { turns, turnSeconds } = context.scale
  const prover = await Program.start<VrfLimitProtocol>('vrf-limit', {})
  context.after(() => prover.end())
  const seconds = turns * turnSeconds
  for (const round of context.rounds()) {
    // Each turn needs a server that has proven nothing, so a round has one.
    const figures = await interleaved(
      round,
      1,
      () => measureProofs(prover, seconds),
      () => measureColdServer(context, log, seconds),
    )
    const [limit, project] = [figures.limit[0]!, figures.project[0]!]
    context.record(COLD, round, {
      limit: limit.perSecond,
      project: project.perSecond,
      ...comparedCosts(limit, project),
      parameters: {
        entries: context.scale.entries,
        clientConnections: COLD_CONNECTIONS,
        vrfThreads: VRF_THREADS,
        client: await loadGenerator(),
      },
      details: { projectP99Ms: project.p99 },
    })
  }
}

interface ColdFigures extends Work {
  readonly perSecond: number
  readonly p99: number
}

async function measureProofs(prover: Program<VrfLimitProtocol>, seconds: number): Promise<ColdFigures> {
  const turn = await withUsage(prover.pid, () => prover.ask({ threads: VRF_THREADS, seconds }))
  const { perSecond, proofs } = turn.figure
  return { turns: [turn], operations: proofs, perSecond, p99: Number.NaN }
}

/** A server that has proven nothing yet, warmed up with targets that are not measured. */
async function measureColdServer(
  context: BenchmarkContext,
  log: PrefilledLog,
  seconds: number,
): Promise<ColdFigures> {
  const { coldWarmUpTargets } = context.scale
  const server = await startServer({
    dataFolder: log.dataFolder,
    environment: { CALLSIGN_VRF_THREADS: String(VRF_THREADS) },
  })
  try {
    await askEachOnce(server.http, log.targets.slice(0, coldWarmUpTargets))
    const requests = writeLookups(context, 'cold', log.targets.slice(coldWarmUpTargets))
    const turn = await withUsage(server.pid, () =>
      runHttpLoad({
        url: server.http,
        requests,
        connections: COLD_CONNECTIONS,
        seconds,
        areAnswersLate: true,
      }),
    )
    const { requests: answered, requestsPerSecond, p99 } = turn.figure
    // On a busy machine a smoke run's turn is as long as it takes.
    if (answered > requests.count && !context.scale.isSmoke) {
      throw new Error(`${answered} lookups of ${requests.count} targets: some were not cold`)
    }
    return { turns: [turn], operations: answered, perSecond: requestsPerSecond, p99 }
  } finally {
    await server.end()
  }
}

function writeLookups(context: BenchmarkContext, name: string, targets: readonly string[]): RequestList {
  return writeRequests(context.folder, name, lookupRequests(targets))
}
