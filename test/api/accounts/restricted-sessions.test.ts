/**
 * Sessions that their user's devices do not vouch for (contract 2.3): where a thief with a code, or an old phone, gets no
 * further. Which operations are open to them at all is in `authorization-matrix.test.ts`.
 */

import t, { type Test } from 'tap'
import { formatRefreshToken, possessionChallenge } from '../../../src/domain/accounts/token.ts'
import { plainNotice } from '../../../src/domain/calls/call-effect.ts'
import type { CallNoticeBody } from '../../../src/domain/calls/call-notice.ts'
import type { CallId, DeviceId, UserId } from '../../../src/domain/ids.ts'
import {
  newDevice,
  newDeviceList,
  newSession,
  newUser,
  type TestAnswer,
  type TestUser,
} from '../../support/application.ts'
import { listOf, newPhone, registrationOf } from '../../support/device-lists.ts'
import { deviceIds, newKey, REGISTER, registerDevice, WITH_LOG } from '../../support/device-requests.ts'
import { openTestApi, type TestApi, type TestApiOptions, tableDigests } from '../../support/test-api.ts'

const DAY_MS = 86_400_000
const USER = 'GET /app/api/user'
const LOGOUT = 'POST /app/api/logout'

interface Account {
  readonly api: TestApi
  readonly ann: TestUser
  /** On the list, if there is one; `ann` is its session. */
  readonly deviceId: DeviceId
  /** Signed in by a code alone. */
  readonly thief: { readonly token: string; readonly sessionId: Uint8Array }
}

/** Ann has a phone, and a list unless `isListed` is false. */
async function openAccount(t: Test, { isListed = true, options = {} } = {}): Promise<Account> {
  const api = await openTestApi(t, options)
  const ann = await newUser(api.world)
  const { deviceId } = await newDevice(api.world, ann.userId)
  if (isListed) await newDeviceList(api.world, ann.userId, [deviceId])
  return { api, ann, deviceId, thief: await newSession(api.world, ann.userId) }
}

const MISSED: CallNoticeBody = {
  kind: 'call_missed',
  callId: 1n as CallId,
  version: 2,
  callerId: 2n as UserId,
  callerName: 'Bob',
  displayName: 'Bob',
  alias: undefined,
  isContact: true,
  isVideo: true,
  atMs: 3,
}

const outcome = ({ status, body }: TestAnswer) => `${status} ${body?.code ?? ''}`.trim()

t.test('it sees the name and its own device of the user, at sign-in and later', async t => {
  const { api, ann } = await openAccount(t, { options: { config: { signInWaitH: 0 } } })
  const { world } = api
  const { body } = await api.codeLogin(ann.email)
  const told = { userId: String(ann.userId), displayName: 'Ann', restriction: 'DEVICE_NOT_LISTED' }
  t.same(body.user, told)
  t.same((await api.send(USER, { token: body.accessToken })).body, told)
  const old = await newDevice(world, ann.userId)
  const { token } = await newSession(world, ann.userId, old.deviceId)
  const device = { deviceId: String(old.deviceId), publicKeyHash: old.publicKeyHash }
  t.same((await api.send(USER, { token })).body, { ...told, device })
  await newDeviceList(world, ann.userId, [old.deviceId], 1)
  t.match(
    (await api.send(USER, { token })).body,
    { email: ann.email, restriction: undefined },
    'once it is listed',
  )
})

t.test('without a list, a session needs a device, and is free once it has one', async t => {
  const { api, ann, thief } = await openAccount(t, { isListed: false, options: WITH_LOG })
  t.same((await api.send(USER, { token: thief.token })).body, {
    userId: String(ann.userId),
    displayName: 'Ann',
    restriction: 'DEVICE_REQUIRED',
  })
  t.equal((await registerDevice(api, thief)).status, 201)
  t.equal((await api.send('GET /app/api/friend', { token: thief.token })).status, 200)
  t.match(api.told.at(-1), { userId: ann.userId, body: { kind: 'device_added' } }, 'but not unseen')
})

t.test('a session without a device is restricted from the moment on that its user has one', async t => {
  const api = await openTestApi(t, WITH_LOG)
  const ann = await newUser(api.world)
  const other = await newSession(api.world, ann.userId)
  const friends = async () => outcome(await api.send('GET /app/api/friend', { token: ann.token }))
  t.equal(await friends(), '200')
  const { body } = await registerDevice(api, other)
  t.equal(await friends(), '403 DEVICE_REQUIRED')
  await api.send(`DELETE /app/api/devices/${body.deviceId}`, { token: other.token })
  t.equal(await friends(), '200')
})

t.test('it reads its own keys and lists alone', async t => {
  const { api, thief } = await openAccount(t)
  const bob = await newUser(api.world, 'Bob')
  const { token } = thief
  const get = async (path: string) => outcome(await api.send(`GET /app/api/user/${path}`, { token }))
  t.equal(await get('publicKeys'), '200')
  t.equal(await get('device-lists'), '200')
  t.equal(await get(`publicKeys?userIds=${bob.userId}`), '403 DEVICE_NOT_LISTED')
  t.equal(await get(`device-lists?userId=${bob.userId}`), '403 DEVICE_NOT_LISTED')
})

t.test('it ends itself and no other session', async t => {
  const { api, ann, thief } = await openAccount(t)
  const before = tableDigests(api.world.database)
  const everywhere = await api.send(LOGOUT, { token: thief.token, body: { allDevices: true } })
  t.equal(outcome(everywhere), '403 DEVICE_NOT_LISTED')
  t.same({ ...tableDigests(api.world.database), sessions: '' }, { ...before, sessions: '' })
  t.equal((await api.send(LOGOUT, { token: thief.token })).status, 204)
  t.equal((await api.send(USER, { token: ann.token })).status, 200)
})

t.test('it confirms who it is, and adds no address', async t => {
  const { api, ann, thief } = await openAccount(t, { options: { config: { stepUpS: 600 } } })
  const { token } = thief
  const added = { kind: 'email', value: 'thief@example.org' }
  const bind = await api.send('POST /app/api/user/login-methods', { token: ann.token, body: added })
  const otp = await api.otpFor('thief@example.org')
  const { challengeId } = bind.body
  const verify = (token: string, challengeId: string, otp: string) =>
    api.send('POST /app/api/verify', { token, body: { challengeId, otp } })
  t.equal(outcome(await verify(token, challengeId, otp)), '410 CHALLENGE_GONE', 'as if it were not there')
  t.equal(outcome(await verify(ann.token, challengeId, otp)), '200', 'and it is untouched')
})

t.test('another device is removed by it only when it was not seen for thirty days', async t => {
  const { api, ann, deviceId, thief } = await openAccount(t)
  const remove = async (id: DeviceId, token = thief.token) =>
    outcome(await api.send(`DELETE /app/api/devices/${id}`, { token }))
  t.equal(await remove(deviceId), '403 DEVICE_NOT_LISTED')
  const old = await newDevice(api.world, ann.userId)
  const { token } = await newSession(api.world, ann.userId, old.deviceId)
  t.equal(await remove(deviceId, token), '403 DEVICE_NOT_LISTED', 'by an unlisted device')
  t.equal(await remove(old.deviceId, token), '204', 'its own')
  api.world.tick(30 * DAY_MS)
  const later = await newSession(api.world, ann.userId)
  t.equal(await remove(deviceId, later.token), '204')
  t.equal(outcome(await api.send('GET /app/api/friend', { token: later.token })), '403 DEVICE_NOT_LISTED')
})

t.test('without a list, the last device is replaced and not removed', async t => {
  const { api, ann, deviceId } = await openAccount(t, { isListed: false, options: WITH_LOG })
  api.world.tick(30 * DAY_MS)
  const thief = await newSession(api.world, ann.userId)
  const removal = await api.send(`DELETE /app/api/devices/${deviceId}`, { token: thief.token })
  t.equal(outcome(removal), '403 DEVICE_REQUIRED')
  const { status, body } = await registerDevice(api, thief, newKey(), { replacesDeviceId: deviceId })
  t.equal(status, 201)
  t.same(await deviceIds(api, thief), [body.deviceId])
})

t.test(
  'a device that was seen lately is not replaced, also when it comes back during the registration',
  async t => {
    // The phone comes back when the new key is in the log, and the new device is not there yet.
    let comeBack = async (): Promise<void> => {}
    let logged = 0
    const register: TestApiOptions['register'] = async (_userId, _deviceId, _publicKey, alongside) => {
      await api.world.database.change(change => alongside?.(change), api.world.nowMs())
      await comeBack()
      logged++
      return { index: 0, vrfHash: new Uint8Array(64) }
    }
    const { api, ann, deviceId, thief } = await openAccount(t, { isListed: false, options: { register } })
    const more = { replacesDeviceId: deviceId }
    t.equal(outcome(await registerDevice(api, thief, newKey(), more)), '403 DEVICE_REQUIRED')
    t.equal(logged, 0, 'the log was not asked')
    api.world.tick(30 * DAY_MS)
    const { token, sessionId } = await newSession(api.world, ann.userId)
    comeBack = () =>
      api.world.database.change(
        change => api.world.devices.touch(change, ann.userId, deviceId),
        api.world.nowMs(),
      )
    t.equal(outcome(await registerDevice(api, { token }, newKey(), more)), '403 DEVICE_REQUIRED')
    t.same(await deviceIds(api, { token }), [String(deviceId)])
    t.same(
      api.world.database.view(view => api.world.devices.pendingOf(view, ann.userId)),
      [],
      'nothing is left of the attempt',
    )
    t.equal(api.world.database.view(view => api.world.sessions.read(view, sessionId))?.deviceId, undefined)
  },
)

t.test('a public key makes no session a device of the list', async t => {
  const api = await openTestApi(t, WITH_LOG)
  const ann = await newUser(api.world)
  const challengeOf = ({ sessionId }: { sessionId: Uint8Array }) =>
    possessionChallenge(api.world.secrets.possession, sessionId)
  const phone = newPhone('phone')
  const first = registrationOf(phone, challengeOf(ann), listOf(ann.userId, [phone]))
  t.equal((await api.send(REGISTER, { token: ann.token, body: first })).status, 201)

  const thief = await newSession(api.world, ann.userId)
  const { body } = await api.send('GET /app/api/user/publicKeys', { token: thief.token })
  const [{ publicKey, signingKey }] = body.users[0].devices
  const register = (body: object) => api.send(REGISTER, { token: thief.token, body })
  const own = registrationOf(newPhone('of the thief'), challengeOf(thief))
  t.match(await register({ publicKey }), { status: 422, body: { errors: [{ pointer: '/signingKey' }] } })
  t.match(await register({ ...own, publicKey }), {
    status: 422,
    body: { errors: [{ pointer: '/signingKey' }] },
  })
  t.match(await register({ ...own, publicKey, signingKey }), {
    status: 422,
    body: { errors: [{ pointer: '/possession', code: 'SIGNATURE' }] },
  })
  t.match((await api.send(USER, { token: thief.token })).body, { restriction: 'DEVICE_NOT_LISTED' })
  t.equal((await registerDevice(api, ann, publicKey)).status, 200, 'the phone itself may leave the proof out')
  const again = await newSession(api.world, ann.userId)
  const proven = { token: again.token, body: registrationOf(phone, challengeOf(again)) }
  t.match(await api.send(REGISTER, proven), { status: 200, body: { deviceId: String(phone.deviceId) } })
  t.equal((await api.send('GET /app/api/friend', { token: again.token })).status, 200)
})

t.test('a device that the list does not name hears of the account, and of no request or call', async t => {
  const { api, ann, deviceId } = await openAccount(t)
  const { world } = api
  const old = await newDevice(world, ann.userId)
  const bob = await newUser(world, 'Bob')
  await world.takeSent()
  const link = await api.send('POST /app/api/share-token', { token: ann.token, body: {} })
  const ask = { token: bob.token, body: { token: link.body.token } }
  t.equal((await api.send('POST /app/api/friend-request/by-token', ask)).status, 201)
  // The request reaches her by a task of its own.
  await api.advance(1_000)
  await api.send('PUT /app/api/user', { token: ann.token, body: { displayName: 'Anna' } })
  await world.database.change(change => {
    for (const device of [deviceId, old.deviceId])
      api.stores.notices.tellDevice(change, plainNotice({ userId: ann.userId, deviceId: device }, MISSED))
    api.stores.notices.tell(change, ann.userId, { kind: 'session_revoked', reason: 'test' })
  })
  const heard = (id: DeviceId) =>
    world.database
      .view(view => world.inbox.after(view, ann.userId, id, { offset: 0, limit: 10, nowMs: world.nowMs() }))
      .map(({ item }) => (item.kind === 'notice' ? item.body.kind : item.kind))
  t.same(heard(deviceId), ['friend_request', 'call_missed', 'session_revoked'])
  t.same(heard(old.deviceId), ['profile_changed', 'session_revoked'])
  const sent = await world.takeSent()
  const pushed = sent.flatMap(message =>
    message.channel === 'push' ? [`${message.notice.kind} ${message.deviceId}`] : [],
  )
  t.same(
    pushed.sort(),
    [
      `call_missed ${deviceId}`,
      `friend_request ${deviceId}`,
      `session_revoked ${deviceId}`,
      `session_revoked ${old.deviceId}`,
    ].sort(),
  )
  await newDeviceList(world, ann.userId, [old.deviceId], 1)
  const late = sent.filter(message => message.channel === 'push' && message.deviceId === deviceId)
  const outcomes = await Promise.all(late.map(message => api.application.delivery.send(message)))
  t.same(
    late.map((message, at) => message.channel === 'push' && [message.notice.kind, outcomes[at]?.kind]),
    [
      ['friend_request', 'skipped'],
      ['call_missed', 'skipped'],
      ['session_revoked', 'sent'],
    ],
    'a push that waited is not sent to a device that the list names no more',
  )
})

t.test('it uses up none of the codes that are kept for the owner’s app', async t => {
  const { api, ann, deviceId } = await openAccount(t)
  const { world } = api
  const stepUp = (token: string) => api.send('POST /app/api/user/step-up', { token, body: { send: 'code' } })
  const login = ({ sessionId }: { readonly sessionId: Uint8Array }) => {
    const refreshToken = formatRefreshToken(world.secrets.refreshToken, { sessionId, generation: 1 })
    return api.send('POST /app/api/login', { body: { identifier: ann.email, refreshToken } })
  }
  const statuses: number[] = []
  // As often as a thief is let, for most of a day.
  for (let hour = 0; hour < 20; hour++) {
    const thief = await newSession(world, ann.userId)
    statuses.push((await stepUp(thief.token)).status, (await login(thief)).status)
    await world.advance(DAY_MS / 24)
  }
  t.same(statuses.slice(-8), Array(8).fill(429))
  const own = await newSession(world, ann.userId, deviceId)
  t.equal((await login(own)).status, 200)
  await world.advance(DAY_MS / 48)
  t.equal((await stepUp((await newSession(world, ann.userId, deviceId)).token)).status, 202)
})
