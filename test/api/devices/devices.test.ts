/** Devices that are there: listed, pushed to, removed (contract 2.5). */

import t from 'tap'
import { newDevice, newSession, newUser } from '../../support/application.ts'
import {
  activeDevice,
  deviceIds,
  idOf,
  newKey,
  openHouse,
  registerDevice,
  twoDevices,
} from '../../support/device-house.ts'

t.test('push tokens are renewed one at a time, taken back when empty, and moved between devices', async t => {
  const { house, ann, other, first, second } = await twoDevices(t)
  const tokensOf = (id: string) => activeDevice(house, ann, id)?.push
  const put = (token: string, body: object) =>
    house.send('PUT /app/api/devices/current/push', { token, body })
  const apns = { apnsToken: 'AB'.repeat(32), apnsEnvironment: 'development', bundleId: 'com.example.app' }
  t.equal((await put(ann.token, apns)).status, 204)
  await house.world.advance(1_000)
  await put(ann.token, { apnsVoipToken: 'cd'.repeat(32) })
  const lowerCase = { ...apns, apnsToken: 'ab'.repeat(32) }
  const registeredAtMs = house.world.nowMs()
  t.same(tokensOf(first), { ...lowerCase, apnsVoipToken: 'cd'.repeat(32), registeredAtMs })
  await put(ann.token, { apnsVoipToken: '', unknown: 'member' })
  t.same(tokensOf(first), { ...lowerCase, registeredAtMs })
  await put(other.token, { apnsToken: 'ab'.repeat(32), bundleId: 'com.example.app' })
  t.equal(tokensOf(first), undefined, 'the phone signs in as another device')
  t.equal(tokensOf(second)?.apnsToken, 'ab'.repeat(32))
  await house.world.advance(1_000)
  t.equal((await put(other.token, {})).status, 204)
  t.same([tokensOf(second)?.apnsToken, tokensOf(second)?.registeredAtMs], ['ab'.repeat(32), registeredAtMs])
})

t.test(
  'a push token that another device takes over is told to its user, by push if another user did it',
  async t => {
    const { house, ann, other, first, second } = await twoDevices(t)
    const bob = await newUser(house.world, 'Bob')
    const bobs: string = (await registerDevice(house, bob)).body.deviceId
    const put = (token: string, body: object) =>
      house.send('PUT /app/api/devices/current/push', { token, body })
    const pair = { fcmToken: 'f', apnsToken: 'aa'.repeat(32), bundleId: 'com.example.app' }
    await put(ann.token, { ...pair, apnsVoipToken: 'bb'.repeat(32) })
    await put(other.token, { fcmToken: 'tablet' })
    await house.world.takeSent()
    await put(bob.token, pair)
    t.same(activeDevice(house, ann, first)?.push?.apnsVoipToken, 'bb'.repeat(32))
    t.equal(
      house.told.at(-1),
      `device_push_lost ${first} except undefined`,
      'one message, to all of Ann’s devices',
    )
    const pushes = (await house.world.takeSent()).flatMap(sent => (sent.channel === 'push' ? [sent] : []))
    t.same(pushes.map(({ deviceId }) => String(deviceId)).sort(), [first, second].sort())
    const lost = { kind: 'device_push_lost', deviceId: idOf(first), tokens: ['apnsToken', 'fcmToken'] }
    for (const { notice } of pushes) t.match(notice, lost)
    await put(ann.token, { fcmToken: 'f' })
    t.equal(house.told.at(-1), `device_push_lost ${bobs} except undefined`, 'and the other way round')
    await house.world.takeSent()
    await put(other.token, { fcmToken: 'f' })
    t.equal(house.told.at(-1), `device_push_lost ${first} except undefined`)
    t.same(await house.world.takeSent(), [], 'one’s own other device is no alarm')
    const told = house.told.length
    await put(other.token, { fcmToken: 'f' })
    t.equal(house.told.length, told, 'nor is a token that is sent again')
  },
)

t.test('a device that takes the place of another brings its push token along without a word', async t => {
  const { house, ann, first } = await twoDevices(t)
  await house.send('PUT /app/api/devices/current/push', { token: ann.token, body: { fcmToken: 'f' } })
  const answer = await registerDevice(house, ann, newKey(), {
    replacesDeviceId: first,
    push: { fcmToken: 'f' },
  })
  t.equal(activeDevice(house, ann, answer.body.deviceId)?.push?.fcmToken, 'f')
  t.notMatch(house.told.join(), /device_push_lost/)
})

t.test('push tokens that come while their session ends are not kept', async t => {
  const { house, ann, first } = await twoDevices(t)
  const { database, sessions, devices } = house.world
  const body = { fcmToken: 'abc' }
  await house.send('PUT /app/api/devices/current/push', { token: ann.token, body })
  const logout = database.change(change => {
    for (const id of sessions.idsOf(change, ann.userId)) sessions.remove(change, id)
    devices.forgetPush(change, ann.userId, idOf(first))
  })
  const late = await house.send('PUT /app/api/devices/current/push', { token: ann.token, body })
  await logout
  t.same([late.status, late.body.code], [401, 'TOKEN_INVALID'])
  t.equal(activeDevice(house, ann, first)?.push, undefined)
})

t.test('push tokens need a device', async t => {
  const house = await openHouse(t, t.testdir())
  const { token } = await newUser(house.world)
  const answer = await house.send('PUT /app/api/devices/current/push', { token, body: { fcmToken: 'abc' } })
  t.same([answer.status, answer.body.code], [403, 'DEVICE_NOT_REGISTERED'])
})

t.test('devices are listed newest first, without tokens and keys, and without any other user’s', async t => {
  const house = await openHouse(t, t.testdir())
  const [ann, bob] = [await newUser(house.world), await newUser(house.world, 'Bob')]
  t.same((await house.send('GET /app/api/devices', { token: ann.token })).body, { items: [] })
  const ids: string[] = []
  for (let count = 0; count < 3; count++) {
    ids.unshift(
      (await registerDevice(house, ann, newKey(), { push: { fcmToken: `t${count}` } })).body.deviceId,
    )
    await house.world.advance(1_000)
  }
  const { body } = await house.send('GET /app/api/devices', { token: ann.token })
  t.same(await deviceIds(house, ann), ids)
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
  t.same(await deviceIds(house, bob), [])
})

t.test('a removed device loses its sessions and pushes; its key stays in the log', async t => {
  const { house, ann, other, first, second } = await twoDevices(t)
  await house.send('PUT /app/api/devices/current/push', { token: other.token, body: { fcmToken: 'abc' } })
  const remove = (id: string) => house.send(`DELETE /app/api/devices/${id}`, { token: ann.token })
  t.equal((await remove(second)).status, 204)
  const ended = await house.send('GET /app/api/devices', { token: other.token })
  t.same([ended.status, ended.body.code], [401, 'SESSION_REVOKED'])
  t.same(await deviceIds(house, ann), [first])
  t.equal(house.told.at(-1), `device_removed ${second} except undefined`)
  const row = house.world.database.view(view => house.world.devices.read(view, ann.userId, idOf(second)))
  t.same([row?.removedAtMs, row?.push], [house.world.nowMs(), undefined])
  t.equal(house.logged().length, 2)
  const again = await remove(second)
  t.same([again.status, again.body.code], [404, 'DEVICE_NOT_FOUND'])
})

t.test('a device that is unknown, foreign or no number is not found', async t => {
  const { house, ann } = await twoDevices(t)
  const bob = await newUser(house.world, 'Bob')
  const bobs = await newDevice(house.world, bob.userId)
  for (const id of [bobs.deviceId, 1n, 18_446_744_073_709_551_616n, 'x', '-1', '%20']) {
    const answer = await house.send(`DELETE /app/api/devices/${id}`, { token: ann.token })
    t.same([answer.status, answer.body.code], [404, 'DEVICE_NOT_FOUND'], String(id))
  }
  t.equal(house.world.database.view(view => house.world.devices.activeDevicesOf(view, bob.userId)).length, 1)
})

t.test('removing the current device is a logout', async t => {
  const { house, ann, first, second, other } = await twoDevices(t)
  const sameDevice = await newSession(house.world, ann.userId, idOf(first))
  t.equal((await house.send(`DELETE /app/api/devices/${first}`, { token: ann.token })).status, 204)
  const codes: string[] = []
  for (const { token } of [ann, sameDevice]) {
    codes.push((await house.send('GET /app/api/devices', { token })).body.code)
  }
  t.same(codes, ['TOKEN_INVALID', 'SESSION_REVOKED'])
  t.same(await deviceIds(house, other), [second])
})
