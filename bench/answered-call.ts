/**
 * What a call costs the server that half of ten callees answer: all ring, five join, the caller gives them a new key, one
 * leaves, and the caller ends the call. Held against the same call given up while all ring, or with `--against` against the
 * answered call on the server of another commit.
 */

import type { Benchmark, BenchmarkContext, Row } from './support/benchmark.ts'
import { modeBeside, openCalled, type StreetPlan } from './support/call-street.ts'
import { Program } from './support/program.ts'
import type { CallCourse, RoomLoadFigures, RoomLoadProtocol } from './support/room-load.ts'
import { interleaved } from './support/rounds.ts'
import type { RunningServer } from './support/server.ts'
import { rounded, sum } from './support/statistics.ts'
import { StoreWatch } from './support/store-watch.ts'
import { costFigures, type Usage, withUsage } from './support/usage.ts'

const COST: Row = {
  name: 'answered-call',
  project: 'a call to ten that five answer (start, ring, join, new key, leave, end): processor time',
  limit: 'the same call given up while all ring',
  unit: 'µs',
  notShown:
    'All devices watch the call. The more calls are under way, the more of them share a commit. No TLS.',
}
const AGAINST: Row = { ...COST, name: 'answered-call-against', limit: 'the server of another commit' }

const PLAN: StreetPlan = { groups: 16, callersEach: 1, calleesEach: 10, devices: 1 }
const PLAN_SMOKE: StreetPlan = { ...PLAN, groups: 2 }
const IN_FLIGHT = [16, 1]

export const answeredCall: Benchmark = { name: 'answered-call', run }

type Turn = Usage & { readonly figure: RoomLoadFigures }
type Side = (rooms: number, seconds: number) => Promise<Turn>

async function run(context: BenchmarkContext): Promise<void> {
  const { isSmoke, turns, turnSeconds, warmUpSeconds } = context.scale
  const { against } = context
  const [plan, mode] = [isSmoke ? PLAN_SMOKE : PLAN, modeBeside(against)]
  const { server, sideOf: ours } = await openSides(context, plan, { folder: 'data', mode })
  const limitSide =
    against === undefined
      ? ours('given-up')
      : (await openSides(context, plan, { folder: 'data-other', mode, checkout: against })).sideOf('answered')
  const projectSide = ours('answered')
  for (const side of [limitSide, projectSide]) await side(plan.groups, warmUpSeconds)
  for (const calls of isSmoke ? [plan.groups] : IN_FLIGHT) {
    for (const round of context.rounds()) {
      const store = new StoreWatch(server.admin)
      const { limit, project } = await interleaved(
        round,
        turns,
        () => limitSide(calls, turnSeconds),
        () => store.during(() => projectSide(calls, turnSeconds)),
      )
      const [limitWork, projectWork] = [workOf(limit), workOf(project)]
      context.record(against === undefined ? COST : AGAINST, round, {
        ...costFigures(limitWork, projectWork),
        parameters: { people: plan.calleesEach + 1, inFlight: calls, mode },
        details: {
          topicEventsPerCall: rounded(
            sum(project.map(({ figure }) => figure.frames)) / projectWork.operations,
          ),
          ...store.details(projectWork.operations),
        },
      })
    }
  }
}

/** Calls of each course on one server. */
async function openSides(
  context: BenchmarkContext,
  plan: StreetPlan,
  options: Parameters<typeof openCalled>[2],
): Promise<{ readonly server: RunningServer; sideOf(course: CallCourse): Side }> {
  const { server, groups } = await openCalled(context, plan, options)
  const load = await Program.start<RoomLoadProtocol>('room-load', { url: server.http, rooms: groups })
  context.after(() => load.end())
  const sideOf = (course: CallCourse) => (rooms: number, seconds: number) =>
    withUsage(server.pid, () => load.ask({ course, rooms, seconds }))
  return { server, sideOf }
}

function workOf(turns: readonly Turn[]) {
  return { turns, operations: sum(turns.map(({ figure }) => figure.calls)) }
}
