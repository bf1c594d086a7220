/**
 * Random lives of a call: commands of all kinds from all devices in all orders, repeated, late, after restarts.
 * `CALLSIGN_CALL_RUNS` says how many; a failure prints the seed that replays it.
 */

import assert from 'node:assert/strict'
import t from 'tap'
import { CALL_ID } from '../../support/call-driver.ts'
import { CallLife } from '../../support/call-life.ts'
import { seedOf } from '../../support/seed.ts'
import { countOf, sized } from '../../support/size.ts'

const RUNS = countOf('CALLSIGN_CALL_RUNS', { short: 250, long: 700 })

t.test('whatever is done to a call, its rules hold', sized(), async t => {
  const first = seedOf()
  const endings = new Map<string, number>()
  const refused = new Map<string, number>()
  for (let run = 0; run < RUNS; run++) {
    const seed = first + run
    const life = new CallLife(seed)
    try {
      const { status, endReason, callId } = life.live()
      assert.equal(callId, CALL_ID)
      endings.set(`${status} ${endReason}`, (endings.get(`${status} ${endReason}`) ?? 0) + 1)
    } catch (error) {
      t.fail(`CALLSIGN_SEED=${seed} CALLSIGN_CALL_RUNS=1: ${error instanceof Error ? error.stack : error}`)
      return
    }
    for (const [code, count] of life.refused) refused.set(code, (refused.get(code) ?? 0) + count)
  }
  t.comment(Object.fromEntries(endings))
  t.comment(Object.fromEntries(refused))
  t.pass(`${RUNS} lives from seed ${first}`)
})
