/** Random bytes out of the pool: as many as asked for, and none twice. */

import t from 'tap'
import { pooledRandomBytes } from '../../../src/server/process/random-pool.ts'
import { toHex } from '../../support/bytes.ts'

t.test(
  'a draw has the length that is asked for, also across the end of the pool and beyond its size',
  async t => {
    for (const length of [0, 1, 12, 4_095, 2, 4_096, 4_097]) t.equal(pooledRandomBytes(length).length, length)
  },
)

t.test('no bytes are drawn twice, and a draw stays what it was', async t => {
  const drawn = Array.from({ length: 2_000 }, () => pooledRandomBytes(12))
  const texts = drawn.map(toHex)
  t.equal(new Set(texts).size, drawn.length)
  t.notOk(texts.includes('00'.repeat(12)))
  t.same(drawn.map(toHex), texts)
})
