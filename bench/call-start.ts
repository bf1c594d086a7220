/**
 * How long it takes from a POST to `/app/api/call/start` until the last of ten callees rings, at a steady 200 calls a
 * second of which each is ended after a second; held against bare uWebSockets.js that sends the same bytes.
 */

import type { Benchmark, BenchmarkContext, Row } from './support/benchmark.ts'
import { type CallTurn, cpuPerMessage, openStreet } from './support/call-street.ts'
import { interleaved } from './support/rounds.ts'
import { mean, rounded } from './support/statistics.ts'

const ROW: Row = {
  name: 'call-start',
  project: 'from POST call/start to the invitation of the tenth callee, 200 calls/s, p99',
  limit: 'bare uWebSockets.js that sends the same bytes',
  unit: 'ms',
  goal: { of: 'project', is: 'at most', value: 10 },
  notShown:
    'Counted from the moment at which a call was to start, even where the client was late. Each invitation is durable before it is sent, so the disk is in it. No TLS.',
}

const CALLS_PER_SECOND = 200
/** So many that 1 % of them is not a handful. */
const SECONDS_PER_TURN = 3

export const callStart: Benchmark = { name: 'call-start', run }

async function run(context: BenchmarkContext): Promise<void> {
  const { isSmoke, turns, turnSeconds, warmUpSeconds } = context.scale
  const plan = { groups: isSmoke ? 10 : 50, callersEach: 10, calleesEach: 10, devices: 1 }
  const { bare, ours } = await openStreet(context, plan)
  const callsPerSecond = isSmoke ? 20 : CALLS_PER_SECOND
  const load = {
    kind: 'rate',
    callsPerSecond,
    seconds: turnSeconds * (isSmoke ? 1 : SECONDS_PER_TURN),
  } as const
  for (const side of [bare, ours]) await side({ ...load, seconds: Math.ceil(warmUpSeconds) })
  for (const round of context.rounds()) {
    const { limit, project } = await interleaved(
      round,
      turns,
      () => bare(load),
      () => ours(load),
    )
    const p = (of: readonly CallTurn[], which: 'p50' | 'p99' | 'max') =>
      rounded(mean(of.map(({ figure }) => figure.latency[which])))
    context.record(ROW, round, {
      limit: p(limit, 'p99'),
      project: p(project, 'p99'),
      parameters: { callsPerSecond, callees: plan.calleesEach },
      details: {
        limitP50Ms: p(limit, 'p50'),
        projectP50Ms: p(project, 'p50'),
        projectMaxMs: p(project, 'max'),
        limitCpuMicroseconds: cpuPerMessage(limit),
        projectCpuMicroseconds: cpuPerMessage(project),
        clientCores: rounded(mean(project.map(({ figure }) => figure.clientCores))),
      },
    })
  }
}
