/**
 * Seeded runs of calls: what rooms, user sessions, connections and inboxes promise holds in whatever order things happen
 * and fail, and mistakes made on purpose show. `CALLSIGN_CALL_SIM_RUNS` sets the number of runs,
 * `CALLSIGN_SEED` plays one again.
 */

import t from 'tap'
import type { PlantedBug } from '../../support/call-bugs.ts'
import { playCalls } from '../../support/call-run.ts'
import { runsOf, seedOf } from '../../support/seed.ts'
import { findViolation } from '../../support/seed-search.ts'
import { long, sized } from '../../support/size.ts'

const RUNS = runsOf('CALLSIGN_CALL_SIM_RUNS', { short: 100, long: 300 })
/** The short size plants a bug that shows within as many seeds. */
const SHORT_SEARCH = 100

/** A planted bug must show within this many seeds. */
const SEEDS_TO_FIND_MAX: Record<PlantedBug, number> = {
  'shared key slice': 20,
  'stale timer generation': 20,
  'deadline of an old call': 100,
  'reply before commit': 20,
  'inbox row missing': 20,
  'invitation delivered after cancel': 20,
  'host hand-over forgotten': 200,
  'ack that settles nothing': 20,
  'index not rebuilt after a failed commit': 500,
  'crossing start overlooked': 100,
  'news lost': 200,
  'badge lost': 400,
  'swallowed failure': 400,
}

const PLAY = { module: import.meta.resolve('../../support/call-run.js'), play: 'playCalls' }

t.setTimeout(300_000 + 20 * RUNS)

t.test(`no order of ${RUNS} breaks a promise of calls`, sized(), async t => {
  const firstSeed = seedOf()
  const found = await findViolation({ ...PLAY, firstSeed, runs: RUNS, shrinks: true })
  t.same(
    found?.violations,
    undefined,
    `first seed ${firstSeed}; CALLSIGN_SEED=${found?.seed ?? '…'} plays one again`,
  )
  if (found !== undefined) t.comment(`the shortest run that shows it\n${found.trace.join('\n')}`)
})

for (const [bug, seedsMax] of Object.entries(SEEDS_TO_FIND_MAX) as [PlantedBug, number][]) {
  const options = seedsMax > SHORT_SEARCH ? long() : {}
  t.test(`a planted bug, ${bug}, is found within ${seedsMax} seeds, and only there`, options, async t => {
    const found = await findViolation({ ...PLAY, firstSeed: 1, runs: seedsMax, bug })
    t.not(found, undefined)
    t.comment(found?.seed, found?.violations.slice(0, 3))
    t.same((await playCalls(found!.seed)).violations, [])
  })
}

t.test('what a found seed shows is its shortest run, which shows it without the others', async t => {
  const bug = 'inbox row missing'
  // The runs of earlier seeds are too short to be halved, or begin with steps that do nothing.
  const search = { ...PLAY, firstSeed: 11, runs: SEEDS_TO_FIND_MAX[bug], bug }
  const found = await findViolation({ ...search, shrinks: true })
  const whole = await playCalls(found!.seed, bug)
  t.ok(found!.violations.length > 0)
  t.ok(found!.trace.length < whole.trace.length / 2, `${found!.trace.length} of ${whole.trace.length} lines`)
  t.notSame((await playCalls(found!.seed, bug, [0, 1])).trace, whole.trace)
})

t.test('the same seed plays the same run twice, another seed another', async t => {
  const traces = []
  for (const seed of [42, 42, 43]) traces.push((await playCalls(seed)).trace.join('\n'))
  t.ok(traces[0]!.length > 500)
  t.equal(traces[0], traces[1])
  t.not(traces[0], traces[2])
})
