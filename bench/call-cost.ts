/**
 * What a call to ten costs the server, from start to end and acknowledged by all: given up by its caller, and answered by
 * five. Held against bare uWebSockets.js that sends the same bytes, or with `--against` against the server of another
 * commit; in turns, so that both meet the same machine.
 */

import type { Benchmark, BenchmarkContext, Row } from './support/benchmark.ts'
import { type CallSide, openAlone, openStreet, type StreetPlan, workOf } from './support/call-street.ts'
import { GarbageCounter } from './support/garbage.ts'
import { interleaved } from './support/rounds.ts'
import type { RunningServer } from './support/server.ts'
import { rounded, sum } from './support/statistics.ts'
import { StoreWatch } from './support/store-watch.ts'
import { costFigures } from './support/usage.ts'

const COST: Row = {
  name: 'call-cost',
  project: 'a call to ten that its caller gives up, from start to end, all acknowledged: processor time',
  limit: 'bare uWebSockets.js, the same bytes by `ws.send`, nothing kept',
  unit: 'µs',
  notShown: 'The more calls are under way, the more of them share a commit. No TLS.',
}
const ANSWERED: Row = {
  ...COST,
  name: 'call-answered',
  project: 'a call to ten that five answer and two leave before its end, all acknowledged: processor time',
  limit: 'the same call, given up while it rings',
  notShown: 'Ten devices say that they ring, six watch the call; nobody stays in it for a while. No TLS.',
}

/** About one caller of a group is in a call at a time. */
const PLAN: StreetPlan = { groups: 16, callersEach: 2, calleesEach: 10, devices: 1 }
const PLAN_SMOKE: StreetPlan = { ...PLAN, groups: 2 }
const IN_FLIGHT = [16, 1]

export const callCost: Benchmark = { name: 'call-cost', run }

async function run(context: BenchmarkContext): Promise<void> {
  const { isSmoke, warmUpSeconds } = context.scale
  const plan = isSmoke ? PLAN_SMOKE : PLAN
  const { against } = context
  const garbage = new GarbageCounter(context.folder)
  const { bare, ours, server } = await openStreet(context, plan, garbage)
  const other =
    against === undefined
      ? undefined
      : await openAlone(context, plan, { folder: 'data-other', checkout: against })
  const opened = { context, people: plan.calleesEach + 1, server, garbage }
  for (const side of [other ?? bare, ours]) {
    await side({ kind: 'in-flight', calls: IN_FLIGHT[0]!, seconds: warmUpSeconds })
  }
  for (const calls of isSmoke ? IN_FLIGHT.slice(0, 1) : IN_FLIGHT) {
    const givenUp: Asked = { kind: 'in-flight', calls }
    // A device is in one call at a time.
    const answered: Asked = { kind: 'answered', calls: Math.min(calls, plan.groups) }
    const limit = { side: other ?? bare, asked: givenUp }
    const project = { side: ours, asked: givenUp }
    await compare(opened, { row: besideOther(COST, against), limit, project })
    const limitAnswered = other === undefined ? project : { side: other, asked: answered }
    await compare(opened, {
      row: besideOther(ANSWERED, against),
      limit: limitAnswered,
      project: { side: ours, asked: answered },
    })
  }
}

function besideOther(row: Row, against: string | undefined): Row {
  return against === undefined
    ? row
    : { ...row, name: `${row.name}-against`, limit: 'the server of another commit' }
}

type Asked = { readonly kind: 'in-flight' | 'answered'; readonly calls: number }

interface Opened {
  readonly context: BenchmarkContext
  readonly people: number
  /** The project's. */
  readonly server: RunningServer
  readonly garbage: GarbageCounter
}

interface Compared {
  readonly row: Row
  readonly limit: Load
  readonly project: Load
}

interface Load {
  readonly side: CallSide
  readonly asked: Asked
}

async function compare(
  { context, people, server, garbage }: Opened,
  { row, limit, project }: Compared,
): Promise<void> {
  const { turns, turnSeconds: seconds } = context.scale
  for (const round of context.rounds()) {
    const store = new StoreWatch(server.admin)
    const measured = await interleaved(
      round,
      turns,
      () => limit.side({ ...limit.asked, seconds }),
      () => store.during(() => project.side({ ...project.asked, seconds })),
    )
    const [limitWork, projectWork] = [workOf(measured.limit, 'calls'), workOf(measured.project, 'calls')]
    // In a turn of its own, since looking at each collection costs something.
    const garbageBytesPerCall = await garbage.each(
      server.pid,
      async () => (await project.side({ ...project.asked, seconds })).figure.calls,
    )
    const messages = sum(measured.project.map(({ figure }) => figure.messages))
    context.record(row, round, {
      ...costFigures(limitWork, projectWork),
      parameters: { people, inFlight: project.asked.calls },
      details: {
        garbageBytesPerCall,
        messagesPerCall: rounded(messages / projectWork.operations),
        ...store.details(projectWork.operations),
      },
    })
  }
}
