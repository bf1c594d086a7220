/** Keys derived for one use each, and sealing with one of them. */

import { hkdfSync } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import { deriveSecrets, IV_BYTES, openSealed, seal } from '../../src/domain/secrets.ts'
import { checkProperty } from '../support/property.ts'

const SECRET = Buffer.alloc(32, 9)
const { seal: KEY } = deriveSecrets(SECRET)
const IV = Buffer.alloc(IV_BYTES, 3)

t.test('each use has a key of its own, the same at every start', async t => {
  const keys = Object.values(deriveSecrets(SECRET)).map(key => key.export().toString('hex'))
  t.equal(new Set(keys).size, keys.length)
  t.same(
    Object.values(deriveSecrets(SECRET)).map(key => key.export().toString('hex')),
    keys,
  )
  const other = Object.values(deriveSecrets(Buffer.alloc(32, 8))).map(key => key.export().toString('hex'))
  t.same(
    keys.filter(key => other.includes(key)),
    [],
  )
})

t.test('keys are those of HKDF-SHA256 with the use as its info', async t => {
  const expected = Buffer.from(hkdfSync('sha256', SECRET, '', 'callsign/v1/code-pepper', 32))
  t.same(deriveSecrets(SECRET).codePepper.export(), expected)
})

t.test('a secret of less than 32 bytes is refused', async t => {
  t.throws(() => deriveSecrets(Buffer.alloc(31)), /32 bytes/)
})

t.test('sealed bytes open as they were, and show nothing', async t => {
  checkProperty(t, [fc.uint8Array({ maxLength: 200 })], plain => {
    const sealed = seal(KEY, 'test', IV, plain)
    const isHidden = plain.length < 8 || Buffer.from(sealed).indexOf(plain) === -1
    return (
      isHidden &&
      sealed.length === plain.length + 28 &&
      Buffer.from(plain).equals(openSealed(KEY, 'test', sealed)!)
    )
  })
})

t.test('it opens neither changed, nor cut, nor for another use, nor with another key', async t => {
  const sealed = seal(KEY, 'test', IV, Buffer.from('a secret'))
  for (let bit = 0; bit < sealed.length * 8; bit++) {
    const changed = Buffer.from(sealed)
    changed[bit >> 3]! ^= 1 << (bit & 7)
    if (openSealed(KEY, 'test', changed) !== undefined) t.fail(`bit ${bit}`)
  }
  for (let length = 0; length < sealed.length; length++) {
    if (openSealed(KEY, 'test', sealed.subarray(0, length)) !== undefined) t.fail(`length ${length}`)
  }
  t.equal(openSealed(KEY, 'other', sealed), undefined)
  t.equal(openSealed(deriveSecrets(Buffer.alloc(32, 1)).seal, 'test', sealed), undefined)
})
