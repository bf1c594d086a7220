/**
 * HTTP load: wrk where it is installed, else autocannon with pipelining. (autocannon without pipelining is slower
 * than the server: a ratio taken with it is near 1 whatever the server does.)
 */

import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { AutocannonProtocol } from './autocannon-load.ts'
import { Program } from './program.ts'

export interface HttpLoad {
  /** Without a path. */
  readonly url: string
  /** Sent in turn, from the first on in each run. */
  readonly requests: RequestList
  readonly connections: number
  readonly seconds: number
  /** Answers wait for something: uWebSockets ends a connection whose next request comes before its answer. */
  readonly areAnswersLate?: boolean
}

export interface HttpLoadFigures {
  readonly requestsPerSecond: number
  readonly requests: number
  /** Milliseconds. */
  readonly p50: number
  readonly p99: number
}

export interface HttpRequest {
  readonly path: string
  /** Makes it a POST of JSON. */
  readonly body?: string
  /** Access token. */
  readonly token?: string
}

/** Requests in a file that the load generators read. */
export interface RequestList {
  readonly path: string
  readonly count: number
}

/** Writes requests to a file in `folder`. */
export function writeRequests(folder: string, name: string, requests: readonly HttpRequest[]): RequestList {
  const path = join(folder, `${name}.requests`)
  writeFileSync(
    path,
    requests.map(({ path, body = '', token = '' }) => `${path}\t${body}\t${token}\n`).join(''),
  )
  return { path, count: requests.length }
}

/** Rejects when any answer is not a success. */
export async function runHttpLoad(load: HttpLoad): Promise<HttpLoadFigures> {
  return (await loadGenerator()) === 'wrk' ? runWrk(load) : runAutocannon(load)
}

/** Which load generator is used, for the record. */
export async function loadGenerator(): Promise<'wrk' | 'autocannon'> {
  found ??= promisify(execFile)('wrk', ['--version']).then(
    () => 'wrk' as const,
    // wrk exits with 1 after printing its version.
    (error: NodeJS.ErrnoException) => (error.code === 'ENOENT' ? 'autocannon' : 'wrk'),
  )
  return found
}

async function runWrk({ url, requests, connections, seconds }: HttpLoad): Promise<HttpLoadFigures> {
  const script = `${requests.path}.lua`
  writeFileSync(script, WRK_SCRIPT)
  const { stdout } = await promisify(execFile)('wrk', [
    '-t1',
    `-c${connections}`,
    `-d${Math.ceil(seconds)}s`,
    '--timeout=10s',
    '-s',
    script,
    url,
    '--',
    requests.path,
  ])
  const line = stdout.split('\n').find(text => text.startsWith('{'))
  if (line === undefined) throw new Error(`wrk printed no figures: ${stdout}`)
  const figures: HttpLoadFigures & { failures: number } = JSON.parse(line)
  assertAllSucceeded(figures.failures, figures.requests)
  return figures
}

async function runAutocannon(load: HttpLoad): Promise<HttpLoadFigures> {
  const { url, requests, connections, seconds, areAnswersLate = false } = load
  const program = await Program.start<AutocannonProtocol>('autocannon-load', {})
  try {
    const path = requests.path
    const pipelining = areAnswersLate ? 1 : PIPELINED_REQUESTS
    const figures = await program.ask({ url, path, connections, pipelining, seconds })
    assertAllSucceeded(figures.failures, figures.requests)
    return figures
  } finally {
    await program.end()
  }
}

function assertAllSucceeded(failures: number, requests: number): void {
  if (failures > 0 || requests === 0) throw new Error(`${failures} of ${requests} HTTP requests failed`)
}

let found: Promise<'wrk' | 'autocannon'> | undefined
const PIPELINED_REQUESTS = 8

/** Prepares every request once; printing JSON saves reading wrk's text. */
const WRK_SCRIPT = `
local prepared = {}
local at = 0

function init(args)
  for line in io.lines(args[1]) do
    local path, body, token = line:match("^(.-)\\t(.-)\\t(.*)$")
    local headers = {}
    if token ~= "" then headers["Authorization"] = "Bearer " .. token end
    if body == "" then
      prepared[#prepared + 1] = wrk.format("GET", path, headers)
    else
      headers["Content-Type"] = "application/json"
      prepared[#prepared + 1] = wrk.format("POST", path, headers, body)
    end
  end
end

function request()
  at = at % #prepared + 1
  return prepared[at]
end

function done(summary, latency)
  local e = summary.errors
  io.write(string.format(
    '{"requestsPerSecond":%.1f,"requests":%d,"p50":%.3f,"p99":%.3f,"failures":%d}\\n',
    summary.requests / (summary.duration / 1e6), summary.requests,
    latency:percentile(50) / 1000, latency:percentile(99) / 1000,
    e.connect + e.read + e.write + e.status + e.timeout))
end
`
