/**
 * How many messages a second, no two alike, the server delivers: calls are started and ended again, each
 * device of a callee is told of both in a frame of its own, and acknowledges. Held against bare uWebSockets.js that sends
 * as many frames of the same bytes one by one.
 */

import type { Benchmark, BenchmarkContext, Row } from './support/benchmark.ts'
import {
  type CallTurn,
  openDeliveries,
  openStreet,
  type Sides,
  type StreetPlan,
  workOf,
} from './support/call-street.ts'
import { interleaved } from './support/rounds.ts'
import { mean, rounded } from './support/statistics.ts'
import { comparedCosts } from './support/usage.ts'

const LIMIT = 'bare uWebSockets.js, the same bytes by `ws.send`, nothing kept'
const DELIVERY: Row = {
  name: 'invitation-delivery',
  project: 'invitations and their ends by sessions and connections alone, inboxes in memory',
  limit: LIMIT,
  unit: 'messages/s',
  notShown: 'What is told is put together by a stand-in for call and store. No TLS.',
}
const INVITATIONS: Row = {
  name: 'invitations',
  project: 'invitations and their ends, a frame of its own to each device, kept until acknowledged',
  limit: LIMIT,
  unit: 'messages/s',
  goal: { of: 'cpuRatio', is: 'at least', value: 0.25 },
  notShown:
    'The project writes each message to its store, sealed, before it is sent, and takes it out again when it is acknowledged; the limit does nothing of this. No TLS.',
}

const SHAPES: readonly { readonly plan: StreetPlan; readonly calls: number }[] = [
  { plan: { groups: 1, callersEach: 32, calleesEach: 10, devices: 1 }, calls: 16 },
  { plan: { groups: 1, callersEach: 4, calleesEach: 31, devices: 5 }, calls: 2 },
]

export const invitations: Benchmark = { name: 'invitations', run }

async function run(context: BenchmarkContext): Promise<void> {
  for (const shape of context.scale.isSmoke ? SHAPES.slice(0, 1) : SHAPES) {
    await compare(context, INVITATIONS, shape, await openStreet(context, shape.plan))
    await compare(context, DELIVERY, shape, await openDeliveries(context, shape.plan))
  }
}

async function compare(
  context: BenchmarkContext,
  row: Row,
  { plan, calls }: (typeof SHAPES)[number],
  { bare, ours }: Sides,
): Promise<void> {
  const { shortTurns, warmUpSeconds } = context.scale
  const { turns, turnSeconds } = shortTurns
  const load = { kind: 'in-flight', calls, seconds: turnSeconds } as const
  for (const side of [bare, ours]) await side({ ...load, seconds: warmUpSeconds })
  for (const round of context.rounds()) {
    const { limit, project } = await interleaved(
      round,
      turns,
      () => bare(load),
      () => ours(load),
    )
    const perSecond = (of: readonly CallTurn[]) => mean(of.map(({ figure }) => figure.messagesPerSecond))
    const clientCores = (of: readonly CallTurn[]) => rounded(mean(of.map(({ figure }) => figure.clientCores)))
    context.record(row, round, {
      limit: perSecond(limit),
      project: perSecond(project),
      ...comparedCosts(workOf(limit, 'messages'), workOf(project, 'messages')),
      parameters: { receivers: plan.calleesEach * plan.devices, inFlight: calls },
      details: {
        limitClientCores: clientCores(limit),
        projectClientCores: clientCores(project),
        projectP99Ms: rounded(mean(project.map(({ figure }) => figure.latency.p99))),
      },
    })
  }
}
