/** Proofs after the sign-in: which operations need one, the ways to give it, for which session and how long it holds. */

import t from 'tap'
import { sha256 } from '../../../src/log/primitives-node.ts'
import { stepUpMessage } from '../../../src/log/signing-messages.ts'
import { newSession, newUser, prove, type TestAnswer } from '../../support/application.ts'
import { fromUtf8 } from '../../support/bytes.ts'
import { type ListedPhone, newPhone, signWith } from '../../support/device-lists.ts'
import { WITH_LOG } from '../../support/device-requests.ts'
import {
  base64,
  type Client,
  clientOf,
  enterCode,
  register,
  signUp,
  startOver,
} from '../../support/sign-in-people.ts'
import { openTestApi, type TestApi } from '../../support/test-api.ts'

const STEP_UP = 'POST /app/api/user/step-up'
const METHODS = '/app/api/user/login-methods'
const ANN = 'ann@example.org'
const ADD = { kind: 'email', value: 'ann@example.com' }
const TOLD = [`mail ${ANN} otp`]

function outcome({ status, body }: TestAnswer): string {
  const fault = body?.errors?.[0]
  return `${status} ${body?.code ?? ''} ${fault === undefined ? '' : `${fault.pointer} ${fault.code}`}`.trim()
}

function signatureOf({ userId }: Pick<Client, 'userId'>, { signer }: ListedPhone, text: string): string {
  return base64(signWith(signer, stepUpMessage(BigInt(userId), sha256(fromUtf8(text)))))
}

/** Has a code sent, unless a refusal has sent one; gives what confirms it. */
async function codeSent(api: TestApi, token: string, address = ANN) {
  const { status, body } = await api.send(STEP_UP, { token, body: { send: 'code' } })
  if (status !== 202) throw new Error(`no code is sent: ${status} ${body.code}`)
  return { challengeId: String(body.challenge.challengeId), otp: await api.otpFor(address) }
}

/** Whether the session may change a login method. */
async function isProven(api: TestApi, token: string): Promise<boolean> {
  const { status } = await api.send(`POST ${METHODS}`, { token, body: ADD })
  return status === 202
}

t.test(
  'a sign-in proves nothing: whatever takes an account away, or another way into it, is refused',
  async t => {
    const api = await openTestApi(t, { identities: 'with Apple key' })
    const { body } = await api.codeLogin(ANN)
    const { accessToken: token } = body
    const { primaryMethodId: id } = body.user
    const idToken = await api.identities.googleToken('eve')
    const needing: readonly (readonly [string, object?])[] = [
      [`POST ${METHODS}`, ADD],
      [`POST ${METHODS}`, { kind: 'social', provider: 'google', idToken }],
      [`PUT ${METHODS}/primary`, { id }],
      [`DELETE ${METHODS}/${id}`],
      ['PUT /app/api/user', { email: 'eve@example.org' }],
      ['DELETE /app/api/user', { confirm: true }],
    ]
    for (const [operation, sent] of needing) {
      const refused = await api.send(operation, { token, body: sent })
      t.match(
        refused,
        { status: 403, body: { code: 'STEP_UP_REQUIRED', ways: ['code'], signed: false } },
        operation,
      )
      t.match(refused.body.challenge, { sentTo: 'a•••@example.org' })
    }
    t.same(await api.letters(), TOLD, 'one code serves all')
    t.equal((await api.send('PUT /app/api/user', { token, body: { displayName: 'Annie' } })).status, 200)
  },
)

t.test('a code that was asked for proves it, to this session alone, for fifteen minutes', async t => {
  const api = await openTestApi(t)
  const { accessToken: token } = (await api.codeLogin(ANN)).body
  const other = (await api.codeLogin(ANN)).body.accessToken
  const body = await codeSent(api, token)
  t.equal(outcome(await api.send(STEP_UP, { token, body: { ...body, otp: '000000' } })), '400 OTP_INVALID')
  t.equal(await isProven(api, token), false)
  const proven = await api.send(STEP_UP, { token, body })
  t.match(proven, { status: 200, body: { provenUntil: '2026-01-01T00:15:00.000Z' } })
  t.equal(await isProven(api, other), false)
  api.world.tick(900_000)
  t.equal(await isProven(api, token), true)
  api.world.tick(1)
  t.equal(await isProven(api, token), false)
  t.equal(outcome(await api.send(STEP_UP, { token, body })), '410 CHALLENGE_GONE', 'and the code is used')
})

t.test('a code of another user, or for another purpose, proves nothing', async t => {
  const api = await openTestApi(t)
  const { accessToken: token } = (await api.codeLogin(ANN)).body
  const eve = (await api.codeLogin('eve@example.org')).body.accessToken
  const body = await codeSent(api, token)
  t.equal(outcome(await api.send(STEP_UP, { token: eve, body })), '410 CHALLENGE_GONE')
  const login = (await api.send('POST /app/api/login', { body: { email: ANN } })).body
  const ofLogin = { challengeId: login.challengeId, otp: await api.otpFor(ANN) }
  t.equal(outcome(await api.send(STEP_UP, { token, body: ofLogin })), '410 CHALLENGE_GONE')
  t.equal((await api.send(STEP_UP, { token, body })).status, 200, 'its own does')
})

t.test('a code to an address that has been removed since proves nothing', async t => {
  const api = await openTestApi(t)
  const ann = await newUser(api.world, 'Ann', ANN)
  const { token } = await newSession(api.world, ann.userId)
  const added = await api.send(`POST ${METHODS}`, { token, body: ADD })
  const confirmation = { challengeId: added.body.challengeId, otp: await api.otpFor(ADD.value) }
  const { body } = await api.send('POST /app/api/verify', { token, body: confirmation })
  api.world.tick(901_000)
  const code = await codeSent(api, token)
  await prove(api.world, ann.token)
  const removed = await api.send(`DELETE ${METHODS}/${body.user.primaryMethodId}`, { token: ann.token })
  t.equal(removed.status, 204)
  t.equal(outcome(await api.send(STEP_UP, { token, body: code })), '410 CHALLENGE_GONE')
  t.equal(await isProven(api, token), false)
})

t.test('a request goes exactly one way', async t => {
  const api = await openTestApi(t)
  const { token } = await newUser(api.world, 'Ann', ANN)
  const [challengeId, otp] = ['A'.repeat(22), '123456']
  const cases: readonly (readonly [body: object, expected: string])[] = [
    [{}, '422 VALIDATION_FAILED  ONE_OF'],
    [{ otp }, '422 VALIDATION_FAILED  ONE_OF'],
    [{ challengeId, otp, send: 'code' }, '422 VALIDATION_FAILED  ONE_OF'],
    [{ challengeId, otp, provider: 'google', idToken: 'a' }, '422 VALIDATION_FAILED  ONE_OF'],
    [{ challengeId }, '422 VALIDATION_FAILED /otp REQUIRED'],
    [{ send: 'letter' }, '422 VALIDATION_FAILED /send ENUM'],
    [{ provider: 'google' }, '400 PROVIDER_TOKEN_REQUIRED'],
    [{ challengeId, otp }, '410 CHALLENGE_GONE'],
  ]
  for (const [body, expected] of cases) t.equal(outcome(await api.send(STEP_UP, { token, body })), expected)
  t.same(await api.letters(), [])
})

t.test('a listed device signs beside the code, which counts for nothing before it has', async t => {
  const api = await openTestApi(t, WITH_LOG)
  const ann = await signUp(api, ANN)
  const { token, phone } = ann
  const refused = await api.send('DELETE /app/api/user', { token, body: { confirm: true } })
  t.match(refused.body, { code: 'STEP_UP_REQUIRED', ways: ['code'], signed: true })
  const { challengeId, otp } = await codeSent(api, token)
  const signed = (text: string, by: ListedPhone = phone, of: Pick<Client, 'userId'> = ann) => ({
    challengeId,
    otp,
    deviceSignature: signatureOf(of, by, text),
  })
  const forged = [
    signed(challengeId, newPhone('thief')),
    signed('A'.repeat(22)),
    signed(challengeId, phone, { userId: '1' }),
    { ...signed(challengeId), deviceSignature: 'AAAA' },
  ]
  for (const operation of [STEP_UP, 'POST /app/api/verify']) {
    const bare = await api.send(operation, { token, body: { challengeId, otp } })
    t.equal(outcome(bare), '422 VALIDATION_FAILED /deviceSignature REQUIRED')
    for (const body of forged)
      t.equal(
        outcome(await api.send(operation, { token, body })),
        '422 VALIDATION_FAILED /deviceSignature SIGNATURE',
      )
  }
  t.equal(await isProven(api, token), false)
  t.equal((await api.send(STEP_UP, { token, body: signed(challengeId) })).status, 200)
  t.equal(await isProven(api, token), true)
})

t.test('a client that knows verify alone confirms there, with the signature of a listed device', async t => {
  const api = await openTestApi(t, WITH_LOG)
  const ann = await signUp(api, ANN)
  const { token, phone } = ann
  const { challengeId, otp } = await codeSent(api, token)
  const body = { challengeId, otp, deviceSignature: signatureOf(ann, phone, challengeId) }
  t.match(await api.send('POST /app/api/verify', { token, body }), {
    status: 200,
    body: { purpose: 'step-up' },
  })
  t.equal(await isProven(api, token), true)
})

t.test('a proof of before the device was listed does not hold for the listed one', async t => {
  const api = await openTestApi(t, WITH_LOG)
  const ann = clientOf(await enterCode(api, ANN))
  t.equal((await api.send(STEP_UP, { token: ann.token, body: await codeSent(api, ann.token) })).status, 200)
  t.equal(await isProven(api, ann.token), true)
  await register(api, ann, true)
  t.equal(await isProven(api, ann.token), false)
})

t.test('a later proof without a signature takes the place of a signed one', async t => {
  const api = await openTestApi(t, WITH_LOG)
  const ann = clientOf(await enterCode(api, ANN))
  await prove(api.world, ann.token)
  await api.send(STEP_UP, { token: ann.token, body: await codeSent(api, ann.token) })
  await register(api, ann, true)
  t.equal(await isProven(api, ann.token), false)
})

t.test('who has lost all devices proves it by a code alone, to start over', async t => {
  const api = await openTestApi(t, { ...WITH_LOG, config: { signInWaitH: 0 } })
  await signUp(api, ANN)
  await api.advance(31 * 86_400_000)
  const found = clientOf(await enterCode(api, ANN), 'found')
  await register(api, found)
  t.match((await startOver(api, found, 0)).body, { code: 'STEP_UP_REQUIRED', signed: false })
  t.equal(
    (await api.send(STEP_UP, { token: found.token, body: await codeSent(api, found.token) })).status,
    200,
  )
  t.equal((await startOver(api, found, 0)).status, 200)
})

t.test('a provider proves it by a new token of an identity of the account', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  await api.googleLogin('eve')
  const { accessToken: token } = (await api.googleLogin('ann')).body
  await api.world.takeSent()
  const refused = await api.send(`POST ${METHODS}`, { token, body: ADD })
  t.match(refused.body, { code: 'STEP_UP_REQUIRED', ways: ['provider'] })
  t.same(await api.letters(), [])
  const by = async (sub: string, claims = {}) => ({
    provider: 'google',
    idToken: await api.identities.googleToken(sub, claims),
  })
  t.equal(outcome(await api.send(STEP_UP, { token, body: await by('eve') })), '400 PROVIDER_TOKEN_INVALID')
  t.equal(outcome(await api.send(STEP_UP, { token, body: await by('nobody') })), '400 PROVIDER_TOKEN_INVALID')
  const iat = Math.floor(api.world.nowMs() / 1000) - 61
  t.equal(
    outcome(await api.send(STEP_UP, { token, body: await by('ann', { iat }) })),
    '400 PROVIDER_TOKEN_INVALID',
  )
  t.equal(await isProven(api, token), false)
  const body = await by('ann')
  t.equal((await api.send(STEP_UP, { token, body })).status, 200)
  t.equal(outcome(await api.send(STEP_UP, { token, body })), '400 PROVIDER_TOKEN_INVALID', 'once')
  t.equal(await isProven(api, token), true)
  t.equal(
    outcome(await api.send('POST /app/api/login', { body: { verified: true, ...body } })),
    '400 PROVIDER_TOKEN_INVALID',
  )
})

t.test('no code is sent to a user without an address', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const { accessToken: token } = (await api.googleLogin('ann')).body
  const answer = await api.send(STEP_UP, { token, body: { send: 'code' } })
  t.equal(outcome(answer), '422 VALIDATION_FAILED /send NO_ADDRESS')
})

t.test('a proof is not noted for a session that ends while its provider is asked', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const { accessToken: token, user } = (await api.googleLogin('ann')).body
  const { database, sessions } = api.world
  const idToken = await api.identities.googleToken('ann')
  const step = api.send(STEP_UP, { token, body: { provider: 'google', idToken } })
  await database.change(change => {
    for (const id of sessions.idsOf(change, user.userId)) sessions.revoke(change, id, 'logged_out_everywhere')
  })
  t.equal(outcome(await step), '401 SESSION_REVOKED')
})

t.test('where step-up is off only starting over needs a proof', async t => {
  const api = await openTestApi(t, { ...WITH_LOG, config: { stepUpS: 0, signInWaitH: 0 } })
  const ann = await signUp(api, ANN)
  t.equal(await isProven(api, ann.token), true)
  await api.advance(31 * 86_400_000)
  const found = clientOf(await enterCode(api, ANN), 'found')
  await register(api, found)
  t.match((await startOver(api, found, 0)).body, { code: 'STEP_UP_REQUIRED' })
  t.match(
    (await api.send(STEP_UP, { token: found.token, body: await codeSent(api, found.token) })).status,
    200,
  )
  t.equal((await startOver(api, found, 0)).status, 200)
})

t.test('a proof of a clock that was ahead is not fresh until then', async t => {
  const api = await openTestApi(t)
  const { userId } = await newUser(api.world, 'Ann', ANN)
  const { token } = await newSession(api.world, userId)
  api.world.tick(-86_400_000)
  t.equal(await isProven(api, token), false)
})
