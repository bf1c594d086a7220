/** Ids: reading a uint64, and the form of new ids. */
import fc from 'fast-check'
import t from 'tap'
import { newId, parseUint64 } from '../../src/domain/ids.ts'
import { checkProperty } from '../support/property.ts'
import { randomFrom, seedOf } from '../support/seed.ts'

const uint64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })

t.test('every uint64 comes back from its text and from itself', async t => {
  checkProperty(t, [uint64], id => parseUint64(`${id}`) === id && parseUint64(id) === id)
  for (const id of [0n, 2n ** 53n - 1n, 2n ** 53n, 2n ** 53n + 1n, 2n ** 63n, 2n ** 64n - 1n]) {
    t.equal(parseUint64(id.toString()), id)
  }
})

t.test('a JSON number is an id while doubles are exact', async t => {
  t.equal(parseUint64(0), 0n)
  t.equal(parseUint64(-0), 0n)
  t.equal(parseUint64(Number.MAX_SAFE_INTEGER), 2n ** 53n - 1n)
  const bad = [2 ** 53, -1, 1.5, 1e300, Number.NaN, Number.POSITIVE_INFINITY]
  t.same(
    bad.filter(value => parseUint64(value) !== undefined),
    [],
  )
})

t.test('other spellings are no ids', async t => {
  const bad = [
    '',
    '00',
    '01',
    '+1',
    '-0',
    '-1',
    ' 1',
    '1 ',
    '1\n',
    '\n1',
    '0x1',
    '1e3',
    '1.0',
    '1n',
    '1_000',
    '1,000',
    '\u0661',
    '\uff11',
    '18446744073709551616',
    '99999999999999999999',
    '100000000000000000000',
    'c_AAAAAAAAAAAAAAAAAAAAAA',
  ]
  t.same(
    bad.filter(text => parseUint64(text) !== undefined),
    [],
  )
  t.equal(parseUint64(-1n), undefined)
  t.equal(parseUint64(2n ** 64n), undefined)
})

t.test('new ids lie in their range and fill it evenly', async t => {
  const seed = seedOf()
  const random = randomFrom(seed)
  const randomBytes = (length: number) => Uint8Array.from({ length }, () => Math.floor(random() * 256))
  const ids = Array.from({ length: 20_000 }, () => newId(randomBytes))
  t.ok(ids.every(id => id >= 2n ** 32n && id < 2n ** 53n))
  t.equal(new Set(ids).size, ids.length, `seed ${seed}`)
  const perEighth = Array<number>(8).fill(0)
  for (const id of ids) perEighth[Number(id >> 50n)]! += 1
  // 2,500 each with a deviation of 47: seven of them is never.
  t.ok(
    perEighth.every(count => Math.abs(count - 2_500) < 330),
    `${perEighth.join()} with seed ${seed}`,
  )
})

t.test('a draw below the range is drawn again, and the ends of the range are reached', async t => {
  const draws = ['00000000000000', '000000ffffffff', 'e00000ffffffff', 'e0000100000000']
  const next = () => Buffer.from(draws.shift()!, 'hex')
  t.equal(newId(next), 2n ** 32n)
  t.equal(draws.length, 0)
  t.equal(
    newId(() => new Uint8Array(7).fill(255)),
    2n ** 53n - 1n,
  )
})

t.test('a generator that is stuck or too short is noticed', async t => {
  t.throws(() => newId(() => new Uint8Array(7)))
  t.throws(() => newId(() => new Uint8Array(6).fill(255)))
})
