/**
 * How long the server takes from the start of its process to its ready line, and how much memory it has then, as the log
 * grows. Held against a Node process that loads nothing and prints a line.
 */

import type { Benchmark, BenchmarkContext, Row } from './support/benchmark.ts'
import { prefilledLog } from './support/prefill.ts'
import { measureStarts, type SizedStore } from './support/starts.ts'

const TIME: Row = {
  name: 'startup',
  project: 'start to ready line',
  limit: 'start of an empty Node process',
  unit: 's',
  goal: { of: 'project', is: 'at most', value: 3 },
  notShown:
    'The store was read shortly before, so the page cache is warm; after a reboot the right edge and the last 65,000 entries come from the disk.',
}
const MEMORY: Row = {
  name: 'startup-memory',
  project: 'memory of its own when ready',
  limit: 'an empty Node process',
  unit: 'MB',
  goal: {
    of: 'project',
    is: 'at most',
    value: 160,
    because: 'V8 keeps what a start has read and needs no more until its young generation of 48 MB is full.',
  },
  notShown:
    'Pages of the store that are mapped are not among it: the system takes them back when it needs memory. Before any request.',
}
const TIME_GROWTH: Row = {
  ...withoutGoal(TIME),
  name: 'startup-growth',
  limit: 'the same with a smaller log',
}
const MEMORY_GROWTH: Row = {
  ...withoutGoal(MEMORY),
  name: 'startup-memory-growth',
  limit: TIME_GROWTH.limit,
}

export const startup: Benchmark = { name: 'startup', run }

async function run(context: BenchmarkContext): Promise<void> {
  const { sizes, devices } = context.scale
  const stores: SizedStore[] = []
  for (const entries of sizes) {
    const prefill = { entries, devices: Math.min(devices, entries) }
    const { dataFolder } = await prefilledLog(context.storesFolder, prefill)
    stores.push({ size: entries, dataFolder })
  }
  const rows = { time: TIME, memory: MEMORY, timeGrowth: TIME_GROWTH, memoryGrowth: MEMORY_GROWTH }
  await measureStarts(context, rows, 'entries', stores)
}

function withoutGoal({ goal: _goal, ...row }: Row): Row {
  return row
}
