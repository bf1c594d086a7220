/**
 * What an idle connection weighs that is signed in, subscribed to the three queues of its device and beating: resident
 * bytes of the server, held against a bare WebSocket of uWebSockets.js.
 */

import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Benchmark, BenchmarkContext, Row } from './support/benchmark.ts'
import type { FanOutServerProtocol } from './support/fan-out-server.ts'
import type { IdleLoadProtocol } from './support/idle-load.ts'
import { prefillPeople } from './support/people.ts'
import { Program } from './support/program.ts'
import { collectingArguments, startServer } from './support/server.ts'
import { rounded } from './support/statistics.ts'

const ROW: Row = {
  name: 'connections',
  project: 'resident memory of an idle connection: signed in, three subscriptions, heart-beats',
  limit: 'idle WebSocket of bare uWebSockets.js',
  unit: 'bytes',
  goal: { of: 'project', is: 'at most', value: 4_096 },
  notShown:
    'Growth of the resident bytes of the process, after collections, from 3,000 connections on; what the kernel holds of a socket is not among them. Ten devices to a user; no TLS.',
}

const CONNECTIONS = 15_000
const CONNECTIONS_SMOKE = 200
/** Open already when it is first weighed, so that neither code nor the room that V8 takes to work in counts. */
const OPEN_BEFORE_SHARE = 0.2
const DEVICES_EACH = 10

export const connections: Benchmark = { name: 'connections', run }

async function run(context: BenchmarkContext): Promise<void> {
  const count = Math.min(context.scale.isSmoke ? CONNECTIONS_SMOKE : CONNECTIONS, openableMax())
  const dataFolder = join(context.folder, 'data')
  const people = await prefillPeople(dataFolder, Math.ceil(count / DEVICES_EACH), DEVICES_EACH)
  const tokens = people.flatMap(({ devices }) => devices.map(({ token }) => token))
  const scales = new Scales(join(context.folder, 'memory.json'))
  for (const round of context.rounds()) {
    const limit = await bareWeight(scales, count)
    const project = await serverWeight(scales, dataFolder, tokens.slice(0, count))
    context.record(ROW, round, {
      limit: limit.rss,
      project: project.rss,
      parameters: { connections: count, devicesEach: DEVICES_EACH },
      details: {
        projectHeapBytes: rounded(project.heapUsed),
        projectExternalBytes: rounded(project.external),
        projectResidentMegabytes: rounded(project.rssAtEnd / 1e6),
      },
    })
  }
}

/** Bytes of one connection more, and of the process at the end. */
type Weight = Memory & { readonly rssAtEnd: number }

async function bareWeight(scales: Scales, count: number): Promise<Weight> {
  const setup = { by: 'publish', frameBytes: 1 } as const
  const { environment } = scales
  const server = await Program.start<FanOutServerProtocol>(
    'fan-out-server',
    setup,
    collectingArguments(),
    environment,
  )
  try {
    return await scales.weigh(server.pid, await server.ask('port'), count, [])
  } finally {
    await server.end()
  }
}

async function serverWeight(scales: Scales, dataFolder: string, tokens: readonly string[]): Promise<Weight> {
  const { environment } = scales
  const server = await startServer({ dataFolder, environment, nodeArguments: collectingArguments() })
  try {
    return await scales.weigh(server.pid, Number(new URL(server.http).port), tokens.length, tokens)
  } finally {
    await server.end()
  }
}

/** What `process.memoryUsage` says, as far as it matters here. */
interface Memory {
  readonly rss: number
  readonly heapUsed: number
  readonly external: number
}

/** Weighs programs that were started with `collectingArguments` and this environment. */
class Scales {
  readonly #path: string

  constructor(path: string) {
    this.#path = path
  }

  get environment(): Readonly<Record<string, string>> {
    return { BENCH_MEMORY_FILE: this.#path }
  }

  /** Opens so many connections, of which the last ones are weighed. */
  async weigh(pid: number, port: number, count: number, tokens: readonly string[]): Promise<Weight> {
    const load = await Program.start<IdleLoadProtocol>('idle-load', { port })
    try {
      const openBefore = Math.floor(OPEN_BEFORE_SHARE * count)
      await load.ask({ connections: openBefore, tokens: tokens.slice(0, openBefore) })
      const before = await this.#memoryOf(pid)
      const [more, otherTokens] = [count - openBefore, tokens.slice(openBefore)]
      const open = await load.ask({ connections: more, tokens: otherTokens })
      const after = await this.#memoryOf(pid)
      if (open !== count) throw new Error(`only ${open} of ${count} connections are open`)
      const perConnection = (of: keyof Memory) => (after[of] - before[of]) / more
      return {
        rss: perConnection('rss'),
        heapUsed: perConnection('heapUsed'),
        external: perConnection('external'),
        rssAtEnd: after.rss,
      }
    } finally {
      await load.end()
    }
  }

  /** After some collections: V8 gives pages back bit by bit. */
  async #memoryOf(pid: number): Promise<Memory> {
    for (let times = 0; times < COLLECTIONS; times++) {
      rmSync(this.#path, { force: true })
      process.kill(pid, 'SIGUSR2')
      while (!existsSync(this.#path)) await sleep(COLLECTED_EVERY_MS)
      await sleep(COLLECTED_EVERY_MS)
    }
    return JSON.parse(readFileSync(this.#path, 'utf8'))
  }
}

/** So many sockets as this machine lets a process open, less what else it has open. */
function openableMax(): number {
  const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1')) ?? []
  return Math.floor(Number(soft ?? 1_024) * 0.8)
}

function sleep(ms: number): Promise<void> {
  return new Promise(resolve => {
    setTimeout(resolve, ms)
  })
}

const COLLECTIONS = 3
const COLLECTED_EVERY_MS = 200
