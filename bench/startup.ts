/**
 * How long the server takes from the start of its process to its ready line, as the log grows. Held against the start
 * of a Node process that loads nothing and prints a line.
 */

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Benchmark, BenchmarkContext, Row } from './support/benchmark.ts'
import { prefilledLog } from './support/prefill.ts'
import { interleaved } from './support/rounds.ts'
import { startServer } from './support/server.ts'
import { mean } from './support/statistics.ts'

const STARTUP: Row = {
  name: 'startup',
  project: 'start to ready line',
  limit: 'start of an empty Node process',
  unit: 's',
  goal: { of: 'project', is: 'at most', value: 3 },
  notShown:
    'The store was read shortly before, so the page cache is warm; after a reboot the right edge and the last 65,000 entries come from the disk.',
}

export const startup: Benchmark = { name: 'startup', run }

async function run(context: BenchmarkContext): Promise<void> {
  const { scale } = context
  for (const entries of scale.sizes) {
    const log = await prefilledLog(context.storesFolder, {
      entries,
      devices: Math.min(scale.devices, entries),
    })
    for (const round of context.rounds()) {
      const { limit, project } = await interleaved(round, scale.turns, startNode, () =>
        startOnce(log.dataFolder),
      )
      context.record(STARTUP, round, { limit: mean(limit), project: mean(project), parameters: { entries } })
    }
  }
}

async function startNode(): Promise<number> {
  const startedAt = performance.now()
  await promisify(execFile)(process.execPath, ['-e', 'console.log("ready")'])
  return (performance.now() - startedAt) / 1000
}

async function startOnce(dataFolder: string): Promise<number> {
  const server = await startServer({ dataFolder })
  await server.end()
  return server.startMs / 1000
}
