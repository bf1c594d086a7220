/**
 * Seeded runs of the log appender: what it promises holds in whatever order things happen and fail, and mistakes made
 * on purpose show. `CALLSIGN_APPENDER_RUNS` sets the number of runs, `CALLSIGN_SEED` plays one again.
 */
import t from 'tap'
import type { PlantedBug } from '../support/appender-bugs.ts'
import { playAppender } from '../support/appender-run.ts'
import { runsOf, seedOf } from '../support/seed.ts'
import { findViolation } from '../support/seed-search.ts'
import { sized } from '../support/size.ts'

const RUNS = runsOf('CALLSIGN_APPENDER_RUNS', { short: 40, long: 100 })

/** A planted bug must show within this many seeds. */
const SEEDS_TO_FIND_MAX: Record<Exclude<PlantedBug, 'early cosignature'>, number> = {
  'early commit': 20,
  'early record': 20,
  'swallowed failure': 20,
  'broken chain': 20,
  'foreign signature': 20,
  'lost lookup': 20,
  'stale lookup': 20,
  'missing checkpoint': 20,
  'unchecked rebuild': 60,
  'kept batch': 20,
  'ignored failure': 60,
}

const PLAY_WITNESSED = {
  module: import.meta.resolve('../support/appender-run.js'),
  play: 'playWitnessedAppender',
}
const PLAY = { module: import.meta.resolve('../support/appender-run.js'), play: 'playAppender' }

t.setTimeout(300_000 + 40 * RUNS)

t.test(`no order of ${RUNS} breaks a promise of the log`, sized(), async t => {
  const firstSeed = seedOf()
  const found = await findViolation({ ...PLAY, firstSeed, runs: RUNS })
  t.equal(found, undefined, `first seed ${firstSeed}; CALLSIGN_SEED=${found?.seed ?? '…'} plays one again`)
})

t.test(`no order of ${RUNS} breaks a promise of the log with witnesses`, sized(), async t => {
  const firstSeed = seedOf()
  const found = await findViolation({ ...PLAY_WITNESSED, firstSeed, runs: RUNS })
  t.equal(found, undefined, `first seed ${firstSeed}; CALLSIGN_SEED=${found?.seed ?? '…'} plays one again`)
})

t.test('a head that is shown before it is cosigned is found', async t => {
  const bug = 'early cosignature'
  const found = await findViolation({ ...PLAY_WITNESSED, firstSeed: 1, runs: 20, bug })
  t.match(found?.violations.join(), /published \d+, not cosigned/)
})

for (const [bug, seedsMax] of Object.entries(SEEDS_TO_FIND_MAX) as [PlantedBug, number][]) {
  t.test(`a planted bug, ${bug}, is found within ${seedsMax} seeds, and only there`, async t => {
    const found = await findViolation({ ...PLAY, firstSeed: 1, runs: seedsMax, bug })
    t.not(found, undefined)
    t.comment(found?.seed, found?.violations.slice(0, 3))
    t.same((await playAppender(found!.seed)).violations, [])
  })
}

t.test('the same seed plays the same run twice, another seed another', async t => {
  const traces = []
  for (const seed of [42, 42, 43]) traces.push((await playAppender(seed)).trace.join('\n'))
  t.ok(traces[0]!.length > 500)
  t.equal(traces[0], traces[1])
  t.not(traces[0], traces[2])
})
