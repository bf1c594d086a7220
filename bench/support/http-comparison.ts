/** Loads two HTTP servers with the same requests in turn, the bare one and ours, and records the rounds. */

import type { BenchmarkContext, Parameters, Row } from './benchmark.ts'
import { loadGenerator, type RequestList, runHttpLoad } from './http-load.ts'
import { interleaved, withCpu } from './rounds.ts'
import { mean, rounded, sum } from './statistics.ts'

export interface HttpSide {
  readonly url: string
  readonly pid: number
}

export interface HttpComparison {
  readonly limit: HttpSide
  readonly project: HttpSide
  readonly requests: RequestList
  readonly parameters: Parameters
}

/** Warms both up and records all rounds of `row`. Rejects when any answer is not a success. */
export async function compareHttp(
  context: BenchmarkContext,
  row: Row,
  { limit, project, requests, parameters }: HttpComparison,
): Promise<void> {
  const { turns, turnSeconds, warmUpSeconds } = context.scale
  const measure = ({ url, pid }: HttpSide, seconds: number) =>
    withCpu(pid, () => runHttpLoad({ url, requests, connections: CONNECTIONS, seconds }))
  await measure(limit, warmUpSeconds)
  await measure(project, warmUpSeconds)
  for (const round of context.rounds()) {
    const figures = await interleaved(
      round,
      turns,
      () => measure(limit, turnSeconds),
      () => measure(project, turnSeconds),
    )
    const [limitFigures, projectFigures] = [summarise(figures.limit), summarise(figures.project)]
    context.record(row, round, {
      limit: limitFigures.requestsPerSecond,
      project: projectFigures.requestsPerSecond,
      cpuRatio: limitFigures.cpuMicroseconds / projectFigures.cpuMicroseconds,
      parameters: { ...parameters, connections: CONNECTIONS, client: await loadGenerator() },
      details: {
        requestsInList: requests.count,
        limitP99Ms: limitFigures.p99,
        projectP99Ms: projectFigures.p99,
        limitCpuMicroseconds: limitFigures.cpuMicroseconds,
        projectCpuMicroseconds: projectFigures.cpuMicroseconds,
      },
    })
  }
}

type Turn = Awaited<ReturnType<typeof withCpu<Awaited<ReturnType<typeof runHttpLoad>>>>>

function summarise(turns: readonly Turn[]): {
  readonly requestsPerSecond: number
  readonly p99: number
  /** Of the server, per request. */
  readonly cpuMicroseconds: number
} {
  const requests = sum(turns.map(({ figure }) => figure.requests))
  return {
    requestsPerSecond: mean(turns.map(({ figure }) => figure.requestsPerSecond)),
    p99: rounded(mean(turns.map(({ figure }) => figure.p99))),
    cpuMicroseconds: rounded((sum(turns.map(({ cpu }) => cpu)) * 1e6) / requests),
  }
}

const CONNECTIONS = 64
