/** The cache of VRF results against a plain version of the clock algorithm, and its bounds. */
import fc from 'fast-check'
import t from 'tap'

import { VrfCache } from '../../../src/keyserver/vrf/vrf-cache.ts'
import type { VrfResult } from '../../../src/keyserver/vrf/vrf-job.ts'
import { seedOf } from '../../support/seed.ts'

const UINT64_MAX = 2n ** 64n - 1n
const seed = seedOf()

interface PlainEntry {
  readonly key: string
  readonly result: VrfResult
  readonly isUsed: boolean
}

/** The clock algorithm without counting bytes: a ring of entries, the first under the hand. */
class PlainCache {
  #ring: PlainEntry[] = []
  readonly #entriesMax: number

  constructor(entriesMax: number) {
    this.#entriesMax = entriesMax
  }

  get(key: string, wantsProof: boolean): VrfResult | undefined {
    const entry = this.#ring.find(entry => entry.key === key)
    if (entry === undefined || (wantsProof && entry.result.vrfProof === undefined)) return undefined
    this.#replace(entry, { ...entry, isUsed: true })
    return entry.result
  }

  put(key: string, result: VrfResult): void {
    const known = this.#ring.find(entry => entry.key === key)
    if (known !== undefined) {
      if (result.vrfProof !== undefined) this.#replace(known, { ...known, result })
      return
    }
    if (this.#ring.length === this.#entriesMax) this.#evict()
    this.#ring.push({ key, result, isUsed: false })
  }

  #evict(): void {
    let first = this.#ring.shift()!
    while (first.isUsed) {
      this.#ring.push({ ...first, isUsed: false })
      first = this.#ring.shift()!
    }
  }

  #replace(old: PlainEntry, entry: PlainEntry): void {
    this.#ring = this.#ring.map(other => (other === old ? entry : other))
  }
}

t.test('the cache answers as a plain clock does', async t => {
  // Few ids, so that hits, misses and evictions all happen; both halves of the uint64 differ between some of them.
  const id = fc.constantFrom(0n, 1n, 2n, 2n ** 32n, 2n ** 32n + 1n, 2n ** 63n, UINT64_MAX)
  const operation = fc.record({
    kind: fc.constantFrom('hash', 'proof', 'putHash', 'putProof'),
    userId: id,
    deviceId: id,
  })
  let compared = 0
  const property = fc.property(
    fc.integer({ min: 1, max: 20 }),
    fc.array(operation, { minLength: 300, maxLength: 300 }),
    (entriesMax, operations) => {
      const cache = new VrfCache(entriesMax)
      const plain = new PlainCache(entriesMax)
      return operations.every(({ kind, userId, deviceId }) => {
        const key = `${userId}_${deviceId}`
        compared++
        if (kind === 'hash') {
          return isSame(cache.hash(userId, deviceId), plain.get(key, false)?.vrfHash)
        }
        if (kind === 'proof') {
          const proven = cache.proof(userId, deviceId)
          const expected = plain.get(key, true)
          return isSame(proven?.vrfHash, expected?.vrfHash) && isSame(proven?.vrfProof, expected?.vrfProof)
        }
        const result = resultOf(userId, deviceId, kind === 'putProof')
        cache.put(userId, deviceId, result)
        plain.put(key, result)
        return cache.size <= entriesMax
      })
    },
  )
  fc.assert(property, { seed, numRuns: 100 })
  t.equal(compared, 30_000)
})

t.test('the cache never holds more than its entries, and those not used go first', async t => {
  const cache = new VrfCache(1000)
  let held = 0
  for (let userId = 0n; userId < 5000n; userId++) {
    cache.put(userId, 1n, resultOf(userId, 1n, true))
    cache.proof(0n, 1n)
  }
  for (let userId = 0n; userId < 5000n; userId++) if (cache.proof(userId, 1n) !== undefined) held++
  t.equal(cache.size, 1000)
  t.equal(held, 1000)
  t.ok(cache.proof(0n, 1n), 'the one in use stays')
  t.notOk(cache.proof(4000n, 1n))
  t.ok(cache.proof(4001n, 1n))
})

t.test('when every entry is in use, one goes after a bounded search', async t => {
  const cache = new VrfCache(5000)
  for (let userId = 0n; userId < 5000n; userId++) cache.put(userId, 1n, resultOf(userId, 1n, false))
  for (let userId = 0n; userId < 5000n; userId++) cache.hash(userId, 1n)
  cache.put(5000n, 1n, resultOf(5000n, 1n, false))
  let held = 0
  for (let userId = 0n; userId <= 5000n; userId++) if (cache.hash(userId, 1n) !== undefined) held++
  t.equal(held, 5000)
  t.ok(cache.hash(0n, 1n), 'the hand did not come round to the first')
  t.ok(cache.hash(5000n, 1n))
})

t.test('a hash without proof answers no request for the proof', async t => {
  const cache = new VrfCache(10)
  cache.put(1n, 1n, resultOf(1n, 1n, false))
  t.ok(cache.hash(1n, 1n))
  t.equal(cache.proof(1n, 1n), undefined)
})

t.test('a slot that held a proof does not lend it to the next entry', async t => {
  const cache = new VrfCache(1)
  cache.put(1n, 1n, resultOf(1n, 1n, true))
  cache.put(2n, 1n, resultOf(2n, 1n, false))
  t.equal(cache.proof(2n, 1n), undefined)
})

t.test('what the cache hands out is a copy', async t => {
  const cache = new VrfCache(1)
  const result = resultOf(1n, 1n, true)
  cache.put(1n, 1n, result)
  cache.hash(1n, 1n)!.fill(0)
  cache.proof(1n, 1n)!.vrfHash.fill(0)
  cache.proof(1n, 1n)!.vrfProof.fill(0)
  const kept = cache.proof(1n, 1n)!
  cache.put(2n, 1n, resultOf(2n, 1n, true))
  t.ok(isSame(kept.vrfHash, result.vrfHash) && isSame(kept.vrfProof, result.vrfProof))
})

t.test('a cache of no entries keeps nothing', async t => {
  const cache = new VrfCache(0)
  cache.put(1n, 1n, resultOf(1n, 1n, true))
  t.equal(cache.size, 0)
  t.equal(cache.hash(1n, 1n), undefined)
})

t.test('an id that is not a uint64 finds no user', async t => {
  const cache = new VrfCache(10)
  cache.put(0n, 1n, resultOf(0n, 1n, true))
  t.throws(() => cache.proof(2n ** 64n, 1n), { code: 'ERR_ASSERTION' })
  t.throws(() => cache.hash(0n, 2n ** 64n + 1n), { code: 'ERR_ASSERTION' })
  t.throws(() => cache.hash(-1n, 1n), { code: 'ERR_ASSERTION' })
})

function resultOf(userId: bigint, deviceId: bigint, withProof: boolean): VrfResult {
  const fill = Buffer.from(`${userId}_${deviceId} `)
  const vrfHash = Uint8Array.from(Buffer.alloc(64, fill))
  if (!withProof) return { vrfHash, vrfProof: undefined }
  return { vrfHash, vrfProof: Uint8Array.from(Buffer.alloc(80, fill).reverse()) }
}

function isSame(a: Uint8Array | undefined, b: Uint8Array | undefined): boolean {
  if (a === undefined || b === undefined) return a === b
  return Buffer.compare(a, b) === 0
}
