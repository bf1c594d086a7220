/**
 * Whether `POST /api/get-public-keys` for one target slows down as the log grows, and what the server's memory comes to:
 * the same number of targets, spread over logs of several sizes, each held against the log before it in size.
 */

import { join } from 'node:path'
import type { Benchmark, BenchmarkContext, Row } from './support/benchmark.ts'
import { collectedMegabytes, collectingArguments, collectingEnvironment } from './support/collected-memory.ts'
import { compareHttp, type HttpSide } from './support/http-comparison.ts'
import { type RequestList, writeRequests } from './support/http-load.ts'
import { askEachOnce, lookupRequests } from './support/lookups.ts'
import { type PrefilledLog, prefilledLog } from './support/prefill.ts'
import { startServer } from './support/server.ts'

const RATE: Row = {
  name: 'lookup-growth',
  project: 'get-public-keys, 1 target, proof of the VRF in the cache',
  limit: 'the same with a smaller log',
  unit: 'requests/s',
  goal: { of: 'ratio', is: 'at least', value: 0.85 },
  notShown: 'Ten times the entries make a proof three or four hashes longer. The file is in the page cache.',
}
const MEMORY: Row = {
  name: 'lookup-memory-growth',
  project: 'memory of its own after these lookups, garbage collected',
  limit: RATE.limit,
  unit: 'MB',
  goal: { of: 'ratio', is: 'at most', value: 1.2 },
  notShown:
    'Pages of the store that are mapped are not among it: the system takes them back when it needs memory.',
}

export const lookupGrowth: Benchmark = { name: 'lookup-growth', run }

/** A server over a log of this size. */
interface SizedServer extends HttpSide {
  readonly entries: number
  readonly pid: number
  readonly requests: RequestList
  megabytes(): Promise<number>
  end(): Promise<void>
}

async function run(context: BenchmarkContext): Promise<void> {
  // Filling takes long, and V8 gives memory back while a server waits.
  for (const entries of context.scale.sizes) await logOf(context, entries)
  let smaller: SizedServer | undefined
  for (const entries of context.scale.sizes) {
    const larger = await open(context, entries)
    if (smaller !== undefined) {
      await compare(context, smaller, larger)
      await smaller.end()
    }
    smaller = larger
  }
}

async function compare(context: BenchmarkContext, smaller: SizedServer, larger: SizedServer): Promise<void> {
  const { entries, requests } = larger
  const parameters = { entries, than: smaller.entries }
  await compareHttp(context, RATE, { limit: smaller, project: larger, requests, parameters })
  const [limit, project] = [await smaller.megabytes(), await larger.megabytes()]
  context.record(MEMORY, 1, { limit, project, parameters })
}

async function open(context: BenchmarkContext, entries: number): Promise<SizedServer> {
  const { warmTargets, sizes } = context.scale
  const log = await logOf(context, entries)
  const scales = { path: join(context.folder, `memory-${entries}.json`), collections: 3 }
  const server = await startServer({
    dataFolder: log.dataFolder,
    profilesFolder: context.profilesFolder,
    environment: collectingEnvironment(scales),
    nodeArguments: collectingArguments(),
  })
  context.after(() => server.end())
  // As many of each, so that caches hold as much.
  const targets = log.targets.slice(0, Math.min(warmTargets, sizes[0]!))
  await askEachOnce(server.http, targets)
  const requests = writeRequests(context.folder, `log-${entries}`, lookupRequests(targets))
  const megabytes = () => collectedMegabytes(server.pid, scales)
  return { entries, url: server.http, pid: server.pid, requests, megabytes, end: () => server.end() }
}

function logOf({ scale, storesFolder }: BenchmarkContext, entries: number): Promise<PrefilledLog> {
  return prefilledLog(storesFolder, { entries, devices: Math.min(scale.devices, entries) })
}
