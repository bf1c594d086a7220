/** The tables of devices on a real store: active devices, owners of keys and push tokens, traces of erasure. */

import t, { type Test } from 'tap'
import type {
  Device,
  PendingDevice,
  PushTokenName,
  PushTokens,
  TokenVerdict,
} from '../../../src/domain/devices/device.ts'
import type { DeviceId, UserId } from '../../../src/domain/ids.ts'
import { DeviceStore } from '../../../src/store/devices/device-store.ts'
import { LmdbStore } from '../../../src/store/engine/lmdb-store.ts'
import type { View } from '../../../src/store/engine/store.ts'

const [ANN, BOB] = [5_000_000_001n as UserId, 5_000_000_002n as UserId]
const PUSH = {
  apnsToken: 'aa',
  apnsVoipToken: 'bb',
  fcmToken: 'cc',
  registeredAtMs: { apnsToken: 1_000, apnsVoipToken: 1_000, fcmToken: 1_000 },
}

function openDevices(t: Test) {
  const database = LmdbStore.open(t.testdir())
  t.teardown(() => database.close())
  return { database, devices: new DeviceStore(database) }
}

/** A device whose id, key and times come from its number. */
function device(number: number, push?: PushTokens): Device {
  return {
    deviceId: BigInt(number) as DeviceId,
    info: { platform: 'ios' },
    publicKey: `key ${number}`,
    keyAlgorithm: 'P-256',
    publicKeyIndex: number,
    publicKeyHash: `hash ${number}`,
    ...(push && { push }),
    createdAtMs: 1_000,
    lastSeenAtMs: 1_000,
  }
}

function pending(number: number): PendingDevice {
  const { deviceId, info, publicKey, keyAlgorithm } = device(number)
  return {
    deviceId,
    info,
    publicKey,
    keyAlgorithm,
    sessionId: new Uint8Array(16).fill(3),
    startedAtMs: 1_000,
  }
}

const idOf = (number: number) => BigInt(number) as DeviceId
const idsOf = (devices: readonly { deviceId: DeviceId }[]) => devices.map(({ deviceId }) => Number(deviceId))

t.test('a removed device is found by its id and is no longer active', async t => {
  const { database, devices } = openDevices(t)
  await database.change(change => {
    for (const number of [1, 2, 3]) devices.put(change, ANN, device(number, number === 2 ? PUSH : undefined))
    devices.put(change, BOB, device(2))
  })
  const removed = await database.change(change => devices.remove(change, ANN, idOf(2)), 7_000)
  t.equal(removed?.removedAtMs, 7_000)
  t.same(
    database.view(view => devices.read(view, ANN, idOf(2))),
    { ...device(2), removedAtMs: 7_000 },
    'without push tokens',
  )
  t.equal(
    database.view(view => devices.active(view, ANN, idOf(2))),
    undefined,
  )
  t.same(idsOf(database.view(view => devices.activeDevicesOf(view, ANN))), [1, 3])
  t.same(idsOf(database.view(view => devices.activeDevicesOf(view, BOB))), [2])
  t.equal(await database.change(change => devices.remove(change, ANN, idOf(2)), 8_000), undefined, 'once')
  t.equal(await database.change(change => devices.remove(change, ANN, idOf(9)), 8_000), undefined)
})

t.test(
  'what a user said of a device goes with it, and whoever is told of its end hears it once more',
  async t => {
    const { database, devices } = openDevices(t)
    const info = { platform: 'ios', model: 'iPhone15,2', name: "Ann's iPhone", timeZone: 'Asia/Ho_Chi_Minh' }
    await database.change(change => devices.put(change, ANN, { ...device(1), info }))
    const removed = await database.change(change => devices.remove(change, ANN, idOf(1)), 7_000)
    t.same(removed?.info, info)
    t.same(database.view(view => devices.read(view, ANN, idOf(1)))?.info, { platform: 'ios' })
  },
)

t.test(
  'a key is of one user from the begin of its registration, also when its device is removed',
  async t => {
    const { database, devices } = openDevices(t)
    const owner = { userId: ANN, deviceId: idOf(1) }
    await database.change(change => devices.begin(change, ANN, pending(1)))
    t.same(
      database.view(view => devices.ownerOfKey(view, 'key 1')),
      owner,
    )
    t.same(
      database.view(view => devices.pendingOf(view, ANN)),
      [pending(1)],
    )
    t.same(
      database.view(view => devices.allPending(view)),
      [owner],
    )
    t.same(
      database.view(view => devices.activeDevicesOf(view, ANN)),
      [],
    )
    await database.change(change => devices.finish(change, ANN, device(1)))
    t.same(
      [database.view(view => devices.pendingOf(view, ANN)), database.view(view => devices.allPending(view))],
      [[], []],
    )
    t.same(idsOf(database.view(view => devices.activeDevicesOf(view, ANN))), [1])
    await database.change(change => devices.remove(change, ANN, idOf(1)), 2_000)
    t.same(
      database.view(view => devices.ownerOfKey(view, 'key 1')),
      owner,
    )
  },
)

t.test('an abandoned registration leaves its key to anyone', async t => {
  const { database, devices } = openDevices(t)
  await database.change(change => devices.begin(change, ANN, pending(1)))
  await database.change(change => devices.abandon(change, ANN, idOf(1)))
  t.same(
    [
      database.view(view => devices.ownerOfKey(view, 'key 1')),
      database.view(view => devices.allPending(view)),
    ],
    [undefined, []],
  )
  await database.change(change => devices.begin(change, BOB, pending(1)))
  await database.change(change => devices.abandon(change, ANN, idOf(1)))
  t.equal(
    database.view(view => devices.ownerOfKey(view, 'key 1'))?.userId,
    BOB,
    'and what is not there is not abandoned',
  )
})

t.test('an abandoned registration leaves the key of a removed device with its user', async t => {
  const { database, devices } = openDevices(t)
  await database.change(change => devices.begin(change, ANN, pending(1)))
  await database.change(change => devices.finish(change, ANN, device(1)))
  await database.change(change => devices.remove(change, ANN, idOf(1)), 2_000)
  await database.change(change => devices.begin(change, ANN, { ...pending(2), publicKey: 'key 1' }))
  await database.change(change => devices.abandon(change, ANN, idOf(2)))
  t.same(
    database.view(view => devices.ownerOfKey(view, 'key 1')),
    { userId: ANN, deviceId: idOf(1) },
  )
})

t.test('a push token that shows up on another device is gone from the first', async t => {
  const { database, devices } = openDevices(t)
  await database.change(change => devices.put(change, ANN, device(1, PUSH)))
  await database.change(change =>
    devices.put(change, BOB, device(2, { fcmToken: 'cc', registeredAtMs: { fcmToken: 2_000 } })),
  )
  t.same(database.view(view => devices.active(view, ANN, idOf(1)))?.push, {
    apnsToken: 'aa',
    apnsVoipToken: 'bb',
    registeredAtMs: { apnsToken: 1_000, apnsVoipToken: 1_000 },
  })
  const others = {
    apnsToken: 'aa',
    apnsVoipToken: 'bb',
    registeredAtMs: { apnsToken: 3_000, apnsVoipToken: 3_000 },
  }
  await database.change(change => devices.put(change, BOB, device(3, others)))
  t.equal(database.view(view => devices.active(view, ANN, idOf(1)))?.push, undefined)
  t.same(database.view(view => devices.active(view, BOB, idOf(2)))?.push, {
    fcmToken: 'cc',
    registeredAtMs: { fcmToken: 2_000 },
  })
  await database.change(change => devices.put(change, ANN, device(1, PUSH)))
  t.same(database.view(view => devices.active(view, ANN, idOf(1)))?.push, PUSH, 'and back')
  t.same(
    idsOf(database.view(view => devices.activeDevicesOf(view, BOB)).filter(({ push }) => push !== undefined)),
    [],
  )
})

t.test('a token that its device gave up, or lost with it, is no takeover', async t => {
  const { database, devices } = openDevices(t)
  await database.change(change => devices.put(change, ANN, device(1, PUSH)))
  await database.change(change => devices.put(change, ANN, device(1, { ...PUSH, apnsToken: 'dd' })))
  await database.change(change =>
    devices.put(change, BOB, device(2, { apnsToken: 'aa', registeredAtMs: { apnsToken: 2_000 } })),
  )
  t.equal(database.view(view => devices.active(view, ANN, idOf(1)))?.push?.apnsToken, 'dd')
  await database.change(change => devices.remove(change, ANN, idOf(1)), 2_000)
  await database.change(change => devices.forgetPush(change, BOB, idOf(2)))
  t.equal(database.view(view => devices.active(view, BOB, idOf(2)))?.push, undefined)
  await database.change(change => devices.put(change, ANN, device(3, { ...PUSH, apnsVoipToken: 'dd' })))
  t.same(database.view(view => devices.active(view, ANN, idOf(3)))?.push, { ...PUSH, apnsVoipToken: 'dd' })
})

t.test('a token that its provider calls gone is dropped, unless it was registered later', async t => {
  const { database, devices } = openDevices(t)
  await database.change(change => devices.put(change, ANN, device(1, PUSH)))
  const tokens = () => database.view(view => devices.active(view, ANN, idOf(1)))?.push
  const hear = (name: PushTokenName, token: string, verdict: TokenVerdict['verdict'], atMs: number, id = 1) =>
    database.change(change =>
      devices.judgeToken(change, { userId: ANN, deviceId: idOf(id) }, { name, token, verdict, atMs }),
    )
  await hear('apnsToken', 'aa', 'gone', 1_000)
  await hear('apnsToken', 'of yesterday', 'gone', 1_001)
  t.same(tokens(), PUSH, 'registered at that moment, or another token')
  await hear('apnsToken', 'aa', 'gone', 1_001)
  t.same([tokens()?.apnsToken, tokens()?.apnsVoipToken], [undefined, 'bb'])
  t.same(tokens()?.registeredAtMs, { apnsVoipToken: 1_000, fcmToken: 1_000 })
  for (const _ of [1, 2]) await hear('fcmToken', 'cc', 'gone', 1_001)
  await hear('apnsVoipToken', 'bb', 'unknown', 2_000)
  t.same(tokens()?.doubtedAtMs, { apnsVoipToken: 2_000 })
  await hear('apnsVoipToken', 'bb', 'unknown', 2_000 + 86_400_000)
  t.equal(tokens(), undefined, 'nothing remains of the last one')
  await hear('apnsToken', 'aa', 'gone', 2_000, 9)
  await database.change(change =>
    devices.setApnsEnvironment(change, { userId: ANN, deviceId: idOf(1) }, 'development'),
  )
  t.equal(tokens(), undefined)
})

t.test('the environment of APNs that knew the token is kept', async t => {
  const { database, devices } = openDevices(t)
  await database.change(change => devices.put(change, ANN, device(1, PUSH)))
  await database.change(change =>
    devices.setApnsEnvironment(change, { userId: ANN, deviceId: idOf(1) }, 'development'),
  )
  t.same(database.view(view => devices.active(view, ANN, idOf(1)))?.push, {
    ...PUSH,
    apnsEnvironment: 'development',
  })
})

t.test('when a device was last heard of is noted once an hour', async t => {
  const { database, devices } = openDevices(t)
  await database.change(change => devices.put(change, ANN, device(1, PUSH)))
  const hour = 3_600_000
  const seen: (number | undefined)[] = []
  for (const atMs of [1_000 + hour - 1, 1_000 + hour, 1_000 + hour + 5, 1_000 + 2 * hour]) {
    await database.change(change => devices.touch(change, ANN, idOf(1)), atMs)
    seen.push(database.view(view => devices.active(view, ANN, idOf(1)))?.lastSeenAtMs)
  }
  t.same(seen, [1_000, 1_000 + hour, 1_000 + hour, 1_000 + 2 * hour])
  await database.change(change => devices.touch(change, ANN, idOf(2)), 9_000_000)
  t.equal(
    database.view(view => devices.active(view, ANN, idOf(2))),
    undefined,
    'a device that is not there is not made',
  )
})

t.test('erasure leaves nothing of one user and everything of the rest', async t => {
  const { database, devices } = openDevices(t)
  await database.change(change => {
    for (const number of [1, 2]) devices.put(change, ANN, device(number, number === 1 ? PUSH : undefined))
    for (const number of [3, 4]) devices.begin(change, ANN, pending(number))
    devices.finish(change, ANN, device(3))
    devices.remove(change, ANN, idOf(3))
    devices.begin(change, BOB, pending(5))
    devices.finish(change, BOB, device(5, { apnsToken: 'ee', registeredAtMs: { apnsToken: 1_000 } }))
  }, 2_000)
  await database.change(change => devices.eraseOf(change, ANN))
  t.same(
    [
      database.view(view => devices.activeDevicesOf(view, ANN)),
      database.view(view => devices.pendingOf(view, ANN)),
      database.view(view => devices.allPending(view)),
    ],
    [[], [], []],
  )
  const kept = [1, 2, 3, 4].filter(
    number => database.view(view => devices.read(view, ANN, idOf(number))) !== undefined,
  )
  t.same(kept, [])
  t.same(
    ['key 3', 'key 4'].map(key => database.view(view => devices.ownerOfKey(view, key))),
    [undefined, undefined],
  )
  t.equal(database.view(view => devices.ownerOfKey(view, 'key 5'))?.userId, BOB)
  const rows = ['devices', 'devices-removed', 'devices-pending', 'device-keys', 'push-tokens'].map(name =>
    database.rowCount(database.storedRows(name)),
  )
  t.same(rows, [1, 0, 0, 1, 1], "Bob's device, key and token are what is left")
})

t.test('erasure leaves a key that another user now has', async t => {
  const { database, devices } = openDevices(t)
  await database.change(change => {
    devices.begin(change, ANN, pending(1))
    devices.finish(change, ANN, device(1))
    devices.remove(change, ANN, idOf(1))
    devices.begin(change, ANN, { ...pending(2), publicKey: 'key 1' })
    devices.abandon(change, ANN, idOf(2))
    devices.begin(change, BOB, { ...pending(3), publicKey: 'key 1' })
  }, 2_000)
  await database.change(change => devices.eraseOf(change, ANN))
  t.equal(database.view(view => devices.ownerOfKey(view, 'key 1'))?.userId, BOB)
})

t.test('everything is there when the store is opened again', async t => {
  const folder = t.testdir()
  const first = LmdbStore.open(folder)
  const before = new DeviceStore(first)
  await first.change(change => {
    before.put(change, ANN, device(1, PUSH))
    before.begin(change, ANN, { ...pending(2), replacesDeviceId: idOf(1) })
  })
  await first.close()
  const second = LmdbStore.open(folder)
  t.teardown(() => second.close())
  const after = new DeviceStore(second)
  t.same(
    second.view(view => after.activeDevicesOf(view, ANN)),
    [device(1, PUSH)],
  )
  const [found] = second.view(view => after.pendingOf(view, ANN))
  t.same(
    { ...found, sessionId: [...found!.sessionId] },
    {
      ...pending(2),
      sessionId: Array(16).fill(3),
      replacesDeviceId: idOf(1),
    },
  )
})

t.test('active devices are as they are durable, and within a transaction as it has made them', async t => {
  const { database, devices } = openDevices(t)
  const idsIn = (view: View) => idsOf(devices.activeDevicesOf(view, ANN))
  const ids = () => database.view(idsIn)
  t.same(ids(), [])
  const put = database.change(change => {
    devices.put(change, ANN, device(1))
    return idsIn(change)
  })
  const second = database.change(idsIn)
  t.same(ids(), [], 'not before it is durable')
  t.same(await put, [1])
  t.same(await second, [1], 'the next one sees what it made')
  t.same([ids(), ids()], [[1], [1]])
  const failing = database.change(change => {
    const seen = idsIn(change)
    devices.put(change, BOB, device(2))
    throw new Error(`of ${seen}`)
  })
  await t.rejects(failing, { message: 'of 1' })
  await database.change(change => devices.touch(change, ANN, idOf(1)), 9_000_000)
  t.equal(database.view(view => devices.activeDevicesOf(view, ANN))[0]?.lastSeenAtMs, 9_000_000)
  await database.change(change => devices.eraseOf(change, ANN))
  t.same(ids(), [])
})
