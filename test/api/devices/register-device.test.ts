/** Registration of devices over HTTP: valid, refused, replaced, announced and counted (contract 2.5). */

import { generateKeyPairSync } from 'node:crypto'
import t from 'tap'
import { newDevice, newSession, newUser } from '../../support/application.ts'
import {
  activeDevice,
  deviceIds,
  idOf,
  newKey,
  REGISTER,
  registerDevice,
  toldOfDevices,
  twoDevices,
  WITH_LOG,
} from '../../support/device-requests.ts'
import { openTestApi } from '../../support/test-api.ts'

const TENTH_OF_A_DAY_MS = 8_640_000

/** A new key as SPKI, and as Apple's key export gives it, which is the end of that. */
function bothEncodings(algorithm: 'P-256' | 'RSA'): string[] {
  const { publicKey } =
    algorithm === 'RSA'
      ? generateKeyPairSync('rsa', { modulusLength: 2048 })
      : generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const spki = publicKey.export({ type: 'spki', format: 'der' })
  return [spki, spki.subarray(algorithm === 'RSA' ? -270 : -65)].map(bytes => bytes.toString('base64'))
}

t.test('a registered device is in the log under its id, with the key as it was sent', async t => {
  const api = await openTestApi(t, WITH_LOG)
  const ann = await newUser(api.world)
  const publicKey = newKey()
  const deviceInfo = { platform: 'ios', model: 'iPhone15,2', appVersion: '1.4.2', name: "Ann's iPhone" }
  const answer = await registerDevice(api, ann, publicKey, { keyAlgorithm: 'P-256', deviceInfo })
  t.equal(answer.status, 201)
  const { deviceId, vrfHash, ...rest } = answer.body
  t.same(rest, { publicKeyIndex: '0', publicKeyHash: vrfHash, keyAlgorithm: 'P-256' })
  t.equal(Buffer.from(vrfHash, 'base64').length, 64)
  t.same(api.log.entries(), [`${ann.userId}_${deviceId} ${publicKey}`])
  const { body } = await api.send('GET /app/api/devices', { token: ann.token })
  const { osVersion: _, ...shown } = { ...deviceInfo, osVersion: '' }
  const { createdAt, lastSeenAt, ...item } = body.items[0]
  const key = { keyAlgorithm: 'P-256', publicKeyHash: vrfHash, publicKeyIndex: '0' }
  t.same(item, { deviceId, ...shown, ...key, current: true })
  t.same([createdAt, lastSeenAt], ['2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z'])
})

t.test('each of the four encodings is logged byte for byte', async t => {
  const api = await openTestApi(t, WITH_LOG)
  const ann = await newUser(api.world)
  const keys = [
    bothEncodings('P-256')[0],
    bothEncodings('P-256')[1],
    bothEncodings('RSA')[0],
    bothEncodings('RSA')[1],
  ]
  const algorithms: string[] = []
  for (const key of keys) algorithms.push((await registerDevice(api, ann, key)).body.keyAlgorithm)
  t.same(algorithms, ['P-256', 'P-256', 'RSA-2048', 'RSA-2048'])
  t.same(
    api.log.entries().map(entry => entry.split(' ')[1]),
    keys,
  )
})

t.test('a body that breaks a rule is refused by its pointer, and leaves nothing', async t => {
  const api = await openTestApi(t, WITH_LOG)
  const { token } = await newUser(api.world)
  const publicKey = newKey()
  const cases: readonly (readonly [body: unknown, pointer: string])[] = [
    [{}, '/publicKey'],
    [{ publicKey: 7 }, '/publicKey'],
    [{ publicKey: '' }, '/publicKey'],
    [{ publicKey: 'AAAA' }, '/publicKey'],
    [{ publicKey: `${publicKey}\n` }, '/publicKey'],
    [{ publicKey: 'A'.repeat(1028) }, '/publicKey'],
    [{ publicKey: Buffer.concat([Buffer.of(4), Buffer.alloc(64, 9)]).toString('base64') }, '/publicKey'],
    [{ publicKey, keyAlgorithm: 'RSA-2048' }, '/keyAlgorithm'],
    [{ publicKey, keyAlgorithm: 'Ed25519' }, '/keyAlgorithm'],
    [{ publicKey, deviceInfo: 'ios' }, '/deviceInfo'],
    [{ publicKey, deviceInfo: { name: 'x'.repeat(101) } }, '/deviceInfo/name'],
    [{ publicKey, deviceInfo: { name: 'bell\u0007' } }, '/deviceInfo/name'],
    [{ publicKey, deviceInfo: { platform: '' } }, '/deviceInfo/platform'],
    [{ publicKey, deviceInfo: { model: '\u202e\u200b' } }, '/deviceInfo/model'],
    [{ publicKey, push: { apnsToken: 'f'.repeat(63) } }, '/push/apnsToken'],
    [{ publicKey, push: { apnsToken: 'g'.repeat(64) } }, '/push/apnsToken'],
    [{ publicKey, push: { apnsVoipToken: 'f'.repeat(201) } }, '/push/apnsVoipToken'],
    [{ publicKey, push: { apnsEnvironment: 'sandbox' } }, '/push/apnsEnvironment'],
    [{ publicKey, push: { bundleId: 'com.example/app' } }, '/push/bundleId'],
    [{ publicKey, push: { fcmToken: 'x'.repeat(4097) } }, '/push/fcmToken'],
    [{ publicKey, push: { fcmToken: 'a b' } }, '/push/fcmToken'],
    [{ publicKey, replacesDeviceId: -1 }, '/replacesDeviceId'],
    [{ publicKey, replacesDeviceId: '01' }, '/replacesDeviceId'],
  ]
  for (const [body, pointer] of cases) {
    const answer = await api.send(REGISTER, { token, body })
    const pointers = answer.body.errors?.map((error: { pointer: string }) => error.pointer)
    t.same([answer.status, answer.body.code], [422, 'VALIDATION_FAILED'], JSON.stringify(body).slice(0, 80))
    t.ok(pointers?.includes(pointer), `${pointer} is among ${pointers}`)
  }
  t.same([api.log.entries(), api.world.database.view(view => api.world.devices.allPending(view))], [[], []])
  const nulls = { keyAlgorithm: null, deviceInfo: null, push: { fcmToken: null }, replacesDeviceId: null }
  t.equal((await api.send(REGISTER, { token, body: { publicKey, ...nulls } })).status, 201)
})

t.test('the same key again is the same device, to which the session is bound', async t => {
  const { api, ann, first } = await twoDevices(t)
  const key = activeDevice(api, ann, first)!.publicKey
  const again = await registerDevice(api, ann, key)
  t.same([again.status, again.body.deviceId, again.body.publicKeyIndex], [200, first, '0'])
  const reinstalled = await newSession(api.world, ann.userId)
  api.world.advance(5_000)
  await api.world.takeSent()
  const deviceInfo = { platform: 'ios', name: 'new\u202e\u200b name' }
  const answer = await registerDevice(api, reinstalled, key, { deviceInfo, push: { fcmToken: 'abc' } })
  t.same([answer.status, answer.body.deviceId], [200, first])
  const { body } = await api.send('GET /app/api/devices', { token: reinstalled.token })
  const item = body.items.find(({ deviceId }: { deviceId: string }) => deviceId === first)
  t.same([item.current, item.name, item.lastSeenAt], [true, 'new name', '2026-01-01T00:00:05.000Z'])
  t.equal(activeDevice(api, ann, first)?.push?.fcmToken, 'abc')
  t.equal(api.log.entries().length, 2, 'nothing was appended')
  t.same(await api.world.takeSent(), [], 'and nobody is told')
})

t.test('a key of another user is refused, also when their device is removed', async t => {
  const api = await openTestApi(t, WITH_LOG)
  const [ann, bob] = [await newUser(api.world), await newUser(api.world, 'Bob')]
  const key = newKey()
  const { body } = await registerDevice(api, ann, key)
  const refused = await registerDevice(api, bob, key)
  t.same([refused.status, refused.body.code], [409, 'KEY_IN_USE'])
  await api.send(`DELETE /app/api/devices/${body.deviceId}`, { token: ann.token })
  t.equal((await registerDevice(api, bob, key)).body.code, 'KEY_IN_USE')
  t.equal(api.log.entries().length, 1)
})

t.test('a key of another user is refused in its other encoding too', async t => {
  const api = await openTestApi(t, WITH_LOG)
  const [ann, bob] = [await newUser(api.world), await newUser(api.world, 'Bob')]
  for (const [one, other] of [
    bothEncodings('P-256'),
    bothEncodings('RSA'),
    bothEncodings('P-256').reverse(),
  ]) {
    t.equal((await registerDevice(api, ann, one)).status, 201)
    t.equal((await registerDevice(api, bob, other)).body.code, 'KEY_IN_USE')
  }
})

t.test('a key in its other encoding is the device that has it, with the bytes first sent', async t => {
  const api = await openTestApi(t, WITH_LOG)
  const ann = await newUser(api.world)
  for (const [one, other] of [
    bothEncodings('P-256'),
    bothEncodings('RSA'),
    bothEncodings('P-256').reverse(),
  ]) {
    const first = await registerDevice(api, ann, one)
    const again = await registerDevice(api, ann, other)
    t.same([again.status, again.body], [200, first.body])
    t.equal(activeDevice(api, ann, first.body.deviceId)?.publicKey, one)
  }
  t.equal(api.log.entries().length, 3)
})

t.test('both encodings of a key that are sent at once make one device', async t => {
  const api = await openTestApi(t, WITH_LOG)
  const ann = await newUser(api.world)
  const [one, other] = bothEncodings('P-256')
  const answers = await Promise.all([one, other, one].map(key => registerDevice(api, ann, key)))
  t.same(
    answers.map(({ status }) => status),
    [201, 200, 200],
  )
  t.same([(await deviceIds(api, ann)).length, api.log.entries().length], [1, 1])
})

t.test('a removed key that comes back in its other encoding is one device again', async t => {
  const api = await openTestApi(t, WITH_LOG)
  const ann = await newUser(api.world)
  const [one, other] = bothEncodings('P-256')
  const { deviceId } = (await registerDevice(api, ann, one)).body
  await api.send(`DELETE /app/api/devices/${deviceId}`, { token: ann.token })
  const again = await newSession(api.world, ann.userId)
  const back = await registerDevice(api, again, other)
  t.equal(back.status, 201)
  const first = await registerDevice(api, again, one)
  t.same([first.status, first.body.deviceId], [200, back.body.deviceId])
})

t.test(
  'the key of a device that its user removed becomes a new device, with an entry of its own',
  async t => {
    const api = await openTestApi(t, WITH_LOG)
    const ann = await newUser(api.world)
    const key = newKey()
    const { deviceId } = (await registerDevice(api, ann, key)).body
    await api.send(`DELETE /app/api/devices/${deviceId}`, { token: ann.token })
    const again = await newSession(api.world, ann.userId)
    const answer = await registerDevice(api, again, key)
    t.equal(answer.status, 201)
    t.not(answer.body.deviceId, deviceId, 'an id is never used again')
    t.same(api.log.entries(), [
      `${ann.userId}_${deviceId} ${key}`,
      `${ann.userId}_${answer.body.deviceId} ${key}`,
    ])
    t.same(await deviceIds(api, again), [answer.body.deviceId])
  },
)

t.test('a new key on the same phone is a new device; the old one stays if it is not replaced', async t => {
  const { api, ann, first, second } = await twoDevices(t)
  const { status, body } = await registerDevice(api, ann)
  t.equal(status, 201)
  t.same((await deviceIds(api, ann)).sort(), [first, second, body.deviceId].sort())
  t.equal(
    api.world.database.view(view => api.world.sessions.read(view, ann.sessionId))?.deviceId,
    BigInt(body.deviceId),
  )
})

t.test('a replaced device is gone with its other sessions, and the one that replaced it goes on', async t => {
  const { api, ann, other, first, second } = await twoDevices(t)
  const lingering = await newSession(api.world, ann.userId, idOf(first))
  const key = newKey()
  const { status, body } = await registerDevice(api, ann, key, { replacesDeviceId: first })
  t.equal(status, 201)
  t.same((await deviceIds(api, ann)).sort(), [second, body.deviceId].sort())
  t.same((await deviceIds(api, other)).length, 2)
  const ended = await api.send('GET /app/api/devices', { token: lingering.token })
  t.same([ended.status, ended.body.code], [401, 'SESSION_REVOKED'])
  const { deviceId } = body
  const told = [`device_removed ${first} except ${deviceId}`, `device_added ${deviceId} except ${deviceId}`]
  t.same(toldOfDevices(api).slice(-2), told)
  const repeated = await registerDevice(api, ann, key, { replacesDeviceId: first })
  t.same([repeated.status, repeated.body.deviceId], [200, body.deviceId], 'its repetition is no mistake')
  const itself = await registerDevice(api, ann, key, { replacesDeviceId: body.deviceId })
  t.same([itself.status, (await deviceIds(api, ann)).length], [200, 2], 'nothing replaces itself')
})

t.test('only an active device of the same user can be replaced', async t => {
  const { api, ann, other, second } = await twoDevices(t)
  const bob = await newUser(api.world, 'Bob')
  const bobs = await newDevice(api.world, bob.userId)
  await api.send(`DELETE /app/api/devices/${second}`, { token: other.token })
  for (const replacesDeviceId of [String(bobs.deviceId), second, '18446744073709551615', 0]) {
    const answer = await registerDevice(api, ann, newKey(), { replacesDeviceId })
    t.same([answer.status, answer.body.code], [404, 'DEVICE_NOT_FOUND'], String(replacesDeviceId))
  }
  t.equal(api.world.database.view(view => api.world.devices.activeDevicesOf(view, bob.userId)).length, 1)
  t.equal(api.log.entries().length, 2)
})

t.test('ten devices are the most, and one of them can be replaced', async t => {
  const api = await openTestApi(t, WITH_LOG)
  const ann = await newUser(api.world)
  const ids: string[] = []
  for (let count = 0; count < 10; count++) ids.push((await registerDevice(api, ann)).body.deviceId)
  const refused = await registerDevice(api, ann)
  t.same([refused.status, refused.body.code], [409, 'DEVICE_LIMIT'])
  t.equal(api.log.entries().length, 10)
  t.equal((await registerDevice(api, ann, newKey(), { replacesDeviceId: ids[0] })).status, 201)
  t.equal((await registerDevice(api, ann)).body.code, 'DEVICE_LIMIT')
  await api.send(`DELETE /app/api/devices/${ids[1]}`, { token: ann.token })
  t.equal((await registerDevice(api, ann)).status, 201, 'a removed one makes room')
})

t.test('the other devices get a push about a new one, and the new one does not', async t => {
  const api = await openTestApi(t, WITH_LOG)
  const ann = await newUser(api.world)
  const other = await newDevice(api.world, ann.userId)
  await newDevice(api.world, (await newUser(api.world, 'Bob')).userId)
  const more = { deviceInfo: { platform: 'android', model: 'Pixel 8' }, push: { fcmToken: 'new' } }
  const { body } = await registerDevice(api, ann, newKey(), more)
  const sent = await api.world.takeSent()
  t.equal(sent.length, 1)
  const { deviceId, publicKeyHash } = body
  const notice = { kind: 'device_added', name: 'Pixel 8', platform: 'android', publicKeyHash }
  t.match(sent[0], {
    channel: 'push',
    deviceId: other.deviceId,
    notice: { ...notice, deviceId: BigInt(deviceId) },
  })
})

t.test(
  'ten new keys a day are taken, also across a restart; known keys, failures and what has no limit cost nothing',
  async t => {
    const folder = t.testdir()
    const api = await openTestApi(t, { ...WITH_LOG, folder, rates: true })
    const ann = await newUser(api.world)
    const key = newKey()
    await registerDevice(api, ann, key)
    for (let count = 1; count < 9; count++) {
      const session = await newSession(api.world, ann.userId)
      const { body } = await registerDevice(api, session)
      await api.send(`DELETE /app/api/devices/${body.deviceId}`, session)
    }
    api.log.harm({ at: 'log', harm: 'refused' })
    t.equal((await registerDevice(api, ann)).status, 503)
    api.log.harm()
    for (let count = 0; count < 5; count++) t.equal((await registerDevice(api, ann, key)).status, 200)
    await api.close()
    const unlimited = await openTestApi(t, { ...WITH_LOG, folder })
    const { token: other } = await newSession(unlimited.world, ann.userId)
    t.equal((await registerDevice(unlimited, { token: other })).status, 201, 'not counted')
    await unlimited.close()

    const restarted = await openTestApi(t, { ...WITH_LOG, folder, rates: true })
    const { token } = await newSession(restarted.world, ann.userId)
    t.equal((await registerDevice(restarted, { token })).status, 201, 'the tenth')
    const refused = await registerDevice(restarted, { token })
    t.match(refused, { status: 429, body: { code: 'RATE_LIMITED', scope: 'user', retryIn: 8640 } })
    await restarted.world.advance(TENTH_OF_A_DAY_MS)
    const later = await newSession(restarted.world, ann.userId)
    t.equal((await registerDevice(restarted, later)).status, 201)
  },
)

t.test('an Idempotency-Key brings the same answer again, and with another body a refusal', async t => {
  const api = await openTestApi(t, WITH_LOG)
  const { token } = await newUser(api.world)
  const [headers, publicKey] = [{ 'idempotency-key': 'once' }, newKey()]
  const first = await api.send(REGISTER, { token, headers, body: { publicKey } })
  const again = await api.send(REGISTER, { token, headers, body: { publicKey } })
  t.same([first.status, again.status, again.body], [201, 201, first.body])
  const other = await api.send(REGISTER, { token, headers, body: { publicKey: newKey() } })
  t.same([other.status, other.body.code], [422, 'IDEMPOTENCY_KEY_REUSED'])
  t.equal(api.log.entries().length, 1, 'before anything is logged')
})

t.test('after signing in anew the same key binds the new session, too', async t => {
  const api = await openTestApi(t, WITH_LOG)
  const { token, userId } = await newUser(api.world)
  const request = { headers: { 'idempotency-key': 'once' }, body: { publicKey: newKey() } }
  const first = await api.send(REGISTER, { ...request, token })
  const again = await newSession(api.world, userId)
  const second = await api.send(REGISTER, { ...request, token: again.token })
  t.same([second.status, second.body.deviceId], [200, first.body.deviceId])
  const { items } = (await api.send('GET /app/api/devices', { token: again.token })).body
  t.match(items, [{ deviceId: first.body.deviceId, current: true }])
})

t.test('a frozen log registers nothing and says so', async t => {
  const api = await openTestApi(t, { ...WITH_LOG, log: 'frozen' })
  const ann = await newUser(api.world)
  const answer = await registerDevice(api, ann)
  t.same([answer.status, answer.body.code], [503, 'LOG_UNAVAILABLE'])
  t.same(
    [
      api.log.entries(),
      api.world.database.view(view => api.world.devices.allPending(view)),
      await deviceIds(api, ann),
    ],
    [[], [], []],
  )
})
