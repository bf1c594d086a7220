/** The sessions of a user as the user sees them, and their ends. */

import t from 'tap'
import type { DeviceId } from '../../../src/domain/ids.ts'
import { sessionIdText } from '../../../src/store/accounts/session-store.ts'
import { newDevice, newSession, newUser } from '../../support/application.ts'
import { openTestApi, type TestApi } from '../../support/test-api.ts'

const SESSIONS = '/app/api/user/sessions'
const USER = 'GET /app/api/user'
const DAY_MS = 86_400_000

const end = ({ send }: TestApi, token: string, sessionId: Uint8Array) =>
  send(`DELETE ${SESSIONS}/${sessionIdText(sessionId)}`, { token })
const endOthers = ({ send }: TestApi, token: string) => send(`DELETE ${SESSIONS}`, { token })
const list = async ({ send }: TestApi, token: string) => (await send(`GET ${SESSIONS}`, { token })).body.items

/** `200`, or the code that the token is refused with. */
async function access({ send }: TestApi, token: string): Promise<number | string> {
  const { status, body } = await send(USER, { token })
  return body.code ?? status
}

function signedOutIn({ world }: TestApi): DeviceId[] {
  const out: DeviceId[] = []
  world.database.subscribe('signed-out', ({ deviceId }) => void out.push(deviceId))
  return out
}

function pushOf({ world }: TestApi, { userId }: { userId: bigint }, deviceId: DeviceId) {
  return world.database.view(view => world.devices.active(view, userId as never, deviceId))?.push
}

t.test('a session is listed with its times, its place, its device, and whether it asks', async t => {
  const api = await openTestApi(t)
  const { world } = api
  const first = await api.codeLogin('ann@example.org', {
    address: [203, 0, 113, 77],
    headers: { 'user-agent': 'curl/8.5.0' },
  })
  const userId = BigInt(first.body.user.userId) as never
  await world.advance(1000)
  const phone = await newDevice(world, userId)
  const { sessionId, token } = await newSession(world, userId, phone.deviceId)
  t.same(await list(api, token), [
    {
      createdAt: '2026-01-01T00:00:01.000Z',
      lastUsedAt: '2026-01-01T00:00:01.000Z',
      endsAt: '2026-03-02T00:00:01.000Z',
      userAgent: 'test',
      proof: 'otp',
      device: { deviceId: String(phone.deviceId), name: 'a phone', platform: 'ios' },
      id: sessionIdText(sessionId),
      isCurrent: true,
    },
    {
      createdAt: '2026-01-01T00:00:00.000Z',
      lastUsedAt: '2026-01-01T00:00:00.000Z',
      endsAt: '2026-03-02T00:00:00.000Z',
      network: '203.0.113.0/24',
      userAgent: 'curl/8.5.0',
      proof: 'otp',
      device: { deviceId: String(phone.deviceId), name: 'a phone', platform: 'ios' },
      id: first.body.sessionId,
      isCurrent: false,
    },
  ])
})

t.test(
  'sessions that have ended, by an act or by their time, are not listed, nor are other users’',
  async t => {
    const api = await openTestApi(t)
    const { world } = api
    const { userId } = await newUser(world)
    await newUser(world, 'Bob')
    world.tick(30 * DAY_MS)
    const revoked = await newSession(world, userId)
    await world.database.change(change => world.sessions.revoke(change, revoked.sessionId, 'device_removed'))
    world.tick(30 * DAY_MS)
    const own = await newSession(world, userId)
    t.match(await list(api, own.token), [{ id: sessionIdText(own.sessionId) }])
    t.equal((await list(api, own.token)).length, 1, 'the first one is over, though no sweep has come')
  },
)

t.test(
  'beyond a hundred sessions the one that was unused longest ends, one without a device first',
  async t => {
    const api = await openTestApi(t, { rehearses: false, config: { signInWaitH: 0 } })
    const { world, codeLogin } = api
    const { userId, email } = await newUser(world)
    const { deviceId } = await newDevice(world, userId)
    const phone = await newSession(world, userId, deviceId)
    const { body } = await codeLogin(email)
    for (let count = 3; count < 100; count++) {
      world.tick(1000)
      await newSession(world, userId)
    }
    await codeLogin(email)
    t.equal(await access(api, body.accessToken), 'SESSION_REVOKED')
    t.equal((await list(api, phone.token)).length, 100)
  },
)

t.test('another session is ended: its token hears why, and its device gets one last push', async t => {
  const api = await openTestApi(t)
  const { world } = api
  const out = signedOutIn(api)
  const ann = await newUser(world)
  const [phone, tablet] = [await newDevice(world, ann.userId), await newDevice(world, ann.userId)]
  const [mine, thief] = [
    await newSession(world, ann.userId, phone.deviceId),
    await newSession(world, ann.userId, tablet.deviceId),
  ]
  t.equal((await end(api, mine.token, thief.sessionId)).status, 204)
  t.equal(await access(api, thief.token), 'SESSION_REVOKED')
  t.same([await access(api, mine.token), await access(api, ann.token)], [200, 200])
  t.same(out, [tablet.deviceId])
  t.same([pushOf(api, ann, tablet.deviceId), pushOf(api, ann, phone.deviceId)], [undefined, phone.push])
  t.match(await world.takeSent(), [
    {
      deviceId: tablet.deviceId,
      notice: { kind: 'session_revoked', reason: 'ended_by_user' },
      lastTokens: tablet.push,
    },
  ])
})

t.test('a session that is ended twice, is another user’s or has never been is not there', async t => {
  const api = await openTestApi(t)
  const { world } = api
  const [ann, bob] = [await newUser(world), await newUser(world, 'Bob')]
  const other = await newSession(world, ann.userId)
  const answers = [
    await end(api, ann.token, other.sessionId),
    await end(api, ann.token, other.sessionId),
    await end(api, ann.token, bob.sessionId),
    await end(api, ann.token, Buffer.alloc(16)),
    await api.send(`DELETE ${SESSIONS}/7`, { token: ann.token }),
    // Another spelling of the bytes.
    await api.send(`DELETE ${SESSIONS}/${sessionIdText(ann.sessionId)}=`, { token: ann.token }),
  ]
  t.same(
    answers.map(({ status }) => status),
    [204, 404, 404, 404, 404, 404],
  )
  const [first, ...more] = answers.slice(1).map(({ body }) => ({ ...body, requestId: '' }))
  t.equal(first.code, 'SESSION_NOT_FOUND')
  for (const answer of more) t.same(answer, first)
  t.same([await access(api, bob.token), await access(api, ann.token)], [200, 200])
})

t.test('the end of one’s own session is a logout', async t => {
  const api = await openTestApi(t)
  const { world } = api
  const out = signedOutIn(api)
  const ann = await newUser(world)
  const phone = await newDevice(world, ann.userId)
  const lost = await newSession(world, ann.userId, phone.deviceId)
  await world.advance(1)
  const own = await newSession(world, ann.userId, phone.deviceId)
  t.equal((await end(api, own.token, own.sessionId)).status, 204)
  t.same([await access(api, own.token), await access(api, lost.token)], ['TOKEN_INVALID', 'TOKEN_INVALID'])
  t.same([out, pushOf(api, ann, phone.deviceId)], [[phone.deviceId], undefined])
  t.same(await world.takeSent(), [], 'it is not told of what it did')
  t.equal(await access(api, ann.token), 'TOKEN_INVALID', 'nor is an earlier session of the device left')
})

t.test('a device that has another session keeps its pushes and hears nothing', async t => {
  const api = await openTestApi(t)
  const { world } = api
  const out = signedOutIn(api)
  const ann = await newUser(world)
  const phone = await newDevice(world, ann.userId)
  const [lost, present] = [
    await newSession(world, ann.userId, phone.deviceId),
    await newSession(world, ann.userId, phone.deviceId),
  ]
  await end(api, ann.token, lost.sessionId)
  t.same([out, pushOf(api, ann, phone.deviceId)], [[], phone.push])
  t.same(await world.takeSent(), [])
  t.equal(await access(api, present.token), 200)
})

t.test('every other session is ended at once, and the one that asks goes on with its pushes', async t => {
  const api = await openTestApi(t)
  const { world } = api
  const out = signedOutIn(api)
  const [ann, bob] = [await newUser(world), await newUser(world, 'Bob')]
  const [phone, tablet] = [await newDevice(world, ann.userId), await newDevice(world, ann.userId)]
  const own = await newSession(world, ann.userId, phone.deviceId)
  const other = await newSession(world, ann.userId, tablet.deviceId)
  t.equal((await endOthers(api, own.token)).status, 204)
  const tokens = [own, ann, other, bob].map(({ token }) => token)
  t.same(await Promise.all(tokens.map(token => access(api, token))), [
    200,
    'SESSION_REVOKED',
    'SESSION_REVOKED',
    200,
  ])
  t.same(out, [tablet.deviceId])
  t.same([pushOf(api, ann, phone.deviceId), pushOf(api, ann, tablet.deviceId)], [phone.push, undefined])
  t.match(await world.takeSent(), [{ deviceId: tablet.deviceId, lastTokens: tablet.push }])
  t.equal((await list(api, own.token)).length, 1)
  t.equal((await endOthers(api, own.token)).status, 204, 'and again')
})

t.test('two sessions that end one another at once: the first does, the other has ended', async t => {
  const api = await openTestApi(t)
  const ann = await newUser(api.world)
  const other = await newSession(api.world, ann.userId)
  for (const ask of [
    (token: string, sessionId: Uint8Array) => end(api, token, sessionId),
    (token: string) => endOthers(api, token),
  ]) {
    const [one, two] = [await newSession(api.world, ann.userId), await newSession(api.world, ann.userId)]
    const answers = await Promise.all([end(api, one.token, two.sessionId), ask(two.token, one.sessionId)])
    t.match(answers, [{ status: 204 }, { status: 401, body: { code: 'SESSION_REVOKED' } }])
    t.same(
      [await access(api, one.token), await access(api, other.token)],
      [200, 200],
      'the request of an ended session does nothing',
    )
  }
})

t.test('an intruder who uses up the rate of changes can be ended all the same', async t => {
  const api = await openTestApi(t, { rates: true })
  const ann = await newUser(api.world)
  const thief = await newSession(api.world, ann.userId)
  const rename = () => api.send('PUT /app/api/user', { token: thief.token, body: { displayName: 'Eve' } })
  for (let count = 0; count < 20; count++) await rename()
  for (let count = 0; count < 20; count++) await end(api, thief.token, Buffer.alloc(16))
  t.match(
    [(await rename()).body, (await end(api, thief.token, ann.sessionId)).body],
    [{ code: 'RATE_LIMITED' }, { code: 'RATE_LIMITED' }],
  )
  t.equal((await end(api, ann.token, thief.sessionId)).status, 204)
})

t.test('requests of a restricted session use up nothing of its user’s', async t => {
  const api = await openTestApi(t, { rates: true })
  const ann = await newUser(api.world)
  const { deviceId } = await newDevice(api.world, ann.userId)
  const phone = await newSession(api.world, ann.userId, deviceId)
  const thief = await newSession(api.world, ann.userId)
  for (let count = 0; count < 200; count++) await access(api, thief.token)
  t.equal(await access(api, thief.token), 'RATE_LIMITED')
  t.equal((await endOthers(api, phone.token)).status, 204)
  t.equal(await access(api, thief.token), 'SESSION_REVOKED')
})
