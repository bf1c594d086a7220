import t from 'tap'
import { parseDecimal } from '../../src/log/decimal.ts'

t.test('numbers from 0 to 2^53 - 1 are read', async t => {
  for (const value of [0, 1, 9, 10, 123_456_789_012, 2 ** 32, Number.MAX_SAFE_INTEGER]) {
    t.equal(parseDecimal(`${value}`), value)
  }
})

t.test('every other spelling and larger numbers are refused', async t => {
  const spellings = [
    '',
    '00',
    '01',
    '-0',
    '-1',
    '+1',
    ' 1',
    '1 ',
    '1\n',
    '1.0',
    '1e3',
    '0x1',
    'NaN',
    '1_0',
    '٣',
  ]
  const beyond = ['9007199254740992', '9007199254740993', '18446744073709551616', '9'.repeat(400)]
  for (const text of [...spellings, ...beyond]) {
    t.throws(() => parseDecimal(text), { code: 'MALFORMED' }, JSON.stringify(text.slice(0, 30)))
  }
})
