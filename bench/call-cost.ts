/**
 * What a call to ten costs the server: started, told to ten devices and acknowledged by each, ended, told and acknowledged
 * again. Held against bare uWebSockets.js that sends the same bytes, or with `--against` against the server of another
 * commit; in turns, so that both meet the same machine.
 */

import type { Benchmark, BenchmarkContext, Row } from './support/benchmark.ts'
import {
  type CallSide,
  modeBeside,
  openAlone,
  openStreet,
  type StreetPlan,
  workOf,
} from './support/call-street.ts'
import { interleaved } from './support/rounds.ts'
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
const AGAINST: Row = { ...COST, name: 'call-cost-against', limit: 'the server of another commit' }

/** About one caller of a group is in a call at a time. */
const PLAN: StreetPlan = { groups: 16, callersEach: 2, calleesEach: 10, devices: 1 }
const PLAN_SMOKE: StreetPlan = { ...PLAN, groups: 2 }
const IN_FLIGHT = [16, 1]

export const callCost: Benchmark = { name: 'call-cost', run }

async function run(context: BenchmarkContext): Promise<void> {
  const { isSmoke, turns, turnSeconds, warmUpSeconds } = context.scale
  const plan = isSmoke ? PLAN_SMOKE : PLAN
  const { against } = context
  const mode = modeBeside(against)
  const { bare, ours, server } = await openStreet(context, plan, mode)
  const other = { folder: 'data-other', mode, checkout: against }
  const limitSide: CallSide = against === undefined ? bare : await openAlone(context, plan, other)
  for (const side of [limitSide, ours]) {
    await side({ kind: 'in-flight', calls: IN_FLIGHT[0]!, seconds: warmUpSeconds })
  }
  for (const calls of isSmoke ? IN_FLIGHT.slice(0, 1) : IN_FLIGHT) {
    const load = { kind: 'in-flight', calls, seconds: turnSeconds } as const
    for (const round of context.rounds()) {
      const store = new StoreWatch(server.admin)
      const { limit, project } = await interleaved(
        round,
        turns,
        () => limitSide(load),
        () => store.during(() => ours(load)),
      )
      const [limitWork, projectWork] = [workOf(limit, 'calls'), workOf(project, 'calls')]
      context.record(against === undefined ? COST : AGAINST, round, {
        ...costFigures(limitWork, projectWork),
        parameters: { people: plan.calleesEach + 1, inFlight: calls, mode },
        details: {
          messagesPerCall: rounded(
            sum(project.map(({ figure }) => figure.messages)) / projectWork.operations,
          ),
          ...store.details(projectWork.operations),
        },
      })
    }
  }
}
