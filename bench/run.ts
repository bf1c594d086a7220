/**
 * Runs benchmarks: all of them, or those that are named. Each round is a JSON line on standard output and in a file;
 * what a person wants to know goes to standard error.
 */

import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { append } from './append.ts'
import { audit } from './audit.ts'
import { callCost } from './call-cost.ts'
import { callStart } from './call-start.ts'
import { connectRate } from './connect-rate.ts'
import { connections } from './connections.ts'
import { durableMessages } from './durable-messages.ts'
import { fanOut } from './fan-out.ts'
import { fronts } from './fronts.ts'
import { invitations } from './invitations.ts'
import { lookup } from './lookup.ts'
import { indexMap } from './micro/index-map.ts'
import { stompCodec } from './micro/stomp-codec.ts'
import { mixedLoad } from './mixed-load.ts'
import { nodes } from './nodes.ts'
import { pushOutbox } from './push-outbox.ts'
import { pushThread } from './push-thread.ts'
import { reconnectStorm } from './reconnect-storm.ts'
import { registerThroughput } from './register-throughput.ts'
import { formatPeers, formatTable } from './report.ts'
import { registerDevice, verifyLogin } from './sign-in.ts'
import { startup } from './startup.ts'
import type { Benchmark, Result, Scale } from './support/benchmark.ts'
import { describeMachine, isInMemory } from './support/machine.ts'
import { Neighbours } from './support/neighbours.ts'
import { formatProfile, readProfiles } from './support/profile.ts'
import { rounded } from './support/statistics.ts'
import { areSettled, NEIGHBOUR_CORES_QUIET } from './support/summary.ts'
import { tile } from './tile.ts'
import { tokenCheck } from './token-check.ts'
import { user } from './user.ts'
import { userGrowth } from './user-growth.ts'
import { webhooks } from './webhooks.ts'
import { websocketWrites } from './websocket-writes.ts'

const BENCHMARKS: readonly Benchmark[] = [
  registerThroughput,
  append,
  lookup,
  tile,
  user,
  userGrowth,
  verifyLogin,
  registerDevice,
  startup,
  audit,
  tokenCheck,
  stompCodec,
  indexMap,
  websocketWrites,
  fanOut,
  connections,
  connectRate,
  reconnectStorm,
  invitations,
  callCost,
  callStart,
  durableMessages,
  webhooks,
  mixedLoad,
  fronts,
  nodes,
  pushOutbox,
  pushThread,
]

const USAGE = `usage: npm run bench -- [NAME...] [options]

Names: ${BENCHMARKS.map(({ name }) => name).join(', ')}; all of them unless some are given.

  --smoke          tiny counts and several at once, to see that everything runs: the figures mean nothing
  --rounds N       rounds of each measurement (5; up to 15 when other programs disturb them or ratios scatter)
  --turns N        seconds of limit and project in each round, in turns (3)
  --peers          measure peers too, as far as they are installed: RabbitMQ, Redis, NATS, PostgreSQL, nginx; Tessera, with Go
  --users N        measure growth up to so many users with ten contacts each (100000)
  --entries N      measure growth up to a log of so many entries (1000000)
  --against DIR    call-cost, call-start: hold the server against that of another checkout, which is built
  --out FILE       append the JSON lines to FILE (else last.jsonl in the folder below is written anew)
  --folder DIR     where stores are made and prefilled logs kept (the system's temporary folder)
  --profile        one round, with CPU profiles of the server printed as tables
  --clean          remove the prefilled logs, and do nothing else
`

interface RunOptions {
  readonly folder: string
  readonly storesFolder: string
  readonly scale: Scale
  /** Rounds that must be quiet, if they can be had. */
  readonly rounds: number
  readonly isProfiled: boolean
  readonly hasPeers: boolean
  readonly against: string | undefined
  readonly onResult: (result: Result) => void
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({ options: OPTIONS, allowPositionals: true })
  const unknown = positionals.filter(name => !BENCHMARKS.some(benchmark => benchmark.name === name))
  if (values.help || unknown.length > 0) {
    process.stderr.write(unknown.length > 0 ? `no benchmark ${unknown.join(', ')}\n${USAGE}` : USAGE)
    process.exitCode = values.help ? 0 : 2
    return
  }
  const folder = join(values.folder, 'callsign-bench')
  if (values.clean) return rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  if (isInMemory(folder))
    process.stderr.write(`${folder} is in memory, where writes cost nothing: use --folder\n`)
  const out = values.out ?? join(folder, 'last.jsonl')
  if (values.out === undefined) writeFileSync(out, '')

  const results: Result[] = []
  const onResult = (result: Result) => {
    const line = `${JSON.stringify(result)}\n`
    results.push(result)
    process.stdout.write(line)
    if (!values.profile) appendFileSync(out, line)
  }
  const scale = scaleOf(values)
  const rounds = Number(values.rounds ?? (values.smoke || values.profile ? 1 : 5))
  const chosen = BENCHMARKS.filter(({ name }) => positionals.length === 0 || positionals.includes(name))
  const waiting = [...chosen]
  const work = async (stores: string) => {
    const storesFolder = join(folder, stores)
    for (let benchmark = waiting.shift(); benchmark !== undefined; benchmark = waiting.shift()) {
      const { name } = benchmark
      const { profile: isProfiled, peers: hasPeers, against } = values
      const options = { folder, storesFolder, scale, rounds, isProfiled, hasPeers, against, onResult }
      await runBenchmark(benchmark, options).catch(error => sayFailure(name, error))
    }
  }
  // Servers that run at the same time can't share a store.
  if (values.smoke) await Promise.all(Array.from({ length: SMOKE_JOBS }, (_, job) => work(`smoke-${job}`)))
  else await work('stores')
  // The figures of a smoke run are noise; a table of them would only mislead.
  if (!values.smoke) process.stderr.write(`\n${formatTable(results)}\n${formatPeers(results)}`)
  else if (process.exitCode === undefined) process.stderr.write(`${chosen.length} benchmarks can run\n`)
}

async function runBenchmark(benchmark: Benchmark, options: RunOptions): Promise<void> {
  const folder = mkdtempSync(join(options.folder, `${benchmark.name}-`))
  const profilesFolder = options.isProfiled ? join(folder, 'profiles') : undefined
  const machine = describeMachine()
  const neighbours = new Neighbours()
  neighbours.start()
  const removeFolder = () => rmSync(folder, { recursive: true, force: true })
  process.once('exit', removeFolder)
  const ends: (() => Promise<void> | void)[] = []
  const results: Result[] = []
  try {
    await benchmark.run({
      scale: options.scale,
      hasPeers: options.hasPeers,
      against: options.against,
      storesFolder: options.storesFolder,
      folder,
      profilesFolder,
      after: end => void ends.push(end),
      rounds: () => enoughRounds(options, neighbours, results),
      record(row, round, measurement) {
        const result = {
          benchmark: benchmark.name,
          row,
          round,
          ...measurement,
          limit: rounded(measurement.limit),
          project: rounded(measurement.project),
          ...(measurement.cpuRatio === undefined ? {} : { cpuRatio: rounded(measurement.cpuRatio) }),
          ratio: rounded(measurement.project / measurement.limit),
          neighbourCores: rounded(neighbours.coresBusy()),
          machine,
          at: new Date().toISOString(),
        }
        results.push(result)
        options.onResult(result)
      },
    })
  } finally {
    // All of them, whatever fails: a child left running would keep this process.
    for (const end of ends.reverse()) {
      await Promise.resolve()
        .then(end)
        .catch(error => sayFailure(benchmark.name, error))
    }
    if (profilesFolder !== undefined) printProfiles(profilesFolder)
    process.off('exit', removeFolder)
    removeFolder()
  }
}

function sayFailure(name: string, error: unknown): void {
  process.stderr.write(`${name} can't run: ${error instanceof Error ? error.stack : error}\n`)
  process.exitCode = 1
}

/**
 * As many quiet rounds as were asked for, and more until the ratios are known well enough; three times as many when
 * neighbours never rest or ratios never settle. `results` are those of the benchmark so far; these rounds add theirs.
 */
function* enoughRounds(
  { rounds, scale, isProfiled }: RunOptions,
  neighbours: Neighbours,
  results: readonly Result[],
): Iterable<number> {
  const roundsMax = rounds * (scale.isSmoke || isProfiled ? 1 : TRIES_MAX)
  const earlier = results.length
  let quiet = 0
  for (let round = 1; round <= roundsMax; round++) {
    if (quiet >= rounds && areSettled(results.slice(earlier))) return
    neighbours.start()
    yield round
    if (neighbours.coresBusy() <= NEIGHBOUR_CORES_QUIET) quiet++
  }
}

function printProfiles(folder: string): void {
  for (const profile of readProfiles(folder))
    process.stderr.write(`\n${formatProfile(profile, PROFILE_ROWS)}`)
}

function scaleOf(values: {
  smoke: boolean
  profile: boolean
  rounds?: string
  turns?: string
  entries: string
  users: string
}): Scale {
  if (values.smoke) return SMOKE
  const entriesMax = Number(values.entries)
  const turns = Number(values.turns ?? 3)
  return {
    isSmoke: false,
    turns,
    turnSeconds: 1,
    shortTurns: { turns: 4 * turns, turnSeconds: 0.25 },
    warmUpSeconds: 3,
    entries: 1_000_000,
    devices: 60_000,
    sizes: [10_000, 100_000, 1_000_000, 10_000_000].filter(size => size <= entriesMax),
    userCounts: [10_000, 100_000, 1_000_000].filter(count => count <= Number(values.users)),
    appendedEntries: 100_000,
    warmTargets: 10_000,
    coldWarmUpTargets: 5_000,
  }
}

const SMOKE: Scale = {
  isSmoke: true,
  turns: 1,
  turnSeconds: 0.25,
  shortTurns: { turns: 1, turnSeconds: 0.25 },
  warmUpSeconds: 0.1,
  entries: 2_000,
  devices: 500,
  sizes: [500, 2_000],
  userCounts: [50, 100],
  appendedEntries: 500,
  warmTargets: 100,
  coldWarmUpTargets: 100,
}

const OPTIONS = {
  smoke: { type: 'boolean', default: false },
  rounds: { type: 'string' },
  turns: { type: 'string' },
  entries: { type: 'string', default: '1000000' },
  against: { type: 'string' },
  users: { type: 'string', default: '100000' },
  peers: { type: 'boolean', default: false },
  out: { type: 'string' },
  folder: { type: 'string', default: tmpdir() },
  profile: { type: 'boolean', default: false },
  clean: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const
const TRIES_MAX = 3
/** Each is several processes that wait for one another. */
const SMOKE_JOBS = availableParallelism() + 1
const PROFILE_ROWS = 16

// Without a listener a signal would leave stores and servers behind; on exit both are removed.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
await main()
