/**
 * Plays seed after seed until one shows a violation. In a thread of its own, because the hooks that the test runner
 * sets on every promise of the main thread take as long as the runs themselves.
 */

import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'

interface Played {
  readonly violations: readonly string[]
  readonly trace: readonly string[]
  /** Of a run that can be played without some of its steps. */
  readonly steps?: number
}

type Play = (seed: number, bug: string | undefined, skipped?: readonly number[]) => Promise<Played>

export interface Violation extends Played {
  readonly seed: number
}

interface Search {
  /** The URL of the module, and the name of the `Play` that it exports. */
  readonly module: string
  readonly play: string
  readonly firstSeed: number
  readonly runs: number
  readonly bug?: string
  /** Whether to look for the shortest run that shows the violation. */
  readonly shrinks?: boolean
}

/**
 * Resolves with the first of `runs` seeds that shows a violation, undefined when none does. With `shrinks`, what it shows
 * is that of the shortest run, from which no step can be left out.
 */
export function findViolation(search: Search): Promise<Violation | undefined> {
  return new Promise((resolve, reject) => {
    const thread = new Worker(new URL(import.meta.url), { workerData: search, execArgv: THREAD_ARGUMENTS })
    thread.once('message', resolve)
    thread.once('error', reject)
  })
}

async function searchHere({
  module,
  play,
  firstSeed,
  runs,
  bug,
  shrinks = false,
}: Search): Promise<Violation | undefined> {
  // The stack of an error costs as much as what it is refused for; one run that is played again has them.
  if (runs > 1) Error.stackTraceLimit = 0
  const playSeed: Play = (await import(module))[play]
  for (let seed = firstSeed; seed < firstSeed + runs; seed++) {
    const found = await playSeed(seed, bug)
    if (found.violations.length === 0) continue
    const { violations, trace } = shrinks
      ? await shortest(found, skipped => playSeed(seed, bug, skipped))
      : found
    return { seed, violations: [...violations], trace: [...trace] }
  }
  return undefined
}

/** Leaves out halves of the steps, then quarters and so on, as long as the rest breaks a promise, too. */
async function shortest(
  found: Played,
  playWithout: (skipped: readonly number[]) => Promise<Played>,
): Promise<Played> {
  const { steps = 0 } = found
  let [best, skipped]: [Played, readonly number[]] = [found, []]
  for (let length = Math.ceil(steps / 2); length > 0; length = length === 1 ? 0 : Math.ceil(length / 2)) {
    for (let first = 0; first < steps; first += length) {
      const part = Array.from({ length: Math.min(length, steps - first) }, (_, at) => first + at)
      if (part.every(step => skipped.includes(step))) continue
      const without = [...skipped, ...part]
      const played = await playWithout(without)
      if (played.violations.length > 0) [best, skipped] = [played, without]
    }
  }
  return best
}

/** Without what the test runner has loaded into its process. */
const THREAD_ARGUMENTS = ['--enable-source-maps']

if (!isMainThread) parentPort!.postMessage(await searchHere(workerData as Search))
