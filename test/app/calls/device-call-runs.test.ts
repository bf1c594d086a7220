/**
 * Seeded runs of devices: whatever is lost, late, repeated or begun again between them and the server, they agree on who is in
 * which call with which key, and mistakes made on purpose show. `CALLSIGN_DEVICE_RUNS` sets the number of runs,
 * `CALLSIGN_SEED` plays one again.
 */

import t from 'tap'
import type { DeviceBug } from '../../support/device-bugs.ts'
import { playDevices } from '../../support/device-run.ts'
import { runsOf } from '../../support/seed.ts'
import { findViolation } from '../../support/seed-search.ts'
import { long, sized } from '../../support/size.ts'

const RUNS = runsOf('CALLSIGN_DEVICE_RUNS', { short: 800, long: 5_000 })
/** The short size plants a bug that shows within as many seeds. */
const SHORT_SEARCH = 100

/** A planted bug must show within this many seeds. */
const SEEDS_TO_FIND_MAX: Record<DeviceBug, number> = {
  'a topic that is not heard': 20,
  'a wrong epoch': 20,
  'a leave that is not sent': 20,
  'a key that is wiped too soon': 20,
  'keys that are never wiped': 20,
  'a message settled twice': 20,
  'a connection that is not told': 20,
  'a ring without an end': 20,
  'an answer elsewhere overlooked': 20,
  'asks for the key not heard': 100,
  'nothing is kept': 100,
  'a new key overlooked': 100,
  'the call of the other of two overlooked': 100,
  'a message never settled': 100,
  'a moved call kept': 100,
  'an ask that is not repeated': 1_000,
}

const PLAY = { module: import.meta.resolve('../../support/device-run.js'), play: 'playDevices' }

t.setTimeout(300_000 + 40 * RUNS)

t.test(`no order of ${RUNS} breaks a promise of devices`, sized(), async t => {
  // The same ones each time, until longer searches find no more.
  const firstSeed = Number(process.env.CALLSIGN_SEED ?? 1)
  const before = process.cpuUsage()
  const found = await findViolation({ ...PLAY, firstSeed, runs: RUNS, shrinks: true })
  const { user, system } = process.cpuUsage(before)
  t.comment(`${((user + system) / 1e6).toFixed(1)} s of processor time`)
  t.same(
    found?.violations,
    undefined,
    `first seed ${firstSeed}; CALLSIGN_SEED=${found?.seed ?? '…'} plays one again`,
  )
  if (found !== undefined) t.comment(`the shortest run that shows it\n${found.trace.join('\n')}`)
})

for (const [bug, seedsMax] of Object.entries(SEEDS_TO_FIND_MAX) as [DeviceBug, number][]) {
  const options = seedsMax > SHORT_SEARCH ? long() : {}
  t.test(`a planted bug, ${bug}, is found within ${seedsMax} seeds, and only there`, options, async t => {
    const found = await findViolation({ ...PLAY, firstSeed: 1, runs: seedsMax, bug })
    t.not(found, undefined)
    t.comment(found?.seed, found?.violations.slice(0, 3))
    t.same((await playDevices(found!.seed)).violations, [])
  })
}

t.test(
  'a found seed is shown by its shortest run, without steps and faults that it does not need',
  async t => {
    const bug = 'asks for the key not heard'
    const search = { ...PLAY, firstSeed: 1, runs: SEEDS_TO_FIND_MAX[bug], bug }
    const found = await findViolation({ ...search, shrinks: true })
    const whole = await playDevices(found!.seed, bug)
    t.ok(found!.violations.length > 0)
    t.ok(found!.trace.length < whole.trace.length, `${found!.trace.length} of ${whole.trace.length} lines`)
  },
)

t.test('the same seed plays the same run twice, another seed another', async t => {
  const traces = []
  for (const seed of [43, 43, 44]) {
    const { trace } = await playDevices(seed, 'keys that are never wiped')
    traces.push(trace.join('\n'))
  }
  t.ok(traces[0]!.length > 500)
  t.equal(traces[0], traces[1])
  t.not(traces[0], traces[2])
})
