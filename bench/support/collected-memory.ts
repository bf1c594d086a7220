/** A program's memory after a garbage collection: else it depends on when V8 collected last. */

import { readFileSync, rmSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { residentMemory } from './machine.ts'
import { whenWritten } from './when-written.ts'

/** Where a program writes what its memory is, and how often it collects its garbage before. */
export interface Scales {
  readonly path: string
  readonly collections: number
}

/** The figures of `process.memoryUsage` that matter here. */
export interface Memory {
  readonly rss: number
  readonly heapUsed: number
  readonly external: number
}

/** Arguments that have a program collect its garbage at SIGUSR2. */
export function collectingArguments(): readonly string[] {
  return ['--expose-gc', '--import', new URL('./collect-on-signal.js', import.meta.url).href]
}

/** With `collectingArguments`: where the program writes its memory. */
export function collectingEnvironment({ path }: Scales): Readonly<Record<string, string>> {
  return { BENCH_MEMORY_FILE: path }
}

/** The memory of a program started with both, after some collections: V8 gives pages back bit by bit. */
export async function collectedMemory(pid: number, { path, collections }: Scales): Promise<Memory> {
  for (let times = 0; times < collections; times++) {
    rmSync(path, { force: true })
    const written = whenWritten(path)
    process.kill(pid, 'SIGUSR2')
    await written
    // Between collections V8's threads unmap pages, which nothing tells of.
    await setTimeout(SETTLED_MS)
  }
  return JSON.parse(readFileSync(path, 'utf8'))
}

/** Megabytes of the program's own, mapped files left out, once its garbage is collected. */
export async function collectedMegabytes(pid: number, scales: Scales): Promise<number> {
  // V8 gives back 30 MB only once a server has been idle: one under load just now would be held against one that waited.
  await collectedMemory(pid, scales)
  await setTimeout(IDLE_MS)
  await collectedMemory(pid, scales)
  return residentMemory(pid).own / 1e6
}

const SETTLED_MS = 200
const IDLE_MS = 4_000
