/**
 * The processor time of a message that is durable before it is sent, and acknowledged: those of calls to ten, started and given up,
 * beside brokers that do the least of it, ten receivers to a message. Held against bare uWebSockets.js, which keeps nothing.
 */

import { type Benchmark, type BenchmarkContext, peersOf, type Row } from './support/benchmark.ts'
import { type Broker, openBrokers } from './support/brokers/start-brokers.ts'
import { openStreet, type StreetPlan } from './support/call-street.ts'
import type { DurableLoadFigures, DurableLoadProtocol } from './support/durable-load.ts'
import { Program } from './support/program.ts'
import { interleavedWith } from './support/rounds.ts'
import { rounded, sum } from './support/statistics.ts'
import { costFigures, costOf, type Usage, withUsage } from './support/usage.ts'

const ROW: Row = {
  name: 'durable-messages',
  project:
    'a message to each of ten devices, durable before it is sent, acknowledged by each: processor time',
  limit: 'bare uWebSockets.js, the same bytes by `ws.send`, nothing kept',
  unit: 'µs',
  notShown:
    'Ours are the invitations and ends of calls, with the rules, rows and requests of a call; those of brokers say nothing, and whoever lets their users in to them is not among it. Sixteen messages to ten at a time. No TLS.',
}

const PLAN: StreetPlan = { groups: 16, callersEach: 2, calleesEach: 10, devices: 1 }
const PLAN_SMOKE: StreetPlan = { ...PLAN, groups: 2 }
const IN_FLIGHT = 16

export const durableMessages: Benchmark = { name: 'durable-messages', run }

type Turn = Usage & { readonly figure: Pick<DurableLoadFigures, 'messages' | 'latency'> }
type Side = (seconds: number) => Promise<Turn>

async function run(context: BenchmarkContext): Promise<void> {
  const { isSmoke, turns, turnSeconds, warmUpSeconds } = context.scale
  const plan = isSmoke ? PLAN_SMOKE : PLAN
  const street = await openStreet(context, plan)
  const calls = { kind: 'in-flight', calls: IN_FLIGHT } as const
  const bare: Side = seconds => street.bare({ ...calls, seconds })
  const ours: Side = seconds => street.ours({ ...calls, seconds })
  const brokers = new Map<string, Side>()
  for (const broker of await openBrokers(context)) brokers.set(broker.name, await sideOf(context, broker))
  for (const side of [bare, ours, ...brokers.values()]) await side(warmUpSeconds)
  for (const round of context.rounds()) {
    const others = [...brokers].map(([name, side]) => [name, () => side(turnSeconds)] as const)
    const measured = await interleavedWith<Turn>(
      round,
      turns,
      { limit: () => bare(turnSeconds), project: () => ours(turnSeconds) },
      new Map(others),
    )
    const peers = [...measured.others].map(([name, of]) => [name, worked(of)] as const)
    context.record(ROW, round, {
      ...costFigures(worked(measured.limit), worked(measured.project)),
      ...peersOf(peers.map(([name, { cost }]) => [name, cost.cpuMicroseconds ?? Number.NaN])),
      parameters: { people: plan.calleesEach + 1, inFlight: IN_FLIGHT },
      details: Object.fromEntries(
        [['project', worked(measured.project)] as const, ...peers].flatMap(([name, { cost, p50 }]) => [
          [`${name}: WrittenBytes`, cost.writtenBytes ?? ''],
          [`${name}: Fdatasyncs`, cost.fdatasyncs ?? ''],
          [`${name}: P50Ms`, p50],
        ]),
      ),
    })
  }
}

async function sideOf(context: BenchmarkContext, broker: Broker): Promise<Side> {
  const load = await Program.start<DurableLoadProtocol>('durable-load', broker.address)
  context.after(() => load.end())
  // PostgreSQL has a process for each connection.
  const pids = broker.pids()
  return seconds => withUsage(pids, () => load.ask({ inFlight: IN_FLIGHT, seconds }))
}

function worked(turns: readonly Turn[]) {
  const operations = sum(turns.map(({ figure }) => figure.messages))
  const p50 = rounded(sum(turns.map(({ figure }) => figure.latency.p50)) / turns.length)
  return { turns, operations, cost: costOf(turns, operations), p50 }
}
