/** Loads two HTTP servers with the same requests in turn, the bare one and ours, and records the rounds. */

import { type BenchmarkContext, type Parameters, peersOf, type Row } from './benchmark.ts'
import { loadGenerator, type RequestList, runHttpLoad } from './http-load.ts'
import { interleavedWith } from './rounds.ts'
import { mean, rounded, sum } from './statistics.ts'
import { comparedCosts, peerDetails, type Work, withUsage } from './usage.ts'

export interface HttpSide {
  readonly url: string
  /** One, or those of all workers. */
  readonly pid: number | readonly number[]
  /** Requests of this side, where they differ from the rest. */
  readonly requests?: RequestList
}

export interface HttpComparison {
  readonly limit: HttpSide
  readonly project: HttpSide
  readonly requests: RequestList
  readonly parameters: Parameters
  /** By name and version. */
  readonly peers?: ReadonlyMap<string, HttpSide>
}

/** Warms all up and records all rounds of `row`. Rejects when any answer is not a success. */
export async function compareHttp(
  context: BenchmarkContext,
  row: Row,
  { limit, project, requests: ofAll, parameters, peers = new Map() }: HttpComparison,
): Promise<void> {
  const { turns, turnSeconds, warmUpSeconds, isSmoke } = context.scale
  const measure = ({ url, pid, requests = ofAll }: HttpSide, seconds: number) =>
    withUsage(pid, () => runHttpLoad({ url, requests, connections: CONNECTIONS, seconds }))
  const sides = isSmoke ? [] : [limit, project, ...peers.values()]
  for (const side of sides) await measure(side, warmUpSeconds)
  for (const round of context.rounds()) {
    const figures = await interleavedWith(
      round,
      turns,
      { limit: () => measure(limit, turnSeconds), project: () => measure(project, turnSeconds) },
      new Map([...peers].map(([name, side]) => [name, () => measure(side, turnSeconds)])),
    )
    const [limitFigures, projectFigures] = [summarise(figures.limit), summarise(figures.project)]
    const peerFigures = [...figures.others].map(([name, turns]) => [name, summarise(turns)] as const)
    context.record(row, round, {
      limit: limitFigures.requestsPerSecond,
      project: projectFigures.requestsPerSecond,
      ...comparedCosts(limitFigures, projectFigures),
      ...peersOf(peerFigures.map(([name, { requestsPerSecond }]) => [name, requestsPerSecond])),
      parameters: { ...parameters, clientConnections: CONNECTIONS, client: await loadGenerator() },
      details: {
        requestsInList: ofAll.count,
        limitP99Ms: limitFigures.p99,
        projectP99Ms: projectFigures.p99,
        ...peerDetails(peerFigures),
      },
    })
  }
}

type Turn = Awaited<ReturnType<typeof withUsage<Awaited<ReturnType<typeof runHttpLoad>>>>>

function summarise(
  turns: readonly Turn[],
): Work & { readonly requestsPerSecond: number; readonly p99: number } {
  return {
    turns,
    operations: sum(turns.map(({ figure }) => figure.requests)),
    requestsPerSecond: mean(turns.map(({ figure }) => figure.requestsPerSecond)),
    p99: rounded(mean(turns.map(({ figure }) => figure.p99))),
  }
}

const CONNECTIONS = 64
