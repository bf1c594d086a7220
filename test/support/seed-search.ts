/**
 * Plays seed after seed until one shows a violation. In a thread of its own, because the hooks that the test runner
 * sets on every promise of the main thread take as long as the runs themselves.
 */

import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'

interface Played {
  readonly violations: readonly string[]
  readonly trace: readonly string[]
}

export interface Violation extends Played {
  readonly seed: number
}

interface Search {
  /** The URL of the module, and the name of what it exports: `(seed, bug?) => Promise<Played>`. */
  readonly module: string
  readonly play: string
  readonly firstSeed: number
  readonly runs: number
  readonly bug?: string
}

/** Resolves with the first of `runs` seeds that shows a violation, undefined when none does. */
export function findViolation(search: Search): Promise<Violation | undefined> {
  return new Promise((resolve, reject) => {
    const thread = new Worker(new URL(import.meta.url), { workerData: search, execArgv: THREAD_ARGUMENTS })
    thread.once('message', resolve)
    thread.once('error', reject)
  })
}

async function searchHere({ module, play, firstSeed, runs, bug }: Search): Promise<Violation | undefined> {
  // The stack of an error costs as much as what it is refused for; one run that is played again has them.
  if (runs > 1) Error.stackTraceLimit = 0
  const { [play]: playSeed } = await import(module)
  for (let seed = firstSeed; seed < firstSeed + runs; seed++) {
    const { violations, trace }: Played = await playSeed(seed, bug)
    if (violations.length > 0) return { seed, violations: [...violations], trace: [...trace] }
  }
  return undefined
}

/** Without what the test runner has loaded into its process. */
const THREAD_ARGUMENTS = ['--enable-source-maps']

if (!isMainThread) parentPort!.postMessage(await searchHere(workerData as Search))
