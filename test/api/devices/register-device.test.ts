/** Registration of devices over HTTP: what is taken, refused, replaced, told and counted (contract 2.5). */

import { generateKeyPairSync } from 'node:crypto'
import t from 'tap'
import { newDevice, newSession, newUser } from '../../support/application.ts'
import {
  activeDevice,
  deviceIds,
  idOf,
  newKey,
  openHouse,
  REGISTER,
  registerDevice,
  twoDevices,
} from '../../support/device-house.ts'

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
  const house = await openHouse(t, t.testdir())
  const ann = await newUser(house.world)
  const publicKey = newKey()
  const deviceInfo = { platform: 'ios', model: 'iPhone15,2', appVersion: '1.4.2', name: "Ann's iPhone" }
  const answer = await registerDevice(house, ann, publicKey, { keyAlgorithm: 'P-256', deviceInfo })
  t.equal(answer.status, 201)
  const { deviceId, vrfHash, ...rest } = answer.body
  t.same(rest, { publicKeyIndex: '0', publicKeyHash: vrfHash, keyAlgorithm: 'P-256' })
  t.equal(Buffer.from(vrfHash, 'base64').length, 64)
  t.same(house.logged(), [`${ann.userId}_${deviceId} ${publicKey}`])
  const { body } = await house.send('GET /app/api/devices', { token: ann.token })
  const { osVersion: _, ...shown } = { ...deviceInfo, osVersion: '' }
  const { createdAt, lastSeenAt, ...item } = body.items[0]
  const key = { keyAlgorithm: 'P-256', publicKeyHash: vrfHash, publicKeyIndex: '0' }
  t.same(item, { deviceId, ...shown, ...key, current: true })
  t.same([createdAt, lastSeenAt], ['2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z'])
})

t.test('each of the four encodings is logged byte for byte', async t => {
  const house = await openHouse(t, t.testdir())
  const ann = await newUser(house.world)
  const keys = [
    bothEncodings('P-256')[0],
    bothEncodings('P-256')[1],
    bothEncodings('RSA')[0],
    bothEncodings('RSA')[1],
  ]
  const algorithms: string[] = []
  for (const key of keys) algorithms.push((await registerDevice(house, ann, key)).body.keyAlgorithm)
  t.same(algorithms, ['P-256', 'P-256', 'RSA-2048', 'RSA-2048'])
  t.same(
    house.logged().map(entry => entry.split(' ')[1]),
    keys,
  )
})

t.test('a body that breaks a rule is refused by its pointer, and leaves nothing', async t => {
  const house = await openHouse(t, t.testdir())
  const { token } = await newUser(house.world)
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
    const answer = await house.send(REGISTER, { token, body })
    const pointers = answer.body.errors?.map((error: { pointer: string }) => error.pointer)
    t.same([answer.status, answer.body.code], [422, 'VALIDATION_FAILED'], JSON.stringify(body).slice(0, 80))
    t.ok(pointers?.includes(pointer), `${pointer} is among ${pointers}`)
  }
  t.same([house.logged(), house.world.database.view(view => house.world.devices.allPending(view))], [[], []])
  const nulls = { keyAlgorithm: null, deviceInfo: null, push: { fcmToken: null }, replacesDeviceId: null }
  t.equal((await house.send(REGISTER, { token, body: { publicKey, ...nulls } })).status, 201)
})

t.test('the same key again is the same device, to which the session is bound', async t => {
  const { house, ann, first } = await twoDevices(t)
  const key = activeDevice(house, ann, first)!.publicKey
  const again = await registerDevice(house, ann, key)
  t.same([again.status, again.body.deviceId, again.body.publicKeyIndex], [200, first, '0'])
  const reinstalled = await newSession(house.world, ann.userId)
  house.world.advance(5_000)
  await house.world.takeSent()
  const deviceInfo = { platform: 'ios', name: 'new name' }
  const answer = await registerDevice(house, reinstalled, key, { deviceInfo, push: { fcmToken: 'abc' } })
  t.same([answer.status, answer.body.deviceId], [200, first])
  const { body } = await house.send('GET /app/api/devices', { token: reinstalled.token })
  const item = body.items.find(({ deviceId }: { deviceId: string }) => deviceId === first)
  t.same([item.current, item.name, item.lastSeenAt], [true, 'new name', '2026-01-01T00:00:05.000Z'])
  t.equal(activeDevice(house, ann, first)?.push?.fcmToken, 'abc')
  t.equal(house.logged().length, 2, 'nothing was appended')
  t.same(await house.world.takeSent(), [], 'and nobody is told')
})

t.test('a key of another user is refused, also when their device is removed', async t => {
  const house = await openHouse(t, t.testdir())
  const [ann, bob] = [await newUser(house.world), await newUser(house.world, 'Bob')]
  const key = newKey()
  const { body } = await registerDevice(house, ann, key)
  const refused = await registerDevice(house, bob, key)
  t.same([refused.status, refused.body.code], [409, 'KEY_IN_USE'])
  await house.send(`DELETE /app/api/devices/${body.deviceId}`, { token: ann.token })
  t.equal((await registerDevice(house, bob, key)).body.code, 'KEY_IN_USE')
  t.equal(house.logged().length, 1)
})

t.test('a key of another user is refused in its other encoding too', async t => {
  const house = await openHouse(t, t.testdir())
  const [ann, bob] = [await newUser(house.world), await newUser(house.world, 'Bob')]
  for (const [one, other] of [
    bothEncodings('P-256'),
    bothEncodings('RSA'),
    bothEncodings('P-256').reverse(),
  ]) {
    t.equal((await registerDevice(house, ann, one)).status, 201)
    t.equal((await registerDevice(house, bob, other)).body.code, 'KEY_IN_USE')
  }
})

t.test('a key in its other encoding is the device that has it, with the bytes first sent', async t => {
  const house = await openHouse(t, t.testdir())
  const ann = await newUser(house.world)
  for (const [one, other] of [
    bothEncodings('P-256'),
    bothEncodings('RSA'),
    bothEncodings('P-256').reverse(),
  ]) {
    const first = await registerDevice(house, ann, one)
    const again = await registerDevice(house, ann, other)
    t.same([again.status, again.body], [200, first.body])
    t.equal(activeDevice(house, ann, first.body.deviceId)?.publicKey, one)
  }
  t.equal(house.logged().length, 3)
})

t.test('both encodings of a key that are sent at once make one device', async t => {
  const house = await openHouse(t, t.testdir())
  const ann = await newUser(house.world)
  const [one, other] = bothEncodings('P-256')
  const answers = await Promise.all([one, other, one].map(key => registerDevice(house, ann, key)))
  t.same(
    answers.map(({ status }) => status),
    [201, 200, 200],
  )
  t.same([(await deviceIds(house, ann)).length, house.logged().length], [1, 1])
})

t.test('a removed key that comes back in its other encoding is one device again', async t => {
  const house = await openHouse(t, t.testdir())
  const ann = await newUser(house.world)
  const [one, other] = bothEncodings('P-256')
  const { deviceId } = (await registerDevice(house, ann, one)).body
  await house.send(`DELETE /app/api/devices/${deviceId}`, { token: ann.token })
  const again = await newSession(house.world, ann.userId)
  const back = await registerDevice(house, again, other)
  t.equal(back.status, 201)
  const first = await registerDevice(house, again, one)
  t.same([first.status, first.body.deviceId], [200, back.body.deviceId])
})

t.test(
  'the key of a device that its user removed becomes a new device, with an entry of its own',
  async t => {
    const house = await openHouse(t, t.testdir())
    const ann = await newUser(house.world)
    const key = newKey()
    const { deviceId } = (await registerDevice(house, ann, key)).body
    await house.send(`DELETE /app/api/devices/${deviceId}`, { token: ann.token })
    const again = await newSession(house.world, ann.userId)
    const answer = await registerDevice(house, again, key)
    t.equal(answer.status, 201)
    t.not(answer.body.deviceId, deviceId, 'an id is never used again')
    t.same(house.logged(), [
      `${ann.userId}_${deviceId} ${key}`,
      `${ann.userId}_${answer.body.deviceId} ${key}`,
    ])
    t.same(await deviceIds(house, again), [answer.body.deviceId])
  },
)

t.test('a new key on the same phone is a new device; the old one stays if it is not replaced', async t => {
  const { house, ann, first, second } = await twoDevices(t)
  const { status, body } = await registerDevice(house, ann)
  t.equal(status, 201)
  t.same((await deviceIds(house, ann)).sort(), [first, second, body.deviceId].sort())
  t.equal(
    house.world.database.view(view => house.world.sessions.read(view, ann.sessionId))?.deviceId,
    BigInt(body.deviceId),
  )
})

t.test('a replaced device is gone with its other sessions, and the one that replaced it goes on', async t => {
  const { house, ann, other, first, second } = await twoDevices(t)
  const lingering = await newSession(house.world, ann.userId, idOf(first))
  const key = newKey()
  const { status, body } = await registerDevice(house, ann, key, { replacesDeviceId: first })
  t.equal(status, 201)
  t.same((await deviceIds(house, ann)).sort(), [second, body.deviceId].sort())
  t.same((await deviceIds(house, other)).length, 2)
  const ended = await house.send('GET /app/api/devices', { token: lingering.token })
  t.same([ended.status, ended.body.code], [401, 'SESSION_REVOKED'])
  const { deviceId } = body
  const told = [`device_removed ${first} except ${deviceId}`, `device_added ${deviceId} except ${deviceId}`]
  t.same(house.told.slice(-2), told)
  const repeated = await registerDevice(house, ann, key, { replacesDeviceId: first })
  t.same([repeated.status, repeated.body.deviceId], [200, body.deviceId], 'its repetition is no mistake')
  const itself = await registerDevice(house, ann, key, { replacesDeviceId: body.deviceId })
  t.same([itself.status, (await deviceIds(house, ann)).length], [200, 2], 'nothing replaces itself')
})

t.test('only an active device of the same user can be replaced', async t => {
  const { house, ann, other, second } = await twoDevices(t)
  const bob = await newUser(house.world, 'Bob')
  const bobs = await newDevice(house.world, bob.userId)
  await house.send(`DELETE /app/api/devices/${second}`, { token: other.token })
  for (const replacesDeviceId of [String(bobs.deviceId), second, '18446744073709551615', 0]) {
    const answer = await registerDevice(house, ann, newKey(), { replacesDeviceId })
    t.same([answer.status, answer.body.code], [404, 'DEVICE_NOT_FOUND'], String(replacesDeviceId))
  }
  t.equal(house.world.database.view(view => house.world.devices.activeDevicesOf(view, bob.userId)).length, 1)
  t.equal(house.logged().length, 2)
})

t.test('ten devices are the most, and one of them can be replaced', async t => {
  const house = await openHouse(t, t.testdir())
  const ann = await newUser(house.world)
  const ids: string[] = []
  for (let count = 0; count < 10; count++) ids.push((await registerDevice(house, ann)).body.deviceId)
  const refused = await registerDevice(house, ann)
  t.same([refused.status, refused.body.code], [409, 'DEVICE_LIMIT'])
  t.equal(house.logged().length, 10)
  t.equal((await registerDevice(house, ann, newKey(), { replacesDeviceId: ids[0] })).status, 201)
  t.equal((await registerDevice(house, ann)).body.code, 'DEVICE_LIMIT')
  await house.send(`DELETE /app/api/devices/${ids[1]}`, { token: ann.token })
  t.equal((await registerDevice(house, ann)).status, 201, 'a removed one makes room')
})

t.test('the other devices get a push about a new one, and the new one does not', async t => {
  const house = await openHouse(t, t.testdir())
  const ann = await newUser(house.world)
  const other = await newDevice(house.world, ann.userId)
  await newDevice(house.world, (await newUser(house.world, 'Bob')).userId)
  const more = { deviceInfo: { platform: 'android', model: 'Pixel 8' }, push: { fcmToken: 'new' } }
  const { body } = await registerDevice(house, ann, newKey(), more)
  const sent = await house.world.takeSent()
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
    const house = await openHouse(t, folder, { rates: true })
    const ann = await newUser(house.world)
    const key = newKey()
    await registerDevice(house, ann, key)
    for (let count = 1; count < 9; count++) {
      const session = await newSession(house.world, ann.userId)
      const { body } = await registerDevice(house, session)
      await house.send(`DELETE /app/api/devices/${body.deviceId}`, session)
    }
    house.harm({ at: 'log', harm: 'refused' })
    t.equal((await registerDevice(house, ann)).status, 503)
    house.harm()
    for (let count = 0; count < 5; count++) t.equal((await registerDevice(house, ann, key)).status, 200)
    await house.close()
    const unlimited = await openHouse(t, folder)
    const { token: other } = await newSession(unlimited.world, ann.userId)
    t.equal((await registerDevice(unlimited, { token: other })).status, 201, 'not counted')
    await unlimited.close()

    const restarted = await openHouse(t, folder, { rates: true })
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
  const house = await openHouse(t, t.testdir())
  const { token } = await newUser(house.world)
  const [headers, publicKey] = [{ 'idempotency-key': 'once' }, newKey()]
  const first = await house.send(REGISTER, { token, headers, body: { publicKey } })
  const again = await house.send(REGISTER, { token, headers, body: { publicKey } })
  t.same([first.status, again.status, again.body], [201, 201, first.body])
  const other = await house.send(REGISTER, { token, headers, body: { publicKey: newKey() } })
  t.same([other.status, other.body.code], [422, 'IDEMPOTENCY_KEY_REUSED'])
  t.equal(house.logged().length, 1, 'before anything is logged')
})

t.test('after signing in anew the same key binds the new session, too', async t => {
  const house = await openHouse(t, t.testdir())
  const { token, userId } = await newUser(house.world)
  const request = { headers: { 'idempotency-key': 'once' }, body: { publicKey: newKey() } }
  const first = await house.send(REGISTER, { ...request, token })
  const again = await newSession(house.world, userId)
  const second = await house.send(REGISTER, { ...request, token: again.token })
  t.same([second.status, second.body.deviceId], [200, first.body.deviceId])
  const { items } = (await house.send('GET /app/api/devices', { token: again.token })).body
  t.match(items, [{ deviceId: first.body.deviceId, current: true }])
})

t.test('a frozen log registers nothing and says so', async t => {
  const house = await openHouse(t, t.testdir(), { isFrozen: true })
  const ann = await newUser(house.world)
  const answer = await registerDevice(house, ann)
  t.same([answer.status, answer.body.code], [503, 'LOG_UNAVAILABLE'])
  t.same(
    [
      house.logged(),
      house.world.database.view(view => house.world.devices.allPending(view)),
      await deviceIds(house, ann),
    ],
    [[], [], []],
  )
})
