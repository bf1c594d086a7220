/**
 * How long it takes from a POST to `/app/api/call/start` until the last callee rings, of one, ten and 31 (as many as a call
 * can have), at a steady number of calls a second; held against bare uWebSockets.js that sends the same bytes, and
 * against calls to fewer. Each call is ended after a second, so that as many end as begin; calls to ten are
 * measured without these, too.
 */

import type { Benchmark, BenchmarkContext, Row } from './support/benchmark.ts'
import { type CallTurn, openAlone, openStreet, type Sides, type StreetPlan } from './support/call-street.ts'
import { clientDetails } from './support/client-watch.ts'
import { Program } from './support/program.ts'
import { interleaved } from './support/rounds.ts'
import { mean, rounded } from './support/statistics.ts'
import type { TimerGapsProtocol } from './support/timer-gaps.ts'
import { comparedCosts } from './support/usage.ts'

const TO_TEN: Row = {
  name: 'call-start',
  project: 'from POST call/start to the invitation of the tenth callee, 200 calls/s, p99',
  limit: 'bare uWebSockets.js that sends the same bytes',
  unit: 'ms',
  goal: { of: 'project', is: 'at most', value: 10 },
  notShown:
    'Counted from the moment at which a call was to start, even where the client was late; calls of the first 300 ms, when connections are made, are not. Costs are those of a call with its end. Each invitation is durable before it is sent, so the disk is in it. No TLS.',
}
const ALONE: Row = {
  ...TO_TEN,
  name: 'call-start-alone',
  project: `${TO_TEN.project}, while none ends`,
  notShown: `${TO_TEN.notShown} The calls are ended between the turns.`,
}
const BESIDE_GAPS: Row = {
  name: 'call-start-gaps',
  project: TO_TEN.project,
  limit: 'a thread that asks to be woken each millisecond: how much later, p99',
  unit: TO_TEN.unit,
  notShown: TO_TEN.notShown,
}
const AGAINST: Row = {
  ...BESIDE_GAPS,
  name: 'call-start-against',
  limit: 'the server of another commit',
}
const OTHERS: Row = {
  name: 'call-start-rooms',
  project: 'from POST call/start to the invitation of the last callee, p99',
  limit: TO_TEN.limit,
  unit: 'ms',
  notShown: TO_TEN.notShown,
}
const GROWTH: Row = {
  ...OTHERS,
  name: 'call-start-growth',
  project: 'from POST call/start to the invitation of the last callee, p50',
  limit: 'the same with fewer people',
  notShown: 'A call to more people has more to write and to tell; of 31 there are fewer calls a second.',
}

interface Shape {
  readonly callees: number
  readonly callsPerSecond: number
  /** It gets all turns; each other one gets one turn a round. */
  readonly isMain: boolean
}

const SHAPES: readonly Shape[] = [
  { callees: 1, callsPerSecond: 200, isMain: false },
  { callees: 10, callsPerSecond: 200, isMain: true },
  { callees: 31, callsPerSecond: 60, isMain: false },
]
const SHAPES_SMOKE: readonly Shape[] = [
  { callees: 1, callsPerSecond: 20, isMain: false },
  { callees: 2, callsPerSecond: 20, isMain: true },
]
/** So many that 1 % of them is not a handful. */
const SECONDS_PER_TURN = 3
/** V8 compiles what calls need for ten seconds and more, and compiling takes turns from those who are called. */
const WARM_UPS = 6
/** One for each call of a turn, and some to spare. */
const CALLERS = 700

export const callStart: Benchmark = { name: 'call-start', run }

async function run(context: BenchmarkContext): Promise<void> {
  const gaps = await Program.start<TimerGapsProtocol>('timer-gaps', {})
  context.after(() => gaps.end())
  if (context.against !== undefined) return runAgainst(context, gaps, context.against)
  const { isSmoke, turns, turnSeconds, warmUpSeconds } = context.scale
  const streets: (Shape & Sides)[] = []
  for (const shape of isSmoke ? SHAPES_SMOKE : SHAPES) {
    streets.push({ ...shape, ...(await openStreet(context, planOf(context, shape.callees))) })
  }
  for (const { callsPerSecond, isMain, bare, ours } of isSmoke ? [] : streets) {
    const seconds = Math.ceil(warmUpSeconds)
    const load = { kind: 'rate', callsPerSecond, ends: 'meanwhile' } as const
    await bare({ ...load, seconds })
    await ours({ ...load, seconds: isMain ? seconds * WARM_UPS : seconds })
  }
  for (const round of context.rounds()) {
    let smaller: { callees: number; p50: number } | undefined
    for (const { callees, callsPerSecond, isMain, bare, ours } of streets) {
      const seconds = turnSeconds * (isSmoke ? 1 : SECONDS_PER_TURN)
      const gapFigures: number[] = []
      const turnsOf = (ends: 'meanwhile' | 'afterwards') => {
        const load = { kind: 'rate', callsPerSecond, seconds, ends } as const
        return interleaved(
          round,
          isMain ? turns : 1,
          () => bare(load),
          async () => {
            const [turn, { p99 }] = await Promise.all([ours(load), gaps.ask({ seconds })])
            if (ends === 'meanwhile') gapFigures.push(p99)
            return turn
          },
        )
      }
      const { limit, project } = await turnsOf('meanwhile')
      record(context, isMain ? TO_TEN : OTHERS, round, { callees, callsPerSecond, seconds, limit, project })
      if (isMain) {
        context.record(BESIDE_GAPS, round, {
          limit: mean(gapFigures),
          project: latency(project, 'p99'),
          parameters: { people: callees + 1, callsPerSecond },
        })
        record(context, ALONE, round, { callees, callsPerSecond, seconds, ...(await turnsOf('afterwards')) })
      }
      const p50 = latency(project, 'p50')
      if (smaller !== undefined) {
        const parameters = { people: callees + 1, than: smaller.callees + 1, callsPerSecond }
        context.record(GROWTH, round, { limit: smaller.p50, project: p50, parameters })
      }
      smaller = { callees, p50 }
    }
  }
}

/** The main shape alone, in turns with the server of another checkout. */
async function runAgainst(
  context: BenchmarkContext,
  gaps: Program<TimerGapsProtocol>,
  against: string,
): Promise<void> {
  const { isSmoke, turns, turnSeconds, warmUpSeconds } = context.scale
  const { callees, callsPerSecond } = (isSmoke ? SHAPES_SMOKE : SHAPES).find(({ isMain }) => isMain)!
  const plan = planOf(context, callees)
  const sides = {
    limit: await openAlone(context, plan, { folder: 'data-other', checkout: against }),
    project: await openAlone(context, plan, { folder: 'data' }),
  }
  const load = { kind: 'rate', callsPerSecond, ends: 'meanwhile' } as const
  for (const side of [sides.limit, sides.project]) {
    if (!isSmoke) await side({ ...load, seconds: Math.ceil(warmUpSeconds) * WARM_UPS })
  }
  const seconds = turnSeconds * (isSmoke ? 1 : SECONDS_PER_TURN)
  for (const round of context.rounds()) {
    const gapFigures = { limit: [] as number[], project: [] as number[] }
    const turnOf = (which: 'limit' | 'project') => async () => {
      const [turn, { p99 }] = await Promise.all([sides[which]({ ...load, seconds }), gaps.ask({ seconds })])
      gapFigures[which].push(p99)
      return turn
    }
    const { limit, project } = await interleaved(round, turns, turnOf('limit'), turnOf('project'))
    record(
      context,
      AGAINST,
      round,
      { callees, callsPerSecond, seconds, limit, project },
      {
        limitGapP99Ms: rounded(mean(gapFigures.limit)),
        projectGapP99Ms: rounded(mean(gapFigures.project)),
      },
    )
  }
}

function planOf({ scale }: BenchmarkContext, callees: number): StreetPlan {
  const groups = scale.isSmoke ? 2 : 50
  return { groups, callersEach: scale.isSmoke ? 20 : CALLERS / groups, calleesEach: callees, devices: 1 }
}

interface Measured {
  readonly callees: number
  readonly callsPerSecond: number
  readonly seconds: number
  readonly limit: readonly CallTurn[]
  readonly project: readonly CallTurn[]
}

function record(
  context: BenchmarkContext,
  row: Row,
  round: number,
  measured: Measured,
  details: Readonly<Record<string, number>> = {},
): void {
  const { callees, callsPerSecond, seconds, limit, project } = measured
  const workOf = (turns: readonly CallTurn[]) => ({
    turns,
    operations: callsPerSecond * seconds * turns.length,
  })
  const clientCores = (turns: readonly CallTurn[]) => mean(turns.map(({ figure }) => figure.clientCores))
  context.record(row, round, {
    limit: latency(limit, 'p99'),
    project: latency(project, 'p99'),
    costs: comparedCosts(workOf(limit), workOf(project)).costs,
    parameters: { people: callees + 1, callsPerSecond, callees },
    details: {
      limitP50Ms: latency(limit, 'p50'),
      projectP50Ms: latency(project, 'p50'),
      projectMaxMs: latency(project, 'max'),
      ...details,
      ...clientDetails(`call-start, ${callees} callees`, [
        ['limit', clientCores(limit)],
        ['project', clientCores(project)],
      ]),
    },
  })
}

/** Milliseconds. */
function latency(turns: readonly CallTurn[], which: 'p50' | 'p99' | 'max'): number {
  return rounded(mean(turns.map(({ figure }) => figure.latency[which])))
}
