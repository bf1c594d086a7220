/** Tokens: what a genuine one says, and that nothing else is one. */

import { createHmac, createSecretKey } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import {
  type AccessToken,
  formatAccessToken,
  formatRefreshToken,
  parseAccessToken,
  parseRefreshToken,
} from '../../../src/domain/accounts/token.ts'
import { checkProperty } from '../../support/property.ts'

const KEY = createSecretKey(Buffer.alloc(32, 1))
const OTHER_KEY = createSecretKey(Buffer.alloc(32, 2))
const TOKEN: AccessToken = {
  sessionId: Buffer.from('000102030405060708090a0b0c0d0e0f', 'hex'),
  generation: 7,
  expiresAtS: 1_790_000_000,
}
const ACCESS = formatAccessToken(KEY, TOKEN)
const REFRESH = formatRefreshToken(KEY, TOKEN)

/** Every text that differs from the token by one bit of what it encodes. */
function flipped(token: string): string[] {
  const bytes = Buffer.from(token.slice(4), 'base64url')
  return Array.from({ length: bytes.length * 8 }, (_, bit) => {
    const changed = Buffer.from(bytes)
    changed[bit >> 3]! ^= 1 << (bit & 7)
    return token.slice(0, 4) + changed.toString('base64url')
  })
}

t.test('tokens are opaque texts of fixed length, told apart by their prefix', async t => {
  t.match(ACCESS, /^kat_[A-Za-z0-9_-]{79}$/)
  t.match(REFRESH, /^krt_[A-Za-z0-9_-]{71}$/)
})

t.test('a token says what it was made with', async t => {
  const sessionId = fc.uint8Array({ minLength: 16, maxLength: 16 })
  const generation = fc.integer({ min: 0, max: 2 ** 32 - 1 })
  const expiresAtS = fc.integer({ min: 0, max: 2 ** 48 - 1 })
  checkProperty(t, [sessionId, generation, expiresAtS], (...[id, number, atS]) => {
    const token = { sessionId: id, generation: number, expiresAtS: atS }
    const access = parseAccessToken(KEY, formatAccessToken(KEY, token))
    const refresh = parseRefreshToken(KEY, formatRefreshToken(KEY, token))
    const isSameId = [access, refresh].every(each => Buffer.from(id).equals(each!.sessionId))
    return (
      isSameId &&
      access!.generation === number &&
      refresh!.generation === number &&
      access!.expiresAtS === atS
    )
  })
})

t.test('no bit of a token can be changed', async t => {
  t.equal(flipped(ACCESS).length, 59 * 8)
  t.same(
    flipped(ACCESS).filter(token => parseAccessToken(KEY, token) !== undefined),
    [],
  )
  t.same(
    flipped(REFRESH).filter(token => parseRefreshToken(KEY, token) !== undefined),
    [],
  )
})

t.test('a token of another key or of the other kind is none', async t => {
  t.equal(parseAccessToken(OTHER_KEY, ACCESS), undefined)
  t.equal(parseRefreshToken(OTHER_KEY, REFRESH), undefined)
  t.equal(parseRefreshToken(KEY, ACCESS), undefined)
  t.equal(parseAccessToken(KEY, REFRESH), undefined)
  t.equal(parseRefreshToken(KEY, `krt_${ACCESS.slice(4)}`), undefined)
  t.equal(parseAccessToken(KEY, `kat_${REFRESH.slice(4)}`), undefined)
})

t.test('a token of another version is refused, with any signature', async t => {
  const head = Buffer.from(ACCESS.slice(4), 'base64url').subarray(0, 27)
  const signed = (version: number) => {
    const bytes = Buffer.concat([Uint8Array.of(version), head.subarray(1)])
    const mac = createHmac('sha256', KEY).update(bytes).digest()
    return `kat_${Buffer.concat([bytes, mac]).toString('base64url')}`
  }
  t.equal(signed(1), ACCESS)
  t.same(
    [signed(0), signed(2)].map(token => parseAccessToken(KEY, token)),
    [undefined, undefined],
  )
})

t.test('a token has one spelling', async t => {
  const body = ACCESS.slice(4)
  // 59 bytes leave two bits of the last character free.
  const spare = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  const others = [...spare].map(last => ACCESS.slice(0, -1) + last).filter(text => text !== ACCESS)
  const spellings = [
    ...others,
    `${ACCESS}=`,
    ` ${ACCESS}`,
    `${ACCESS} `,
    `${ACCESS}\n`,
    `KAT_${body}`,
    body,
    `kat_${body}A`,
    ACCESS.slice(0, -1),
    `kat_${body.slice(0, 40)}\n${body.slice(40)}`,
    `kat_ ${body.slice(1)}`,
    `kat_${body.replace(/[-_]/g, each => (each === '-' ? '+' : '/'))}x`,
  ]
  t.same(
    spellings.filter(text => parseAccessToken(KEY, text) !== undefined),
    [],
  )
})

t.test('no text makes the parsers throw', async t => {
  checkProperty(t, [fc.string({ maxLength: 100, unit: 'binary' })], text => {
    const texts = [text, `kat_${text}`, `krt_${text}`]
    return texts.every(
      each => parseAccessToken(KEY, each) === undefined && parseRefreshToken(KEY, each) === undefined,
    )
  })
  t.equal(parseAccessToken(KEY, `kat_${'A'.repeat(1_000_000)}`), undefined)
})
