import t from 'tap'
import { newUser, prove, type TestUser } from '../../support/application.ts'
import { openTestApi, type TestApi } from '../../support/test-api.ts'

const PATH = '/app/api/user/login-methods'

/** Asks for an address; returns what confirms it. */
async function begin({ send, otpFor }: TestApi, { token }: TestUser, value: string) {
  const answer = await send(`POST ${PATH}`, { token, body: { kind: 'email', value } })
  return { challengeId: String(answer.body.challengeId), otp: await otpFor(value) }
}

async function addEmail(api: TestApi, user: TestUser, value: string): Promise<void> {
  const body = await begin(api, user, value)
  const { status } = await api.send('POST /app/api/verify', { token: user.token, body })
  if (status !== 200) throw new Error(`adding ${value} answers ${status}`)
}

async function addGoogle(api: TestApi, { token }: TestUser, sub: string) {
  const body = { kind: 'social', provider: 'google', idToken: await api.identities.googleToken(sub) }
  return api.send(`POST ${PATH}`, { token, body })
}

function shownMethods({ world }: TestApi, { userId }: TestUser) {
  return world.database
    .view(view => world.accounts.methodsOf(view, userId))
    .map(method => ('shown' in method && method.shown) || method.kind)
}

t.test('the list has every method, the primary marked', async t => {
  const api = await openTestApi(t)
  const ann = await newUser(api.world, 'Ann', 'ann@example.org')
  await api.world.advance(1000)
  await addEmail(api, ann, 'ann@example.com')
  const { body } = await api.send(`GET ${PATH}`, { token: ann.token })
  t.match(body.items, [
    { kind: 'email', value: 'ann@example.org', verified: true, primary: true },
    {
      kind: 'email',
      value: 'ann@example.com',
      verified: true,
      primary: false,
      addedAt: '2026-01-01T00:00:01.000Z',
    },
  ])
})

t.test('an address is added when its code is confirmed, and announced to the other methods', async t => {
  const api = await openTestApi(t)
  const ann = await newUser(api.world, 'Ann', 'ann@example.org')
  const added = await api.send(`POST ${PATH}`, {
    token: ann.token,
    body: { kind: 'email', value: 'ann@example.com' },
  })
  t.equal(added.status, 202)
  t.match(added.body, {
    channel: 'email',
    sentTo: 'a•••@example.com',
    otpLength: 6,
    expiresIn: 300,
    resendIn: 60,
  })
  t.same(shownMethods(api, ann), ['ann@example.org'])
  const otp = await api.otpFor('ann@example.com')
  const body = { challengeId: added.body.challengeId, otp }
  t.match(await api.send('POST /app/api/verify', { token: ann.token, body }), {
    body: { purpose: 'bind-email' },
  })
  t.same(await api.letters(), ['mail ann@example.org login-method-added'])
  t.match((await api.codeLogin('ann@example.com')).body, { user: { userId: String(ann.userId) } })
})

t.test('an identity is not added by a session that ends while its provider is asked', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const ann = await newUser(api.world, 'Ann', 'ann@example.org')
  const { database, sessions } = api.world
  const logout = database.change(change => {
    for (const id of sessions.idsOf(change, ann.userId)) {
      sessions.revoke(change, id, 'logged_out_everywhere')
    }
  }, api.world.nowMs())
  t.match(await addGoogle(api, ann, 'thief'), { status: 401, body: { code: 'SESSION_REVOKED' } })
  await logout
  t.same(shownMethods(api, ann), ['ann@example.org'])
})

t.test('another user’s address is answered like an unused one, byte for byte', async t => {
  const api = await openTestApi(t)
  const [ann] = [await newUser(api.world, 'Ann'), await newUser(api.world, 'Bob', 'bob@example.org')]
  const ask = async (value: string) => {
    const { status, headers, body } = await api.send(`POST ${PATH}`, {
      token: ann.token,
      body: { kind: 'email', value },
    })
    const sent = await api.letters()
    t.match(body.challengeId, /^[\w-]{22}$/)
    return { sent, answer: { status, headers, body: JSON.stringify({ ...body, challengeId: '' }) } }
  }
  const [taken, free] = [await ask('bob@example.org'), await ask('bab@example.org')]
  t.same(taken.answer, free.answer)
  t.same([taken.sent, free.sent], [['mail bob@example.org address-tried'], ['mail bab@example.org otp']])
})

t.test('a user’s own address is reported to them', async t => {
  const api = await openTestApi(t)
  const ann = await newUser(api.world, 'Ann', 'ann@example.org')
  const body = { kind: 'email', value: 'Ann@Example.org' }
  const answer = await api.send(`POST ${PATH}`, { token: ann.token, body })
  t.match(answer, { status: 409, body: { code: 'METHOD_EXISTS' } })
})

t.test('an identity is added by a proven token, and signs in from then on', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const ann = await newUser(api.world, 'Ann', 'ann@example.org')
  const added = await addGoogle(api, ann, 'ann')
  t.match(added, {
    status: 201,
    body: { kind: 'social', provider: 'google', verified: true, primary: false },
  })
  t.same(await api.letters(), ['mail ann@example.org login-method-added'])
  t.match((await api.googleLogin('ann')).body, { isNewUser: false, user: { userId: String(ann.userId) } })
})

t.test('an identity without a token, with a used one, with a bad nonce is not added', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const ann = await newUser(api.world, 'Ann', 'ann@example.org')
  const used = await api.identities.googleToken('other')
  await api.send('POST /app/api/login', { body: { verified: true, provider: 'google', idToken: used } })
  const refused: readonly (readonly [object, string])[] = [
    [{}, 'PROVIDER_TOKEN_REQUIRED'],
    [{ provider: 'google' }, 'PROVIDER_TOKEN_REQUIRED'],
    [{ provider: 'google', idToken: used }, 'PROVIDER_TOKEN_INVALID'],
    [
      { provider: 'google', idToken: await api.identities.googleToken('ann'), nonce: 'n' },
      'PROVIDER_TOKEN_INVALID',
    ],
    [
      { provider: 'google', idToken: await api.identities.googleToken('ann', { nonce: 'n' }) },
      'PROVIDER_TOKEN_INVALID',
    ],
    [{ provider: 'apple', idToken: await api.identities.appleToken('ann') }, 'AUTH_CODE_INVALID'],
  ]
  for (const [members, code] of refused) {
    const body = { kind: 'social', ...members }
    t.match(await api.send(`POST ${PATH}`, { token: ann.token, body }), { status: 400, body: { code } })
  }
  t.same(shownMethods(api, ann), ['ann@example.org'])
})

t.test('a token that added an identity signs in no user', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const ann = await newUser(api.world, 'Ann')
  const idToken = await api.identities.googleToken('ann')
  await api.send(`POST ${PATH}`, {
    token: ann.token,
    body: { kind: 'social', provider: 'google', idToken },
  })
  const body = { verified: true, provider: 'google', idToken }
  t.match(await api.send('POST /app/api/login', { body }), {
    status: 400,
    body: { code: 'PROVIDER_TOKEN_INVALID' },
  })
})

t.test('an identity that signs in to another account does not change hands', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const bob = await api.googleLogin('bob')
  const eve = await newUser(api.world, 'Eve')
  t.match(await addGoogle(api, eve, 'bob'), { status: 409, body: { code: 'ACCOUNT_EXISTS' } })
  t.match((await api.googleLogin('bob')).body, { user: { userId: bob.body.user.userId } })
  await addGoogle(api, eve, 'eve')
  t.match(await addGoogle(api, eve, 'eve'), { status: 409, body: { code: 'METHOD_EXISTS' } })
})

t.test('an address that a provider names is shown and does not sign in', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const eve = await newUser(api.world, 'Eve', 'eve@example.org')
  const idToken = await api.identities.googleToken('eve', { email: 'bob@example.org', email_verified: true })
  const body = { kind: 'social', provider: 'google', idToken }
  t.match(await api.send(`POST ${PATH}`, { token: eve.token, body }), {
    body: { value: 'bob@example.org' },
  })
  t.match((await api.codeLogin('bob@example.org')).body, { isNewUser: true })
})

t.test('five email addresses, three numbers and five identities are enough', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const ann = await newUser(api.world, 'Ann')
  for (let at = 1; at < 5; at++) await addEmail(api, ann, `ann${at}@example.org`)
  for (let at = 0; at < 5; at++) t.equal((await addGoogle(api, ann, `ann${at}`)).status, 201)
  const body = { kind: 'email', value: 'one.more@example.org' }
  const limit = { status: 409, body: { code: 'LOGIN_METHOD_LIMIT' } }
  t.match(await api.send(`POST ${PATH}`, { token: ann.token, body }), limit)
  t.match(await addGoogle(api, ann, 'one-more'), limit)
  t.match((await api.googleLogin('one-more')).body, { isNewUser: true }, 'the refused token is not used up')
})

t.test('two sessions that confirm the last place at once get it once', async t => {
  const api = await openTestApi(t)
  const ann = await newUser(api.world, 'Ann')
  for (let at = 1; at < 4; at++) await addEmail(api, ann, `ann${at}@example.org`)
  const bodies = [await begin(api, ann, 'x@example.org'), await begin(api, ann, 'y@example.org')]
  const answers = await Promise.all(
    bodies.map(body => api.send('POST /app/api/verify', { token: ann.token, body })),
  )
  t.same(
    answers.map(({ status, body }) => [status, body.code]),
    [
      [200, undefined],
      [409, 'LOGIN_METHOD_LIMIT'],
    ],
  )
  t.equal(shownMethods(api, ann).length, 5)
})

t.test('the primary changes on request, and every method hears of it', async t => {
  const api = await openTestApi(t)
  const ann = await newUser(api.world, 'Ann', 'ann@example.org')
  await api.world.advance(1000)
  await addEmail(api, ann, 'ann@example.com')
  await api.letters()
  const { body } = await api.send(`GET ${PATH}`, { token: ann.token })
  const answer = await api.send(`PUT ${PATH}/primary`, { token: ann.token, body: { id: body.items[1].id } })
  t.match(answer, { status: 200, body: { items: [{ primary: false }, { primary: true }] } })
  t.same(await api.letters(), [
    'mail ann@example.com primary-method-changed',
    'mail ann@example.org primary-method-changed',
  ])
})

t.test('a removed method signs in no more, and hears of it with the rest', async t => {
  const api = await openTestApi(t)
  const ann = await newUser(api.world, 'Ann', 'ann@example.org')
  await api.world.advance(1000)
  await addEmail(api, ann, 'ann@example.com')
  await api.letters()
  const { body } = await api.send(`GET ${PATH}`, { token: ann.token })
  t.equal((await api.send(`DELETE ${PATH}/${body.items[0].id}`, { token: ann.token })).status, 204)
  t.same(await api.letters(), [
    'mail ann@example.com login-method-removed',
    'mail ann@example.org address-replaced',
  ])
  const left = await api.send(`GET ${PATH}`, { token: ann.token })
  t.match(left.body.items, [{ value: 'ann@example.com', primary: true }])
  t.equal(left.body.items.length, 1)
  t.match((await api.codeLogin('ann@example.org')).body, { isNewUser: true })
})

t.test('a method is visible to its owner only', async t => {
  const api = await openTestApi(t)
  const [ann, eve] = [await newUser(api.world, 'Ann'), await newUser(api.world, 'Eve')]
  await addEmail(api, eve, 'eve@example.org')
  const [foreign] = api.world.database.view(view => api.world.accounts.methodsOf(view, ann.userId))
  const gone = { status: 404, body: { code: 'LOGIN_METHOD_NOT_FOUND' } }
  for (const id of [foreign?.id, 1n, '-1', 'x', '18446744073709551616']) {
    t.match(await api.send(`DELETE ${PATH}/${id}`, { token: eve.token }), gone, String(id))
  }
  t.match(await api.send(`PUT ${PATH}/primary`, { token: eve.token, body: { id: foreign?.id } }), gone)
  t.equal(api.world.database.view(view => api.world.accounts.methodsOf(view, ann.userId)).length, 1)
})

t.test('the only method stays, also when the last two are removed at once', async t => {
  const api = await openTestApi(t)
  const ann = await newUser(api.world, 'Ann', 'ann@example.org')
  await addEmail(api, ann, 'ann@example.com')
  const ids = api.world.database
    .view(view => api.world.accounts.methodsOf(view, ann.userId))
    .map(({ id }) => id)
  const remove = (id: bigint) => api.send(`DELETE ${PATH}/${id}`, { token: ann.token })
  const answers = await Promise.all(ids.map(remove))
  t.same(
    answers.map(({ status, body }) => [status, body?.code]),
    [
      [204, undefined],
      [409, 'LAST_LOGIN_METHOD'],
    ],
  )
})

t.test('Apple forgets a removed identity of its own', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const ann = await newUser(api.world, 'Ann', 'ann@example.org')
  const body = {
    kind: 'social',
    provider: 'apple',
    idToken: await api.identities.appleToken('ann'),
    authorizationCode: api.identities.appleCode('ann'),
  }
  const added = await api.send(`POST ${PATH}`, { token: ann.token, body })
  t.equal(added.status, 201)
  await api.letters()
  await api.send(`DELETE ${PATH}/${added.body.id}`, { token: ann.token })
  t.same(await api.letters(), ['apple org.example.callsign', 'mail ann@example.org login-method-removed'])
})

t.test('a text that is no address of its kind is refused', async t => {
  const api = await openTestApi(t)
  const { token } = await newUser(api.world, 'Ann')
  const bodies = [
    { kind: 'email' },
    { kind: 'email', value: '+84912345678' },
    { kind: 'phone', value: 'ann@example.org' },
    { kind: 'phone', value: '0912345678' },
  ]
  for (const body of bodies) {
    const answer = await api.send(`POST ${PATH}`, { token, body })
    t.match(answer, { status: 422, body: { errors: [{ pointer: '/value' }] } }, JSON.stringify(body))
  }
  const kindless = await api.send(`POST ${PATH}`, { token, body: { kind: 'passkey' } })
  t.match(kindless, { status: 422, body: { code: 'VALIDATION_FAILED' } })
})

t.test(
  'with step-up an old login confirms a code first, and every change of how one signs in needs it',
  async t => {
    const api = await openTestApi(t, { identities: 'with Apple key', config: { stepUpS: 600 } })
    const ann = await newUser(api.world, 'Ann', 'ann@example.org')
    const [method] = api.world.database.view(view => api.world.accounts.methodsOf(view, ann.userId))
    await api.world.advance(601_000)
    const changes: readonly (readonly [string, object | undefined])[] = [
      [`POST ${PATH}`, { kind: 'email', value: 'eve@example.org' }],
      [
        `POST ${PATH}`,
        { kind: 'social', provider: 'google', idToken: await api.identities.googleToken('eve') },
      ],
      [`PUT ${PATH}/primary`, { id: method?.id }],
      [`DELETE ${PATH}/${method?.id}`, undefined],
      ['PUT /app/api/user', { email: 'eve@example.org' }],
      ['DELETE /app/api/user', { confirm: true }],
    ]
    for (const [operation, body] of changes) {
      const answer = await api.send(operation, { token: ann.token, body })
      t.match(
        answer,
        { status: 403, body: { code: 'STEP_UP_REQUIRED', challenge: { channel: 'email' } } },
        operation,
      )
    }
    t.same(await api.letters(), ['mail ann@example.org otp'], 'one code serves all')
    const name = await api.send('PUT /app/api/user', { token: ann.token, body: { displayName: 'Annie' } })
    t.equal(name.status, 200, 'a name is no way in')
  },
)

t.test('the confirmed code lets the session, and no other one, change how one signs in', async t => {
  const api = await openTestApi(t, { config: { stepUpS: 600 } })
  const ann = await newUser(api.world, 'Ann', 'ann@example.org')
  await api.world.advance(601_000)
  const body = { kind: 'email', value: 'ann@example.com' }
  const refused = await api.send(`POST ${PATH}`, { token: ann.token, body })
  const otp = await api.otpFor('ann@example.org')
  const { challengeId } = refused.body.challenge
  const eve = await newUser(api.world, 'Eve')
  const foreign = await api.send('POST /app/api/verify', { token: eve.token, body: { challengeId, otp } })
  t.match(foreign, { status: 410, body: { code: 'CHALLENGE_GONE' } })
  const done = await api.send('POST /app/api/verify', { token: ann.token, body: { challengeId, otp } })
  t.match(done, { status: 200, body: { purpose: 'step-up' } })
  t.equal((await api.send(`POST ${PATH}`, { token: ann.token, body })).status, 202)
})

t.test('a proof of a clock that was a day ahead is not fresh until that day', async t => {
  const api = await openTestApi(t, { config: { stepUpS: 600 } })
  const ann = await newUser(api.world, 'Ann', 'ann@example.org')
  const body = { kind: 'email', value: 'ann@example.com' }
  api.world.tick(-86_400_000)
  t.equal((await api.send(`POST ${PATH}`, { token: ann.token, body })).body.code, 'STEP_UP_REQUIRED')
  api.world.tick(86_399_000)
  t.equal((await api.send(`POST ${PATH}`, { token: ann.token, body })).status, 202, 'a second is no reason')
})

t.test('a code sent to an address that was then removed proves nothing', async t => {
  const api = await openTestApi(t, { config: { stepUpS: 600 } })
  const ann = await newUser(api.world, 'Ann', 'ann@example.org')
  await addEmail(api, ann, 'ann@example.com')
  await api.world.advance(601_000)
  const body = { kind: 'email', value: 'eve@example.org' }
  const refused = await api.send(`POST ${PATH}`, { token: ann.token, body })
  const otp = await api.otpFor('ann@example.org')
  const fresh = await api.codeLogin('ann@example.com')
  const [method] = api.world.database.view(view => api.world.accounts.methodsOf(view, ann.userId))
  await prove(api.world, fresh.body.accessToken)
  const removal = await api.send(`DELETE ${PATH}/${method?.id}`, { token: fresh.body.accessToken })
  t.equal(removal.status, 204)
  const { challengeId } = refused.body.challenge
  const proof = await api.send('POST /app/api/verify', { token: ann.token, body: { challengeId, otp } })
  t.match(proof, { status: 410, body: { code: 'CHALLENGE_GONE' } })
  t.match(await api.send(`POST ${PATH}`, { token: ann.token, body }), {
    status: 403,
    body: { code: 'STEP_UP_REQUIRED' },
  })
})

t.test('a user without an address for a proof is asked to sign in anew', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key', config: { stepUpS: 600 } })
  const { body } = await api.googleLogin('ann')
  await api.world.advance(601_000)
  const refused = await api.send(`POST ${PATH}`, {
    token: body.accessToken,
    body: { kind: 'email', value: 'ann@example.com' },
  })
  t.match(refused, { status: 403, body: { code: 'STEP_UP_REQUIRED' } })
  t.equal(refused.body.challenge, undefined)
})
