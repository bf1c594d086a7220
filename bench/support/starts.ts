/**
 * How long a server takes to start over stores of several sizes, and how much memory it has then: each held against a
 * Node process that loads nothing, and against the store before it in size.
 */

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { BenchmarkContext, Parameters, Row } from './benchmark.ts'
import { cpuSeconds, type ResidentMemory, residentMemory } from './machine.ts'
import { interleaved } from './rounds.ts'
import { startServer } from './server.ts'
import { mean, rounded } from './statistics.ts'

export interface StartRows {
  /** In seconds, and in MB. */
  readonly time: Row
  readonly memory: Row
  readonly timeGrowth: Row
  readonly memoryGrowth: Row
}

export interface SizedStore {
  readonly size: number
  readonly dataFolder: string
}

interface Start {
  readonly seconds: number
  /** The server's own, without its fronts. */
  readonly processorSeconds: number
  readonly memory: ResidentMemory
}

/** A round has several starts of each size; `counted` is the parameter that gives the size. */
export async function measureStarts(
  context: BenchmarkContext,
  rows: StartRows,
  counted: string,
  stores: readonly SizedStore[],
): Promise<void> {
  for (const round of context.rounds()) {
    let smaller: { size: number; seconds: number; memory: number } | undefined
    for (const { size, dataFolder } of stores) {
      const { limit, project } = await interleaved(round, context.scale.turns, startNode, () =>
        startOnce(dataFolder),
      )
      const [empty, ours] = [meanOf(limit), meanOf(project)]
      const parameters: Parameters = { [counted]: size }
      const details = { residentMegabytes: rounded(mean(project.map(({ memory }) => memory.all)) / 1e6) }
      const times = {
        processorSeconds: rounded(mean(project.map(({ processorSeconds }) => processorSeconds))),
      }
      const time = { limit: empty.seconds, project: ours.seconds, parameters, details: times }
      context.record(rows.time, round, time)
      context.record(rows.memory, round, { limit: empty.memory, project: ours.memory, parameters, details })
      if (smaller !== undefined) {
        const grown = { ...parameters, than: smaller.size }
        const [time, memory] = [rows.timeGrowth, rows.memoryGrowth]
        context.record(time, round, { limit: smaller.seconds, project: ours.seconds, parameters: grown })
        context.record(memory, round, { limit: smaller.memory, project: ours.memory, parameters: grown })
      }
      smaller = { size, ...ours }
    }
  }
}

/** Seconds, and MB of its own. */
function meanOf(starts: readonly Start[]): { seconds: number; memory: number } {
  return {
    seconds: mean(starts.map(({ seconds }) => seconds)),
    memory: mean(starts.map(({ memory }) => memory.own)) / 1e6,
  }
}

async function startNode(): Promise<Start> {
  const startedAt = performance.now()
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', PRINT_OWN_STATUS])
  const seconds = (performance.now() - startedAt) / 1000
  const kilobytes = Number(/^RssAnon:\s+(\d+)/m.exec(stdout)?.[1])
  return { seconds, processorSeconds: Number.NaN, memory: { all: Number.NaN, own: kilobytes * 1024 } }
}

async function startOnce(dataFolder: string): Promise<Start> {
  const server = await startServer({ dataFolder, mode: 'production' })
  const [processorSeconds, memory] = [cpuSeconds(server.pid), residentMemory(server.pid)]
  await server.end()
  return { seconds: server.startMs / 1000, processorSeconds, memory }
}

/** A process that has ended says nothing any more, so it reads its own status. */
const PRINT_OWN_STATUS = `console.log(require('fs').readFileSync('/proc/self/status', 'latin1'))`
