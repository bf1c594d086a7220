import { createSecretKey } from 'node:crypto'
import t from 'tap'
import {
  androidOrigin,
  endOfPasskeyChallenge,
  formatPasskeyChallenge,
  PASSKEY_CHALLENGE_LIFETIME_MS,
  type PasskeyUse,
  passkeyUserHandle,
  readClientData,
  refusalOfOrigin,
} from '../../../src/domain/accounts/passkey.ts'
import type { UserId } from '../../../src/domain/ids.ts'

const KEY = createSecretKey(Buffer.alloc(32, 1))
const NOW_MS = Date.UTC(2026, 0, 1)
const NONCE = Buffer.alloc(16, 2)
const [ONE, OTHER] = [Buffer.alloc(16, 3), Buffer.alloc(16, 4)]
const USES: readonly PasskeyUse[] = [
  { purpose: 'sign-in' },
  { purpose: 'register', sessionId: ONE },
  { purpose: 'step-up', sessionId: ONE },
  { purpose: 'step-up', sessionId: OTHER },
]

t.test('a challenge is good for its own purpose and session, and for no other', async t => {
  for (const made of USES) {
    const text = formatPasskeyChallenge(KEY, made, NONCE, NOW_MS)
    t.equal(Buffer.from(text, 'base64url').length, 54)
    for (const use of USES) {
      const end = use === made ? NOW_MS + PASSKEY_CHALLENGE_LIFETIME_MS : undefined
      t.equal(endOfPasskeyChallenge(KEY, use, text), end)
    }
    t.equal(endOfPasskeyChallenge(createSecretKey(Buffer.alloc(32, 9)), made, text), undefined, 'another key')
  }
})

t.test('a challenge with a changed octet is refused, and so is another spelling of it', async t => {
  const text = formatPasskeyChallenge(KEY, USES[0]!, NONCE, NOW_MS)
  const bytes = Buffer.from(text, 'base64url')
  for (let at = 0; at < bytes.length; at++) {
    const changed = Buffer.from(bytes)
    changed[at]! ^= 1
    t.equal(endOfPasskeyChallenge(KEY, USES[0]!, changed.toString('base64url')), undefined, `octet ${at}`)
  }
  for (const other of ['', `${text}=`, `${text}A`, text.slice(1), ' '.repeat(72)])
    t.equal(endOfPasskeyChallenge(KEY, USES[0]!, other), undefined)
  const url = [...text].some(character => '-_'.includes(character))
  if (url) t.equal(endOfPasskeyChallenge(KEY, USES[0]!, bytes.toString('base64')), undefined, 'base64')
})

t.test('client data is read where it is some, and nothing throws', async t => {
  const of = (value: unknown) => readClientData(Buffer.from(JSON.stringify(value)).toString('base64url'))
  const usual = { challenge: 'c', origin: 'https://example.org' }
  t.same(of(usual), { ...usual, isFramed: false })
  t.same(of({ ...usual, crossOrigin: false }), { ...usual, isFramed: false })
  for (const framed of [
    { crossOrigin: true },
    { crossOrigin: 'false' },
    { crossOrigin: null },
    { topOrigin: '' },
  ])
    t.match(of({ ...usual, ...framed }), { isFramed: true })
  for (const value of [
    null,
    1,
    'text',
    [],
    {},
    { ...usual, challenge: 1 },
    { ...usual, origin: ['https://example.org'] },
  ])
    t.equal(of(value), undefined)
  t.equal(readClientData('AAAA'), undefined)
})

t.test('origins are those that are named, and loopback only where it may', async t => {
  const settings = { rpId: 'example.org', origins: ['https://example.org'], takesLoopback: false }
  const refused = (origin: string, takesLoopback = false, isFramed = false) =>
    refusalOfOrigin({ challenge: '', origin, isFramed }, { ...settings, takesLoopback }) !== undefined
  t.notOk(refused('https://example.org'))
  t.ok(refused('https://example.org', false, true), 'framed')
  for (const origin of ['https://example.org.evil', 'http://example.org', 'https://a.example.org', 'null'])
    t.ok(refused(origin, true), origin)
  for (const origin of ['http://localhost', 'http://localhost:8080']) {
    t.ok(refused(origin), origin)
    t.notOk(refused(origin, true), origin)
  }
  for (const origin of [
    'http://localhost.evil',
    'http://localhost:8080.evil',
    'https://localhost:1',
    'http://evil/#http://localhost',
  ])
    t.ok(refused(origin, true), origin)
})

t.test('handles tell nothing of the user, and are the same each time', async t => {
  const [one, other] = [1n as UserId, 2n as UserId].map(userId => passkeyUserHandle(KEY, userId))
  t.equal(one?.length, 32)
  t.same(one, passkeyUserHandle(KEY, 1n as UserId))
  t.not(Buffer.from(one!).toString('hex'), Buffer.from(other!).toString('hex'))
})

t.test('the origin of an Android app is the hash of its certificate', async t => {
  const fingerprint = Array(32).fill('FF').join(':')
  t.equal(androidOrigin(fingerprint), `android:apk-key-hash:${Buffer.alloc(32, 255).toString('base64url')}`)
})
