/** What a program's memory is once its garbage is collected: else it is a matter of when V8 collected last. */

import { existsSync, readFileSync, rmSync } from 'node:fs'

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
    process.kill(pid, 'SIGUSR2')
    while (!existsSync(path)) await sleep(COLLECTED_EVERY_MS)
    await sleep(COLLECTED_EVERY_MS)
  }
  return JSON.parse(readFileSync(path, 'utf8'))
}

function sleep(ms: number): Promise<void> {
  return new Promise(resolve => {
    setTimeout(resolve, ms)
  })
}

const COLLECTED_EVERY_MS = 200
