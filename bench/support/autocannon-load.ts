/** Program: HTTP load by autocannon, for machines without wrk. */

import { readFileSync } from 'node:fs'
import autocannon from 'autocannon'
import { serveParent } from './program.ts'

export interface AutocannonProtocol {
  readonly setup: Record<string, never>
  readonly request: {
    readonly url: string
    /** A file of `writeRequests`. */
    readonly path: string
    readonly connections: number
    readonly pipelining: number
    readonly seconds: number
  }
  readonly answer: {
    readonly requestsPerSecond: number
    readonly requests: number
    readonly p50: number
    readonly p99: number
    readonly failures: number
  }
}

serveParent<AutocannonProtocol>(async () => async ({ url, path, connections, pipelining, seconds }) => {
  const requests = readFileSync(path, 'utf8').replace(/\n$/, '').split('\n').map(parseRequest)
  let nextClient = 0
  const result = await autocannon({
    url,
    connections,
    pipelining,
    // Whole ones, as with wrk.
    duration: Math.ceil(seconds),
    sampleInt: Math.min(1_000, (Math.ceil(seconds) * 1_000) / SAMPLES_MIN),
    // Each connection asks its own part of the list, so that together they ask each request once in a turn.
    setupClient: client => {
      const first = nextClient++ % Math.min(connections, requests.length)
      // The client's own `setRequests` refuses with pipelining, for requests under way: there are none yet.
      client.requestIterator.setRequests(requests.filter((_, at) => at % connections === first))
    },
  })
  return {
    requestsPerSecond: result.requests.total / result.duration,
    requests: result.requests.total,
    p50: result.latency.p50,
    p99: result.latency.p99,
    failures: result.errors + result.timeouts + result.non2xx,
  }
})

/** autocannon counts answers up to its last sample. */
const SAMPLES_MIN = 20

function parseRequest(line: string): autocannon.Request {
  const [path = '', body = '', token = ''] = line.split('\t')
  const authorization = token === '' ? {} : { authorization: `Bearer ${token}` }
  if (body === '') return { method: 'GET', path, headers: authorization }
  return { method: 'POST', path, headers: { ...authorization, 'content-type': 'application/json' }, body }
}
