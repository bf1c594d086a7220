import { createHash } from 'node:crypto'
import t from 'tap'
import { newUser } from '../../support/application.ts'
import { HANG_UP } from '../../support/oidc-provider.ts'
import { storedTable } from '../../support/stored-table.ts'
import { openTestApi, type TestApi } from '../../support/test-api.ts'

function userCount({ world }: TestApi): number {
  return world.database.view(view => view.count(storedTable('users')))
}

function sessionCount({ world }: TestApi): number {
  return world.database.view(view => view.count(storedTable('sessions')))
}

t.test('a request without a token proves no verification', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  await newUser(api.world, 'Ann', 'ann@example.org')
  const bodies = [
    { verified: true },
    { verified: true, email: 'ann@example.org' },
    { verified: true, identifier: 'ann@example.org', provider: 'google' },
    { verified: true, email: 'ann@example.org', provider: 'google', idToken: '' },
    { verified: true, email: 'ann@example.org', provider: '', idToken: 'a.b.c' },
    { verified: true, email: 'ann@example.org', provider: 'google', idToken: null },
  ]
  for (const body of bodies) {
    const answer = await api.send('POST /app/api/login', { body })
    t.match(answer, { status: 400, body: { code: 'PROVIDER_TOKEN_REQUIRED' } })
  }
  t.equal(sessionCount(api), 1, 'nobody was signed in')
})

t.test('a token that the provider did not sign for us is refused, whatever stands beside it', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const good = await api.identities.googleToken('ann')
  const idTokens = [
    'garbage',
    `${good.slice(0, -4)}AAAA`,
    await api.identities.google.idToken('another app', { sub: 'ann' }),
    await api.identities.googleToken('ann', { exp: api.world.nowMs() / 1000 - 61 }),
    await api.identities.appleToken('ann'),
  ]
  for (const idToken of idTokens) {
    const body = { verified: true, provider: 'google', idToken, email: 'ann@example.org' }
    t.match(await api.send('POST /app/api/login', { body }), {
      status: 400,
      body: { code: 'PROVIDER_TOKEN_INVALID' },
    })
  }
  const body = { verified: true, provider: 'unheard-of', idToken: good }
  t.match(await api.send('POST /app/api/login', { body }), {
    status: 400,
    body: { code: 'PROVIDER_TOKEN_INVALID' },
  })
  t.equal(userCount(api), 0)
})

t.test('a subject gets an account at its first login and the same one at the next', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const first = await api.googleLogin('ann', {
    email: 'ann@example.org',
    email_verified: true,
    name: 'Ann Lee',
  })
  t.match(first, { status: 200, body: { verified: true, isNewUser: true, user: { displayName: 'Ann Lee' } } })
  const second = await api.googleLogin('ann', { name: 'Another' })
  t.match(second.body, { isNewUser: false, user: { userId: first.body.user.userId, displayName: 'Ann Lee' } })
  const user = await api.send('GET /app/api/user', { token: second.body.accessToken })
  t.match(user, {
    status: 200,
    body: { loginMethods: [{ kind: 'social', provider: 'google', verified: true }] },
  })
})

t.test('a name that is none is refused before the token is used', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const idToken = await api.identities.googleToken('ann')
  const body = { verified: true, provider: 'google', idToken, displayName: '\u202e' }
  const refused = await api.send('POST /app/api/login', { body })
  t.match(refused, { status: 422, body: { errors: [{ pointer: '/displayName' }] } })
  t.match(await api.send('POST /app/api/login', { body: { ...body, displayName: 'Ann' } }), { status: 200 })
})

t.test('a token signs in once, also when it is sent many times at once', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const body = { verified: true, provider: 'google', idToken: await api.identities.googleToken('ann') }
  const answers = await Promise.all(
    Array.from({ length: 5 }, () => api.send('POST /app/api/login', { body })),
  )
  t.equal(answers.filter(({ status }) => status === 200).length, 1)
  const others = answers.filter(({ status }) => status !== 200)
  t.ok(others.every(({ status, body }) => status === 400 && body.code === 'PROVIDER_TOKEN_INVALID'))
  t.match(await api.send('POST /app/api/login', { body }), {
    status: 400,
    body: { code: 'PROVIDER_TOKEN_INVALID' },
  })
  t.equal(sessionCount(api), 1)
})

t.test('first logins of one subject at once make one account', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const answers = await Promise.all(Array.from({ length: 5 }, () => api.googleLogin('ann')))
  t.ok(answers.every(({ status }) => status === 200))
  t.equal(new Set(answers.map(({ body }) => body.user.userId)).size, 1)
  t.equal(answers.filter(({ body }) => body.isNewUser).length, 1)
  t.equal(userCount(api), 1)
})

t.test('request and token name the same nonce, or neither has one', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const login = async (nonce: string | undefined, claims: { nonce?: string }) =>
    api.send('POST /app/api/login', {
      body: {
        verified: true,
        provider: 'google',
        nonce,
        idToken: await api.identities.googleToken('ann', claims),
      },
    })
  const invalid = { status: 400, body: { code: 'PROVIDER_TOKEN_INVALID' } }
  t.match(await login('mine', { nonce: 'another' }), invalid)
  t.match(await login('mine', {}), invalid)
  t.match(await login('', { nonce: 'another' }), invalid)
  t.match(await login(undefined, { nonce: 'mine' }), invalid)
  t.match(await login('mine', { nonce: 'mine' }), { status: 200 })
  t.match(await login(undefined, {}), { status: 200 })
})

t.test('a verified address of somebody here opens nothing: its owner is asked by a code', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const ann = await newUser(api.world, 'Ann', 'ann@example.org')
  const claims = [
    { email: 'ann@example.org', email_verified: true },
    { email: 'ann@example.org', email_verified: 'true' },
    { email: 'ANN@Example.ORG', email_verified: true },
  ]
  for (const [at, claim] of claims.entries()) {
    const answer = await api.googleLogin(`stranger-${at}`, claim)
    t.match(answer, {
      status: 409,
      body: { code: 'ACCOUNT_EXISTS', challenge: { sentTo: 'a•••@example.org' } },
    })
    t.notOk(answer.body.accessToken)
  }
  t.equal(sessionCount(api), 1)
  t.equal(userCount(api), 1)
  t.equal(api.world.database.view(view => api.world.accounts.methodsOf(view, ann.userId)).length, 1)
})

t.test('an address that the provider has not verified leads to an account of its own', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const ann = await newUser(api.world, 'Ann', 'ann@example.org')
  for (const [at, email_verified] of [false, undefined, 'false', 1].entries()) {
    const answer = await api.googleLogin(`stranger-${at}`, {
      email: 'ann@example.org',
      email_verified,
    })
    t.match(answer, { status: 200, body: { isNewUser: true } })
    t.not(answer.body.user.userId, String(ann.userId))
    t.equal(answer.body.user.email, undefined, 'it is not an address of the new account')
  }
  t.match(
    api.world.database.view(view => api.world.accounts.ownerOf(view, 'email:ann@example.org')),
    { userId: ann.userId },
  )
})

t.test('searches ignore an address that a provider names', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  await api.googleLogin('ann', { email: 'ann@example.org', email_verified: true })
  t.equal(
    api.world.database.view(view => api.world.accounts.ownerOf(view, 'email:ann@example.org')),
    undefined,
  )
})

t.test('the code that its owner confirms links both and signs in', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const ann = await newUser(api.world, 'Ann', 'ann@example.org')
  await api.world.advance(1000)
  const refused = await api.googleLogin('ann-at-google', { email: 'ann@example.org', email_verified: true })
  const { challengeId } = refused.body.challenge
  const otp = await api.otpFor('ann@example.org')
  const linked = await api.send('POST /app/api/verify-login', { body: { challengeId, otp } })
  t.match(linked, { status: 200, body: { isNewUser: false, user: { userId: String(ann.userId) } } })
  t.match(linked.body.user.loginMethods, [{ kind: 'email' }, { kind: 'social', provider: 'google' }])
  t.same(await api.letters(), ['mail ann@example.org login-method-added'])
  const next = await api.googleLogin('ann-at-google')
  t.match(next.body, { isNewUser: false, user: { userId: String(ann.userId) } })
})

t.test('without the code nothing is linked, for any sender', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const ann = await newUser(api.world, 'Ann', 'ann@example.org')
  const mallory = await newUser(api.world, 'Mallory')
  const refused = await api.googleLogin('mallory', { email: 'ann@example.org', email_verified: true })
  const { challengeId } = refused.body.challenge
  const otp = await api.otpFor('ann@example.org')
  const wrong = otp === '000000' ? '000001' : '000000'
  const guess = await api.send('POST /app/api/verify-login', { body: { challengeId, otp: wrong } })
  t.match(guess, { status: 400, body: { code: 'OTP_INVALID' } })
  const withSession = await api.send('POST /app/api/verify', {
    token: mallory.token,
    body: { challengeId, otp },
  })
  t.match(withSession, { status: 410, body: { code: 'CHALLENGE_GONE' } })
  t.equal(api.world.database.view(view => api.world.accounts.methodsOf(view, ann.userId)).length, 1)
  t.equal(api.world.database.view(view => api.world.accounts.methodsOf(view, mallory.userId)).length, 1)
})

t.test('a login code of the owner does not confirm another user’s link', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const ann = await newUser(api.world, 'Ann', 'ann@example.org')
  const refused = await api.googleLogin('mallory', { email: 'ann@example.org', email_verified: true })
  await api.letters()
  const login = await api.send('POST /app/api/login', { body: { email: 'ann@example.org' } })
  const otp = await api.otpFor('ann@example.org')
  const { challengeId } = refused.body.challenge
  const crossed = await api.send('POST /app/api/verify-login', { body: { challengeId, otp } })
  t.not(crossed.status, 200, 'but for one chance in a million')
  const own = { challengeId: login.body.challengeId, otp }
  t.match(await api.send('POST /app/api/verify-login', { body: own }), { status: 200 })
  t.equal(api.world.database.view(view => api.world.accounts.methodsOf(view, ann.userId)).length, 1)
})

t.test('a link confirmed after its address changed owners signs in no user', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const ann = await newUser(api.world, 'Ann', 'ann@example.org')
  const refused = await api.googleLogin('ann-at-google', { email: 'ann@example.org', email_verified: true })
  const otp = await api.otpFor('ann@example.org')
  await api.world.database.change(change => api.world.accounts.remove(change, ann.userId))
  await newUser(api.world, 'Bob', 'ann@example.org')
  const { challengeId } = refused.body.challenge
  const late = await api.send('POST /app/api/verify-login', { body: { challengeId, otp } })
  t.match(late, { status: 410, body: { code: 'CHALLENGE_GONE' } })
})

t.test('an account that waits with an unverified address does not get the address’s owner', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const mallory = await api.googleLogin('mallory', { email: 'ann@example.org', email_verified: false })
  const ann = await api.codeLogin('ann@example.org')
  t.match(ann, { status: 200, body: { isNewUser: true } })
  t.not(ann.body.user.userId, mallory.body.user.userId)
})

t.test('a provider that does not answer is no reason to believe a token', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  api.identities.google.answerWith('/.well-known/openid-configuration', HANG_UP)
  api.identities.google.answerWith('/jwks', HANG_UP)
  t.match(await api.googleLogin('ann'), { status: 503, body: { code: 'PROVIDER_UNAVAILABLE' } })
})

t.test('a social login keeps an account that was to be erased', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const { body } = await api.googleLogin('ann')
  await api.send('DELETE /app/api/user', { token: body.accessToken, body: { confirm: true } })
  await api.world.advance(6 * 86_400_000)
  const back = await api.googleLogin('ann')
  t.match(back.body, { isNewUser: false, user: { userId: body.user.userId } })
  await api.world.advance(2 * 86_400_000)
  t.equal(userCount(api), 1)
})

/** An app's request after signing in with Apple. */
async function appleBody(api: TestApi, subject: string, claims: Readonly<Record<string, unknown>> = {}) {
  return {
    authorizationCode: api.identities.appleCode(subject),
    identityToken: await api.identities.appleToken(subject, claims),
  }
}

t.test('a platform login makes an account of the subject, called as the app says', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const body = { ...(await appleBody(api, 'ann')), displayName: 'Ann Lee' }
  const first = await api.send('POST /app/api/platform-login', { body })
  t.match(first, { status: 200, body: { verified: true, isNewUser: true, user: { displayName: 'Ann Lee' } } })
  const second = await api.send('POST /app/api/platform-login', { body: await appleBody(api, 'ann') })
  t.match(second.body, { isNewUser: false, user: { userId: first.body.user.userId } })
})

t.test('the other spellings of token and code are taken', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const { authorizationCode: authCode, identityToken: idToken } = await appleBody(api, 'ann')
  const body = { platform: 'apple', authCode, idToken }
  t.match(await api.send('POST /app/api/platform-login', { body }), { status: 200 })
})

t.test('a newcomer without a name is called by the local part of the address, else User', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const name = async (subject: string, claims: object) => {
    const answer = await api.send('POST /app/api/platform-login', {
      body: await appleBody(api, subject, { ...claims }),
    })
    return answer.body.user.displayName
  }
  t.equal(await name('one', { email: 'ann.lee@example.org' }), 'ann.lee')
  const relay = { email: 'x7f@privaterelay.appleid.com', email_verified: 'true', is_private_email: 'true' }
  t.equal(await name('two', relay), 'x7f')
  t.equal(await name('three', { email: undefined }), 'User')
  t.equal(
    api.world.database.view(view => api.world.accounts.ownerOf(view, 'email:x7f@privaterelay.appleid.com')),
    undefined,
    'a relay finds nobody',
  )
})

t.test('the code of another person is refused', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const body = {
    authorizationCode: api.identities.appleCode('mallory'),
    identityToken: await api.identities.appleToken('ann'),
  }
  const answer = await api.send('POST /app/api/platform-login', { body })
  t.match(answer, { status: 400, body: { code: 'AUTH_CODE_INVALID' } })
  t.equal(userCount(api), 0)
})

t.test('a code that is missing, made up or used is refused', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const used = await appleBody(api, 'ann')
  await api.send('POST /app/api/platform-login', { body: used })
  for (const authorizationCode of [undefined, '', 'c.made-up', used.authorizationCode]) {
    const body = { authorizationCode, identityToken: await api.identities.appleToken('ann') }
    const answer = await api.send('POST /app/api/platform-login', { body })
    t.match(answer, { status: 400, body: { code: 'AUTH_CODE_INVALID' } })
  }
})

t.test('a token of Apple without its code does not sign in by way of login', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const body = { verified: true, provider: 'apple', idToken: await api.identities.appleToken('ann') }
  t.match(await api.send('POST /app/api/login', { body }), {
    status: 400,
    body: { code: 'AUTH_CODE_INVALID' },
  })
})

t.test('the nonce is the raw one, and the token has its hash', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const hash = createHash('sha256').update('raw').digest('hex')
  const login = async (nonce: string | undefined) => {
    const body = { ...(await appleBody(api, 'ann', { nonce: hash })), nonce }
    return api.send('POST /app/api/platform-login', { body })
  }
  t.match(await login('another'), { status: 400, body: { code: 'PROVIDER_TOKEN_INVALID' } })
  t.match(
    await login(hash),
    { status: 400, body: { code: 'PROVIDER_TOKEN_INVALID' } },
    'who saw the token knows it',
  )
  t.match(await login(undefined), { status: 400, body: { code: 'PROVIDER_TOKEN_INVALID' } })
  t.match(await login('raw'), { status: 200 })
})

t.test('the same attempt again gets the same reply, though the code is used', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const body = await appleBody(api, 'ann')
  const headers = { 'idempotency-key': 'attempt-1' }
  const first = await api.send('POST /app/api/platform-login', { body, headers })
  t.match(first, { status: 200, body: { isNewUser: true } })
  const second = await api.send('POST /app/api/platform-login', { body, headers })
  t.same(second.body, first.body)
  t.equal(sessionCount(api), 1)
})

t.test('two sends of one attempt at once ask Apple once and get one session', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const body = await appleBody(api, 'ann')
  const headers = { 'idempotency-key': 'attempt-1' }
  const send = () => api.send('POST /app/api/platform-login', { body, headers })
  const [first, second] = await Promise.all([send(), send()])
  t.equal(first?.status, 200)
  t.same(first?.body, second?.body)
  t.equal(api.identities.apple.provider.requests('/auth/token'), 1)
  t.equal(sessionCount(api), 1)
})

t.test('a used token with another attempt, or none, signs in no user', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const { identityToken } = await appleBody(api, 'ann')
  const send = (headers: Record<string, string>) =>
    api.send('POST /app/api/platform-login', {
      body: { identityToken, authorizationCode: api.identities.appleCode('ann') },
      headers,
    })
  t.match(await send({ 'idempotency-key': 'attempt-1' }), { status: 200 })
  for (const headers of [{ 'idempotency-key': 'attempt-2' }, {}]) {
    t.match(await send(headers), { status: 400, body: { code: 'PROVIDER_TOKEN_INVALID' } })
  }
  t.equal(sessionCount(api), 1)
})

t.test('another token with the key of an earlier attempt gets nothing of that one', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const headers = { 'idempotency-key': 'attempt-1' }
  const ann = await api.send('POST /app/api/platform-login', {
    body: await appleBody(api, 'ann'),
    headers,
  })
  const bob = await api.send('POST /app/api/platform-login', {
    body: await appleBody(api, 'bob'),
    headers,
  })
  t.match(bob, { status: 200, body: { isNewUser: true } })
  t.not(bob.body.user.userId, ann.body.user.userId)
})

t.test('an attempt that was answered with an account is answered the same again', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  await newUser(api.world, 'Ann', 'ann@example.org')
  const body = await appleBody(api, 'ann', { email: 'ann@example.org', email_verified: 'true' })
  const headers = { 'idempotency-key': 'attempt-1' }
  const first = await api.send('POST /app/api/platform-login', { body, headers })
  t.match(first, { status: 409, body: { code: 'ACCOUNT_EXISTS' } })
  const second = await api.send('POST /app/api/platform-login', { body, headers })
  t.same(second.body.challenge, first.body.challenge)
  t.same(await api.letters(), ['mail ann@example.org otp'])
})

t.test('neither tokens of sessions nor of Apple stand in the store as they are', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const body = await appleBody(api, 'ann')
  const headers = { 'idempotency-key': 'attempt-1' }
  const { body: reply } = await api.send('POST /app/api/platform-login', { body, headers })
  const secrets = [reply.accessToken, reply.refreshToken, ...api.identities.apple.refreshTokens.keys()]
  t.equal(secrets.length, 3)
  for (const name of api.world.database.tableNames()) {
    for (const { value } of api.world.database.storedRows(name).getRange()) {
      for (const secret of secrets) if (Buffer.from(value).includes(secret)) t.fail(`${name} holds a token`)
    }
  }
})

t.test(
  'without a key for Apple codes are left unread in development, and nobody signs in elsewhere',
  async t => {
    const development = await openTestApi(t, { identities: 'without Apple key', isDevelopment: true })
    const body = { identityToken: await development.identities.appleToken('ann') }
    t.match(await development.send('POST /app/api/platform-login', { body }), { status: 200 })
    const production = await openTestApi(t, { identities: 'without Apple key' })
    const sent = await appleBody(production, 'ann')
    const answer = await production.send('POST /app/api/platform-login', { body: sent })
    t.match(answer, { status: 503, body: { code: 'PROVIDER_UNAVAILABLE' } })
    t.equal(userCount(production), 0)
  },
)

t.test('another provider signs in by the platform login too', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const body = { platform: 'google', identityToken: await api.identities.googleToken('ann') }
  t.match(await api.send('POST /app/api/platform-login', { body }), {
    status: 200,
    body: { isNewUser: true },
  })
})

t.test('the same subject at two providers is two people', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const google = await api.googleLogin('ann')
  const apple = await api.send('POST /app/api/platform-login', { body: await appleBody(api, 'ann') })
  t.match(apple, { status: 200, body: { isNewUser: true } })
  t.not(apple.body.user.userId, google.body.user.userId)
})

t.test('one address tries thirty times in ten minutes, and does not hold up the rest', async t => {
  const api = await openTestApi(t, { rates: true })
  const body = { identityToken: 'garbage', authorizationCode: 'garbage' }
  const statuses: number[] = []
  for (let at = 0; at < 31; at++)
    statuses.push((await api.send('POST /app/api/platform-login', { body })).status)
  t.equal(statuses.filter(status => status === 400).length, 30)
  t.equal(statuses.at(-1), 429)
  const elsewhere = await api.send('POST /app/api/platform-login', { body, address: [192, 0, 2, 1] })
  t.equal(elsewhere.status, 400)
})
