/** Share tokens: one text for 16 bytes, never one that reads as an id. */
import fc from 'fast-check'
import t from 'tap'
import { formatShareToken, parseShareToken } from '../../../src/domain/contacts/share-token.ts'
import { parseUint64 } from '../../../src/domain/ids.ts'
import { fromHex, toHex } from '../../support/bytes.ts'
import { checkProperty } from '../../support/property.ts'

const bytes16 = fc.uint8Array({ minLength: 16, maxLength: 16 })

t.test('the bytes come back, and the token is no uint64', async t => {
  checkProperty(t, [bytes16], bytes => {
    const token = formatShareToken(bytes)
    return toHex(parseShareToken(token)!) === toHex(bytes) && parseUint64(token) === undefined
  })
  t.equal(formatShareToken(fromHex('000102030405060708090a0b0c0d0e0f')), 'c_AAECAwQFBgcICQoLDA0ODw')
  t.equal(formatShareToken(new Uint8Array(16).fill(255)), `c_${'_'.repeat(21)}w`)
})

t.test('the bytes are a copy of their own', async t => {
  t.equal(parseShareToken('c_AAECAwQFBgcICQoLDA0ODw')?.buffer.byteLength, 16)
})

t.test('a token of other than 16 bytes is not written', async t => {
  t.throws(() => formatShareToken(new Uint8Array(15)))
  t.throws(() => formatShareToken(new Uint8Array(17)))
})

t.test('each pair of bytes has one spelling', async t => {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  const canonical = [...alphabet].filter(last => parseShareToken(`c_${'x'.repeat(21)}${last}`) !== undefined)
  t.same(canonical, ['A', 'Q', 'g', 'w'])
  const text = fc.string({ unit: fc.constantFrom(...`${alphabet}+/= \n`), minLength: 21, maxLength: 23 })
  checkProperty(
    t,
    [text],
    text => {
      const bytes = parseShareToken(`c_${text}`)
      return bytes === undefined || formatShareToken(bytes) === `c_${text}`
    },
    3_000,
  )
})

t.test('a text that is no token is refused', async t => {
  const token = 'c_AAECAwQFBgcICQoLDA0ODw'
  const bad = [
    '',
    'c_',
    token.slice(2),
    token.slice(0, -1),
    `${token}A`,
    `${token}==`,
    `${token}\n`,
    ` ${token}`,
    `C${token.slice(1)}`,
    token.replace('c_', 'c-'),
    token.replace('B', '+'),
    '18446744073709551615',
    `https://example.com/c/${token}`,
    'c_'.padEnd(10_000_000, 'A'),
  ]
  t.same(
    bad.filter(text => parseShareToken(text) !== undefined),
    [],
  )
})
