/** Random order: that each order is as likely as any other, shown by trying every way that the randomness can fall. */

import t from 'tap'
import { shuffle } from '../../src/domain/shuffle.ts'

t.test('each order comes from exactly one way in which the randomness falls', async t => {
  const orders = new Set<string>()
  for (let first = 0; first < 4; first++) {
    for (let second = 0; second < 3; second++) {
      for (let third = 0; third < 2; third++) {
        const fallen = [first / 4, second / 3, third / 2]
        orders.add(shuffle(['a', 'b', 'c', 'd'], () => fallen.shift() ?? Number.NaN).join(''))
      }
    }
  }
  t.equal(orders.size, 4 * 3 * 2)
})

t.test('the largest random number stays within the items, and few items need none', async t => {
  t.same(
    shuffle(['a', 'b', 'c'], () => 1 - Number.EPSILON / 2),
    ['a', 'b', 'c'],
  )
  const none = () => {
    throw new Error('no randomness is needed')
  }
  t.same([shuffle([], none), shuffle(['alone'], none)], [[], ['alone']])
})
