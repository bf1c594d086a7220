/** Tokens by which a backend signs in the users that it has made, and what their sessions may not do. */

import { createHash } from 'node:crypto'
import t, { type Test } from 'tap'
import { DEFAULT_SETTINGS } from '../../../src/domain/accounts/account.ts'
import type { UserId } from '../../../src/domain/ids.ts'
import { REFUSED_SIGN_INS } from '../../../src/store/accounts/account-tables.ts'
import { prove, type TestAnswer } from '../../support/application.ts'
import { openServerApi } from '../../support/server-api.ts'
import {
  answerSignIn,
  type Client,
  clientOf,
  fetchWaiting,
  proofOf,
  register,
  shownSignIns,
  startOver,
} from '../../support/sign-in-people.ts'
import { openTestApi, type TestApiOptions } from '../../support/test-api.ts'

const USER = 7_000_000_001n as UserId
const MAIL = 'ann@example.org'
const [MINUTE_MS, DAY_MS] = [60_000, 86_400_000]
const INVALID = { status: 400, body: { code: 'SIGN_IN_TOKEN_INVALID' } }
const WAITING = { status: 403, body: { code: 'SIGN_IN_WAITING' } }
const OWNS = { status: 409, body: { code: 'USER_OWNS_SIGN_IN' } }

/** With a user whom the backend has made. */
async function open(t: Test, options: TestApiOptions = {}) {
  const api = await openTestApi(t, options)
  const { send } = await openServerApi(api)
  const { accounts, database } = api.world
  if (database.view(view => accounts.read(view, USER)) === undefined)
    await database.change(change =>
      accounts.put(change, USER, {
        displayName: 'Ann',
        createdAtMs: change.nowMs,
        settings: DEFAULT_SETTINGS,
        acceptLanguage: '',
        externalId: 'ann/1',
        isMadeByServer: true,
      }),
    )
  const create = (ref = `id:${USER}`): Promise<TestAnswer> =>
    send(`POST /server/api/v1/users/${encodeURIComponent(ref)}/sign-in-token`)
  const signIn = (signInToken: string, more: object = {}, headers = {}): Promise<TestAnswer> =>
    api.send('POST /app/api/login', { body: { verified: true, signInToken, ...more }, headers })
  return {
    ...api,
    server: send,
    create,
    signIn,
    newToken: async () => (await create()).body.token as string,
  }
}

type Api = Awaited<ReturnType<typeof open>>

async function signedIn(api: Api, name = 'phone'): Promise<Client> {
  return clientOf(await api.signIn(await api.newToken()), name)
}

/** A phone of the user's, alone on the device list. */
async function firstPhone(api: Api): Promise<Client> {
  const client = await signedIn(api)
  await register(api, client, true)
  return client
}

/** Has the user confirm an address of their own. */
async function confirmMail(api: Api, token: string): Promise<TestAnswer> {
  const body = { kind: 'email', value: MAIL }
  const { body: challenge } = await api.send('POST /app/api/user/login-methods', { token, body })
  const otp = await api.otpFor(MAIL)
  return api.send('POST /app/api/verify', { token, body: { challengeId: challenge.challengeId, otp } })
}

t.test('a token signs in once, by either reference, and is in the record', async t => {
  const api = await open(t)
  const answer = await api.create('ext:ann/1')
  t.match(answer, { status: 201, body: { expiresIn: 60, userId: `${USER}`, token: /^cst_/ } })
  const { token } = answer.body
  t.match(await api.signIn(token), {
    status: 200,
    body: { verified: true, isNewUser: false, user: { userId: `${USER}`, displayName: 'Ann' } },
  })
  t.match(await api.signIn(token), INVALID)
  const rows = api.world.database.view(view => api.world.auditLog.read(view, { sinceMs: 0, limit: 9 }))
  t.match(rows, [{ operation: 'createSignInToken', target: `id:${USER}` }])
})

t.test('it lasts a minute, and a token that is none is refused alike', async t => {
  const api = await open(t)
  const [late, inTime] = [await api.newToken(), await api.newToken()]
  api.world.tick(MINUTE_MS - 1)
  t.match(await api.signIn(inTime), { status: 200 })
  api.world.tick(1)
  t.match(await api.signIn(late), INVALID)
  const token = await api.newToken()
  const { body } = await api.signIn(token)
  const broken = [
    '',
    'cst_',
    token.slice(0, -1),
    `${token}A`,
    `${token.slice(0, -2)}AA`,
    body.accessToken,
    'x'.repeat(256),
  ]
  for (const each of broken) t.match(await api.signIn(each), INVALID, each)
  t.match(await api.signIn('x'.repeat(257)), { status: 422 })
  const unverified = { body: { signInToken: await api.newToken() } }
  t.match(await api.send('POST /app/api/login', unverified), { status: 422 }, 'only as a claim')
})

t.test('two devices at once: one token is good for one, two for both', async t => {
  const api = await open(t)
  const token = await api.newToken()
  const answers = await Promise.all([api.signIn(token), api.signIn(token), api.signIn(token)])
  t.same(answers.map(({ status }) => status).sort(), [200, 400, 400])
  const both = await Promise.all([api.newToken(), api.newToken()])
  t.same(
    (await Promise.all(both.map(each => api.signIn(each)))).map(({ status }) => status),
    [200, 200],
  )
})

t.test('a request that is repeated after a lost reply gets it once more', async t => {
  const api = await open(t)
  const token = await api.newToken()
  const first = await api.signIn(token, {}, { 'idempotency-key': 'one' })
  t.same((await api.signIn(token, {}, { 'idempotency-key': 'one' })).body, first.body)
  t.match(await api.signIn(token, {}, { 'idempotency-key': 'two' }), INVALID)
  t.match(await api.signIn(token), INVALID)
})

t.test('a restart in between changes nothing: neither that it is good nor that it was used', async t => {
  const folder = t.testdir()
  const before = await open(t, { folder })
  const [used, unused] = [await before.newToken(), await before.newToken()]
  await before.signIn(used)
  await before.close()
  const after = await open(t, { folder })
  t.match(await after.signIn(used), INVALID)
  t.match(await after.signIn(unused), { status: 200 })
})

t.test('users with a login method of their own are not signed in', async t => {
  const api = await open(t)
  const own = (await api.codeLogin('bob@example.org')).body.user.userId
  t.match(await api.create(`id:${own}`), OWNS)
  t.match(await api.create('id:4294967297'), { status: 404, body: { code: 'USER_NOT_FOUND' } })
  const { token } = await signedIn(api)
  const meanwhile = await api.newToken()
  t.match(await confirmMail(api, token), { status: 200 })
  t.match(await api.signIn(meanwhile), OWNS)
  t.match(await api.create(), OWNS)
  await api.advance(MINUTE_MS)
  t.match(await api.codeLogin(MAIL), { status: 200, body: { user: { userId: `${USER}` } } })
})

t.test('its session has no fresh proof', async t => {
  const api = await open(t, { log: 'appended' })
  const { token } = await firstPhone(api)
  t.match((await api.send('GET /app/api/user/sessions', { token })).body, { items: [{ proof: 'server' }] })
  const needed = { status: 403, body: { code: 'STEP_UP_REQUIRED', ways: [] } }
  const sensitive = [
    ['DELETE /app/api/user', { confirm: true }],
    ['GET /app/api/user/export', undefined],
    ['POST /app/api/user/passkeys/options', undefined],
  ] as const
  for (const [operation, body] of sensitive)
    t.match(await api.send(operation, { token, body }), needed, operation)
  await confirmMail(api, token)
  for (const [operation, body] of sensitive)
    t.match(await api.send(operation, { token, body }), { body: { code: 'STEP_UP_REQUIRED' } }, operation)
})

t.test('it waits for a listed device, whose user answers', async t => {
  const api = await open(t, { log: 'appended' })
  const ann = await firstPhone(api)
  const token = await api.newToken()
  const waiting = await api.signIn(token, {}, { 'idempotency-key': 'one' })
  t.match(waiting, WAITING)
  const [shown] = await shownSignIns(api, ann)
  t.match(shown, { method: 'server', signInCode: waiting.body.signInCode })
  t.match(
    api.told.filter(({ body }) => body.kind === 'sign_in_waiting'),
    [{ userId: USER, body: { method: 'server' } }],
  )
  t.match(await api.signIn(token), INVALID, 'the token is used')
  const again = await api.signIn(token, {}, { 'idempotency-key': 'one' })
  t.same(again.body.waitingId, waiting.body.waitingId)
  await answerSignIn(api, ann, String(shown?.id), true)
  const answer = await fetchWaiting(api, waiting.body.waitingId)
  t.match(answer, { status: 200, body: { user: { userId: `${USER}`, restriction: 'DEVICE_NOT_LISTED' } } })
  const session = { token: answer.body.accessToken }
  t.match((await api.send('GET /app/api/user/sessions', session)).body, { items: [{ proof: 'server' }] })
})

t.test('a listed device that shows itself does not wait', async t => {
  const api = await open(t, { log: 'appended' })
  const ann = await firstPhone(api)
  await api.send('POST /app/api/logout', { token: ann.token })
  const token = await api.newToken()
  t.match(await api.signIn(await api.newToken(), proofFor(ann, token)), WAITING, 'of another token')
  t.match(await api.signIn(token, proofFor(ann, token)), { status: 200 })
})

t.test('a refusal keeps tokens out for a week, then the user is asked again', async t => {
  const api = await open(t, { log: 'appended' })
  const ann = await firstPhone(api)
  const refuse = async () => {
    const waiting = await api.signIn(await api.newToken())
    t.match(waiting, WAITING)
    const [shown] = await shownSignIns(api, ann)
    await answerSignIn(api, ann, String(shown?.id), false)
    return waiting.body.waitingId as string
  }
  const refused = { status: 403, body: { code: 'SIGN_IN_REFUSED', detail: /another sign-in/ } }
  t.match(await fetchWaiting(api, await refuse()), refused)
  t.match(await api.signIn(await api.newToken()), refused)
  const token = await api.newToken()
  t.match(await api.signIn(token, proofFor(ann, token)), { status: 200 }, 'but for a device of the list')
  await refuse()
  await api.advance(7 * DAY_MS)
  t.match(await api.signIn(await api.newToken()), WAITING, 'and never a fresh account')
})

t.test('without an answer it goes through, and may then do little and start nothing over', async t => {
  const api = await open(t, { log: 'appended' })
  await firstPhone(api)
  const { waitingId } = (await api.signIn(await api.newToken())).body
  await api.advance(3 * DAY_MS)
  const thief = clientOf(await fetchWaiting(api, waitingId), 'thief')
  await register(api, thief)
  t.match(await startOver(api, thief, 0), { status: 403, body: { code: 'DEVICE_NOT_LISTED' } })
  await api.advance(40 * DAY_MS)
  const later = clientOf(await api.signIn(await api.newToken()), 'thief')
  await register(api, later)
  t.match(await startOver(api, later, 0), { status: 403, body: { code: 'STEP_UP_REQUIRED', ways: [] } })
})

t.test('a method that is confirmed while it waits ends the wait', async t => {
  const api = await open(t, { log: 'appended' })
  const ann = await firstPhone(api)
  const { waitingId } = (await api.signIn(await api.newToken())).body
  await confirmMail(api, ann.token)
  const [shown] = await shownSignIns(api, ann)
  await answerSignIn(api, ann, String(shown?.id), true)
  t.match(await fetchWaiting(api, waitingId), { status: 410, body: { code: 'SIGN_IN_GONE' } })
})

t.test('a suspended user gets no token, and one of before signs in to nothing', async t => {
  const api = await open(t)
  const token = await api.newToken()
  await api.server(`POST /server/api/v1/users/id:${USER}/suspend`, { body: { reason: 'abuse' } })
  const suspended = { status: 403, body: { code: 'ACCOUNT_SUSPENDED', reason: 'abuse' } }
  t.match(await api.create(), suspended)
  t.match(await api.signIn(token), suspended)
})

t.test('ten tokens a minute for a user', async t => {
  const api = await open(t, { rates: true })
  for (let count = 0; count < 10; count++) t.equal((await api.create()).status, 201)
  t.match(await api.create(), { status: 429, body: { scope: 'user' } })
})

t.test('an erasure takes the refusal with it', async t => {
  const api = await open(t, { log: 'appended' })
  const ann = await firstPhone(api)
  await api.signIn(await api.newToken())
  const [shown] = await shownSignIns(api, ann)
  await answerSignIn(api, ann, String(shown?.id), false)
  await prove(api.world, ann.token)
  await api.send('DELETE /app/api/user', { token: ann.token, body: { confirm: true } })
  await api.advance(8 * DAY_MS)
  const rows = api.world.database.view(view => [...view.range(REFUSED_SIGN_INS)])
  t.same(rows, [])
})

/** Shows that the client is a listed device of its user. */
function proofFor(client: Client, token: string) {
  return proofOf(client)(createHash('sha256').update(token).digest().subarray(0, 16).toString('base64url'))
}
