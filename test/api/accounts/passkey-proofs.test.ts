/** A passkey as a proof after the sign-in, and a sign-in by one, which is such a proof. */

import t from 'tap'
import { sha256 } from '../../../src/log/primitives-node.ts'
import { stepUpMessage } from '../../../src/log/signing-messages.ts'
import { newSession, newUser, prove, type TestUser } from '../../support/application.ts'
import { Authenticator, type Oddity, USED_FLAGS } from '../../support/authenticator.ts'
import { fromUtf8 } from '../../support/bytes.ts'
import { signWith } from '../../support/device-lists.ts'
import { WITH_LOG } from '../../support/device-requests.ts'
import { addPasskey, signInByPasskey } from '../../support/passkeys.ts'
import { base64, signUp } from '../../support/sign-in-people.ts'
import { openTestApi, type TestApi, type TestApiOptions } from '../../support/test-api.ts'

const STEP_UP = 'POST /app/api/user/step-up'
const METHODS = '/app/api/user/login-methods'
const ADD = { kind: 'email', value: 'ann@example.com' }
const GONE = { status: 410, body: { code: 'PASSKEY_CHALLENGE_GONE' } }

/** A user with a passkey, and with a proof that is a quarter of an hour old. */
async function setUp(test: Parameters<typeof openTestApi>[0], options?: TestApiOptions) {
  const api = await openTestApi(test, options)
  const ann = await newUser(api.world, 'Ann', 'ann@example.org')
  const authenticator = new Authenticator()
  await addPasskey(api, ann, authenticator)
  await api.world.advance(900_001)
  await api.world.takeSent()
  return { api, ann, authenticator }
}

/** The passkey's answer to options for the session. */
async function answerFor({ send }: TestApi, token: string, authenticator: Authenticator, oddity?: Oddity) {
  const { body } = await send('POST /app/api/passkey/options', { token })
  return authenticator.get(body.options, oddity)
}

function add({ send }: TestApi, { token }: Pick<TestUser, 'token'>) {
  return send(`POST ${METHODS}`, { token, body: ADD })
}

t.test('a passkey proves it, once and to its session, and no code is sent for nothing', async t => {
  const { api, ann, authenticator } = await setUp(t)
  const refused = await add(api, ann)
  t.match(refused, {
    status: 403,
    body: { code: 'STEP_UP_REQUIRED', ways: ['code', 'passkey'], signed: false },
  })
  t.equal(refused.body.challenge, undefined)
  t.same(await api.letters(), [])
  const passkey = await answerFor(api, ann.token, authenticator)
  const other = await newSession(api.world, ann.userId)
  t.match(await api.send(STEP_UP, { token: other.token, body: { passkey } }), GONE)
  t.match(await api.send(STEP_UP, { token: ann.token, body: { passkey } }), {
    status: 200,
    body: { provenUntil: '2026-01-01T00:30:00.001Z' },
  })
  t.equal((await add(api, ann)).status, 202)
  t.match(await api.send(STEP_UP, { token: ann.token, body: { passkey } }), GONE)
  t.equal(
    (await api.send(STEP_UP, { token: ann.token, body: { send: 'code' } })).status,
    202,
    'a code, if asked for',
  )
})

t.test('the proof has to be of one of the user’s passkeys, for this, and of a verified user', async t => {
  const { api, ann, authenticator } = await setUp(t)
  const bob = await newUser(api.world, 'Bob')
  const { token } = bob
  const passkey = await answerFor(api, token, authenticator)
  t.match(await api.send(STEP_UP, { token, body: { passkey } }), {
    status: 404,
    body: { code: 'PASSKEY_UNKNOWN' },
  })
  const { body } = await api.send('POST /app/api/passkey/options')
  const forSignIn = authenticator.get(body.options)
  t.match(await api.send(STEP_UP, { token: ann.token, body: { passkey: forSignIn } }), GONE)
  const unverified = await answerFor(api, ann.token, authenticator, { flags: USED_FLAGS & ~4 })
  t.match(await api.send(STEP_UP, { token: ann.token, body: { passkey: unverified } }), {
    status: 403,
    body: { code: 'PASSKEY_NOT_VERIFIED' },
  })
  t.equal((await add(api, ann)).status, 403)
  const both = { passkey: unverified, send: 'code' }
  t.match(await api.send(STEP_UP, { token: ann.token, body: both }), {
    status: 422,
    body: { errors: [{ code: 'ONE_OF' }] },
  })
})

t.test('a listed device signs the challenge of the passkey', async t => {
  const api = await openTestApi(t, WITH_LOG)
  const ann = await signUp(api, 'ann@example.org')
  await prove(api.world, ann.token)
  const authenticator = new Authenticator()
  t.equal((await addPasskey(api, ann, authenticator)).status, 201)
  await api.world.advance(900_001)
  const { token } = ann
  const { body } = await api.send('POST /app/api/passkey/options', { token })
  const { challenge } = body.options
  const passkey = authenticator.get(body.options)
  const signed = (text: string) =>
    base64(signWith(ann.phone.signer, stepUpMessage(BigInt(ann.userId), sha256(fromUtf8(text)))))
  t.match(await api.send(STEP_UP, { token, body: { passkey } }), {
    status: 422,
    body: { errors: [{ pointer: '/deviceSignature', code: 'REQUIRED' }] },
  })
  t.match(await api.send(STEP_UP, { token, body: { passkey, deviceSignature: signed('another') } }), {
    status: 422,
    body: { errors: [{ pointer: '/deviceSignature', code: 'SIGNATURE' }] },
  })
  t.equal((await add(api, ann)).status, 403)
  const whole = { passkey, deviceSignature: signed(challenge) }
  t.equal((await api.send(STEP_UP, { token, body: whole })).status, 200, 'the challenge was not used up')
  t.equal((await add(api, ann)).status, 202)
})

t.test('a session that a passkey opened is proven for a quarter of an hour', async t => {
  const { api, authenticator } = await setUp(t)
  const { accessToken: token } = (await signInByPasskey(api, authenticator)).body
  await api.world.advance(900_000)
  t.equal((await add(api, { token })).status, 202)
  await api.world.advance(1)
  t.equal((await add(api, { token })).status, 403)
})

t.test('where passkeys were switched off, they are no way, and a code is sent', async t => {
  const folder = t.testdir()
  const { api, ann } = await setUp(t, { folder })
  await api.close()
  const off = await openTestApi(t, { folder, config: { passkeys: undefined } })
  await off.world.advance(900_001)
  const { body } = await add(off, ann)
  t.match(body, { code: 'STEP_UP_REQUIRED', ways: ['code'], challenge: { sentTo: 'a•••@example.org' } })
})

t.test('an account that is left with passkeys alone adds an address by one', async t => {
  const { api, ann, authenticator } = await setUp(t)
  await api.world.database.change(change => {
    const [address] = api.world.accounts.methodsOf(change, ann.userId)
    api.world.accounts.removeMethod(change, ann.userId, address!)
    const { primaryMethodId: _, ...user } = api.world.accounts.read(change, ann.userId)!
    api.world.accounts.put(change, ann.userId, user)
  })
  t.match((await add(api, ann)).body, { code: 'STEP_UP_REQUIRED', ways: ['passkey'] })
  const passkey = await answerFor(api, ann.token, authenticator)
  t.equal((await api.send(STEP_UP, { token: ann.token, body: { passkey } })).status, 200)
  const { challengeId } = (await add(api, ann)).body
  const otp = await api.otpFor('ann@example.com')
  const { body } = await api.send('POST /app/api/verify', { token: ann.token, body: { challengeId, otp } })
  t.match(body.user.loginMethods, [
    { kind: 'passkey', primary: false },
    { kind: 'email', primary: true },
  ])
})
