/** What a program's memory is once its garbage is collected: else it is a matter of when V8 collected last. */

import { readFileSync, rmSync, watch } from 'node:fs'
import { basename, dirname } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { residentMemory } from './machine.ts'

/** Where a program writes what its memory is, and how often it collects its garbage before. */
export interface Scales {
  readonly path: string
  readonly collections: number
}

/** What `process.memoryUsage` says, as far as it matters here. */
export interface Memory {
  readonly rss: number
  readonly heapUsed: number
  readonly external: number
}

/** What makes a program collect its garbage when SIGUSR2 comes. */
export function collectingArguments(): readonly string[] {
  return ['--expose-gc', '--import', new URL('./collect-on-signal.js', import.meta.url).href]
}

/** With `collectingArguments`: where the program writes its memory. */
export function collectingEnvironment({ path }: Scales): Readonly<Record<string, string>> {
  return { BENCH_MEMORY_FILE: path }
}

/** Of a program that was started with both. After some collections: V8 gives pages back bit by bit. */
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

function whenWritten(path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const watcher = watch(dirname(path), (_, name) => {
      if (name !== basename(path)) return
      watcher.close()
      resolve()
    })
    watcher.once('error', reject)
  })
}

const SETTLED_MS = 200
const IDLE_MS = 4_000
