/** Devices that are there: listed, pushed to, removed (contract 2.5). */

import t from 'tap'
import { newDevice, newSession, newUser } from '../../support/application.ts'
import {
  activeDevice,
  deviceIds,
  idOf,
  newKey,
  registerDevice,
  toldOfDevices,
  twoDevices,
  WITH_LOG,
} from '../../support/device-requests.ts'
import { openTestApi } from '../../support/test-api.ts'

t.test('push tokens are renewed one at a time, taken back when empty, and moved between devices', async t => {
  const { api, ann, other, first, second } = await twoDevices(t)
  const tokensOf = (id: string) => activeDevice(api, ann, id)?.push
  const put = (token: string, body: object) => api.send('PUT /app/api/devices/current/push', { token, body })
  const apns = { apnsToken: 'AB'.repeat(32), apnsEnvironment: 'development', bundleId: 'com.example.app' }
  t.equal((await put(ann.token, apns)).status, 204)
  await api.world.advance(1_000)
  await put(ann.token, { apnsVoipToken: 'cd'.repeat(32) })
  const lowerCase = { ...apns, apnsToken: 'ab'.repeat(32) }
  const nowMs = api.world.nowMs()
  const alertMs = { apnsToken: nowMs - 1_000 }
  t.same(tokensOf(first), {
    ...lowerCase,
    apnsVoipToken: 'cd'.repeat(32),
    registeredAtMs: { ...alertMs, apnsVoipToken: nowMs },
  })
  await put(ann.token, { apnsVoipToken: '', unknown: 'member' })
  t.same(tokensOf(first), { ...lowerCase, registeredAtMs: alertMs })
  await put(other.token, { apnsToken: 'ab'.repeat(32), bundleId: 'com.example.app' })
  t.equal(tokensOf(first), undefined, 'the phone signs in as another device')
  t.equal(tokensOf(second)?.apnsToken, 'ab'.repeat(32))
  await api.world.advance(1_000)
  t.equal((await put(other.token, {})).status, 204)
  t.same(tokensOf(second)?.registeredAtMs, { apnsToken: nowMs }, 'a request without a token changes nothing')
  await put(other.token, { apnsToken: 'AB'.repeat(32) })
  t.same(tokensOf(second)?.registeredAtMs, { apnsToken: nowMs + 1_000 }, 'the same token sent anew')
})

const ENDPOINT = 'https://push.example/send/a'
const P256DH = 'BGsX0fLhLEJH-Lzm5WOkQPJ3A32BLeszoPShOUXYmMKWT-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU'
const KEYS = { p256dh: P256DH, auth: 'A'.repeat(22) }

t.test('a browser’s subscription is renewed, taken back and taken over as a token is', async t => {
  const { api, ann, other, first, second } = await twoDevices(t)
  const pushOf = (id: string) => activeDevice(api, ann, id)?.push
  const put = (token: string, webPush: object) =>
    api.send('PUT /app/api/devices/current/push', { token, body: { webPush } })
  const nowMs = api.world.nowMs()
  t.equal((await put(ann.token, { endpoint: ENDPOINT, expirationTime: null, keys: KEYS })).status, 204)
  const stored = { webPush: { endpoint: ENDPOINT, keys: KEYS }, registeredAtMs: { webPush: nowMs } }
  t.same(pushOf(first), stored)
  const keys = { ...KEYS, auth: 'B'.repeat(21).concat('A') }
  await put(ann.token, { endpoint: ENDPOINT, keys })
  t.same(pushOf(first)?.webPush?.keys, keys, 'the same endpoint with other keys')
  await put(other.token, { endpoint: ENDPOINT, keys })
  t.same([pushOf(first), pushOf(second)?.webPush?.endpoint], [undefined, ENDPOINT])
  t.same((await put(other.token, { endpoint: '' })).status, 204)
  t.equal(pushOf(second), undefined)
})

t.test('a subscription elsewhere, or without keys of its form, is refused', async t => {
  const { api, ann, first } = await twoDevices(t)
  const put = (webPush: object) =>
    api.send('PUT /app/api/devices/current/push', { token: ann.token, body: { webPush } })
  const refused = [
    [{ endpoint: 'https://127.0.0.1/x', keys: KEYS }, 'PUSH_ENDPOINT_REFUSED'],
    [{ endpoint: 'http://push.example/x', keys: KEYS }, 'PUSH_ENDPOINT_REFUSED'],
    [{ endpoint: 'https://push.example.org/x' }, 'PUSH_ENDPOINT_REFUSED'],
    [{ endpoint: `${ENDPOINT}${'x'.repeat(1_024)}`, keys: KEYS }, '/webPush/endpoint'],
    [{ endpoint: ENDPOINT }, '/webPush/keys'],
    [{ endpoint: ENDPOINT, keys: { ...KEYS, auth: 'A' } }, '/webPush/keys/auth'],
    [{ endpoint: ENDPOINT, keys: { ...KEYS, p256dh: 'B'.repeat(87) } }, '/webPush/keys/p256dh'],
    [{ keys: KEYS }, '/webPush/endpoint'],
  ] as const
  for (const [webPush, fault] of refused) {
    const { status, body } = await put(webPush)
    t.same([status, body.errors?.[0].pointer ?? body.code], [422, fault])
  }
  t.equal(activeDevice(api, ann, first)?.push, undefined)
})

t.test('a registration may bring a subscription, and is judged likewise', async t => {
  const api = await openTestApi(t, WITH_LOG)
  const user = await newUser(api.world)
  const register = (endpoint: string) =>
    registerDevice(api, user, newKey(), { push: { webPush: { endpoint, keys: KEYS } } })
  t.match(await register('https://example.org/x'), { status: 422, body: { code: 'PUSH_ENDPOINT_REFUSED' } })
  const { deviceId } = (await register(ENDPOINT)).body
  t.equal(activeDevice(api, user, deviceId)?.push?.webPush?.endpoint, ENDPOINT)
})

t.test('the key of sealed pushes is kept with the tokens, and never given out', async t => {
  const { api, ann, first } = await twoDevices(t)
  const put = (body: object) => api.send('PUT /app/api/devices/current/push', { token: ann.token, body })
  const pushKey = Buffer.alloc(32, 0xfb).toString('base64')
  t.equal((await put({ pushKey })).status, 204)
  t.equal((await put({ fcmToken: 'f' })).status, 204)
  t.match(activeDevice(api, ann, first)?.push, { pushKey, fcmToken: 'f' })
  for (const operation of ['GET /app/api/devices', 'GET /app/api/user', 'GET /app/api/user/export']) {
    const { status, text } = await api.send(operation, { token: ann.token })
    t.equal(status, 200, operation)
    t.notMatch(text, pushKey)
  }
  for (const bad of [
    pushKey.slice(1),
    `${pushKey.slice(0, -2)}9=`,
    'k'.repeat(44),
    `${pushKey}${pushKey}`,
    7,
  ]) {
    t.match(await put({ pushKey: bad }), { status: 422, body: { code: 'VALIDATION_FAILED' } }, `${bad}`)
  }
  await put({ pushKey: '' })
  t.equal(activeDevice(api, ann, first)?.push?.pushKey, undefined)
})

t.test(
  'a push token that another device takes over is told to its user, by push if another user did it',
  async t => {
    const { api, ann, other, first, second } = await twoDevices(t)
    const bob = await newUser(api.world, 'Bob')
    const bobs: string = (await registerDevice(api, bob)).body.deviceId
    const put = (token: string, body: object) =>
      api.send('PUT /app/api/devices/current/push', { token, body })
    const pair = { fcmToken: 'f', apnsToken: 'aa'.repeat(32), bundleId: 'com.example.app' }
    await put(ann.token, { ...pair, apnsVoipToken: 'bb'.repeat(32) })
    await put(other.token, { fcmToken: 'tablet' })
    await api.world.takeSent()
    await put(bob.token, pair)
    t.same(activeDevice(api, ann, first)?.push?.apnsVoipToken, 'bb'.repeat(32))
    t.equal(
      toldOfDevices(api).at(-1),
      `device_push_lost ${first} except undefined`,
      'one message, to all of Ann’s devices',
    )
    const pushes = (await api.world.takeSent()).flatMap(sent => (sent.channel === 'push' ? [sent] : []))
    t.same(pushes.map(({ deviceId }) => String(deviceId)).sort(), [first, second].sort())
    const lost = { kind: 'device_push_lost', deviceId: idOf(first), tokens: ['apnsToken', 'fcmToken'] }
    for (const { notice } of pushes) t.match(notice, lost)
    await put(ann.token, { fcmToken: 'f' })
    t.equal(toldOfDevices(api).at(-1), `device_push_lost ${bobs} except undefined`, 'and the other way round')
    await api.world.takeSent()
    await put(other.token, { fcmToken: 'f' })
    t.equal(toldOfDevices(api).at(-1), `device_push_lost ${first} except undefined`)
    t.same(await api.world.takeSent(), [], 'one’s own other device is no alarm')
    const told = api.told.length
    await put(other.token, { fcmToken: 'f' })
    t.equal(api.told.length, told, 'nor is a token that is sent again')
  },
)

t.test('a device that takes the place of another brings its push token along without a word', async t => {
  const { api, ann, first } = await twoDevices(t)
  await api.send('PUT /app/api/devices/current/push', { token: ann.token, body: { fcmToken: 'f' } })
  const answer = await registerDevice(api, ann, newKey(), {
    replacesDeviceId: first,
    push: { fcmToken: 'f' },
  })
  t.equal(activeDevice(api, ann, answer.body.deviceId)?.push?.fcmToken, 'f')
  t.notMatch(toldOfDevices(api).join(), /device_push_lost/)
})

t.test('push tokens that come while their session ends are not kept', async t => {
  const { api, ann, first } = await twoDevices(t)
  const { database, sessions, devices } = api.world
  const body = { fcmToken: 'abc' }
  await api.send('PUT /app/api/devices/current/push', { token: ann.token, body })
  const logout = database.change(change => {
    for (const id of sessions.idsOf(change, ann.userId)) sessions.remove(change, id)
    devices.forgetPush(change, ann.userId, idOf(first))
  })
  const late = await api.send('PUT /app/api/devices/current/push', { token: ann.token, body })
  await logout
  t.same([late.status, late.body.code], [401, 'TOKEN_INVALID'])
  t.equal(activeDevice(api, ann, first)?.push, undefined)
})

t.test('push tokens need a device', async t => {
  const api = await openTestApi(t, WITH_LOG)
  const { token } = await newUser(api.world)
  const answer = await api.send('PUT /app/api/devices/current/push', { token, body: { fcmToken: 'abc' } })
  t.same([answer.status, answer.body.code], [403, 'DEVICE_NOT_REGISTERED'])
})

t.test('devices are listed newest first, without tokens and keys, and without any other user’s', async t => {
  const api = await openTestApi(t, WITH_LOG)
  const [ann, bob] = [await newUser(api.world), await newUser(api.world, 'Bob')]
  t.same((await api.send('GET /app/api/devices', { token: ann.token })).body, { items: [] })
  const ids: string[] = []
  for (let count = 0; count < 3; count++) {
    ids.unshift((await registerDevice(api, ann, newKey(), { push: { fcmToken: `t${count}` } })).body.deviceId)
    await api.world.advance(1_000)
  }
  const { body } = await api.send('GET /app/api/devices', { token: ann.token })
  t.same(await deviceIds(api, ann), ids)
  t.same(
    body.items.map(({ current }: { current: boolean }) => current),
    [true, false, false],
  )
  t.same(Object.keys(body.items[0]).sort(), [
    'createdAt',
    'current',
    'deviceId',
    'keyAlgorithm',
    'lastSeenAt',
    'name',
    'platform',
    'publicKeyHash',
    'publicKeyIndex',
  ])
  t.same(await deviceIds(api, bob), [])
})

t.test('a removed device loses its sessions and pushes; its key stays in the log', async t => {
  const { api, ann, other, first, second } = await twoDevices(t)
  await api.send('PUT /app/api/devices/current/push', { token: other.token, body: { fcmToken: 'abc' } })
  const remove = (id: string) => api.send(`DELETE /app/api/devices/${id}`, { token: ann.token })
  t.equal((await remove(second)).status, 204)
  const ended = await api.send('GET /app/api/devices', { token: other.token })
  t.same([ended.status, ended.body.code], [401, 'SESSION_REVOKED'])
  t.same(await deviceIds(api, ann), [first])
  t.equal(toldOfDevices(api).at(-1), `device_removed ${second} except undefined`)
  const row = api.world.database.view(view => api.world.devices.read(view, ann.userId, idOf(second)))
  t.same([row?.removedAtMs, row?.push], [api.world.nowMs(), undefined])
  t.equal(api.log.entries().length, 2)
  const again = await remove(second)
  t.same([again.status, again.body.code], [404, 'DEVICE_NOT_FOUND'])
})

t.test('a device that is unknown, foreign or no number is not found', async t => {
  const { api, ann } = await twoDevices(t)
  const bob = await newUser(api.world, 'Bob')
  const bobs = await newDevice(api.world, bob.userId)
  for (const id of [bobs.deviceId, 1n, 18_446_744_073_709_551_616n, 'x', '-1', '%20']) {
    const answer = await api.send(`DELETE /app/api/devices/${id}`, { token: ann.token })
    t.same([answer.status, answer.body.code], [404, 'DEVICE_NOT_FOUND'], String(id))
  }
  t.equal(api.world.database.view(view => api.world.devices.activeDevicesOf(view, bob.userId)).length, 1)
})

t.test('removing the current device is a logout', async t => {
  const { api, ann, first, second, other } = await twoDevices(t)
  const sameDevice = await newSession(api.world, ann.userId, idOf(first))
  t.equal((await api.send(`DELETE /app/api/devices/${first}`, { token: ann.token })).status, 204)
  const codes: string[] = []
  for (const { token } of [ann, sameDevice]) {
    codes.push((await api.send('GET /app/api/devices', { token })).body.code)
  }
  t.same(codes, ['TOKEN_INVALID', 'SESSION_REVOKED'])
  t.same(await deviceIds(api, other), [second])
})
