/**
 * People sign in to the built server in production mode, by every proof there is, each through a stand-in of the real
 * service: mail, SMS, an identity provider, Sign in with Apple. Nothing secret is in the server's log afterwards.
 */

import { join } from 'node:path'
import t, { type Test } from 'tap'
import { App } from '../support/app.ts'
import { Rehearsal } from '../support/rehearsal.ts'
import { codeIn } from '../support/smtp-sink.ts'

const TEN_DIGITS = /^\d{10,16}$/
const TOKENS = {
  accessToken: /^kat_[\w-]{20,}$/,
  refreshToken: /^krt_[\w-]{20,}$/,
  tokenType: 'Bearer',
  // Their rest when the answer is written.
  expiresIn: /^3(600|59\d)$/,
  refreshExpiresIn: /^51(84000|839\d\d)$/,
}

function rehearse(t: Test, environment: Readonly<Record<string, string>> = {}): Promise<Rehearsal> {
  return Rehearsal.start(t, { dataFolder: join(t.testdir(), 'data'), environment })
}

const house = await Rehearsal.share(t)

t.test('a code by mail signs in, and the address alone opens nothing', async t => {
  const story = house.chapter()
  const ann = story.app('ann@example.org')
  const challenge = await ann.get(200, 'POST /app/api/login', {
    email: 'Ann@Example.org',
    displayName: 'Ann',
  })
  t.match(challenge, { verified: false, channel: 'email', sentTo: 'a•••@example.org', otpLength: 6 })
  t.match(challenge, { challengeId: /^[\w-]{22}$/, expiresIn: 300, resendIn: 60 })

  const mail = await story.world.mail.mailTo('ann@example.org')
  t.match(mail, { from: 'no-reply@example.org', isEncrypted: true, user: 'callsign' })
  t.match(mail.subject, /^Your Callsign code$/)
  const otp = ann.hide(codeIn(mail))

  const { challengeId } = challenge
  const wrong = otp === '000000' ? '111111' : '000000'
  const refused = await ann.send('POST /app/api/verify-login', { challengeId, otp: wrong })
  t.match(refused.body, { status: 400, code: 'OTP_INVALID', attemptsLeft: 4 })
  t.equal(await ann.outcome('GET /app/api/user'), '401 TOKEN_MISSING')

  const reply = ann.take(await ann.get(200, 'POST /app/api/verify-login', { challengeId, otp }))
  t.match(reply, { ...TOKENS, verified: true, isNewUser: true })
  t.match(reply.user, {
    userId: TEN_DIGITS,
    displayName: 'Ann',
    email: 'Ann@Example.org',
    emailVerified: true,
  })
  t.equal(await ann.outcome('POST /app/api/verify-login', { challengeId, otp }), '410 CHALLENGE_GONE')
  t.same(await ann.get(200, 'GET /app/api/user'), reply.user)
  t.same(await ann.get(200, 'GET /api/user'), reply.user, 'by the other path too')
  await story.endWithoutLeaks(t)
})

t.test('a code by SMS signs in; the next one is sent no sooner than announced', async t => {
  const story = await rehearse(t)
  const bob = story.app('+84912345678', '84912345678')
  const login = { phone: '0912 345 678', country: 'VN', locale: 'en' }
  const challenge = await bob.get(200, 'POST /app/api/login', login)
  t.match(challenge, { channel: 'sms', sentTo: '+84•••678' })
  const sms = JSON.parse(await story.world.sms.smsTo('+84912345678'))
  t.equal(sms.to, '+84912345678')
  t.match(sms.text, /^\d{6} is your Callsign code\..*\n\n@call\.example\.org #\d{6}$/)
  t.equal(story.world.sms.requests[0]?.headers['x-api-key'], 'sms-key')
  const otp = bob.hide(sms.text.slice(0, 6))

  const again = await bob.send('POST /app/api/resend-otp', { challengeId: challenge.challengeId })
  t.match(again.body, { status: 429, code: 'OTP_COOLDOWN' })
  t.equal(again.headers.get('retry-after'), String(again.body.retryIn))
  const reply = bob.take(
    await bob.get(200, 'POST /app/api/verify-login', { identifier: '+84912345678', code: otp }),
  )
  t.match(reply.user, { phone: '+84912345678', phoneVerified: true, emailVerified: false })
  t.equal(story.world.sms.requests.length, 1)
  await story.endWithoutLeaks(t)
})

t.test('tokens are refreshed, a lost answer is repeated, a stolen token ends the session', async t => {
  const story = house.chapter()
  const ann = await story.signIn('amy@example.org')
  const [firstAccess, firstRefresh] = [ann.accessToken!, ann.refreshToken!]
  const refresh = { refreshToken: firstRefresh }
  const second = ann.take(await ann.get(200, 'POST /app/api/refresh-token', refresh))
  t.match(second, TOKENS)
  const repeated = await ann.get(200, 'POST /app/api/refresh-token', refresh)
  t.equal(repeated.refreshToken, second.refreshToken, 'the same pair again')
  t.equal((await ann.send('GET /app/api/user')).status, 200)
  const early = { authorization: `Bearer ${firstAccess}` }
  t.equal(await ann.outcome('GET /app/api/user', undefined, early), '200', 'requests under way are answered')

  ann.take(await ann.get(200, 'POST /app/api/refresh-token', { refreshToken: second.refreshToken }))
  const stranger = new App(ann.http)
  t.equal(await stranger.outcome('POST /app/api/refresh-token', refresh), '401 REFRESH_TOKEN_REUSED')
  const ended = await ann.send('GET /app/api/user')
  t.match(ended.body, { status: 401, code: 'SESSION_REVOKED' })
  t.match(ended.headers.get('www-authenticate'), /^Bearer/)
  t.equal(await stranger.outcome('POST /app/api/refresh-token', refresh), '401 REFRESH_TOKEN_INVALID')
  const garbage = { refreshToken: `${firstRefresh.slice(0, -2)}AA` }
  t.equal(await stranger.outcome('POST /app/api/refresh-token', garbage), '401 REFRESH_TOKEN_INVALID')
  await story.endWithoutLeaks(t)
})

t.test('logging out ends one session, or all of them, and may be repeated', async t => {
  const story = house.chapter()
  const phone = await story.signIn('abe@example.org')
  // The address is signed in a second time by the provider, since codes have a cooldown.
  const tablet = story.app()
  const claims = { email: 'abe@example.org', email_verified: true }
  const exists = await tablet.send('POST /app/api/login', await story.googleLogin('ann', claims))
  t.match(exists.body, { status: 409, code: 'ACCOUNT_EXISTS', challenge: { channel: 'email' } })
  const otp = tablet.hide(codeIn(await story.world.mail.mailTo('abe@example.org')))
  const { challengeId } = exists.body.challenge
  const linked = tablet.take(await tablet.get(200, 'POST /app/api/verify-login', { challengeId, otp }))
  t.match(linked, { isNewUser: false, user: { loginMethods: [{ kind: 'email' }, { provider: 'google' }] } })
  const third = story.app()
  third.take(await third.get(200, 'POST /app/api/login', await story.googleLogin('ann', claims)))

  t.equal(await third.outcome('POST /app/api/logout'), '204')
  t.equal(await third.outcome('POST /app/api/logout'), '204', 'again')
  t.equal(await third.outcome('GET /app/api/user'), '401 TOKEN_INVALID')
  t.equal(await phone.outcome('GET /app/api/user'), '200')
  t.equal(await tablet.outcome('POST /app/api/logout', { allDevices: true }), '204')
  t.equal(await phone.outcome('GET /app/api/user'), '401 SESSION_REVOKED')
  await story.endWithoutLeaks(t)
})

t.test('an identity provider’s token opens the account of its subject, once', async t => {
  const story = house.chapter()
  const gus = story.app('gus@example.org')
  const login = await story.googleLogin('gus', {
    email: 'gus@example.org',
    email_verified: true,
    name: 'Gus',
  })
  gus.hide(login.idToken)
  const reply = gus.take(await gus.get(200, 'POST /app/api/login', login))
  t.match(reply, { ...TOKENS, verified: true, isNewUser: true, user: { displayName: 'Gus' } })
  t.equal(reply.user.email, undefined, 'its address is not an address of the account')
  t.equal(await gus.outcome('POST /app/api/login', login), '400 PROVIDER_TOKEN_INVALID', 'a replay')
  const later = await gus.get(200, 'POST /app/api/login', await story.googleLogin('gus'))
  t.match(later, { isNewUser: false, user: { userId: reply.user.userId } })

  const claim = { verified: true, email: 'gus@example.org' }
  t.equal(await gus.outcome('POST /app/api/login', claim), '400 PROVIDER_TOKEN_REQUIRED', 'only a claim')
  const foreign = {
    verified: true,
    provider: 'google',
    idToken: await story.world.google.idToken('another.app'),
  }
  t.equal(await gus.outcome('POST /app/api/login', foreign), '400 PROVIDER_TOKEN_INVALID', 'of another app')
  t.equal(story.world.google.requests('/jwks'), 1, 'the keys were fetched once')
  gus.hide(later.accessToken)
  await story.endWithoutLeaks(t)
})

t.test('Sign in with Apple: the code is exchanged once, a lost answer is repeated', async t => {
  const story = await rehearse(t)
  const ada = story.app('ada@privaterelay.appleid.com')
  const body = await story.appleLogin('ada')
  ada.hide(body.identityToken)
  ada.hide(body.authorizationCode)
  const key = { 'idempotency-key': 'first-attempt' }
  const reply = ada.take(await ada.get(200, 'POST /app/api/platform-login', body, key))
  t.match(reply, { ...TOKENS, verified: true, isNewUser: true, user: { displayName: 'Ada' } })
  const [exchange] = story.world.apple.accepted
  t.match(exchange, {
    grant_type: 'authorization_code',
    client_id: 'org.example.callsign',
    code: body.authorizationCode,
  })
  t.equal(exchange?.redirect_uri, undefined)
  t.equal(story.world.apple.refreshTokens.size, 1)

  t.same(await ada.get(200, 'POST /app/api/platform-login', body, key), reply)
  t.equal(story.world.apple.accepted.length, 1)
  t.equal(await ada.outcome('POST /app/api/platform-login', body), '400 PROVIDER_TOKEN_INVALID')
  const spent = { ...(await story.appleLogin('ada')), authorizationCode: body.authorizationCode }
  t.equal(await ada.outcome('POST /app/api/platform-login', spent), '400 AUTH_CODE_INVALID')
  const ofAnother = { ...(await story.appleLogin('ada')), ...(await story.appleCode('eve')) }
  t.equal(await ada.outcome('POST /app/api/platform-login', ofAnother), '400 AUTH_CODE_INVALID')
  for (const refreshToken of story.world.apple.refreshTokens.keys()) ada.hide(refreshToken)
  await story.endWithoutLeaks(t)
})

t.test('an address changes once its code is confirmed, and the old one is notified', async t => {
  const story = house.chapter()
  const ann = await story.signIn('alf@example.org', '+84987654321', 'new@example.org')
  const named = await ann.get(200, 'PUT /app/api/user', { displayName: '  Ann   B. ' })
  t.equal(named.user.displayName, 'Ann B.')
  t.equal(await ann.outcome('PUT /app/api/user', { email: 'new@example.org' }), '403 STEP_UP_REQUIRED')
  await story.prove(ann, 'alf@example.org')
  const change = await ann.get(202, 'PUT /app/api/user', { email: 'new@example.org' })
  t.match(change, {
    user: { email: 'alf@example.org' },
    pending: [{ kind: 'email', sentTo: 'n•••@example.org' }],
  })
  const mail = await story.world.mail.mailTo('new@example.org')
  t.match(mail.subject, /^Add your address to Callsign$/)
  const otp = ann.hide(codeIn(mail))
  const { challengeId } = change.pending[0]
  const verified = await ann.get(200, 'POST /app/api/verify', { challengeId, otp })
  t.match(verified, { purpose: 'bind-email', user: { email: 'new@example.org' } })
  const notice = await story.world.mail.mailTo('alf@example.org')
  t.equal(notice.subject, 'Your Callsign address was changed')
  t.notMatch(notice.text, /new@example/)

  const added = await ann.get(202, 'POST /app/api/user/login-methods', {
    kind: 'phone',
    value: '+84987654321',
  })
  const sms = JSON.parse(await story.world.sms.smsTo('+84987654321'))
  t.match(sms.text, /^\d{6} adds this number to a Callsign account\./)
  const phoneOtp = ann.hide(sms.text.slice(0, 6))
  const body = { challengeId: added.challengeId, otp: phoneOtp }
  t.match(await ann.get(200, 'POST /app/api/verify', body), { purpose: 'bind-phone' })
  t.match(await story.world.mail.mailTo('new@example.org'), { subject: /^A login method was added/ })
  const { items } = await ann.get(200, 'GET /app/api/user/login-methods')
  t.match(items, [
    { kind: 'email', value: 'new@example.org', primary: true },
    { kind: 'phone', value: '+84987654321', primary: false },
  ])
  const primary = await ann.get(200, 'PUT /app/api/user/login-methods/primary', { id: items[1].id })
  t.match(primary.items, [{ primary: false }, { primary: true }])
  t.equal(await ann.outcome(`DELETE /app/api/user/login-methods/${items[0].id}`), '204')
  t.equal(await ann.outcome(`DELETE /app/api/user/login-methods/${items[1].id}`), '409 LAST_LOGIN_METHOD')
  await story.endWithoutLeaks(t)
})

t.test('an account that is deleted says so by mail, and signing in keeps it', async t => {
  const story = house.chapter()
  const ada = story.app()
  const { user } = ada.take(await ada.get(200, 'POST /app/api/platform-login', await story.appleLogin('ada')))
  const ann = await story.signIn('ava@example.org')
  t.equal(await ann.outcome('DELETE /app/api/user', { confirm: false }), '422 VALIDATION_FAILED')
  t.equal(await ann.outcome('GET /app/api/user/export'), '403 STEP_UP_REQUIRED')
  await story.prove(ann, 'ava@example.org')
  const copy = await ann.get(200, 'GET /app/api/user/export')
  t.match(copy, { user: { email: 'ava@example.org' }, sessions: [{ isCurrent: true }], calls: [] })
  const { erasesAt } = await ann.get(202, 'DELETE /app/api/user', { confirm: true })
  const daysLeft = (Date.parse(erasesAt) - Date.now()) / 86_400_000
  t.ok(daysLeft > 6.99 && daysLeft <= 7, `${daysLeft} days are left`)
  t.equal(await ann.outcome('GET /app/api/user'), '401 SESSION_REVOKED')
  t.match(await story.world.mail.mailTo('ava@example.org'), {
    subject: 'Your Callsign account will be erased',
  })

  const { platform: provider, identityToken: idToken } = await story.appleLogin('ada')
  await ada.get(200, 'POST /app/api/user/step-up', { provider, idToken })
  await ada.get(202, 'DELETE /app/api/user', { confirm: true })
  const again = story.app()
  const kept = again.take(await again.get(200, 'POST /app/api/platform-login', await story.appleLogin('ada')))
  t.match(kept, { isNewUser: false, user: { userId: user.userId } })
  await story.endWithoutLeaks(t)
})
