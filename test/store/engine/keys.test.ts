/** Keys of rows: ids come back from them, and they sort as what they are made of. */

import fc from 'fast-check'
import t from 'tap'
import { idInKey, idsKey, keyBehind, nameOfKey, timeBytes } from '../../../src/store/engine/keys.ts'
import { toHex } from '../../support/bytes.ts'
import { checkProperty } from '../../support/property.ts'

const uint64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })

t.test('the ids of a key come back, and keys sort as their ids do', async t => {
  checkProperty(t, [uint64, uint64, uint64], (owner, one, other) => {
    const [a, b] = [idsKey(owner, one), idsKey(owner, other)]
    const order = one < other ? -1 : one > other ? 1 : 0
    return idInKey(a, 0) === owner && idInKey(a, 1) === one && Math.sign(Buffer.compare(a, b)) === order
  })
  t.equal(toHex(idsKey(258n)), '0000000000000102')
})

t.test('a number that is no uint64 has no key, and a short key holds no id', async t => {
  t.throws(() => idsKey(-1n))
  t.throws(() => idsKey(2n ** 64n))
  t.throws(() => idInKey(new Uint8Array(7), 0))
  t.throws(() => idInKey(idsKey(1n), 1))
})

t.test('the name of a key has a character for each byte, whatever its length', async t => {
  checkProperty(t, [fc.uint8Array({ maxLength: 33 })], key => {
    const name = nameOfKey(key)
    return name.length === key.length && [...key].every((byte, at) => name.charCodeAt(at) === byte)
  })
  for (const length of [8, 16]) {
    const key = Uint8Array.from({ length }, (_, at) => 255 - at)
    t.equal(nameOfKey(key), Buffer.from(key).toString('latin1'))
  }
})

t.test('every key that begins with a prefix lies between it and the key behind it', async t => {
  checkProperty(t, [uint64, uint64], (owner, id) => {
    const [prefix, key] = [idsKey(owner), idsKey(owner, id)]
    const isInside = Buffer.compare(prefix, key) < 0 && Buffer.compare(key, keyBehind(prefix)) < 0
    const isNextOutside =
      owner === 2n ** 64n - 1n || Buffer.compare(keyBehind(prefix), idsKey(owner + 1n)) < 0
    return isInside && isNextOutside
  })
})

t.test('moments sort by time; one before 1970 is the first', async t => {
  t.equal(toHex(timeBytes(0x0102)), '000000000102')
  t.equal(toHex(timeBytes(-1)), '000000000000')
  t.equal(toHex(timeBytes(1.9)), '000000000001')
})
