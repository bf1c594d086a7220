/** Codes: drawn evenly, kept as a hash that needs a key, told apart in a time that tells nothing. */

import { createHmac, createSecretKey, randomBytes } from 'node:crypto'
import t from 'tap'
import { CODE_ID_BYTES, hashOtp, isOtp, newOtp } from '../../../src/domain/accounts/one-time-code.ts'
import { randomFrom, seedOf } from '../../support/seed.ts'

const PEPPER = createSecretKey(Buffer.alloc(32, 1))
const CODE_ID = Buffer.alloc(CODE_ID_BYTES, 2)

/** A generator that gives these three bytes, one draw after the other. */
function drawing(...draws: readonly number[]): (length: number) => Uint8Array {
  const left = [...draws]
  return length => {
    const drawn = Buffer.alloc(3)
    drawn.writeUIntBE(left.shift()!, 0, 3)
    return drawn.subarray(0, length)
  }
}

t.test('a code has six digits, leading zeros among them', async t => {
  t.equal(newOtp(drawing(0)), '000000')
  t.equal(newOtp(drawing(7)), '000007')
  t.equal(newOtp(drawing(999_999)), '999999')
})

t.test('the four bits beyond the twenty do not matter', async t => {
  t.equal(newOtp(drawing(0xf00000 + 123_456)), '123456')
})

t.test('a draw beyond the last code is drawn again, not folded onto low codes', async t => {
  t.equal(newOtp(drawing(1_000_000, 0xfffff, 42)), '000042')
})

t.test('a generator that gives nothing else is an error, not an endless loop', async t => {
  t.throws(() => newOtp(() => Buffer.alloc(3, 0xff)), /random generator/)
})

t.test('codes are spread evenly over all digits at all places', async t => {
  const seed = seedOf()
  const random = randomFrom(seed)
  const generator = (length: number) => Buffer.from(Array.from({ length }, () => Math.floor(random() * 256)))
  const counts = Array.from({ length: 6 }, () => new Array<number>(10).fill(0))
  const draws = 60_000
  for (let draw = 0; draw < draws; draw++) {
    for (const [place, digit] of [...newOtp(generator)].entries()) counts[place]![Number(digit)]! += 1
  }
  // Chi-squared with nine degrees of freedom exceeds 40 once in 130,000 draws of a fair generator.
  const chi = counts.map(place => place.reduce((sum, n) => sum + (n - draws / 10) ** 2 / (draws / 10), 0))
  t.ok(
    chi.every(each => each < 40),
    `seed ${seed}: ${chi}`,
  )
})

t.test('a code is kept as the HMAC of its id and its digits', async t => {
  const expected = createHmac('sha256', Buffer.alloc(32, 1)).update(CODE_ID).update('012345').digest()
  t.same(hashOtp(PEPPER, CODE_ID, '012345'), expected)
})

t.test('only the code itself, its id and the key give its hash', async t => {
  const hash = hashOtp(PEPPER, CODE_ID, '012345')
  t.ok(isOtp(PEPPER, CODE_ID, hash, '012345'))
  t.notOk(isOtp(PEPPER, CODE_ID, hash, '012346'))
  t.notOk(isOtp(PEPPER, CODE_ID, hash, '12345'))
  t.notOk(isOtp(PEPPER, CODE_ID, hash, ''))
  t.notOk(isOtp(PEPPER, Buffer.alloc(CODE_ID_BYTES, 3), hash, '012345'))
  t.notOk(isOtp(createSecretKey(randomBytes(32)), CODE_ID, hash, '012345'))
})
