/** Messages to the owner of an account about its sessions: each that begins, and those that end soon. */

import t from 'tap'
import type { DeviceId, MethodId, UserId } from '../../../src/domain/ids.ts'
import type { OutboxMessage } from '../../../src/domain/messages/outbox-message.ts'
import { newDevice, newUser } from '../../support/application.ts'
import { openTestApi, type TestApi } from '../../support/test-api.ts'

const DAY_MS = 86_400_000
const AGENT = { headers: { 'user-agent': 'curl/8.5.0' }, address: [203, 0, 113, 77] }

async function addAddress({ world }: TestApi, userId: UserId, kind: 'email' | 'phone', key: string) {
  const id = BigInt(`0x${Buffer.from(world.randomBytes(6)).toString('hex')}`) as MethodId
  const method = { id, kind, key, shown: key, addedAtMs: 0, lastUsedAtMs: 0 } as const
  await world.database.change(change => world.accounts.putMethod(change, userId, method))
}

/** Signs in by the code; resolves with the reply and the messages after it. */
async function signIn(api: TestApi, email: string, from: object = AGENT) {
  const { body } = await api.codeLogin(email, from)
  return { body, sent: await api.world.takeSent() }
}

/** Each as `<channel> <to> <letter or notice>`, sorted. */
function wordsOf(sent: readonly OutboxMessage[]): string[] {
  const words = sent.map(message =>
    message.channel === 'push'
      ? `push ${message.deviceId} ${message.notice.kind}`
      : 'letter' in message
        ? `${message.channel} ${message.to} ${message.letter.kind}`
        : message.channel,
  )
  return words.sort()
}

t.test('a newcomer hears nothing of the own sign-in', async t => {
  const api = await openTestApi(t)
  t.same((await signIn(api, 'ann@example.org')).sent, [])
  t.same(api.told, [])
})

t.test('all devices hear of a sign-in, and every address but the one that signed in', async t => {
  const api = await openTestApi(t)
  const ann = await newUser(api.world, 'Ann', 'ann@example.org')
  const bob = await newUser(api.world, 'Bob')
  const phone = await newDevice(api.world, ann.userId)
  await newDevice(api.world, bob.userId)
  await addAddress(api, ann.userId, 'email', 'ann@home.example')
  await addAddress(api, ann.userId, 'phone', '+84912345678')
  await api.world.takeSent()
  const { body, sent } = await signIn(api, 'ann@example.org')
  const { sessionId } = body
  t.same(wordsOf(sent), [
    'mail ann@home.example session-started',
    `push ${phone.deviceId} session_started`,
    'sms +84912345678 session-started',
  ])
  const place = { userAgent: 'curl/8.5.0', network: '203.0.113.0/24' }
  t.same(api.told, [
    {
      userId: ann.userId,
      body: { kind: 'session_started', sessionId, ...place, proof: 'otp' },
      except: undefined,
    },
  ])
  t.match(
    sent.filter(each => 'letter' in each),
    [{ letter: place }, { letter: place }],
  )
})

t.test('the address that signs in is spared, whichever it is', async t => {
  const api = await openTestApi(t)
  const ann = await newUser(api.world, 'Ann', 'ann@example.org')
  await addAddress(api, ann.userId, 'email', 'ann@home.example')
  t.same(wordsOf((await signIn(api, 'ann@home.example')).sent), ['mail ann@example.org session-started'])
})

t.test('by SMS at most one is sent in a day, however often the owner’s account is signed in to', async t => {
  const api = await openTestApi(t)
  const ann = await newUser(api.world, 'Ann', 'ann@example.org')
  await addAddress(api, ann.userId, 'phone', '+84912345678')
  await addAddress(api, ann.userId, 'phone', '+84912345679')
  const one = ['sms +84912345678 session-started', 'sms +84912345679 session-started']
  t.same(wordsOf((await signIn(api, 'ann@example.org')).sent), one, 'one sign-in is told at each number')
  await api.advance(DAY_MS - 1000)
  t.same(wordsOf((await signIn(api, 'ann@example.org')).sent), [])
  await api.advance(1000)
  t.same(wordsOf((await signIn(api, 'ann@example.org')).sent), one)
})

t.test('owners hear of sign-ins by a provider likewise, and of thirty in a day at most', async t => {
  const api = await openTestApi(t, { identities: 'without Apple key', rehearses: false })
  const first = await api.googleLogin('ann')
  const userId = BigInt(first.body.user.userId) as UserId
  const phone = await newDevice(api.world, userId)
  await addAddress(api, userId, 'email', 'ann@home.example')
  await api.world.takeSent()
  const told = ['mail ann@home.example session-started', `push ${phone.deviceId} session_started`]
  for (let count = 0; count < 30; count++) {
    t.equal((await api.googleLogin('ann')).status, 200)
    t.same(wordsOf(await api.world.takeSent()), told)
  }
  t.match(api.told, [{ body: { proof: 'social' } }])
  t.equal((await api.googleLogin('ann')).status, 200)
  t.same(await api.world.takeSent(), [], 'mailboxes and inboxes have room for other things')
  await api.advance(DAY_MS)
  t.equal((await api.googleLogin('ann')).status, 200)
  t.same(wordsOf(await api.world.takeSent()), told)
})

t.test('a letter is in the language of the owner, not of an intruder', async t => {
  const api = await openTestApi(t)
  const ann = await newUser(api.world, 'Ann', 'ann@example.org')
  await addAddress(api, ann.userId, 'email', 'ann@home.example')
  const inVietnamese = { headers: { 'accept-language': 'vi' } }
  t.match((await signIn(api, 'ann@example.org', inVietnamese)).sent, [{ language: 'en' }])
  t.match((await signIn(api, 'ann@example.org')).sent, [{ language: 'vi' }], 'who may be the owner')
})

t.test('the owner hears of a sign-in that keeps an account from its erasure', async t => {
  const api = await openTestApi(t)
  const ann = await newUser(api.world, 'Ann', 'ann@example.org')
  await addAddress(api, ann.userId, 'email', 'ann@home.example')
  await api.send('DELETE /app/api/user', { token: ann.token, body: { confirm: true } })
  await api.world.takeSent()
  await signIn(api, 'ann@example.org')
  t.equal(api.told.at(-1)?.body.kind, 'session_started')
})

t.test('no control character, link or long text of a client reaches the owner', async t => {
  const api = await openTestApi(t)
  const ann = await newUser(api.world, 'Ann', 'ann@example.org')
  await newDevice(api.world, ann.userId)
  await addAddress(api, ann.userId, 'email', 'ann@home.example')
  const agent = `Callsign\r\nconfirm at https://evil.example ${'x'.repeat(200)}`
  const { sent } = await signIn(api, 'ann@example.org', { headers: { 'user-agent': agent } })
  const shown = `Callsignconfirm at https//evil example ${'x'.repeat(41)}`
  t.match(sent, [{ letter: { userAgent: shown } }, { notice: { userAgent: shown } }])
})

// The end of a session.

/** A session that signed in by a code and is refreshed, as an app in use does it. */
async function sessionInUse(api: TestApi, email: string) {
  const { body } = await signIn(api, email)
  return { userId: BigInt(body.user.userId) as UserId, id: body.sessionId as string, ...body }
}

interface InUse {
  accessToken: string
  refreshToken: string
}

async function refresh({ send }: TestApi, session: InUse): Promise<number> {
  const { status, body } = await send('POST /app/api/refresh-token', {
    body: { refreshToken: session.refreshToken },
  })
  if (status === 200) Object.assign(session, body)
  return status
}

/** Refreshes every 45 days; resolves with the messages of that time, each behind its day. */
async function useFor(api: TestApi, session: InUse, days: number): Promise<string[]> {
  const sent: string[] = []
  for (let day = 1; day <= days; day++) {
    await api.advance(DAY_MS)
    if (day % 45 === 0) await refresh(api, session)
    sent.push(...wordsOf(await api.world.takeSent()).map(words => `${day} ${words}`))
  }
  return sent
}

async function bind({ world }: TestApi, sessionId: string, userId: UserId) {
  const device = await newDevice(world, userId)
  await world.database.change(change =>
    world.sessions.bind(change, Buffer.from(sessionId, 'base64url'), device.deviceId),
  )
  return device
}

async function list({ world }: TestApi, userId: UserId, ...deviceIds: DeviceId[]) {
  const logged = { list: new Uint8Array(8), seq: 0, deviceIds, index: 0, vrfHash: new Uint8Array(64) }
  await world.database.change(change => world.deviceLists.finish(change, userId, logged))
}

t.test('14 days before its end a session is announced, once, on its own device alone', async t => {
  const api = await openTestApi(t, { rehearses: false })
  const session = await sessionInUse(api, 'ann@example.org')
  const phone = await bind(api, session.id, session.userId)
  await newDevice(api.world, session.userId)
  t.same(await useFor(api, session, 364), [`351 push ${phone.deviceId} session_ending`])
  t.equal(await refresh(api, session), 200)
  await api.advance(DAY_MS)
  t.equal(await refresh(api, session), 401, 'it has ended')
})

t.test('the announcement survives a restart, before it and after it', async t => {
  const folder = t.testdir()
  const options = { folder, rehearses: false }
  let api = await openTestApi(t, options)
  const session = await sessionInUse(api, 'ann@example.org')
  await bind(api, session.id, session.userId)
  const restart = async () => {
    const nowMs = api.world.nowMs()
    await api.close()
    api = await openTestApi(t, options)
    api.world.tick(nowMs - api.world.nowMs())
  }
  t.same(await useFor(api, session, 350), [])
  await restart()
  t.equal((await useFor(api, session, 1)).length, 1)
  await restart()
  t.same(await useFor(api, session, 13), [])
})

t.test('a session without a device is announced by mail, to every address', async t => {
  const api = await openTestApi(t, { rehearses: false })
  const { userId } = await sessionInUse(api, 'ann@example.org')
  await addAddress(api, userId, 'email', 'ann@home.example')
  await addAddress(api, userId, 'phone', '+84912345678')
  await newDevice(api.world, userId)
  const session = await sessionInUse(api, 'ann@example.org')
  t.same(await useFor(api, session, 364), [
    '351 mail ann@example.org session-ending',
    '351 mail ann@home.example session-ending',
  ])
})

t.test('a session that is not used, or was ended, is not announced', async t => {
  const api = await openTestApi(t, { rehearses: false })
  await sessionInUse(api, 'ann@example.org')
  const ended = await sessionInUse(api, 'bob@example.org')
  t.same(await useFor(api, ended, 340), [])
  await refresh(api, ended)
  await api.send('POST /app/api/logout', { token: ended.accessToken })
  await api.advance(30 * DAY_MS)
  t.same(await api.world.takeSent(), [])
})

t.test('the session of a listed device goes on as long as it is used, and is never announced', async t => {
  const api = await openTestApi(t, { rehearses: false })
  const session = await sessionInUse(api, 'ann@example.org')
  const phone = await bind(api, session.id, session.userId)
  await list(api, session.userId, phone.deviceId)
  t.same(await useFor(api, session, 800), [])
  t.equal(await refresh(api, session), 200)
  await api.advance(60 * DAY_MS)
  t.equal(await refresh(api, session), 401, 'unused it ends')
})

t.test(
  'once the list drops its device, a session ends a year after its last refresh, with notice',
  async t => {
    const api = await openTestApi(t, { rehearses: false })
    const session = await sessionInUse(api, 'ann@example.org')
    const phone = await bind(api, session.id, session.userId)
    await list(api, session.userId, phone.deviceId)
    await useFor(api, session, 450)
    await list(api, session.userId, 7n as DeviceId)
    t.same(await useFor(api, session, 364), [`351 push ${phone.deviceId} session_ending`])
    await api.advance(DAY_MS)
    t.equal(await refresh(api, session), 401)
  },
)

t.test(
  'a session that is announced and listed then goes on, and its later end is announced again',
  async t => {
    const api = await openTestApi(t, { rehearses: false })
    const session = await sessionInUse(api, 'ann@example.org')
    const phone = await bind(api, session.id, session.userId)
    t.equal((await useFor(api, session, 355)).length, 1)
    await list(api, session.userId, phone.deviceId)
    t.equal(await refresh(api, session), 200)
    await list(api, session.userId, 7n as DeviceId)
    t.same(await useFor(api, session, 364), [`351 push ${phone.deviceId} session_ending`])
  },
)
