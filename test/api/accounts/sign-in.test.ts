/** Signing in by a code through the operations: answers, secrecy about accounts, and refusals. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { UserId } from '../../../src/domain/ids.ts'
import { newUser, prove } from '../../support/application.ts'
import { openTestApi, type TestApi } from '../../support/test-api.ts'

const LOGIN = 'POST /app/api/login'
const VERIFY = 'POST /app/api/verify-login'
const RESEND = 'POST /app/api/resend-otp'

/** Begins a login and reads its code. */
async function begin({ send, otpFor }: TestApi, email: string, more: object = {}) {
  const { body } = await send(LOGIN, { body: { verified: false, email, ...more } })
  return { challengeId: body.challengeId as string, otp: await otpFor(email) }
}

/** A code that is not this one. */
function otherThan(otp: string): string {
  return String((Number(otp) + 1) % 1_000_000).padStart(6, '0')
}

t.test('a newcomer signs in by a code and has an account', async t => {
  const api = await openTestApi(t)
  const { send, world, otpFor } = api
  const login = await send(LOGIN, { body: { verified: false, email: 'Ann@Example.org', displayName: 'Ann' } })
  t.equal(login.status, 200)
  t.same(
    { ...login.body, challengeId: '' },
    {
      verified: false,
      challengeId: '',
      channel: 'email',
      sentTo: 'a•••@example.org',
      otpLength: 6,
      expiresIn: 300,
      resendIn: 60,
    },
  )
  t.equal(login.headers['cache-control'], 'no-store')
  t.equal(
    world.database.view(view => world.accounts.ownerOf(view, 'email:ann@example.org')),
    undefined,
    'an address alone is no account',
  )

  const { challengeId } = login.body
  const answer = await send(VERIFY, { body: { challengeId, otp: await otpFor('ann@example.org') } })
  t.equal(answer.status, 200)
  t.match(answer.body, {
    verified: true,
    tokenType: 'Bearer',
    expiresIn: 3600,
    refreshExpiresIn: 5_184_000,
    accessToken: /^kat_/,
    refreshToken: /^krt_/,
    isNewUser: true,
    user: { displayName: 'Ann', email: 'Ann@Example.org', emailVerified: true, phoneVerified: false },
  })
  const user = await send('GET /app/api/user', { token: answer.body.accessToken })
  t.same(user.body, answer.body.user)
})

t.test('the second time it is the same account, whatever name is asked for', async t => {
  const api = await openTestApi(t)
  const { send } = api
  const first = await send(VERIFY, { body: await begin(api, 'ann@example.org', { displayName: 'Ann' }) })
  const second = await send(VERIFY, { body: await begin(api, 'ann@example.org', { displayName: 'Bob' }) })
  t.equal(second.body.isNewUser, false)
  t.equal(second.body.user.userId, first.body.user.userId)
  t.equal(second.body.user.displayName, 'Ann')
  t.not(second.body.accessToken, first.body.accessToken)
})

t.test('every spelling of an address is one account, and codes go to one mailbox', async t => {
  const api = await openTestApi(t)
  const { send, world } = api
  const first = await send(VERIFY, { body: await begin(api, 'ann@example.org') })
  // On a host that tells case apart this is another person's mailbox.
  const { body } = await send(LOGIN, { body: { verified: false, email: 'ANN@example.org' } })
  const [message] = await world.takeSent()
  t.match(message, { to: 'ann@example.org' })
  const otp = message?.channel === 'mail' && message.letter.kind === 'otp' ? message.letter.otp : ''
  const second = await send(VERIFY, { body: { challengeId: body.challengeId, otp } })
  t.equal(second.body.user.userId, first.body.user.userId)
})

t.test('a phone number is taken in the spelling of its country', async t => {
  const { send, otpFor } = await openTestApi(t)
  const login = await send(LOGIN, { body: { phone: '0912 345 678', country: 'VN' } })
  t.match(login.body, { channel: 'sms', sentTo: '+84•••678' })
  const { challengeId } = login.body
  const answer = await send(VERIFY, { body: { challengeId, otp: await otpFor('+84912345678') } })
  t.match(answer.body.user, { displayName: 'User', phone: '+84912345678', phoneVerified: true })
})

t.test('either kind of address is taken as identifier', async t => {
  const { send } = await openTestApi(t)
  t.equal((await send(LOGIN, { body: { identifier: 'ann@example.org' } })).body.channel, 'email')
  t.equal((await send(LOGIN, { body: { identifier: '+84912345678' } })).body.channel, 'sms')
})

t.test('known and unknown addresses are answered alike, byte for byte', async t => {
  const api = await openTestApi(t)
  const { send, world } = api
  await newUser(world, 'Ann', 'a1@example.org')
  const withoutId = (text: string) => text.replace(/"challengeId":"[^"]{22}"/, '')
  const story = async (email: string) => {
    const texts: string[] = []
    for (let login = 0; login < 3; login++) texts.push((await send(LOGIN, { body: { email } })).text)
    const { challengeId } = JSON.parse(texts[2]!)
    for (let guess = 0; guess < 6; guess++) {
      texts.push((await send(VERIFY, { body: { challengeId, otp: '000000' } })).text)
    }
    texts.push((await send(RESEND, { body: { challengeId } })).text)
    return texts.map(withoutId)
  }
  t.same(await story('a1@example.org'), await story('a2@example.org'))
  const sent = await api.letters()
  t.same(sent, ['mail a1@example.org otp', 'mail a2@example.org otp'])
})

t.test('a wrong code is no broken session, and says how many tries are left', async t => {
  const api = await openTestApi(t)
  const { send } = api
  const { challengeId, otp } = await begin(api, 'ann@example.org')
  const answers = []
  for (let guess = 0; guess < 5; guess++) {
    answers.push(await send(VERIFY, { body: { challengeId, otp: otherThan(otp) } }))
  }
  t.same(
    answers.map(({ status, body }) => [status, body.code, body.attemptsLeft]),
    [4, 3, 2, 1, 0].map(left => [400, 'OTP_INVALID', left]),
  )
  const gone = await send(VERIFY, { body: { challengeId, otp } })
  t.match([gone.status, gone.body.code], [410, 'CHALLENGE_GONE'])
})

t.test('of a hundred guesses at once, the right one among the last, five are compared', async t => {
  const api = await openTestApi(t)
  const { send, world } = api
  const { challengeId, otp } = await begin(api, 'ann@example.org')
  const guess = (guessed: string) => send(VERIFY, { body: { challengeId, otp: guessed } })
  const wrong = Array.from({ length: 99 }, () => guess(otherThan(otp)))
  const answers = await Promise.all([...wrong, guess(otp)])
  const count = (code: string) => answers.filter(({ body }) => body.code === code).length
  t.same([count('OTP_INVALID'), count('CHALLENGE_GONE')], [5, 95])
  t.equal(
    world.database.view(view => world.accounts.ownerOf(view, 'email:ann@example.org')),
    undefined,
  )
})

t.test('of one right code sent twenty times at once one makes an account', async t => {
  const api = await openTestApi(t)
  const { send } = api
  const body = await begin(api, 'ann@example.org')
  const answers = await Promise.all(Array.from({ length: 20 }, () => send(VERIFY, { body })))
  t.equal(answers.filter(({ status }) => status === 200).length, 1)
  t.equal(answers.filter(({ status }) => status === 410).length, 19)
})

t.test('a code expires after five minutes, and a new one can be had', async t => {
  const api = await openTestApi(t)
  const { send, world, otpFor } = api
  const { challengeId, otp } = await begin(api, 'ann@example.org')
  await world.advance(300_000)
  const late = await send(VERIFY, { body: { challengeId, otp } })
  t.match([late.status, late.body.code], [400, 'OTP_EXPIRED'])
  const resent = await send(RESEND, { body: { challengeId } })
  t.match(resent.body, { verified: false, challengeId, expiresIn: 300, resendIn: 120 })
  const answer = await send(VERIFY, { body: { challengeId, otp: await otpFor('ann@example.org') } })
  t.equal(answer.status, 200)
})

t.test('a resend in the cooldown is refused with the seconds to wait', async t => {
  const api = await openTestApi(t)
  const { challengeId } = await begin(api, 'ann@example.org')
  await api.world.advance(500)
  const answer = await api.send(RESEND, { body: { challengeId } })
  t.match([answer.status, answer.body.code, answer.body.retryIn], [429, 'OTP_COOLDOWN', 60])
  t.equal(answer.headers['retry-after'], '60')
  const gone = await api.send(RESEND, { body: { challengeId: 'A'.repeat(22) } })
  t.match([gone.status, gone.body.code], [410, 'CHALLENGE_GONE'])
})

t.test('a resend takes no channel that does not lead to the address', async t => {
  const api = await openTestApi(t)
  const { challengeId } = await begin(api, 'ann@example.org')
  await api.world.advance(60_000)
  const sms = await api.send(RESEND, { body: { challengeId, channel: 'sms' } })
  t.match([sms.status, sms.body.errors], [422, [{ pointer: '/channel' }]])
  t.equal((await api.send(RESEND, { body: { challengeId, channel: 'email' } })).status, 200)
})

t.test('clients that know no challenges name the address', async t => {
  const api = await openTestApi(t)
  const { otp } = await begin(api, 'ann@example.org', { displayName: 'Ann' })
  const answer = await api.send(VERIFY, { body: { identifier: 'ANN@example.org', code: otp } })
  t.match(answer.body, { isNewUser: true, user: { displayName: 'Ann' } })
})

t.test('one who only knows an address gives its newcomer no name', async t => {
  const api = await openTestApi(t)
  const { otp } = await begin(api, 'ann@example.org')
  await api.send(LOGIN, {
    body: { email: 'ann@example.org', displayName: 'Mallory' },
    address: [192, 0, 2, 1],
  })
  const answer = await api.send(VERIFY, { body: { email: 'ann@example.org', otp } })
  t.equal(answer.body.user.displayName, 'ann')
})

t.test('a text that is no code of six digits is refused and costs no try', async t => {
  const api = await openTestApi(t)
  const { challengeId, otp } = await begin(api, 'ann@example.org')
  for (const wrong of ['', '12345', '1234567', ' 23456', '１２３４５６', 123456, null, [otp], undefined]) {
    const answer = await api.send(VERIFY, { body: { challengeId, otp: wrong } })
    t.equal(answer.status, 422, String(wrong))
  }
  const next = await api.send(VERIFY, { body: { challengeId, otp: otherThan(otp) } })
  t.equal(next.body.attemptsLeft, 4)
})

t.test('a request names one address, and a good one', async t => {
  const { send } = await openTestApi(t)
  const refused = async (body: object) => {
    const answer = await send(LOGIN, { body })
    return `${answer.status} ${answer.body.code} ${answer.body.errors?.[0]?.pointer ?? ''}`.trim()
  }
  t.equal(await refused({}), '422 VALIDATION_FAILED')
  t.equal(await refused({ email: 'a@example.org', phone: '+84912345678' }), '422 VALIDATION_FAILED')
  t.equal(await refused({ email: 'ann' }), '422 VALIDATION_FAILED /email')
  t.equal(await refused({ email: 'a(b)@example.org' }), '422 VALIDATION_FAILED /email')
  t.equal(await refused({ phone: '12' }), '422 VALIDATION_FAILED /phone')
  t.equal(await refused({ phone: '+19005550123' }), '422 VALIDATION_FAILED /phone')
  t.equal(await refused({ identifier: 'ann' }), '422 VALIDATION_FAILED /identifier')
  t.equal(await refused({ phone: '+8501912345678' }), '403 BLOCKED_COUNTRY')
  t.equal(await refused({ phone: '+870773111632' }), '403 BLOCKED_COUNTRY')
  t.equal(
    await refused({ email: 'a@example.org', displayName: ' \u0007 ' }),
    '422 VALIDATION_FAILED /displayName',
  )
  t.equal(await refused({ email: 'a@example.org', verified: 'no' }), '422 VALIDATION_FAILED /verified')
})

t.test('a number of a country that is not listed is refused before anything is counted', async t => {
  const smsCountries = new Set(['DE', '+870'])
  const testIdentifiers = new Map([['+15550100', '424242']])
  const { send, world } = await openTestApi(t, { rates: true, config: { smsCountries, testIdentifiers } })
  const login = async (phone: string) => (await send(LOGIN, { body: { phone } })).status
  for (let at = 0; at < 12; at++) t.equal(await login('+84912345678'), 403)
  t.same(await world.takeSent(), [])
  t.equal(world.database.rowCount(world.database.storedRows('sms-tallies')), 0)
  for (const phone of ['+4915112345678', '＋870773111632', '+15550100'])
    t.equal(await login(phone), 200, phone)
})

t.test('the refusal of a whole body is a sentence', async t => {
  const { send } = await openTestApi(t)
  t.equal((await send(LOGIN, { body: {} })).body.detail, 'the body has to name one address')
})

t.test('null members are as good as none', async t => {
  const { send } = await openTestApi(t)
  const body = { verified: null, email: 'ann@example.org', phone: null, displayName: null, country: null }
  t.equal((await send(LOGIN, { body })).status, 200)
})

t.test('verification is a claim that a token must prove', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const ann = await newUser(api.world, 'Ann', 'ann@example.org')
  const body = { verified: true, email: ann.email }
  for (const more of [
    {},
    { provider: 'google' },
    { provider: 'google', idToken: '' },
    { idToken: 'x.y.z' },
  ]) {
    const answer = await api.send(LOGIN, { body: { ...body, ...more } })
    t.match([answer.status, answer.body.code], [400, 'PROVIDER_TOKEN_REQUIRED'])
    t.equal(answer.body.accessToken, undefined)
  }
})

t.test('the message is in the language of the request', async t => {
  const api = await openTestApi(t)
  const headers = { 'accept-language': 'de-AT, en;q=0.5' }
  await api.send(LOGIN, { body: { email: 'ann@example.org' }, headers })
  await api.send(LOGIN, { body: { email: 'bob@example.org', locale: 'vi-VN' }, headers })
  const languages = (await api.world.takeSent()).map(message => 'language' in message && message.language)
  t.same(languages.sort(), ['de-AT, en;q=0.5', 'vi-VN'])
})

t.test('signing in keeps an account that was to be erased', async t => {
  const api = await openTestApi(t)
  const { world } = api
  const first = (await api.codeLogin('ann@example.org')).body
  const userId = BigInt(first.user.userId) as UserId
  await prove(world, first.accessToken)
  await api.send('DELETE /app/api/user', { token: first.accessToken, body: { confirm: true } })
  await world.advance(6 * 86_400_000)
  const second = await api.codeLogin('ann@example.org')
  t.match(second.body, { isNewUser: false, user: { userId: first.user.userId } })
  await world.advance(30 * 86_400_000)
  t.equal(world.database.view(view => world.accounts.read(view, userId))?.erasesAtMs, undefined)
  t.not(
    world.database.view(view => world.accounts.read(view, userId)),
    undefined,
  )
})

t.test('after its erasure an address makes a new account', async t => {
  const api = await openTestApi(t)
  const { world } = api
  const first = (await api.codeLogin('ann@example.org')).body
  await prove(world, first.accessToken)
  await api.send('DELETE /app/api/user', { token: first.accessToken, body: { confirm: true } })
  await world.advance(8 * 86_400_000)
  const second = (await api.codeLogin('ann@example.org')).body
  t.equal(second.isNewUser, true)
  t.not(second.user.userId, first.user.userId)
})

t.test('from the code to the session it is one transaction', async t => {
  const api = await openTestApi(t)
  const body = await begin(api, 'ann@example.org')
  const { database } = api.world
  const change = database.change.bind(database)
  let commits = 0
  database.change = write => {
    commits++
    return change(write)
  }
  t.equal((await api.send(VERIFY, { body })).status, 200)
  t.equal(commits, 1)
})

t.test('neither tokens nor codes are in the files of the store', async t => {
  const folder = t.testdirName
  const api = await openTestApi(t)
  const { challengeId, otp } = await begin(api, 'ann@example.org')
  const { body } = await api.send(VERIFY, { body: { challengeId, otp } })
  const bytes = readFileSync(join(folder, 'store', 'data.mdb'))
  t.ok(bytes.includes('ann@example.org'), 'this is the file')
  const secrets = [otp, body.accessToken, body.refreshToken]
  const raw = [body.accessToken, body.refreshToken].map(token => Buffer.from(token.slice(4), 'base64url'))
  const macs = raw.map(each => each.subarray(-32))
  t.same(
    [...secrets, ...raw, ...macs].filter(secret => bytes.includes(secret)),
    [],
  )
})

t.test(
  'an address of the network asks thirty times in ten minutes, all sign-in by codes together',
  async t => {
    const api = await openTestApi(t, { rates: true })
    const { send } = api
    const statuses: number[] = []
    for (let login = 0; login < 31; login++) {
      statuses.push((await send(LOGIN, { body: { email: `user${login}@example.org` } })).status)
    }
    t.same(statuses, [...new Array(30).fill(200), 429])
    const resend = await send(RESEND, { body: { challengeId: 'A'.repeat(22) } })
    t.match([resend.status, resend.body.scope, resend.body.retryIn], [429, 'address', 20])
    const other = await send(LOGIN, { body: { email: 'ann@example.org' }, address: [192, 0, 2, 1] })
    t.equal(other.status, 200)
  },
)

t.test('a full IPv6 prefix slows those alone who never signed in from it', async t => {
  const { send, codeLogin, world } = await openTestApi(t, { rates: true })
  const inside = (at: number) => [0x20, 1, 0xd, 0xb8, 0, 7, 0, at]
  await codeLogin('ann@example.org', { address: inside(255) })
  // Each /64 has thirty, the /56 a hundred and twenty.
  for (let at = 0; at < 200; at++) {
    await send(RESEND, { body: { challengeId: 'A'.repeat(22) }, address: inside(at % 8) })
  }
  const login = async (email: string, at: number) => {
    const { status, body } = await send(LOGIN, { body: { email }, address: inside(at) })
    return [status, body.scope ?? body.challengeId.length, body.challengeId]
  }
  world.tick(120_000)
  for (let at = 0; at < 30; at++) await send(RESEND, { body: { challengeId: 'A' }, address: inside(at % 8) })
  t.match(await login('newcomer@example.org', 100), [429, 'address'])
  const [status, , challengeId] = await login('ann@example.org', 100)
  t.equal(status, 200)
  t.match(await send(RESEND, { body: { challengeId }, address: inside(101) }), {
    body: { code: 'OTP_COOLDOWN' },
  })
  t.match(await send(RESEND, { body: { challengeId: 'A'.repeat(22) }, address: inside(102) }), {
    status: 429,
  })
})

t.test('an address of the network tries sixty codes in ten minutes, whatever the challenges', async t => {
  const { send } = await openTestApi(t, { rates: true })
  const codes: string[] = []
  for (let guess = 0; guess < 61; guess++) {
    const path = guess % 2 === 0 ? VERIFY : 'POST /app/api/verify'
    const body = { challengeId: 'A'.repeat(22), otp: '123456' }
    codes.push((await send(path, { body })).body.code)
  }
  t.same(codes, [...new Array(60).fill('CHALLENGE_GONE'), 'RATE_LIMITED'])
})

t.test('reviewers sign in with a number that can not exist', async t => {
  const { send, letters } = await openTestApi(t, {
    config: { testIdentifiers: new Map([['+15550100', '424242']]) },
  })
  for (let login = 0; login < 12; login++) {
    const { body } = await send(LOGIN, { body: { phone: '+1 555 0100' } })
    const answer = await send(VERIFY, { body: { challengeId: body.challengeId, otp: '424242' } })
    if (answer.status !== 200) t.fail(`login ${login}: ${answer.text}`)
  }
  t.same(await letters(), [])
})

t.test('an identity is linked only to who has the address when the code comes in', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const { world, send } = api
  const ann = await newUser(world, 'Ann', 'ann@example.org')
  const claims = { email: ann.email, email_verified: true }
  const exists = await api.googleLogin('subject', claims)
  t.match([exists.status, exists.body.code], [409, 'ACCOUNT_EXISTS'])
  const otp = await api.otpFor(ann.email)
  const [method] = world.database.view(view => world.accounts.methodsOf(view, ann.userId))
  await world.database.change(change => world.accounts.removeMethod(change, ann.userId, method!))
  const answer = await send(VERIFY, { body: { challengeId: exists.body.challenge.challengeId, otp } })
  t.match([answer.status, answer.body.code], [410, 'CHALLENGE_GONE'])
  t.same(
    world.database.view(view => world.accounts.methodsOf(view, ann.userId)),
    [],
  )
})

const ATTACKER = [198, 51, 100, 7]
const ELSEWHERE = [203, 0, 113, 9]

/** Has an attacker, with an account of their own, use up all codes that strangers have for the address. */
async function useUp(api: TestApi, email: string): Promise<void> {
  const mallory = await newUser(api.world, 'Mallory', 'mallory@example.org')
  for (let at = 0; at < 5; at++) {
    const path = at % 2 === 0 ? 'POST /app/api/user/login-methods' : 'PUT /app/api/user'
    const body = at % 2 === 0 ? { kind: 'email', value: email } : { email }
    await api.send(path, { token: mallory.token, body, address: ATTACKER })
    await api.world.advance(60_000)
  }
  for (let at = 0; at < 25; at++) {
    await api.send(LOGIN, { body: { email }, address: ATTACKER })
    await api.world.advance(660_000)
  }
}

t.test(
  'codes that strangers have used up keep no owner out who comes from a network used before',
  async t => {
    const api = await openTestApi(t, { identities: 'with Apple key' })
    const { send, world } = api
    await api.codeLogin('ann@example.org')
    await useUp(api, 'ann@example.org')
    await world.takeSent()
    const refused = await send(LOGIN, { body: { email: 'ann@example.org' }, address: ELSEWHERE })
    t.match([refused.status, refused.body.code], [429, 'RATE_LIMITED'])
    const { body } = await send(LOGIN, { body: { email: 'ann@example.org' } })
    const otp = await api.otpFor('ann@example.org')
    t.equal((await send(VERIFY, { body: { challengeId: body.challengeId, otp } })).status, 200)
  },
)

t.test('nor one whose app sends the last refresh token, signed out or not', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const { send, world } = api
  const { accessToken, refreshToken } = (await api.codeLogin('ann@example.org')).body
  const bobs = (await api.codeLogin('bob@example.org')).body.refreshToken
  await useUp(api, 'ann@example.org')
  const login = (token?: string) =>
    send(LOGIN, { body: { email: 'ann@example.org', refreshToken: token }, address: ELSEWHERE })
  t.equal((await login(bobs)).status, 429, 'the token of another user helps nobody')
  t.equal((await login('krt_made_up')).status, 429)
  await world.takeSent()
  t.equal((await login(refreshToken)).status, 200)
  await world.advance(3_600_000)
  const refresh = await send('POST /app/api/refresh-token', { body: { refreshToken } })
  t.equal(refresh.status, 200, 'it is not used up by that')
  await send('POST /app/api/logout', { token: refresh.body.accessToken })
  t.not(accessToken, undefined)
  const { body } = await login(refresh.body.refreshToken)
  const otp = await api.otpFor('ann@example.org')
  t.equal((await send(VERIFY, { body: { challengeId: body.challengeId, otp } })).status, 200)
})

t.test('a network in which a session is refreshed is known as well', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const { refreshToken } = (await api.codeLogin('ann@example.org')).body
  await api.send('POST /app/api/refresh-token', { body: { refreshToken }, address: ELSEWHERE })
  await useUp(api, 'ann@example.org')
  const login = await api.send(LOGIN, { body: { email: 'ann@example.org' }, address: ELSEWHERE })
  t.equal(login.status, 200)
})
