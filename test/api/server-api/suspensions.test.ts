/** Suspended users: sessions, sign-ins by each proof, pushes, invitations; and how a suspension ends. */

import t, { type Test } from 'tap'
import type { UserId } from '../../../src/domain/ids.ts'
import type { OutboxMessage } from '../../../src/domain/messages/outbox-message.ts'
import { newDevice, newSession, newUser, prove, type TestUser } from '../../support/application.ts'
import { Authenticator } from '../../support/authenticator.ts'
import { addPasskey, signInByPasskey } from '../../support/passkeys.ts'
import { openServerApi } from '../../support/server-api.ts'
import { enterCode, fetchWaiting, proofOf, signUp, startOver } from '../../support/sign-in-people.ts'
import { openTestApi, type TestApiOptions } from '../../support/test-api.ts'

const MAIL = 'ann@example.org'
const MINUTE_MS = 60_000
const DAY_MS = 86_400_000
const SUSPENDED = { status: 403, body: { code: 'ACCOUNT_SUSPENDED', reason: 'abuse' } }

async function open(t: Test, options: TestApiOptions = {}) {
  const api = await openTestApi(t, options)
  const { send } = await openServerApi(api)
  const suspend = (userId: unknown, more: object = {}) =>
    send(`POST /server/api/v1/users/id:${userId}/suspend`, { body: { reason: 'abuse', ...more } })
  const unsuspend = (userId: unknown) => send(`POST /server/api/v1/users/id:${userId}/unsuspend`)
  const userOf = ({ userId }: Pick<TestUser, 'userId'>) =>
    api.world.database.view(view => api.world.accounts.read(view, userId))
  return { ...api, server: send, suspend, unsuspend, userOf }
}

t.test('every session ends, and its tokens hear why', async t => {
  const { codeLogin, send, suspend, world } = await open(t)
  const { body } = await codeLogin(MAIL)
  const { userId } = body.user
  const answer = await suspend(userId, { note: 'seen by two', untilAt: '2026-02-01T00:00:00Z' })
  t.match(answer, {
    status: 200,
    body: { userId, reason: 'abuse', note: 'seen by two', untilAt: '2026-02-01T00:00:00.000Z' },
  })
  t.match(await send('GET /app/api/user', { token: body.accessToken }), {
    status: 401,
    body: { code: 'SESSION_REVOKED', reason: 'account_suspended' },
  })
  const refreshing = { body: { refreshToken: body.refreshToken } }
  t.match(await send('POST /app/api/refresh-token', refreshing), {
    status: 401,
    body: { code: 'REFRESH_TOKEN_INVALID', reason: 'account_suspended' },
  })
  const rows = world.database.view(view => world.auditLog.read(view, { sinceMs: 0, limit: 9 }))
  t.match(rows, [{ operation: 'suspendUser', target: `id:${userId}`, requestId: 'test-request' }])
})

t.test('a refresh that is under way comes before the suspension or after it', async t => {
  const { codeLogin, send, suspend } = await open(t)
  for (const name of ['ann', 'bob', 'cid']) {
    const { body } = await codeLogin(`${name}@example.org`)
    const refreshing = { body: { refreshToken: body.refreshToken } }
    const [refreshed] = await Promise.all([
      send('POST /app/api/refresh-token', refreshing),
      suspend(body.user.userId),
    ])
    const token = refreshed.body.accessToken ?? body.accessToken
    t.match(await send('GET /app/api/user', { token }), { status: 401, body: { code: 'SESSION_REVOKED' } })
  }
})

t.test('a code is asked for as ever, and only the right one hears of the suspension', async t => {
  const api = await open(t)
  const ann = await newUser(api.world, 'Ann', MAIL)
  const ask = (email: string) => api.send('POST /app/api/login', { body: { email } })
  const stranger = await ask('nobody@example.org')
  await api.suspend(ann.userId)
  await api.world.takeSent()
  const asked = await ask(MAIL)
  t.same(
    { ...asked.body, challengeId: '', sentTo: '' },
    { ...stranger.body, challengeId: '', sentTo: '' },
    'as for anybody',
  )
  const otp = await api.otpFor(MAIL)
  const enter = (otp: string) =>
    api.send('POST /app/api/verify-login', { body: { challengeId: asked.body.challengeId, otp } })
  const wrong = otp === '000000' ? '000001' : '000000'
  t.match(await enter(wrong), { body: { code: 'OTP_INVALID' } })
  t.match(await enter(otp), { ...SUSPENDED, body: { until: undefined } })
  const verified = await api.send('POST /app/api/verify', {
    body: { challengeId: asked.body.challengeId, otp },
  })
  t.match(verified, SUSPENDED)
  t.same(
    api.world.database.view(view => api.world.sessions.devicesOf(view, ann.userId)),
    new Set(),
  )
})

t.test('neither a passkey nor a provider signs in', async t => {
  const api = await open(t, { identities: 'with Apple key' })
  const { suspend, unsuspend } = api
  const { body } = await api.googleLogin('ann')
  const { userId } = body.user
  const ann = await newSession(api.world, BigInt(userId) as UserId)
  const authenticator = new Authenticator()
  t.equal((await addPasskey(api, ann, authenticator)).status, 201)
  await suspend(userId)
  t.match(await signInByPasskey(api, authenticator), SUSPENDED)
  t.match(await api.googleLogin('ann'), SUSPENDED)
  const identityToken = await api.identities.googleToken('ann')
  const platform = await api.send('POST /app/api/platform-login', {
    body: { platform: 'google', identityToken },
  })
  t.match(platform, SUSPENDED)
  await unsuspend(userId)
  t.match(await signInByPasskey(api, authenticator), { status: 200 })
})

t.test('a waiting sign-in ends, and no other begins to wait', async t => {
  const api = await open(t, { log: 'appended' })
  const ann = await signUp(api, MAIL)
  const waiting = await enterCode(api, MAIL)
  t.match(waiting, { status: 403, body: { code: 'SIGN_IN_WAITING' } })
  await api.suspend(ann.userId)
  await api.advance(MINUTE_MS)
  t.match(await fetchWaiting(api, waiting.body.waitingId), { status: 410 })
  t.match(await enterCode(api, MAIL), SUSPENDED)
  await api.advance(MINUTE_MS)
  t.match(await enterCode(api, MAIL, proofOf(ann)), SUSPENDED, 'nor by its own device')
  t.match(await startOver(api, ann, 0), { status: 401, body: { code: 'SESSION_REVOKED' } })
  await api.advance(200 * DAY_MS)
  t.match(await enterCode(api, MAIL), SUSPENDED, 'also after the time of an answer')
})

t.test('a number of a suspended user opens no fresh account, however long it was away', async t => {
  const api = await open(t, { log: 'appended' })
  const number = '+4915123456789'
  const ann = await signUp(api, number)
  await api.suspend(ann.userId)
  await api.advance(400 * DAY_MS)
  t.match(await enterCode(api, number), SUSPENDED)
})

t.test('it ends by its time, and by hand', async t => {
  const api = await open(t)
  const ann = await newUser(api.world, 'Ann', MAIL)
  const until = (days: number) => new Date(api.world.nowMs() + days * DAY_MS).toISOString()
  const untilAt = until(2)
  await api.suspend(ann.userId, { untilAt })
  t.match(await api.codeLogin(MAIL), { ...SUSPENDED, body: { until: untilAt } })
  api.world.tick(2 * DAY_MS)
  t.match(await api.codeLogin(MAIL), { status: 200, body: { isNewUser: false } }, 'before the sweep, too')
  await api.advance(0)
  t.notOk(api.userOf(ann)?.suspension)
  await api.suspend(ann.userId, { untilAt: until(2) })
  t.match(await api.unsuspend(ann.userId), { status: 204 })
  t.match(await api.unsuspend(ann.userId), { status: 204 }, 'and once more')
  t.match(await api.codeLogin(MAIL), { status: 200 })
  await api.suspend(ann.userId, { untilAt: until(90) })
  await api.advance(3 * DAY_MS)
  t.ok(api.userOf(ann)?.suspension, 'the ending of the lifted one does nothing')
})

t.test('the last of two suspensions counts', async t => {
  const api = await open(t)
  const ann = await newUser(api.world, 'Ann', MAIL)
  const untilAt = new Date(api.world.nowMs() + DAY_MS).toISOString()
  await api.suspend(ann.userId, { untilAt })
  await api.suspend(ann.userId, { reason: 'fraud' })
  await api.advance(30 * DAY_MS)
  t.match(await api.codeLogin(MAIL), { status: 403, body: { reason: 'fraud' } })
  await api.suspend(ann.userId, { untilAt: new Date(api.world.nowMs() + DAY_MS).toISOString() })
  await api.advance(DAY_MS)
  t.match(await api.codeLogin(MAIL), { status: 200 })
})

t.test('a suspension neither keeps an account from its erasure nor outlives it', async t => {
  const api = await open(t)
  const { body } = await api.codeLogin(MAIL)
  const { userId } = body.user
  await prove(api.world, body.accessToken)
  await api.send('DELETE /app/api/user', { token: body.accessToken, body: { confirm: true } })
  await api.suspend(userId, { untilAt: new Date(api.world.nowMs() + 30 * DAY_MS).toISOString() })
  t.match(await api.codeLogin(MAIL), SUSPENDED, 'and no sign-in restores it')
  await api.advance(7 * DAY_MS)
  t.match(await api.suspend(userId), { status: 404, body: { code: 'USER_NOT_FOUND' } })
  t.match(await api.codeLogin(MAIL), { status: 200, body: { isNewUser: true } })
  await api.advance(40 * DAY_MS)
})

t.test('the last push says that the session has ended; earlier pushes that wait find no token', async t => {
  const api = await open(t)
  const ann = await newUser(api.world, 'Ann', MAIL)
  const phone = await newDevice(api.world, ann.userId)
  await api.world.database.change(change =>
    api.stores.notices.tell(change, ann.userId, { kind: 'login_method_lost', method: 'email', value: MAIL }),
  )
  await api.suspend(ann.userId)
  await api.suspend(ann.userId)
  const pushes = (await api.world.takeSent()).filter(isPush)
  t.same(
    pushes.map(({ notice }) => notice.kind),
    ['login_method_lost', 'session_revoked'],
  )
  t.match(pushes[1], { notice: { reason: 'account_suspended' }, lastTokens: phone.push })
  const outcomes = []
  for (const push of pushes) outcomes.push((await api.application.delivery.send(push)).kind)
  t.same(outcomes, ['skipped', 'sent'])
})

t.test('the operator’s services hear of it, and of its end by either way', async t => {
  const api = await open(t, { rehearses: false })
  const ann = await newUser(api.world, 'Ann', MAIL)
  const heard: object[] = []
  api.world.webhooks.add = (_, event) => void (event.kind.startsWith('user.') && heard.push(event))
  await api.suspend(ann.userId, { note: 'for moderators' })
  await api.unsuspend(ann.userId)
  const untilMs = api.world.nowMs() + DAY_MS
  await api.suspend(ann.userId, { untilAt: new Date(untilMs).toISOString() })
  await api.advance(DAY_MS)
  t.strictSame(heard, [
    { kind: 'user.suspended', userId: ann.userId, reason: 'abuse', untilMs: undefined },
    { kind: 'user.unsuspended', userId: ann.userId },
    { kind: 'user.suspended', userId: ann.userId, reason: 'abuse', untilMs },
    { kind: 'user.unsuspended', userId: ann.userId },
  ])
})

t.test('requests for users that are not there, and bodies that say nothing of use', async t => {
  const api = await open(t)
  const ann = await newUser(api.world)
  t.match(await api.suspend('4294967297'), { status: 404, body: { code: 'USER_NOT_FOUND' } })
  t.match(await api.unsuspend('4294967297'), { status: 404, body: { code: 'USER_NOT_FOUND' } })
  const past = new Date(api.world.nowMs()).toISOString()
  for (const body of [
    { untilAt: past },
    { reason: '' },
    { reason: 'Spam und mehr' },
    { reason: `a${'b'.repeat(64)}` },
    { note: 'n'.repeat(2_001) },
    { untilAt: 'tomorrow' },
  ])
    t.match(await api.suspend(ann.userId, body), { status: 422, body: { code: 'VALIDATION_FAILED' } })
  t.match(await api.send('GET /app/api/user', { token: ann.token }), { status: 200 })
})

function isPush(message: OutboxMessage): message is Extract<OutboxMessage, { channel: 'push' }> {
  return message.channel === 'push'
}
