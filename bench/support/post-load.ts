/**
 * Program: posts prepared requests over kept connections, each once, so many at a time. A list that is walked through
 * once is what operations need that answer each request only once, such as taking a code.
 */

import { HttpConnection, type PostRequest } from './http-connection.ts'
import { serveParent } from './program.ts'
import { latencyFigures } from './statistics.ts'

export interface PostLoadProtocol {
  readonly setup: Record<string, never>
  readonly request: PostLoad
  readonly answer: PostLoadFigures
}

export interface PostLoad {
  /** Without a path. */
  readonly url: string
  readonly requests: readonly PostRequest[]
  readonly inFlight: number
  /** Another status is an error. */
  readonly status: number
}

export interface PostLoadFigures {
  readonly perSecond: number
  /** Milliseconds from request to answer. */
  readonly latency: ReturnType<typeof latencyFigures>
  /** The bodies of answers, in the order of the requests. */
  readonly bodies: readonly string[]
  /** Processor seconds of this client. */
  readonly clientCpuSeconds: number
  /** By the clock that is the same for all processes, microseconds: when it began and ended. */
  readonly window: Window
}

export interface Window {
  readonly startUs: number
  readonly endUs: number
}

serveParent<PostLoadProtocol>(async () => runLoad)

async function runLoad({ url, requests, inFlight, status }: PostLoad): Promise<PostLoadFigures> {
  const connections = await Promise.all(Array.from({ length: inFlight }, () => HttpConnection.open(url)))
  const bodies: string[] = []
  const latencies: number[] = []
  let next = 0
  const cpuBefore = process.cpuUsage()
  const startUs = clockUs()
  const postUntilEnd = async (connection: HttpConnection) => {
    while (next < requests.length) {
      const at = next++
      const askedAt = performance.now()
      bodies[at] = await connection.post(requests[at]!, status)
      latencies.push(performance.now() - askedAt)
    }
  }
  await Promise.all(connections.map(postUntilEnd))
  const endUs = clockUs()
  const cpu = process.cpuUsage(cpuBefore)
  for (const connection of connections) connection.close()
  return {
    perSecond: (requests.length * 1e6) / (endUs - startUs),
    latency: latencyFigures(latencies),
    bodies,
    clientCpuSeconds: (cpu.user + cpu.system) / 1e6,
    window: { startUs, endUs },
  }
}

/** CLOCK_MONOTONIC, by which V8 dates its profiles too. */
function clockUs(): number {
  return Number(process.hrtime.bigint() / 1000n)
}
