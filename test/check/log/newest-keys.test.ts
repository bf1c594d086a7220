/** The table of newest keys against a plain Map, through growth and reuse. */

import t from 'tap'
import { NewestKeys } from '../../../src/check/log/newest-keys.ts'
import { seedOf } from '../../support/seed.ts'
import { SeededRandom } from '../../support/world.ts'

t.test('it answers as a Map does, however full it is', async t => {
  const seed = seedOf()
  const draw = new SeededRandom(seed)
  const newest = new NewestKeys(10)
  const wrong: string[] = []
  for (let round = 0; round < 3; round++) {
    const map = new Map<string, { index: number; count: number }>()
    for (let index = 0; index < 5_000; index++) {
      // Few different bytes, so that hashes repeat and share their fronts.
      const bytes = Buffer.from(Array.from({ length: 20 }, (_, at) => (at % 3 === 0 ? draw.below(13) : 7)))
      const name = bytes.toString('hex', 2, 18)
      const slot = newest.find(bytes, 2)
      const found = slot === undefined ? undefined : { index: newest.index(slot), count: newest.count(slot) }
      if (JSON.stringify(found) !== JSON.stringify(map.get(name))) wrong.push(`${name} at ${index}`)
      const count = (found?.count ?? 0) + 1
      newest.add(bytes, 2, index, count)
      map.set(name, { index, count })
    }
    const left = [...newest.unmarked()].map(slot => newest.index(slot)).sort((a, b) => a - b)
    const wanted = [...map.values()].map(({ index }) => index).sort((a, b) => a - b)
    if (left.join() !== wanted.join()) wrong.push(`round ${round}: ${left.length} of ${wanted.length} left`)
    newest.clear()
  }
  t.same(wrong, [], `seed ${seed}`)
})

t.test('marked slots are left out of the rest', async t => {
  const newest = new NewestKeys(4)
  const hash = (byte: number) => new Uint8Array(16).fill(byte)
  for (let byte = 1; byte <= 4; byte++) newest.add(hash(byte), 0, byte, 1)
  newest.mark(newest.find(hash(2), 0)!)
  const rest = [...newest.unmarked()]
  t.same(rest.map(slot => newest.firstByte(slot)).sort(), [1, 3, 4])
  t.equal(newest.find(hash(9), 0), undefined)

  newest.clear()
  for (let byte = 1; byte <= 4; byte++) newest.add(hash(byte), 0, byte, 1)
  t.equal([...newest.unmarked()].length, 4, 'until it is begun anew')
})
