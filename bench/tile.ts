/**
 * How fast the log's public files are served: full hash tiles all over a log of a million entries, and the checkpoint,
 * each held against bare uWebSockets.js that sends the same bytes and headers. The peer is nginx with the tiles in files.
 */

import { formatTilePath, TILE_WIDTH } from '../src/log/tile.ts'
import type { Benchmark, BenchmarkContext, Row } from './support/benchmark.ts'
import { type RecordedAnswer, recordAnswer } from './support/http-answer.ts'
import { compareHttp, type HttpSide } from './support/http-comparison.ts'
import { loadGenerator, writeRequests } from './support/http-load.ts'
import { openNginx } from './support/nginx.ts'
import { prefilledLog } from './support/prefill.ts'
import { Program } from './support/program.ts'
import type { RawHttpProtocol } from './support/raw-http.ts'
import { type RunningServer, startServer } from './support/server.ts'

const NOT_SHOWN =
  'Requests come from this machine over loopback, without TLS and without the request rates that production keeps.'
const TILE: Row = {
  name: 'tile',
  project: 'full tile GET, one tile',
  limit: 'bare uWebSockets.js, same bytes and headers',
  unit: 'requests/s',
  goal: {
    of: 'cpuRatio',
    is: 'at least',
    value: 0.6,
    because:
      'Each look at a header is a call from JavaScript into uWebSockets.js and back, and a GET with a length must be refused.',
  },
  notShown: NOT_SHOWN,
}
const TILES: Row = {
  ...TILE,
  name: 'tiles',
  project: 'full tile GET, all tiles',
  limit: 'bare uWebSockets.js with all of them in a Map',
}
const CHECKPOINT: Row = {
  name: 'checkpoint',
  project: 'GET /checkpoint',
  limit: TILE.limit,
  unit: TILE.unit,
  notShown: NOT_SHOWN,
}

export const tile: Benchmark = { name: 'tile', run }

async function run(context: BenchmarkContext): Promise<void> {
  const { scale, profilesFolder } = context
  const log = await prefilledLog(context.storesFolder, { entries: scale.entries, devices: scale.devices })
  const server = await startServer({ dataFolder: log.dataFolder, profilesFolder })
  context.after(() => server.end())
  const tiles = fullTilePaths(scale.entries)
  await measureFiles(context, TILE, server, tiles.slice(0, 1))
  await measureFiles(context, TILES, server, tiles)
  await measureFiles(context, CHECKPOINT, server, ['/checkpoint'])
}

async function measureFiles(
  context: BenchmarkContext,
  row: Row,
  server: RunningServer,
  paths: readonly string[],
): Promise<void> {
  const { scale } = context
  const answers = new Map<string, RecordedAnswer>()
  for (const path of paths) answers.set(path, await recordAnswer(server.http + path))
  const requests = writeRequests(
    context.folder,
    row.name,
    paths.map(path => ({ path })),
  )
  const raw = await Program.start<RawHttpProtocol>('raw-http', {
    answers,
    isPipelined: (await loadGenerator()) === 'autocannon',
  })
  context.after(() => raw.end())
  await compareHttp(context, row, {
    limit: { url: await raw.ask('address'), pid: raw.pid },
    project: { url: server.http, pid: server.pid },
    requests,
    parameters: { entries: scale.entries },
    peers: row === CHECKPOINT ? new Map() : await openPeers(context, row, answers),
  })
}

async function openPeers(
  context: BenchmarkContext,
  row: Row,
  answers: ReadonlyMap<string, RecordedAnswer>,
): Promise<ReadonlyMap<string, HttpSide>> {
  const peers = await openNginx(context, row.name, answers)
  return new Map(peers.map(({ name, url, pids }) => [name, { url, pid: pids }]))
}

/** The paths of all full tiles of level 0, in an order that jumps about. */
function fullTilePaths(entries: number): string[] {
  const tiles = Math.floor(entries / TILE_WIDTH)
  return Array.from({ length: tiles }, (_, at) => {
    const index = (at * ORDER_STEP) % tiles
    return `/${formatTilePath({ level: 0, index, width: TILE_WIDTH })}`
  })
}

const ORDER_STEP = 7_919
