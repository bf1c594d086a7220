/** Keys of user tokens, and the tokens: as `jose` reads both. */

import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { calculateJwkThumbprint, createLocalJWKSet, jwtVerify } from 'jose'
import t from 'tap'
import {
  formatUserToken,
  generateUserTokenKey,
  userTokenKey,
  userTokenKeyTexts,
} from '../../../src/domain/accounts/user-token.ts'

const CLAIMS = {
  iss: 'https://call.example.org',
  sub: '18446744073709551615',
  ext: 'Ännchen "1" 🙂\n',
  aud: 'https://api.example.org',
  sid: 'c2Vzc2lvbg',
  jti: 'anRp',
}

const key = userTokenKey(generateUserTokenKey(randomBytes))
const one = generateUserTokenKey(randomBytes)
const other = generateUserTokenKey(randomBytes)

t.test('a token is what any library takes for one, with the claims that it was given', async t => {
  const token = formatUserToken(key, CLAIMS, 1_700_000_000_999)
  const { payload, protectedHeader } = await jwtVerify(token, createLocalJWKSet({ keys: [key.jwk] }), {
    algorithms: ['EdDSA'],
    typ: 'callsign-user+jwt',
    issuer: CLAIMS.iss,
    audience: CLAIMS.aud,
    currentDate: new Date(1_700_000_299_000),
  })
  t.same(payload, { ...CLAIMS, iat: 1_700_000_000, exp: 1_700_000_300 })
  t.same(protectedHeader, { alg: 'EdDSA', typ: 'callsign-user+jwt', kid: key.jwk.kid })
  t.equal(key.jwk.kid, await calculateJwkThumbprint(key.jwk))
  const { ext: _, ...others } = CLAIMS
  const nameless = formatUserToken(key, { ...others, ext: undefined }, 1_700_000_000_999)
  t.same(JSON.parse(Buffer.from(nameless.split('.')[1]!, 'base64url').toString()), {
    ...others,
    iat: 1_700_000_000,
    exp: 1_700_000_300,
  })
})

t.test('the public half has nothing of the private one', async t => {
  const [seed, jwk] = [Buffer.from(one, 'base64').subarray(16), JSON.stringify(userTokenKey(one).jwk)]
  t.notOk(jwk.includes(seed.toString('base64url')))
  t.same(Object.keys(userTokenKey(one).jwk), ['kty', 'crv', 'x', 'kid', 'alg', 'use'])
})

t.test('keys are read in any form that operators have them in', async t => {
  const pem = (text: string) => `-----BEGIN PRIVATE KEY-----\n${text}\n-----END PRIVATE KEY-----\n`
  for (const text of [
    `${one},${other}`,
    ` ${one} , ${other},`,
    `${one}\r\n${other}\r\n`,
    pem(one) + pem(other),
    `${pem(one)}${pem(other)}`.replaceAll('\n', '\\n'),
    `${one},${pem(other)}`,
  ])
    t.same(userTokenKeyTexts(text), [one, other], JSON.stringify(text))
  const made = execFileSync('openssl', ['genpkey', '-algorithm', 'ed25519']).toString()
  t.equal(userTokenKeyTexts(made)?.length, 1)
  t.equal(userTokenKey(userTokenKeyTexts(made)![0]!).jwk.kty, 'OKP')
})

t.test('one text that is no key refuses the whole list', async t => {
  const x25519 = `MC4CAQAwBQYDK2VuBCIEI${one.slice(21)}`
  const ec = execFileSync('openssl', ['genpkey', '-algorithm', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256'])
  for (const text of [
    '',
    ',',
    'x',
    one.slice(1),
    `${one}=`,
    `${one.slice(0, -1)}!`,
    one.replaceAll('+', '-').replaceAll('/', '_').slice(0, -1),
    `${one},?`,
    `${one}${other}`,
    x25519,
    ec.toString(),
    randomBytes(48).toString('base64'),
  ])
    t.equal(userTokenKeyTexts(text), undefined, JSON.stringify(text))
})
