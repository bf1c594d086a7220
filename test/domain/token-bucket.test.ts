/** Token buckets against a plain simulation of one: tokens that trickle in and are taken out. */
import t from 'tap'
import { type BucketRate, TokenBuckets } from '../../src/domain/token-bucket.ts'
import { randomFrom, seedOf } from '../support/seed.ts'

/** One bucket, in the time that its tokens take to come: `costMs` is one token. */
class PlainBucket {
  readonly #costMs: number
  readonly #depthMs: number
  #creditMs: number
  #atMs = 0

  constructor({ count, perMs, burst }: BucketRate) {
    this.#costMs = perMs / count
    this.#depthMs = this.#costMs * burst
    this.#creditMs = this.#depthMs
  }

  take(nowMs: number): number {
    this.#creditMs = Math.min(this.#depthMs, this.#creditMs + nowMs - this.#atMs)
    this.#atMs = nowMs
    if (this.#creditMs < this.#costMs) return this.#costMs - this.#creditMs
    this.#creditMs -= this.#costMs
    return 0
  }
}

/** Rates whose tokens take a time that a binary fraction holds, so that both reckon exactly. */
const RATES: readonly BucketRate[] = [
  { count: 1, perMs: 1_000, burst: 1 },
  { count: 120, perMs: 60_000, burst: 120 },
  { count: 1_200, perMs: 60_000, burst: 400 },
  { count: 60_000, perMs: 60_000, burst: 60_000 },
  { count: 8, perMs: 1_000, burst: 3 },
  { count: 64, perMs: 1_000, burst: 7 },
  { count: 2, perMs: 86_400_000, burst: 5 },
]

t.test(
  'random arrivals of many keys are admitted, and told how long to wait, as by plain buckets',
  async t => {
    const seed = seedOf()
    const random = randomFrom(seed)
    const below = (bound: number) => Math.floor(random() * bound)
    const faults: string[] = []
    for (const rate of RATES) {
      const buckets = new TokenBuckets(rate, 1_000)
      const plain = new Map(Array.from({ length: 5 }, (_, key) => [`key ${key}`, new PlainBucket(rate)]))
      let nowMs = below(1_000_000)
      const tokenMs = rate.perMs / rate.count
      let refusals = 0
      for (let arrival = 0; arrival < 4_000; arrival++) {
        // Mostly faster than the rate, now and then a pause of up to two whole fillings.
        nowMs += random() < 0.95 ? below(tokenMs) / 16 : below(2 * tokenMs * rate.burst)
        const key = `key ${below(5)}`
        const missingMs = buckets.take(key, nowMs)
        if (missingMs !== plain.get(key)!.take(nowMs)) faults.push(`${JSON.stringify(rate)} at ${nowMs}`)
        if (missingMs > 0) refusals++
        if (random() < 0.05) buckets.sweep(nowMs)
      }
      if (rate.burst < 100 && refusals === 0) faults.push(`${JSON.stringify(rate)} refused nothing`)
    }
    t.same(faults, [], `seed ${seed}`)
  },
)

t.test('a full bucket admits its burst at once and then its rate', async t => {
  const buckets = new TokenBuckets({ count: 2, perMs: 1_000, burst: 5 }, 10)
  const admitted = (nowMs: number) => {
    let count = 0
    while (count < 100 && buckets.take('a', nowMs) === 0) count++
    return count
  }
  t.equal(admitted(10_000), 5)
  t.equal(buckets.take('a', 10_000), 500)
  t.equal(buckets.take('a', 10_499), 1)
  t.same([10_500, 11_000, 11_100, 12_000, 60_000].map(admitted), [1, 1, 0, 2, 5])
})

t.test('a refused request costs nothing', async t => {
  const buckets = new TokenBuckets({ count: 1, perMs: 1_000, burst: 1 }, 10)
  buckets.take('a', 0)
  for (let nowMs = 0; nowMs < 1_000; nowMs++) buckets.take('a', nowMs)
  t.equal(buckets.take('a', 1_000), 0)
})

t.test('keys do not share a bucket', async t => {
  const buckets = new TokenBuckets({ count: 1, perMs: 1_000, burst: 1 }, 10)
  t.same(
    [buckets.take('a', 0), buckets.take('b', 0), buckets.take('', 0), buckets.take('a', 0)],
    [0, 0, 0, 1_000],
  )
})

t.test('beyond the most keys, the one admitted longest ago is forgotten', async t => {
  const buckets = new TokenBuckets({ count: 1, perMs: 1_000_000, burst: 2 }, 3)
  const isKnown = (key: string) => buckets.take(key, 10) > 0
  for (const key of ['a', 'a', 'b', 'b', 'c', 'a']) buckets.take(key, 0)
  buckets.take('c', 1)
  // In order of their last admission: a, b, c. A refusal of a does not count as one.
  buckets.take('d', 2)
  t.ok(isKnown('b'))
  t.ok(isKnown('c'))
  t.notOk(isKnown('a'), 'a begins anew with a full bucket')
})

t.test('sweeping forgets no bucket that is not full', async t => {
  const buckets = new TokenBuckets({ count: 1, perMs: 1_000, burst: 10 }, 100)
  for (let token = 0; token < 10; token++) buckets.take('drained', 0)
  buckets.take('used', 0)
  buckets.sweep(9_999)
  t.equal(buckets.take('drained', 9_999) + buckets.take('drained', 9_999), 0, 'nearly full')
  const missing = Array.from({ length: 9 }, () => buckets.take('drained', 9_999))
  t.equal(
    missing.findIndex(ms => ms > 0),
    7,
    'seven more of the nine that had come back',
  )
})

t.test('a token that takes a fraction no number holds is one token: 30 in 10 s are 30', async t => {
  const buckets = new TokenBuckets({ count: 30, perMs: 10_000, burst: 30 }, 10)
  for (const nowMs of [0, 1_700_000_000_000]) {
    const waits = Array.from({ length: 31 }, () => buckets.take(`at ${nowMs}`, nowMs))
    t.equal(waits.filter(wait => wait === 0).length, 30)
  }
})
