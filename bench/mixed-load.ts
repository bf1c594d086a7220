/**
 * What people wait for when calls, reads, lookups and sign-ins come at fixed rates at once, beside the delay of a
 * thread that only asks to be woken, on the same machine at the same time; and the processor time of the server for all
 * of it.
 */

import { cpSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { join } from 'node:path'
import type { Benchmark, BenchmarkContext, Row } from './support/benchmark.ts'
import type { CallLoadProtocol } from './support/call-load.ts'
import { settle, startLoad } from './support/call-street.ts'
import { askEachOnce, LOOKUP_PATH, lookupBody } from './support/lookups.ts'
import { prefilledLog } from './support/prefill.ts'
import { Program } from './support/program.ts'
import type { RateKind, RateLoadProtocol } from './support/rate-load.ts'
import { startServer } from './support/server.ts'
import { testIdentifiers } from './support/sign-in.ts'
import { mean, rounded } from './support/statistics.ts'
import type { TimerGapsProtocol } from './support/timer-gaps.ts'
import { type Usage, withUsage } from './support/usage.ts'

type Kind = 'call' | RateKind

const RATES: Record<Kind, number> = { call: 100, user: 1_000, lookup: 500, 'sign-in': 50 }
const RATES_SMOKE: Record<Kind, number> = { call: 5, user: 20, lookup: 20, 'sign-in': 5 }
const NAMES: Record<Kind, string> = {
  call: `call/start to the invitation of the tenth callee, ${RATES.call}/s with as many ends`,
  user: `GET user, ${RATES.user}/s`,
  lookup: `get-public-keys, ${RATES.lookup}/s`,
  'sign-in': `sign-in of a newcomer: code asked for and given, ${RATES['sign-in']}/s`,
}
const NOT_SHOWN =
  'The load clients share the two cores. A call counts from when it was to start, other requests from when they are sent. Proofs of those looked up are in the cache. No TLS.'
const KINDS = Object.keys(NAMES) as Kind[]
const CORES: Row = {
  name: 'mixed-load-cores',
  project: 'calls, reads, lookups and sign-ins at once: the server',
  limit: 'cores of the machine',
  unit: 'cores',
  notShown: NOT_SHOWN,
}

function waitRow(kind: Kind, which: 'p50' | 'p99'): Row {
  return {
    name: `mixed-load-${kind}-${which}`,
    project: `all at once: ${NAMES[kind]}, ${which}`,
    limit: `a thread that asks to be woken each millisecond: how much later, ${which}`,
    unit: 'ms',
    notShown: NOT_SHOWN,
  }
}

const CALLEES = 10
const GROUPS = 50
const GROUPS_SMOKE = 2
/** Enough for calls that last a second. */
const CALLERS_EACH = 8
const LOG_DEVICES = 10_000
const NEWCOMERS = 40_000
/** So many that 1 % of the sign-ins is not a handful. */
const SECONDS_PER_TURN = 5
/** V8 compiles what calls need for ten seconds and more. */
const WARM_UP_SECONDS = 15

export const mixedLoad: Benchmark = { name: 'mixed-load', run }

interface Loads {
  readonly pid: number
  readonly calls: Program<CallLoadProtocol>
  readonly rates: Program<RateLoadProtocol>
  readonly gaps: Program<TimerGapsProtocol>
}

interface Turn extends Usage {
  readonly seconds: number
  readonly figure: {
    readonly call: CallLoadProtocol['answer']
    readonly rate: RateLoadProtocol['answer']
    readonly gaps: TimerGapsProtocol['answer']
  }
}

async function run(context: BenchmarkContext): Promise<void> {
  const { isSmoke, turns, turnSeconds } = context.scale
  const loads = await openLoads(context)
  const rates = isSmoke ? RATES_SMOKE : RATES
  if (!isSmoke) await loadOnce(loads, rates, WARM_UP_SECONDS)
  const seconds = turnSeconds * (isSmoke ? 1 : SECONDS_PER_TURN)
  for (const round of context.rounds()) {
    const taken: Turn[] = []
    while (taken.length < turns) taken.push(await loadOnce(loads, rates, seconds))
    record(context, round, taken)
  }
}

/** Reading, calling, signing in and being woken, all for so long. */
function loadOnce(
  { pid, calls, rates, gaps }: Loads,
  { call: callsPerSecond, ...perSecond }: Record<Kind, number>,
  seconds: number,
): Promise<Turn> {
  return withUsage(pid, async () => {
    const asked = [
      calls.ask({ kind: 'rate', callsPerSecond, seconds, ends: 'meanwhile' }),
      rates.ask({ perSecond, seconds }),
      gaps.ask({ seconds }),
    ] as const
    const [call, rate, gap] = await Promise.all(asked)
    return { call, rate, gaps: gap }
  })
}

function record(context: BenchmarkContext, round: number, turns: readonly Turn[]): void {
  const meanOf = (of: (figure: Turn['figure']) => number) =>
    rounded(mean(turns.map(({ figure }) => of(figure))))
  const parameters = { callees: CALLEES }
  for (const kind of KINDS) {
    const latency = ({ call, rate }: Turn['figure']) => (kind === 'call' ? call.latency : rate.latency[kind])
    for (const which of ['p50', 'p99'] as const) {
      context.record(waitRow(kind, which), round, {
        limit: meanOf(({ gaps }) => gaps[which]),
        project: meanOf(figure => latency(figure)[which]),
        parameters,
        details: {
          projectMaxMs: meanOf(figure => latency(figure).max),
          limitMaxMs: meanOf(({ gaps }) => gaps.max),
        },
      })
    }
  }
  context.record(CORES, round, {
    limit: cpus().length,
    project: mean(turns.map(({ cpu, seconds }) => cpu / seconds)),
    parameters,
    details: {
      callClientCores: meanOf(({ call }) => call.clientCores),
      otherClientCores: meanOf(({ rate }) => rate.clientCores),
      sentLateP99Ms: meanOf(({ rate }) => rate.lateness.p99),
    },
  })
}

async function openLoads(context: BenchmarkContext): Promise<Loads> {
  const { isSmoke, sizes, warmTargets } = context.scale
  const entries = sizes[0]!
  const log = await prefilledLog(context.storesFolder, { entries, devices: Math.min(LOG_DEVICES, entries) })
  const [dataFolder, codesFile] = [join(context.folder, 'data'), join(context.folder, 'codes.json')]
  cpSync(log.dataFolder, dataFolder, { recursive: true })
  const codes = testIdentifiers(NEWCOMERS)
  writeFileSync(codesFile, JSON.stringify(codes))
  const plan = {
    groups: isSmoke ? GROUPS_SMOKE : GROUPS,
    callersEach: CALLERS_EACH,
    calleesEach: CALLEES,
    devices: 1,
  }
  const groups = await settle(dataFolder, plan)
  const server = await startServer({
    dataFolder,
    environment: { CALLSIGN_TEST_IDENTIFIERS_FILE: codesFile },
    profilesFolder: context.profilesFolder,
  })
  context.after(() => server.end())
  const targets = log.targets.slice(0, warmTargets)
  await askEachOnce(server.http, targets)
  const rates = await Program.start<RateLoadProtocol>('rate-load', {
    url: server.http,
    tokens: groups.flatMap(({ callees }) => callees.map(({ devices: [device] }) => device!.token)),
    lookup: { path: LOOKUP_PATH, bodies: targets.map(target => lookupBody(target)) },
    codes,
  })
  context.after(() => rates.end())
  const gaps = await Program.start<TimerGapsProtocol>('timer-gaps', {})
  context.after(() => gaps.end())
  return { pid: server.pid, calls: await startLoad(context, server.http, 'project', groups), rates, gaps }
}
