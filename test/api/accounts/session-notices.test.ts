/** Messages to the owner of an account about its sessions: each that begins, and those that end soon. */

import t from 'tap'
import type { MethodId, UserId } from '../../../src/domain/ids.ts'
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

/** Signs in by the code; resolves with the reply and what was sent after it. */
async function signIn(api: TestApi, email: string, from: object = AGENT) {
  const { body } = await api.codeLogin(email, from)
  return { body, sent: await api.world.takeSent() }
}

/** Each as `<channel> <to> <letter or notice>`. */
function wordsOf(sent: readonly OutboxMessage[]): string[] {
  return sent.map(message =>
    message.channel === 'push'
      ? `push ${message.deviceId} ${message.notice.kind}`
      : 'letter' in message
        ? `${message.channel} ${message.to} ${message.letter.kind}`
        : message.channel,
  )
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
  t.same(wordsOf(sent).sort(), [
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
    t.same(wordsOf(await api.world.takeSent()).sort(), told)
  }
  t.match(api.told, [{ body: { proof: 'social' } }])
  t.equal((await api.googleLogin('ann')).status, 200)
  t.same(await api.world.takeSent(), [], 'mailboxes and inboxes have room for other things')
  await api.advance(DAY_MS)
  t.equal((await api.googleLogin('ann')).status, 200)
  t.same(wordsOf(await api.world.takeSent()).sort(), told)
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
