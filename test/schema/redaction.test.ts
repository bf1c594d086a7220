/** A developer's view of bodies, paths and queries: all but tokens, codes and keys. */

import t from 'tap'
import { redactedJson, redactedPath, redactedQuery } from '../../src/schema/redaction.ts'

function shown(value: unknown): unknown {
  return JSON.parse(redactedJson(Buffer.from(JSON.stringify(value)))!)
}

const SECRETS = {
  accessToken: 'kat_a',
  refreshToken: 'b',
  otp: '123456',
  code: '123456',
  fcmToken: 'c',
  apnsVoipToken: 'd',
  idToken: 'e',
  identityToken: 'f',
  authCode: 'g',
  authorizationCode: 'h',
  nonce: 'i',
  turnPassword: 'j',
  token: 'k',
  encryptedAESKey: 'l',
  privateKey: 'm',
  acess_token: 'n',
  password: 'o',
  Authorization: 'p',
  waitingId: 'q',
  pushKey: 'r',
}

t.test('tokens, codes and keys are hidden, by whatever name they come', async t => {
  for (const [name, secret] of Object.entries(SECRETS)) {
    t.same(shown({ [name]: secret }), { [name]: `(secret, ${secret.length} characters)` }, name)
  }
  t.same(shown({ otp: 123456 }), { otp: '(secret, 6 characters)' }, 'a number, too')
  const keys = { encryptedAESKeys: { '1_2': 'AAAA', '3_4': ['BBBB'] } }
  t.same(shown(keys), {
    encryptedAESKeys: { '1_2': '(secret, 4 characters)', '3_4': ['(secret, 4 characters)'] },
  })
})

t.test('a token of ours is hidden wherever it stands', async t => {
  const tokens = ['kat_', 'krt_', 'c_'].map(prefix => prefix + 'Ab1-_'.repeat(5))
  for (const token of tokens) {
    const text = redactedJson(Buffer.from(JSON.stringify({ url: `http://h/c/${token}`, [token]: 1 })))!
    t.notMatch(text, token)
    t.notMatch(redactedPath(`/app/api/share-token/${token}`), token)
    t.notMatch(redactedQuery(`limit=1&x=${token}`), token)
  }
  t.equal(redactedPath('/nowhere/Zm9vYmFyMTIzNDU2Nzg5MA=='), '/nowhere/…', 'or another’s in a path')
  t.equal(redactedQuery('token=abc&limit=5&otp=1'), 'token=…&limit=5&otp=…')
})

t.test('everything else is shown as it was sent', async t => {
  const problem = {
    code: 'VALIDATION_FAILED',
    errors: [{ pointer: '/email', code: 'FORMAT', detail: 'is no address' }],
  }
  const call = {
    calleeIds: ['18446744073709551615'],
    isVideo: true,
    keyEpoch: 2,
    publicKey: 'MFkw',
    tokenType: 'Bearer',
  }
  for (const body of [problem, call, { challengeId: 'x', nothing: null, list: [] }, [1, 'two']])
    t.same(shown(body), body)
  const exact = redactedJson(Buffer.from('{"userId":18446744073709551615}'))
  t.equal(exact, '{\n  "userId": 18446744073709551615\n}', 'no digit of an id is lost')
  t.equal(redactedPath('/app/api/devices/18446744073709551615'), '/app/api/devices/18446744073709551615')
  t.equal(redactedPath('/app/api/call/start'), '/app/api/call/start')
})

t.test('a body that is no JSON is not shown, and a long list only in part', async t => {
  for (const text of ['', 'otp=123456', '{"otp":"123456"', '\u{feff}{}'])
    t.equal(redactedJson(Buffer.from(text)), undefined)
  t.equal((shown(Array(500).fill(1)) as unknown[]).length, 51)
})
