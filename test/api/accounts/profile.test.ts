import t from 'tap'
import {
  newDevice,
  newSession,
  newUser,
  prove,
  type TestUser,
  type TestWorld,
} from '../../support/application.ts'
import { openTestApi } from '../../support/test-api.ts'

/** A session of the user's on a device, and another device of theirs. */
async function withDevices(world: TestWorld, { userId }: TestUser) {
  const [own, other] = [await newDevice(world, userId), await newDevice(world, userId)]
  return { own, other, token: (await newSession(world, userId, own.deviceId)).token }
}

t.test('a name and settings change at once, and members left out stay', async t => {
  const { world, send } = await openTestApi(t)
  const ann = await newUser(world, 'Ann')
  const body = { displayName: '  Ann   Lee ', settings: { discoverableByEmail: false, unheardOf: true } }
  const answer = await send('PUT /app/api/user', { token: ann.token, body })
  const settings = { discoverableByEmail: false, discoverableByPhone: true, callsFromContactsOnly: true }
  t.equal(answer.status, 200)
  t.equal(answer.body.user.displayName, 'Ann Lee')
  t.same(answer.body.user.settings, settings)
  t.equal(answer.body.pending, undefined)
  const none = await send('PUT /app/api/user', {
    token: ann.token,
    body: { displayName: null, settings: {} },
  })
  t.match(none, { status: 200, body: { user: { displayName: 'Ann Lee', settings } } })
})

t.test('a bad name or address is refused, and then nothing of the request is done', async t => {
  const { world, send } = await openTestApi(t)
  const ann = await newUser(world, 'Ann')
  const refused: readonly (readonly [object, string])[] = [
    [{ displayName: '' }, '/displayName'],
    [{ displayName: 'x'.repeat(51) }, '/displayName'],
    [{ displayName: 'Bob', email: '' }, '/email'],
    [{ displayName: 'Bob', email: 'ann@example.org(comment)' }, '/email'],
    [{ displayName: 'Bob', phone: '123' }, '/phone'],
    [{ displayName: 'Bob', settings: { discoverableByEmail: 'no' } }, '/settings/discoverableByEmail'],
  ]
  for (const [body, pointer] of refused) {
    const answer = await send('PUT /app/api/user', { token: ann.token, body })
    t.match(answer, { status: 422, body: { code: 'VALIDATION_FAILED', errors: [{ pointer }] } }, pointer)
  }
  const long = await send('PUT /app/api/user', {
    token: ann.token,
    body: { displayName: '👩‍👩‍👧‍👦'.repeat(9) },
  })
  t.match(long.body, { detail: /200 bytes/ }, 'few enough characters, of too many bytes')
  t.equal(world.database.view(view => world.accounts.read(view, ann.userId))?.displayName, 'Ann')
  t.same(await world.takeSent(), [])
})

t.test('a new address is in force when its code is confirmed, and not before', async t => {
  const { world, send, otpFor, codeLogin } = await openTestApi(t)
  const ann = await newUser(world, 'Ann', 'ann@example.org')
  const answer = await send('PUT /app/api/user', { token: ann.token, body: { email: 'Ann@Example.com' } })
  t.match(answer, { status: 202, body: { user: { email: 'ann@example.org' }, pending: [{ kind: 'email' }] } })
  t.match(answer.body.pending[0], { sentTo: 'a•••@example.com', expiresIn: 300, resendIn: 60 })
  const otp = await otpFor('ann@example.com')
  const { challengeId } = answer.body.pending[0]
  const done = await send('POST /app/api/verify', { token: ann.token, body: { challengeId, otp } })
  t.match(done, { status: 200, body: { purpose: 'bind-email', user: { email: 'Ann@Example.com' } } })
  t.equal(done.body.user.loginMethods.length, 1, 'it took the place of the old one')
  t.match((await codeLogin('ann@example.com')).body, { user: { userId: String(ann.userId) } })
  t.match((await codeLogin('ann@example.org')).body, { isNewUser: true }, 'the old one opens nothing of hers')
})

t.test('a new address is announced to the old one and to the other devices', async t => {
  const { world, send, otpFor, letters } = await openTestApi(t)
  const ann = await newUser(world, 'Ann', 'ann@example.org')
  const { token } = await withDevices(world, ann)
  const told: unknown[] = []
  const tell = world.notices.tell.bind(world.notices)
  world.notices.tell = (change, ...notice) => {
    told.push(notice)
    tell(change, ...notice)
  }
  const { body } = await send('PUT /app/api/user', { token, body: { email: 'ann@example.com' } })
  const [{ challengeId }] = body.pending
  const otp = await otpFor('ann@example.com')
  t.same(told, [], 'nothing has changed yet')
  await send('POST /app/api/verify', { token, body: { challengeId, otp } })
  t.same(await letters(), ['mail ann@example.org address-replaced'])
  t.match(told, [[ann.userId, { kind: 'profile_changed' }]])
})

t.test('a first phone number is added, beside the email address', async t => {
  const { world, send, otpFor } = await openTestApi(t)
  const ann = await newUser(world, 'Ann', 'ann@example.org')
  const put = { phone: '091 234 56 78', country: 'VN' }
  const { body } = await send('PUT /app/api/user', { token: ann.token, body: put })
  const [{ challengeId, kind, channel }] = body.pending
  t.same([kind, channel], ['phone', 'sms'])
  const otp = await otpFor('+84912345678')
  const done = await send('POST /app/api/verify', { token: ann.token, body: { challengeId, otp } })
  t.match(done.body, { purpose: 'bind-phone', user: { email: 'ann@example.org', phone: '+84912345678' } })
})

t.test('both addresses at once are two challenges, and the name beside them changes at once', async t => {
  const { world, send } = await openTestApi(t)
  const ann = await newUser(world, 'Ann')
  const put = { displayName: 'Ann Lee', email: 'ann@example.com', phone: '+84912345678' }
  const answer = await send('PUT /app/api/user', { token: ann.token, body: put })
  t.match(answer, { status: 202, body: { user: { displayName: 'Ann Lee' } } })
  t.same(
    answer.body.pending.map(({ kind }: { kind: string }) => kind),
    ['email', 'phone'],
  )
})

t.test('when one of two addresses can not be sent to, neither is', async t => {
  const { world, send, letters } = await openTestApi(t)
  const ann = await newUser(world, 'Ann', 'ann@example.org')
  for (let at = 0; at < 5; at++) {
    await send('POST /app/api/login', { body: { phone: '+84912345678' } })
    await world.advance(601_000)
  }
  await letters()
  await prove(world, ann.token)
  const put = { displayName: 'Ann Lee', email: 'ann@example.com', phone: '+84912345678' }
  const answer = await send('PUT /app/api/user', { token: ann.token, body: put })
  t.match(answer, { status: 429, body: { code: 'RATE_LIMITED' } })
  t.same(await letters(), [])
  t.equal(world.database.view(view => world.accounts.read(view, ann.userId))?.displayName, 'Ann')
})

t.test('the address that is in force again leaves nothing to confirm', async t => {
  const { world, send, letters } = await openTestApi(t)
  const ann = await newUser(world, 'Ann', 'ann@example.org')
  for (const email of ['ann@example.org', 'ANN@EXAMPLE.ORG']) {
    const answer = await send('PUT /app/api/user', { token: ann.token, body: { email } })
    t.equal(answer.status, 200)
    t.equal(answer.body.pending, undefined)
  }
  t.same(await letters(), [])
})

t.test('an absent address stays: null removes nothing', async t => {
  const { world, send } = await openTestApi(t)
  const ann = await newUser(world, 'Ann', 'ann@example.org')
  const answer = await send('PUT /app/api/user', { token: ann.token, body: { email: null, phone: null } })
  t.match(answer, { status: 200, body: { user: { email: 'ann@example.org' } } })
})

t.test('another address of the same user is not taken away from itself', async t => {
  const { world, send, otpFor } = await openTestApi(t)
  const ann = await newUser(world, 'Ann', 'ann@example.org')
  const added = await send('POST /app/api/user/login-methods', {
    token: ann.token,
    body: { kind: 'email', value: 'ann@example.com' },
  })
  const otp = await otpFor('ann@example.com')
  const { challengeId } = added.body
  await send('POST /app/api/verify', { token: ann.token, body: { challengeId, otp } })
  const answer = await send('PUT /app/api/user', { token: ann.token, body: { email: 'ann@example.com' } })
  t.match(answer, { status: 409, body: { code: 'METHOD_EXISTS' } })
})

t.test(
  'an address of somebody else is answered like one of nobody, and its owner gets a letter, no code',
  async t => {
    const { world, send, letters } = await openTestApi(t)
    await newUser(world, 'Bob', 'bob@example.org')
    const [ann, eve] = [
      await newUser(world, 'Ann', 'same@example.net'),
      await newUser(world, 'Eve', 'eve@example.net'),
    ]
    const taken = await send('PUT /app/api/user', { token: ann.token, body: { email: 'bob@example.org' } })
    t.same(await letters(), ['mail bob@example.org address-tried'])
    const free = await send('PUT /app/api/user', { token: eve.token, body: { email: 'bab@example.org' } })
    t.same(await letters(), ['mail bab@example.org otp'])
    const blank = ({ status, headers, body: { pending } }: typeof taken) => ({
      status,
      headers,
      pending: pending.map((each: object) => ({ ...each, challengeId: '' })),
    })
    t.same(blank(taken), blank(free))
  },
)

t.test('tries at a challenge that can’t be confirmed look like tries at any other', async t => {
  const { world, send, otpFor } = await openTestApi(t)
  await newUser(world, 'Bob', 'bob@example.org')
  const ann = await newUser(world, 'Ann')
  const taken = await send('PUT /app/api/user', { token: ann.token, body: { email: 'bob@example.org' } })
  const free = await send('PUT /app/api/user', { token: ann.token, body: { email: 'bab@example.org' } })
  const otp = await otpFor('bab@example.org')
  const wrong = otp === '000000' ? '000001' : '000000'
  const tries = async (challengeId: string) => {
    const answers: unknown[] = []
    for (let at = 0; at < 6; at++) {
      const { status, body } = await send('POST /app/api/verify', {
        token: ann.token,
        body: { challengeId, otp: wrong },
      })
      answers.push([status, body])
    }
    return answers
  }
  const seen = await tries(taken.body.pending[0].challengeId)
  t.same(seen, await tries(free.body.pending[0].challengeId))
  t.match(seen[4], [400, { code: 'OTP_INVALID', attemptsLeft: 0 }])
})

t.test('letters to an owner are bounded like codes, and more of them look like more codes', async t => {
  const { world, send, letters } = await openTestApi(t)
  await newUser(world, 'Bob', 'bob@example.org')
  const askAgain = async (email: string) => {
    const statuses: number[] = []
    for (let at = 0; at < 7; at++) {
      const stranger = await newUser(world, 'Eve')
      statuses.push((await send('PUT /app/api/user', { token: stranger.token, body: { email } })).status)
    }
    return { statuses, sent: (await letters()).length }
  }
  const taken = await askAgain('bob@example.org')
  t.equal(taken.sent, 5)
  t.same(await askAgain('bab@example.org'), taken)
})

t.test('a challenge of one user is none for another', async t => {
  const { world, send, otpFor } = await openTestApi(t)
  const [ann, eve] = [await newUser(world, 'Ann', 'ann@example.org'), await newUser(world, 'Eve')]
  const { body } = await send('PUT /app/api/user', { token: ann.token, body: { email: 'ann@example.com' } })
  const [{ challengeId }] = body.pending
  const otp = await otpFor('ann@example.com')
  const stolen = await send('POST /app/api/verify', { token: eve.token, body: { challengeId, otp } })
  const invented = await send('POST /app/api/verify', {
    token: eve.token,
    body: { challengeId: Buffer.alloc(16).toString('base64url'), otp },
  })
  t.match(stolen, { status: 410, body: { code: 'CHALLENGE_GONE' } })
  t.same(stolen, invented)
  for (const path of ['verify', 'verify-login']) {
    const answer = await send(`POST /app/api/${path}`, { body: { challengeId, otp } })
    t.match(answer, { status: 410, body: { code: 'CHALLENGE_GONE' } }, 'and none for a login')
  }
  const own = await send('POST /app/api/verify', { token: ann.token, body: { challengeId, otp } })
  t.equal(own.status, 200, 'and it is still there')
})

t.test('an address that was asked for and not proven does not keep its owner out', async t => {
  const { world, send, otpFor, codeLogin } = await openTestApi(t)
  const eve = await newUser(world, 'Eve', 'eve@example.org')
  const { body } = await send('PUT /app/api/user', { token: eve.token, body: { email: 'bob@example.org' } })
  const otp = await otpFor('bob@example.org')
  const bob = await codeLogin('bob@example.org')
  t.match(bob, { status: 200, body: { isNewUser: true } })
  // Even with the code, say from a mail that Bob was talked into passing on, it is too late.
  const [{ challengeId }] = body.pending
  const late = await send('POST /app/api/verify', { token: eve.token, body: { challengeId, otp } })
  t.match(late, { status: 410, body: { code: 'CHALLENGE_GONE' } })
  t.match(
    world.database.view(view => world.accounts.methodsOf(view, eve.userId)),
    [{ shown: 'eve@example.org' }],
    'and her own stays',
  )
})

t.test('of two accounts that prove one address, the first has it', async t => {
  const { world, send, otpFor } = await openTestApi(t)
  const users = [await newUser(world, 'Ann'), await newUser(world, 'Eve')]
  const attempts: (() => Promise<number>)[] = []
  for (const { token } of users) {
    const { body } = await send('PUT /app/api/user', { token, body: { email: 'one@example.org' } })
    const otp = await otpFor('one@example.org')
    const [{ challengeId }] = body.pending
    attempts.push(
      async () => (await send('POST /app/api/verify', { token, body: { challengeId, otp } })).status,
    )
  }
  t.same(await Promise.all(attempts.map(attempt => attempt())), [200, 410])
  t.match(
    world.database.view(view => world.accounts.ownerOf(view, 'email:one@example.org')),
    { userId: users[0]?.userId },
  )
})

t.test(
  'a confirmed address replaces what it was to replace, also when another one did so before',
  async t => {
    const { world, send, otpFor, letters } = await openTestApi(t)
    const ann = await newUser(world, 'Ann', 'a@example.org')
    const confirm = async (email: string) => {
      const { body } = await send('PUT /app/api/user', { token: ann.token, body: { email } })
      const [{ challengeId }] = body.pending
      return { challengeId, otp: await otpFor(email) }
    }
    const [b, c] = [await confirm('b@example.org'), await confirm('c@example.org')]
    for (const body of [b, c]) await send('POST /app/api/verify', { token: ann.token, body })
    t.same(await letters(), ['mail a@example.org address-replaced', 'mail b@example.org address-replaced'])
    t.match(
      world.database.view(view => world.accounts.methodsOf(view, ann.userId)),
      Object.assign([{ shown: 'c@example.org' }], { length: 1 }),
    )
  },
)

t.test('without a session verify takes the code of a login, and with one it does not', async t => {
  const { world, send, otpFor } = await openTestApi(t)
  const ann = await newUser(world, 'Ann')
  const { body } = await send('POST /app/api/login', { body: { email: 'new@example.org' } })
  const { challengeId } = body
  const otp = await otpFor('new@example.org')
  const withSession = await send('POST /app/api/verify', { token: ann.token, body: { challengeId, otp } })
  t.match(withSession, { status: 410, body: { code: 'CHALLENGE_GONE' } })
  const without = await send('POST /app/api/verify', { body: { challengeId, otp } })
  t.match(without, { status: 200, body: { verified: true, isNewUser: true } })
})

t.test('verify wants a challenge and a code', async t => {
  const { world, send } = await openTestApi(t)
  const { token, email } = await newUser(world, 'Ann')
  const noChallenge = await send('POST /app/api/verify', { token, body: { email, otp: '123456' } })
  t.match(noChallenge, { status: 422, body: { errors: [{ pointer: '/challengeId' }] } })
  const noCode = await send('POST /app/api/verify', { token, body: { challengeId: 'x' } })
  t.match(noCode, { status: 422, body: { errors: [{ pointer: '/otp' }] } })
})

t.test('a profile is changed twenty times an hour', async t => {
  const { world, send } = await openTestApi(t, { rates: true })
  const { token } = await newUser(world, 'Ann')
  const statuses: number[] = []
  for (let at = 0; at < 21; at++) {
    statuses.push((await send('PUT /app/api/user', { token, body: { displayName: `Ann ${at}` } })).status)
  }
  t.same([statuses.filter(status => status === 200).length, statuses.at(-1)], [20, 429])
})
