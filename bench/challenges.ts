/**
 * What is left of challenges that have ended: a million people ask for a code and never come back. Memory and the store
 * must not grow with how many there were, only with how many there are.
 */

import { join } from 'node:path'
import type { Benchmark, BenchmarkContext, Row } from './support/benchmark.ts'
import type { ChallengeLifeFigures, ChallengeLifeProtocol } from './support/challenge-life.ts'
import { Program } from './support/program.ts'
import { rounded } from './support/statistics.ts'

const ROW = {
  limit: 'the same after the first tenth',
  unit: 'MB',
  notShown:
    'The clock is moved by hand, at most 20,000 are alive at once, and what was to be sent is taken out of the outbox.',
}
const FLAT = { of: 'ratio', is: 'at most', value: 1.1 } as const

/** The rows, and the figure that each is of. */
function rowsOf(count: number): readonly (readonly [Row, 'storeBytes' | 'heapBytes' | 'residentBytes'])[] {
  const after = `after ${count.toLocaleString('en')} challenges have ended`
  return [
    [{ ...ROW, name: 'challenges-store', project: `store ${after}`, goal: FLAT }, 'storeBytes'],
    [{ ...ROW, name: 'challenges-heap', project: `heap ${after}`, goal: FLAT }, 'heapBytes'],
    [{ ...ROW, name: 'challenges-resident', project: `resident memory ${after}` }, 'residentBytes'],
  ]
}

export const challenges: Benchmark = { name: 'challenges', run }

async function run(context: BenchmarkContext): Promise<void> {
  // One round, which takes minutes: what it shows does not depend on what else the machine does.
  const { wave, waves } = context.scale.isSmoke ? SMOKE : WHOLE
  const program = await Program.start<ChallengeLifeProtocol>(
    'challenge-life',
    { folder: join(context.folder, 'data') },
    ['--expose-gc'],
  )
  context.after(() => program.end())
  const figures: ChallengeLifeFigures[] = []
  while (figures.length < waves) figures.push(await program.ask({ challenges: wave }))
  const [early, late] = [figures[Math.floor(waves / 10) - 1]!, figures[waves - 1]!]
  const { beginMicroseconds, endMicroseconds, rowsLeft } = late
  for (const [row, of] of rowsOf(wave * waves)) {
    context.record(row, 1, {
      limit: early[of] / 1e6,
      project: late[of] / 1e6,
      parameters: { challenges: wave * waves },
      details: {
        beginMicroseconds: rounded(beginMicroseconds),
        endMicroseconds: rounded(endMicroseconds),
        rowsLeft,
      },
    })
  }
}

/** So many challenges at a time, so many times. */
const WHOLE = { wave: 20_000, waves: 50 }
const SMOKE = { wave: 200, waves: 20 }
