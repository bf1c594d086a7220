/**
 * How many frames a second go out through connections, one frame to each for every message that comes in, held against
 * `publish` of bare uWebSockets.js, which joins what a socket gets in one loop turn by itself.
 */

import type { Benchmark, BenchmarkContext, Row } from './support/benchmark.ts'
import type { FanOutLoadProtocol } from './support/fan-out-load.ts'
import type { FanOutServerProtocol } from './support/fan-out-server.ts'
import { Program } from './support/program.ts'
import { interleaved } from './support/rounds.ts'
import { mean } from './support/statistics.ts'
import { comparedCosts, type Usage, type Work, withUsage } from './support/usage.ts'

const WRITES: Row = {
  name: 'websocket-writes',
  project: 'the same bytes sent to every connection',
  limit: 'publish of bare uWebSockets.js',
  unit: 'frames/s',
  goal: { of: 'ratio', is: 'at least', value: 0.8 },
  notShown: 'Frames are not STOMP and are made once; sessions and subscriptions come on top. No TLS.',
}

const FRAME_BYTES = 300
const SHAPES = [
  { receivers: 100, inFlight: 4 },
  { receivers: 100, inFlight: 1 },
  { receivers: 1_000, inFlight: 4 },
  { receivers: 1, inFlight: 1 },
]

export const websocketWrites: Benchmark = { name: 'websocket-writes', run }

async function run(context: BenchmarkContext): Promise<void> {
  const { turns, turnSeconds } = context.scale.shortTurns
  const [bare, ours] = [await startServer(context, 'publish'), await startServer(context, 'connections')]
  const load = await Program.start<FanOutLoadProtocol>('fan-out-load', {})
  context.after(() => load.end())

  for (const shape of context.scale.isSmoke ? SHAPES.slice(0, 1) : SHAPES) {
    const measure = ({ port, pid }: Server) =>
      withUsage(pid, () => load.ask({ ...shape, port, frameBytes: FRAME_BYTES, seconds: turnSeconds }))
    for (const round of context.rounds()) {
      const { limit, project } = await interleaved(
        round,
        turns,
        () => measure(bare),
        () => measure(ours),
      )
      const [limitFigures, projectFigures] = [summarise(limit, turnSeconds), summarise(project, turnSeconds)]
      context.record(WRITES, round, {
        limit: limitFigures.framesPerSecond,
        project: projectFigures.framesPerSecond,
        ...comparedCosts(limitFigures, projectFigures),
        parameters: { ...shape, frameBytes: FRAME_BYTES },
      })
    }
  }
}

interface Server {
  readonly port: number
  readonly pid: number
}

async function startServer(
  context: BenchmarkContext,
  by: FanOutServerProtocol['setup']['by'],
): Promise<Server> {
  const server = await Program.start<FanOutServerProtocol>('fan-out-server', { by, frameBytes: FRAME_BYTES })
  context.after(() => server.end())
  return { port: await server.ask('port'), pid: server.pid }
}

type Turn = Usage & { readonly figure: FanOutLoadProtocol['answer'] }

/** The server's part before and after a turn counts as well. */
function summarise(turns: readonly Turn[], turnSeconds: number): Work & { readonly framesPerSecond: number } {
  const framesPerSecond = mean(turns.map(({ figure }) => figure.framesPerSecond))
  return { framesPerSecond, turns, operations: framesPerSecond * turnSeconds * turns.length }
}
