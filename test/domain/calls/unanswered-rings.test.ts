/** Limits on ringing a user who does not answer. */

import t from 'tap'
import { UnansweredRings } from '../../../src/domain/calls/unanswered-rings.ts'
import type { UserId } from '../../../src/domain/ids.ts'
import { USUAL_RATES } from '../../../src/domain/rates.ts'
import { TokenBuckets } from '../../../src/domain/token-bucket.ts'

const [ANN, BOB, EVE] = [1n, 2n, 3n] as [UserId, UserId, UserId]

function ring(rings: UnansweredRings, nowMs: number, times: number, callee = BOB): void {
  for (let at = 0; at < times; at++) rings.note(ANN, callee, nowMs)
}

t.test('five rings are free, then one every two minutes', async t => {
  const rings = new UnansweredRings(new TokenBuckets(USUAL_RATES['call-ring'], 10))
  ring(rings, 0, 4)
  t.equal(rings.missingMs(ANN, BOB, 0), 0)
  ring(rings, 0, 1)
  t.equal(rings.missingMs(ANN, BOB, 0), 120_000)
  t.equal(rings.missingMs(ANN, BOB, 119_999), 1)
  t.equal(rings.missingMs(ANN, BOB, 120_000), 0)
  ring(rings, 120_000, 1)
  t.equal(rings.missingMs(ANN, BOB, 120_000), 120_000)
})

t.test('each pair has its own count, each way, and an answer forgets it', async t => {
  const rings = new UnansweredRings(new TokenBuckets(USUAL_RATES['call-ring'], 10))
  ring(rings, 0, 5)
  t.equal(rings.missingMs(ANN, EVE, 0), 0)
  t.equal(rings.missingMs(BOB, ANN, 0), 0)
  rings.forget(ANN, BOB)
  t.equal(rings.missingMs(ANN, BOB, 0), 0)
})

t.test('of too many pairs, the one that rang longest ago is forgotten', async t => {
  const rings = new UnansweredRings(new TokenBuckets(USUAL_RATES['call-ring'], 2))
  ring(rings, 0, 5, BOB)
  ring(rings, 1, 5, EVE)
  ring(rings, 2, 5, BOB)
  ring(rings, 3, 5, 4n as UserId)
  t.ok(rings.missingMs(ANN, BOB, 3) > 0)
  t.equal(rings.missingMs(ANN, EVE, 3), 0)
})
