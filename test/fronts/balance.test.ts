/** When a front lets sockets go, and how many: until no front has far more than the rest, and none while chance alone spreads them. */

import t from 'tap'
import { socketsToShed } from '../../src/fronts/balance.ts'
import { randomFrom, seedOf } from '../support/seed.ts'

/** How many each front lets go, where they have so many. */
function shedBy(counts: readonly number[], isShedding = false): number[] {
  const socketsOfAll = counts.reduce((sum, each) => sum + each, 0)
  return counts.map(sockets => socketsToShed({ sockets, socketsOfAll, fronts: counts.length, isShedding }))
}

t.test('a front with more than twice as many sockets as the rest have on average lets some go', async t => {
  t.same(shedBy([524, 0]), [10, 0])
  t.same(shedBy([349, 175]), [0, 0])
  t.same(shedBy([351, 173]), [10, 0])
  t.same(shedBy([201, 100, 100, 100]), [10, 0, 0, 0])
  t.same(shedBy([200, 100, 100, 100]), [0, 0, 0, 0])
  t.same(shedBy([100_000, 0, 0]), [200, 0, 0], 'two of a thousand, where these are more than ten')
})

t.test('one that has begun goes on to a quarter above the average, and not beyond', async t => {
  t.same(shedBy([300, 200], true), [0, 0])
  t.same(shedBy([320, 180], true), [7, 0])
  t.same(shedBy([313, 187], true), [0, 0])
})

t.test('a front that is alone, and one with few sockets, lets none go', async t => {
  t.same(shedBy([1_000_000]), [0])
  t.same(shedBy([]), [])
  t.same(shedBy([49, 0, 0]), [0, 0, 0])
  t.same(shedBy([0, 0]), [0, 0])
})

t.test('wherever clients come back to, it ends, and then no front has far more than the rest', async t => {
  const seed = seedOf()
  t.comment(`CALLSIGN_SEED=${seed}`)
  const random = randomFrom(seed)
  for (const [fronts, sockets] of [
    [2, 60],
    [2, 524],
    [3, 5_000],
    [8, 100_000],
  ] as const) {
    const counts = [sockets, ...Array<number>(fronts - 1).fill(0)]
    const isShedding = counts.map(() => false)
    let seconds = 0
    for (let hasShed = true; hasShed; seconds++) {
      hasShed = false
      for (const front of counts.keys()) {
        const shed = socketsToShed({
          ...{ sockets: counts[front]!, socketsOfAll: sockets, fronts },
          isShedding: isShedding[front]!,
        })
        isShedding[front] = shed > 0
        hasShed ||= shed > 0
        counts[front]! -= shed
        for (let count = 0; count < shed; count++) counts[Math.floor(random() * fronts)]! += 1
      }
      if (seconds > 3_600) break
    }
    t.ok(seconds < 1_800, `${sockets} sockets of ${fronts} fronts in ${seconds} s`)
    t.ok(Math.max(...counts) <= (1.25 * sockets) / fronts + 1, `${counts}`)
  }
})
