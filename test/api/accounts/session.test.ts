/** Refresh and logout through the operations: lost replies, races, theft, ends (contract 2.3). */

import t from 'tap'
import type { DeviceId, UserId } from '../../../src/domain/ids.ts'
import { newDevice, newSession, newUser } from '../../support/application.ts'
import { storedTable } from '../../support/stored-table.ts'
import { openTestApi, type TestApi } from '../../support/test-api.ts'

const REFRESH = 'POST /app/api/refresh-token'
const LOGOUT = 'POST /app/api/logout'
const USER = 'GET /app/api/user'

interface Pair {
  readonly sessionId: string
  readonly accessToken: string
  readonly refreshToken: string
}

async function signIn(api: TestApi, email = 'ann@example.org'): Promise<Pair & { userId: UserId }> {
  const { body } = await api.codeLogin(email)
  return { ...body, userId: BigInt(body.user.userId) as UserId }
}

/** The status and code of a refresh, and its pair. */
async function refresh({ send }: TestApi, { refreshToken }: Pair) {
  const { status, body } = await send(REFRESH, { body: { refreshToken } })
  return { status, code: body.code as string | undefined, pair: body as Pair }
}

/** `200`, or the code that the token is refused with. */
async function access({ send }: TestApi, { accessToken }: Pair): Promise<number | string> {
  const { status, body } = await send(USER, { token: accessToken })
  return body.code ?? status
}

t.test('a refresh gives a new pair, and the form of it', async t => {
  const api = await openTestApi(t)
  const first = await signIn(api)
  await api.world.advance(1000)
  const answer = await api.send(REFRESH, { body: { refreshToken: first.refreshToken } })
  t.equal(answer.status, 200)
  t.equal(answer.headers['cache-control'], 'no-store')
  t.same(Object.keys(answer.body), [
    'sessionId',
    'accessToken',
    'refreshToken',
    'tokenType',
    'expiresIn',
    'refreshExpiresIn',
    'challenge',
  ])
  t.match(answer.body, { tokenType: 'Bearer', expiresIn: 3600, refreshExpiresIn: 5_184_000 })
  t.equal(answer.body.sessionId, first.sessionId, 'it is the same session')
  t.not(answer.body.accessToken, first.accessToken)
  t.not(answer.body.refreshToken, first.refreshToken)
  t.equal(await access(api, answer.body), 200)
  t.equal(await access(api, first), 200, 'requests under way are served still')
})

t.test('a lost reply is had again: the same pair, as long as it is unused', async t => {
  const api = await openTestApi(t)
  const first = await signIn(api)
  const lost = await refresh(api, first)
  await api.world.advance(86_400_000)
  const again = await refresh(api, first)
  t.match([again.status, again.pair.refreshToken], [200, lost.pair.refreshToken])
  t.equal(await access(api, again.pair), 200, 'a day later its access token is one that lives')
})

t.test('fifty refreshes at once all get the same pair', async t => {
  const api = await openTestApi(t)
  const first = await signIn(api)
  const answers = await Promise.all(Array.from({ length: 50 }, () => refresh(api, first)))
  t.same([...new Set(answers.map(({ status }) => status))], [200])
  t.equal(new Set(answers.map(({ pair }) => `${pair.accessToken} ${pair.refreshToken}`)).size, 1)
  t.equal((await refresh(api, answers[0]!.pair)).status, 200)
})

t.test('a retry is served for half a minute after the new pair is in use', async t => {
  const api = await openTestApi(t)
  const first = await signIn(api)
  const second = await refresh(api, first)
  t.equal(await access(api, second.pair), 200)
  await api.world.advance(29_999)
  t.equal((await refresh(api, first)).pair.refreshToken, second.pair.refreshToken)
})

t.test('a token that was replaced by a pair in use ends the session for the thief and the owner', async t => {
  const api = await openTestApi(t)
  const { world } = api
  const first = await signIn(api)
  await newDevice(world, first.userId)
  const second = await refresh(api, first)
  await access(api, second.pair)
  await world.advance(30_000)
  const stolen = await refresh(api, first)
  t.match([stolen.status, stolen.code], [401, 'REFRESH_TOKEN_REUSED'])
  t.equal(await access(api, second.pair), 'SESSION_REVOKED')
  t.equal(await access(api, first), 'SESSION_REVOKED')
  t.match(await refresh(api, second.pair), { status: 401, code: 'REFRESH_TOKEN_INVALID' })
  t.match(await refresh(api, first), { status: 401, code: 'REFRESH_TOKEN_INVALID' })
  t.same(await api.letters(), ['push session_revoked'], 'its owner is told, once')
})

t.test('a theft signs the device out, and the last thing that is pushed to it says so', async t => {
  const out: DeviceId[] = []
  const api = await openTestApi(t)
  const { world } = api
  world.database.subscribe('signed-out', ({ deviceId }) => void out.push(deviceId))
  const first = await signIn(api)
  const phone = await newDevice(world, first.userId)
  for (const id of world.database.view(view => world.sessions.idsOf(view, first.userId))) {
    await world.database.change(change => world.sessions.bind(change, id, phone.deviceId))
  }
  await refresh(api, (await refresh(api, first)).pair)
  t.equal((await refresh(api, first)).code, 'REFRESH_TOKEN_REUSED')
  t.same(out, [phone.deviceId])
  t.equal(
    world.database.view(view => world.devices.active(view, first.userId, phone.deviceId))?.push,
    undefined,
  )
  t.match((await world.takeSent()).at(-1), { notice: { kind: 'session_revoked' }, lastTokens: phone.push })
})

t.test('a token two refreshes old ends the session at once', async t => {
  const api = await openTestApi(t)
  const first = await signIn(api)
  const second = await refresh(api, first)
  const third = await refresh(api, second.pair)
  t.equal((await refresh(api, first)).code, 'REFRESH_TOKEN_REUSED')
  t.equal(await access(api, third.pair), 'SESSION_REVOKED')
})

t.test('a theft ends one session, not the user’s other ones', async t => {
  const api = await openTestApi(t)
  const first = await signIn(api)
  const other = await newSession(api.world, first.userId)
  const second = await refresh(api, first)
  await refresh(api, second.pair)
  await refresh(api, first)
  t.equal((await api.send(USER, { token: other.token })).status, 200)
})

t.test(
  'an access token two pairs old has expired, one pair old it is good until its hour is over',
  async t => {
    const api = await openTestApi(t)
    const first = await signIn(api)
    const second = await refresh(api, first)
    t.equal(await access(api, first), 200)
    await api.world.advance(3_600_000)
    t.equal(await access(api, second.pair), 'TOKEN_EXPIRED')
    const third = await refresh(api, second.pair)
    const fourth = await refresh(api, third.pair)
    t.same([await access(api, second.pair), await access(api, third.pair)], ['TOKEN_EXPIRED', 200])
    t.equal(await access(api, fourth.pair), 200)
  },
)

t.test('a text that is no refresh token is refused without a lookup', async t => {
  const api = await openTestApi(t)
  const pair = await signIn(api)
  const { sessions } = api.world
  const read = sessions.read.bind(sessions)
  let reads = 0
  sessions.read = (view, sessionId) => {
    reads++
    return read(view, sessionId)
  }
  const forged = `${pair.refreshToken.slice(0, -2)}${pair.refreshToken.endsWith('AA') ? 'BB' : 'AA'}`
  for (const refreshToken of [forged, pair.accessToken, 'x', 'krt_', `krt_${'A'.repeat(72)}`]) {
    const answer = await api.send(REFRESH, { body: { refreshToken } })
    t.match([answer.status, answer.body.code], [401, 'REFRESH_TOKEN_INVALID'])
    t.equal(answer.headers['www-authenticate'], 'Bearer realm="callsign"')
  }
  t.equal(reads, 0)
  for (const body of [{}, { refreshToken: '' }, { refreshToken: 7 }, { refreshToken: 'x'.repeat(513) }]) {
    t.equal((await api.send(REFRESH, { body })).status, 422)
  }
})

t.test('a session ends sixty days after its last refresh and a year after it began', async t => {
  const api = await openTestApi(t)
  const day = 86_400_000
  const idle = await signIn(api)
  const busy = await signIn(api, 'bob@example.org')
  let pair: Pair = busy
  for (let month = 0; month < 7; month++) {
    await api.world.advance(50 * day)
    const next = await refresh(api, pair)
    t.equal(next.status, 200)
    pair = next.pair
  }
  t.equal((await refresh(api, idle)).code, 'REFRESH_TOKEN_INVALID')
  const last = await api.send(REFRESH, { body: { refreshToken: pair.refreshToken } })
  t.equal(last.body.refreshExpiresIn, 15 * 86_400, 'the year is nearly over')
  await api.world.advance(15 * day)
  t.equal((await refresh(api, last.body)).code, 'REFRESH_TOKEN_INVALID')
  const rows = api.world.database.view(view => view.count(storedTable('sessions')))
  t.equal(rows, 0, 'nothing is left of either')
})

t.test('logout ends the session and nothing else', async t => {
  const api = await openTestApi(t)
  const pair = await signIn(api)
  const other = await newSession(api.world, pair.userId)
  const answer = await api.send(LOGOUT, { token: pair.accessToken })
  t.match([answer.status, answer.body], [204, undefined])
  t.equal(await access(api, pair), 'TOKEN_INVALID')
  t.equal((await api.send(USER, { token: other.token })).status, 200)
  t.match(await refresh(api, pair), { status: 401, code: 'REFRESH_TOKEN_INVALID' }, 'no alarm of a reuse')
})

t.test('a hundred logouts at once do no harm', async t => {
  const api = await openTestApi(t)
  const pair = await signIn(api)
  const answers = await Promise.all(
    Array.from({ length: 100 }, () => api.send(LOGOUT, { token: pair.accessToken })),
  )
  t.equal(
    answers.every(({ status }) => status === 204),
    true,
  )
})

t.test('logging out again is done as well; a forged or missing token is not', async t => {
  const api = await openTestApi(t)
  const pair = await signIn(api)
  const statuses: number[] = []
  for (const token of [pair.accessToken, pair.accessToken, `${pair.accessToken.slice(0, -2)}AA`, undefined]) {
    statuses.push((await api.send(LOGOUT, token === undefined ? {} : { token })).status)
  }
  t.same(statuses, [204, 204, 401, 401])
  const other = await signIn(api)
  await api.send(LOGOUT, {
    token: (await newSession(api.world, other.userId)).token,
    body: { allDevices: true },
  })
  t.equal((await api.send(LOGOUT, { token: other.accessToken })).status, 204, 'a revoked session, too')
})

t.test('logout forgets the push tokens of its device, and keeps the device', async t => {
  const api = await openTestApi(t)
  const { world } = api
  const { userId, token } = await newUser(world)
  const [mine, other] = [await newDevice(world, userId), await newDevice(world, userId)]
  await api.send(LOGOUT, { token, body: { allDevices: false } })
  t.match(
    world.database.view(view => world.devices.active(view, userId, mine.deviceId)),
    { push: undefined, publicKey: mine.publicKey },
  )
  t.match(world.database.view(view => world.devices.active(view, userId, other.deviceId))?.push, other.push)
  t.same(await api.letters(), [])
})

t.test('a device is signed out with its last session', async t => {
  const out: string[] = []
  const api = await openTestApi(t)
  const { world } = api
  world.database.subscribe('signed-out', ({ deviceId }) => void out.push(names.get(deviceId)!))
  const { userId, ...first } = await newUser(world)
  const [phone, tablet] = [await newDevice(world, userId), await newDevice(world, userId)]
  const names = new Map([phone, tablet].map(({ deviceId }, at) => [deviceId, ['phone', 'tablet'][at]!]))
  const second = await newSession(world, userId, phone.deviceId)
  const other = await newSession(world, userId, tablet.deviceId)
  await api.send(LOGOUT, { token: first.token })
  t.same(out.splice(0), [])
  await api.send(LOGOUT, { token: second.token })
  t.same(out.splice(0), ['phone'])
  const again = await newSession(world, userId, phone.deviceId)
  await api.send(LOGOUT, { token: again.token, body: { allDevices: true } })
  t.same(out.splice(0).sort(), ['phone', 'tablet'])
  t.equal((await api.send(USER, { token: other.token })).body.code, 'SESSION_REVOKED')
  const last = await newSession(world, userId, tablet.deviceId)
  await api.send('DELETE /app/api/user', { token: last.token, body: { confirm: true } })
  t.same(out.sort(), ['phone', 'tablet'], 'as by the end of the account')
})

t.test('who lost the tokens and signed in again logs out of both sessions of the device', async t => {
  const out: DeviceId[] = []
  const api = await openTestApi(t)
  const { world } = api
  world.database.subscribe('signed-out', ({ deviceId }) => void out.push(deviceId))
  const { userId } = await newUser(world)
  const [phone, tablet] = [await newDevice(world, userId), await newDevice(world, userId)]
  const lost = await newSession(world, userId, phone.deviceId)
  const elsewhere = await newSession(world, userId, tablet.deviceId)
  await world.advance(1)
  const again = await newSession(world, userId, phone.deviceId)
  await api.send(LOGOUT, { token: again.token })
  t.same(out, [phone.deviceId])
  t.equal(world.database.view(view => world.devices.active(view, userId, phone.deviceId))?.push, undefined)
  const answers = await Promise.all([lost, elsewhere].map(({ token }) => api.send(USER, { token })))
  t.same(
    answers.map(({ status, body }) => body.code ?? status),
    ['TOKEN_INVALID', 200],
  )
})

t.test('a session that logs out late leaves a device to who has signed in on it since', async t => {
  const api = await openTestApi(t)
  const { world } = api
  const { userId } = await newUser(world)
  const phone = await newDevice(world, userId)
  const late = await newSession(world, userId, phone.deviceId)
  await world.advance(1)
  const present = await newSession(world, userId, phone.deviceId)
  await api.send(LOGOUT, { token: late.token })
  t.match(world.database.view(view => world.devices.active(view, userId, phone.deviceId))?.push, phone.push)
  t.equal((await api.send(USER, { token: present.token })).status, 200)
})

t.test('logout everywhere ends every session of the user and of no other', async t => {
  const api = await openTestApi(t)
  const { world } = api
  const [ann, bob] = [await newUser(world), await newUser(world, 'Bob')]
  const device = await newDevice(world, ann.userId)
  const other = await newSession(world, ann.userId, device.deviceId)
  const answer = await api.send(LOGOUT, { token: ann.token, body: { allDevices: true } })
  t.equal(answer.status, 204)
  const tokens = [ann.token, other.token, bob.token]
  const answers = await Promise.all(tokens.map(token => api.send(USER, { token })))
  t.same(
    answers.map(({ status, body }) => body.code ?? status),
    ['TOKEN_INVALID', 'SESSION_REVOKED', 200],
  )
  t.equal(
    world.database.view(view => world.devices.active(view, ann.userId, device.deviceId))?.push,
    undefined,
  )
  await world.advance(3_600_000)
  t.equal((await api.send(USER, { token: other.token })).body.code, 'TOKEN_INVALID', 'its row is gone')
})

t.test('the other devices can be told of a logout everywhere, though their tokens are forgotten', async t => {
  const api = await openTestApi(t)
  const { world } = api
  const { userId } = await newUser(world)
  const [mine, other] = [await newDevice(world, userId), await newDevice(world, userId)]
  const { token } = await newSession(world, userId, mine.deviceId)
  await api.send(LOGOUT, { token, body: { allDevices: true } })
  t.match(await world.takeSent(), [
    { deviceId: other.deviceId, notice: { kind: 'session_revoked' }, lastTokens: other.push },
  ])
  t.same(
    world.database.view(view => world.devices.activeDevicesOf(view, userId)).map(({ push }) => push),
    [undefined, undefined],
  )
})

t.test('a session refreshes thirty times in an hour, whatever the address', async t => {
  const api = await openTestApi(t, { rates: true })
  let pair: Pair = await signIn(api)
  for (let at = 0; at < 30; at++) {
    const { body } = await api.send(REFRESH, {
      body: { refreshToken: pair.refreshToken },
      address: [192, 0, 2, at],
    })
    pair = body
  }
  const refused = await api.send(REFRESH, { body: { refreshToken: pair.refreshToken } })
  t.match([refused.status, refused.body.scope, refused.body.retryIn], [429, 'session', 120])
  const other = await signIn(api, 'bob@example.org')
  t.equal((await refresh(api, other)).status, 200)
})

t.test('the user sees the device of the session that asks', async t => {
  const api = await openTestApi(t)
  const { world, send } = api
  const { userId, token, email } = await newUser(world)
  t.equal((await send(USER, { token })).body.device, undefined)
  const device = await newDevice(world, userId)
  t.match((await send(USER, { token })).body, {
    userId: String(userId),
    displayName: 'Ann',
    email,
    emailVerified: true,
    phoneVerified: false,
    device: { deviceId: String(device.deviceId), publicKeyHash: device.publicKeyHash },
    badge: { total: 0, friendRequests: 0, missedCalls: 0 },
    createdAt: '2026-01-01T00:00:00.000Z',
    loginMethods: [{ kind: 'email', value: email, verified: true, primary: true }],
    settings: { discoverableByEmail: true, discoverableByPhone: true, callsFromContactsOnly: true },
  })
})

t.test('a refresh is a sign of life of its device', async t => {
  const api = await openTestApi(t)
  const { world } = api
  const { userId } = await newUser(world)
  const device = await newDevice(world, userId)
  const { sessionId } = await newSession(world, userId, device.deviceId)
  const pair = world.authentication.tokensOf(
    sessionId,
    world.database.view(view => world.sessions.read(view, sessionId))!,
  )
  await world.advance(7_200_000)
  await refresh(api, pair)
  t.equal(
    world.database.view(view => world.devices.active(view, userId, device.deviceId))?.lastSeenAtMs,
    world.nowMs(),
  )
})

t.test('false refresh tokens count for their address, and keep no good one out', async t => {
  const api = await openTestApi(t, { rates: true })
  const first = await signIn(api)
  const ofNobody = async () => {
    const { status, body } = await api.send(REFRESH, { body: { refreshToken: 'krt_none' } })
    return status === 429 ? body.scope : status
  }
  const answers = []
  for (let sent = 0; sent < 121; sent++) answers.push(await ofNobody())
  t.same(answers, [...new Array(120).fill(401), 'address'])
  t.equal((await refresh(api, first)).status, 200)
})
