/**
 * The order of a registration, attacked: the process ends between any two steps, each write fails before and after it
 * takes effect, requests run side by side. Whatever happens, one key becomes one device with one entry in the log.
 */

import t from 'tap'
import type { DeviceId, UserId } from '../../../src/domain/ids.ts'
import { newDevice, newSession, newUser, type TestUser } from '../../support/application.ts'
import { deviceIds, newKey, REGISTER, registerDevice, WITH_LOG } from '../../support/device-requests.ts'
import type { Fault } from '../../support/registration-log.ts'
import { openTestApi, type TestApi } from '../../support/test-api.ts'

/** The changes of a registration beside the log's batch, in their order. */
const [FINISH, ABANDON] = [1, 2]
const NAMES = ['', 'finish', 'abandon']
const nameOf = ({ at }: Fault) => (at === 'log' ? at : NAMES[at])

/** Faults against the final state: one device, one entry, no trace of the attempts. */
function faultsOf({ world, log }: TestApi, userId: UserId, key: string, deviceId: string): string[] {
  const devices = world.database
    .view(view => world.devices.activeDevicesOf(view, userId))
    .filter(({ publicKey }) => publicKey === key)
  const [device] = devices
  const owner = world.database.view(view => world.devices.ownerOfKey(view, key))
  const entry = `${userId}_${deviceId} ${key}`
  const expectations: readonly (readonly [string, boolean])[] = [
    ['one device', devices.length === 1 && String(device!.deviceId) === deviceId],
    ['its key is its own', owner?.userId === userId && String(owner.deviceId) === deviceId],
    ['nothing pends', world.database.view(view => world.devices.allPending(view)).length === 0],
    ['one entry of its id', log.entries().filter(each => each === entry).length === 1],
    ['its index is the one in the log', log.entries()[device?.publicKeyIndex ?? -1] === entry],
  ]
  return expectations.filter(([, holds]) => !holds).map(([name]) => name)
}

const CRASHES: readonly (Fault & { readonly finished: 0 | 1; readonly answers: 200 | 201 })[] = [
  { at: 'log', harm: 'crash before', finished: 0, answers: 201 },
  { at: 'log', harm: 'crash after', finished: 1, answers: 200 },
  { at: FINISH, harm: 'crash before', finished: 1, answers: 200 },
  { at: FINISH, harm: 'crash after', finished: 0, answers: 200 },
]

for (const { finished, answers, ...fault } of CRASHES) {
  t.test(
    `a ${fault.harm} write ${fault.at} is mended at the start, and the client gets its device`,
    async t => {
      const folder = t.testdir()
      const first = await openTestApi(t, { ...WITH_LOG, folder })
      const ann = await newUser(first.world)
      const watcher = await newDevice(first.world, ann.userId)
      const replaced = await newDevice(first.world, ann.userId, false)
      const body = { publicKey: newKey(), push: { fcmToken: 'new' }, replacesDeviceId: replaced.deviceId }
      const crashed = first.log.harm(fault)
      void first.send(REGISTER, { token: ann.token, body })
      await crashed
      await first.close()

      const second = await openTestApi(t, { ...WITH_LOG, folder })
      t.same(await second.application.registration.repairPending(), { finished, abandoned: 0, left: 0 })
      const repeated = await second.send(REGISTER, { token: ann.token, body })
      t.equal(repeated.status, answers)
      const { deviceId } = repeated.body
      t.same(faultsOf(second, ann.userId, body.publicKey, deviceId), [])
      t.equal(second.log.entries().length, 1)
      t.same((await deviceIds(second, ann)).sort(), [deviceId, String(watcher.deviceId)].sort())
      const { body: list } = await second.send('GET /app/api/devices', { token: ann.token })
      const current = list.items.filter(({ current }: { current: boolean }) => current)
      t.same(
        current.map(({ deviceId }: { deviceId: string }) => deviceId),
        [deviceId],
      )
      const told = (await second.world.takeSent()).map(
        message => message.channel === 'push' && message.deviceId,
      )
      t.same(told, [watcher.deviceId], 'the other device is told once')
      t.same(await second.application.registration.repairPending(), { finished: 0, abandoned: 0, left: 0 })
    },
  )
}

t.test('a client that asks again before the repair gets the device that was begun', async t => {
  const folder = t.testdir()
  const first = await openTestApi(t, { ...WITH_LOG, folder })
  const [ann, key] = [await newUser(first.world), newKey()]
  const crashed = first.log.harm({ at: FINISH, harm: 'crash before' })
  void registerDevice(first, ann, key)
  await crashed
  const [begun] = first.world.database.view(view => first.world.devices.pendingOf(view, ann.userId))
  await first.close()
  const second = await openTestApi(t, { ...WITH_LOG, folder })
  const { status, body } = await registerDevice(second, ann, key)
  t.same([status, body.deviceId], [201, String(begun?.deviceId)])
  t.same(faultsOf(second, ann.userId, key, body.deviceId), [])
  t.equal(second.log.entries().length, 1)
})

t.test('a registration that was begun in one encoding ends in it, whichever is sent next', async t => {
  const folder = t.testdir()
  const first = await openTestApi(t, { ...WITH_LOG, folder })
  const spki = Buffer.from('3059301306072a8648ce3d020106082a8648ce3d030107034200', 'hex')
  const [ann, key] = [await newUser(first.world), newKey()]
  const other = Buffer.concat([spki, Buffer.from(key, 'base64')]).toString('base64')
  const crashed = first.log.harm({ at: FINISH, harm: 'crash before' })
  void registerDevice(first, ann, key)
  await crashed
  await first.close()
  const second = await openTestApi(t, { ...WITH_LOG, folder })
  const { status, body } = await registerDevice(second, ann, other)
  t.equal(status, 201)
  t.same(faultsOf(second, ann.userId, key, body.deviceId), [])
  t.equal(second.log.entries().length, 1)
})

/** Each failure, and the next attempt's result: the same id or another, and the log's number of entries. */
const FAILURES: readonly {
  readonly faults: readonly Fault[]
  readonly code: string
  readonly pending: number
  readonly answers: 200 | 201
  readonly entries: number
}[] = [
  { faults: [{ at: 'log', harm: 'refused' }], code: 'LOG_UNAVAILABLE', pending: 0, answers: 201, entries: 1 },
  {
    // The first attempt's entry has an id without a device.
    faults: [{ at: 'log', harm: 'done but refused' }],
    code: 'LOG_UNAVAILABLE',
    pending: 0,
    answers: 201,
    entries: 2,
  },
  {
    faults: [
      { at: 'log', harm: 'done but refused' },
      { at: FINISH, harm: 'refused' },
    ],
    code: 'LOG_UNAVAILABLE',
    pending: 1,
    answers: 201,
    entries: 1,
  },
  {
    faults: [{ at: FINISH, harm: 'refused' }],
    code: 'STORE_UNAVAILABLE',
    pending: 0,
    answers: 201,
    entries: 2,
  },
  {
    faults: [
      { at: FINISH, harm: 'refused' },
      { at: ABANDON, harm: 'refused' },
    ],
    code: 'STORE_UNAVAILABLE',
    pending: 1,
    answers: 201,
    entries: 1,
  },
  {
    faults: [{ at: FINISH, harm: 'done but refused' }],
    code: 'STORE_UNAVAILABLE',
    pending: 0,
    answers: 200,
    entries: 1,
  },
]

for (const { faults, code, pending, answers, entries } of FAILURES) {
  const title = faults.map(fault => `${nameOf(fault)} ${fault.harm}`).join(', then ')
  t.test(`${title}: the client hears of it, and its next attempt makes one device`, async t => {
    const api = await openTestApi(t, WITH_LOG)
    const [ann, key] = [await newUser(api.world), newKey()]
    api.log.harm(...faults)
    const failed = await registerDevice(api, ann, key)
    t.same([failed.status, failed.body.code], [503, code])
    t.equal(api.world.database.view(view => api.world.devices.allPending(view)).length, pending)
    api.log.harm()
    const { status, body } = await registerDevice(api, ann, key)
    t.equal(status, answers)
    t.same(faultsOf(api, ann.userId, key, body.deviceId), [])
    t.equal(api.log.entries().length, entries)
    t.equal((await deviceIds(api, ann)).length, 1)
  })
}

t.test('a log that does not answer in time is an unavailable log', async t => {
  const api = await openTestApi(t, WITH_LOG)
  const ann = await newUser(api.world)
  api.log.harm({ at: 'log', harm: 'late' })
  const { status, body } = await registerDevice(api, ann)
  t.same([status, body.code], [503, 'LOG_UNAVAILABLE'])
  t.same(
    api.world.database.view(view => api.world.devices.allPending(view)),
    [],
  )
})

t.test('one key sent many times at once, by two sessions, is one device', async t => {
  const api = await openTestApi(t, WITH_LOG)
  const [ann, key] = [await newUser(api.world), newKey()]
  const other = await newSession(api.world, ann.userId)
  const senders = Array.from({ length: 12 }, (_, at) => (at % 2 === 0 ? ann : other))
  const answers = await Promise.all(senders.map(session => registerDevice(api, session, key)))
  const ids = new Set(answers.map(({ body }) => body.deviceId))
  t.equal(ids.size, 1)
  const created = answers.filter(({ status }) => status === 201)
  t.equal(created.length, 1)
  t.same(faultsOf(api, ann.userId, key, created[0]!.body.deviceId), [])
  t.equal(api.log.entries().length, 1)
  const bound = [ann, other].map(
    ({ sessionId }) => api.world.database.view(view => api.world.sessions.read(view, sessionId))?.deviceId,
  )
  t.same(bound.map(String), [...ids, ...ids], 'both sessions are bound to it')
})

t.test('one key sent by two users at once is of one of them', async t => {
  const api = await openTestApi(t, WITH_LOG)
  const users = await Promise.all([newUser(api.world), newUser(api.world, 'Bob')])
  const key = newKey()
  const answers = await Promise.all(users.map(user => registerDevice(api, user, key)))
  t.same(
    answers.map(({ status, body }) => body.code ?? status),
    [201, 'KEY_IN_USE'],
  )
  t.equal(api.log.entries().length, 1)
})

t.test('a request behind one that failed makes the attempt of its own', async t => {
  const api = await openTestApi(t, WITH_LOG)
  const [ann, key] = [await newUser(api.world), newKey()]
  api.log.harm({ at: FINISH, harm: 'refused' })
  const answers = await Promise.all([registerDevice(api, ann, key), registerDevice(api, ann, key)])
  t.same(
    answers.map(({ status }) => status),
    [503, 201],
  )
  t.same(faultsOf(api, ann.userId, key, answers[1]!.body.deviceId), [])
})

t.test('registrations side by side never exceed ten devices, with replacements among them', async t => {
  const api = await openTestApi(t, WITH_LOG)
  const ann = await newUser(api.world)
  const old: DeviceId[] = []
  for (let count = 0; count < 4; count++) old.push((await newDevice(api.world, ann.userId)).deviceId)
  const replacing = [old[0], old[1], old[0]].map(replacesDeviceId => ({ replacesDeviceId }))
  const plain = Array.from({ length: 12 }, () => ({}))
  const answers = await Promise.all(
    [...replacing, ...plain].map(more => registerDevice(api, ann, newKey(), more)),
  )
  const created = answers.filter(({ status }) => status === 201).length
  const refused = answers.filter(({ body }) => body.code === 'DEVICE_LIMIT').length
  t.same([created, refused], [8, 6], 'eight new ones beside two of the four old ones')
  t.equal(answers[2]!.body.code, 'DEVICE_NOT_FOUND', 'a device is replaced once')
  t.equal((await deviceIds(api, ann)).length, 10)
  t.equal(api.log.entries().length, 8, 'what is refused is not logged')
})

t.test('a registration takes two changes', async t => {
  const api = await openTestApi(t, WITH_LOG)
  const ann = await newUser(api.world)
  // The first use of an access token is a change of its own.
  await deviceIds(api, ann)
  const { database } = api.world
  /** When all that was asked for so far is durable. */
  const numberNow = async () => {
    await database.change(() => undefined)
    return database.lastChange
  }
  const before = await numberNow()
  t.equal((await registerDevice(api, ann)).status, 201)
  t.equal((await numberNow()) - before, 2)
})

t.test('the batch stays when its change refuses a registration that the view let pass', async t => {
  const api = await openTestApi(t, WITH_LOG)
  const [ann, bob] = await Promise.all([newUser(api.world), newUser(api.world, 'Bob')])
  for (let count = 0; count < 9; count++) await newDevice(api.world, ann.userId)
  let isFull: Promise<unknown> | undefined
  api.log.during(() => {
    isFull ??= newDevice(api.world, ann.userId)
    return isFull
  })
  const answers = await Promise.all([registerDevice(api, ann), registerDevice(api, bob)])
  t.same(
    answers.map(({ status, body }) => body.code ?? status),
    ['DEVICE_LIMIT', 201],
  )
  t.same(
    api.world.database.view(view => api.world.devices.allPending(view)),
    [],
  )
  t.equal(api.log.entries().length, 2)
})

t.test('a log that appends after the refusal leaves nothing pending', async t => {
  const api = await openTestApi(t, WITH_LOG)
  const [ann, key] = [await newUser(api.world), newKey()]
  api.log.harm({ at: 'log', harm: 'late' })
  t.equal((await registerDevice(api, ann, key)).body.code, 'LOG_UNAVAILABLE')
  await api.log.runLate()
  t.equal(api.log.entries().length, 1)
  t.same(
    api.world.database.view(view => api.world.devices.allPending(view)),
    [],
  )
  api.log.harm()
  const { status, body } = await registerDevice(api, ann, key)
  t.equal(status, 201)
  t.same(faultsOf(api, ann.userId, key, body.deviceId), [])
})

t.test('ten registrations a day is the most side by side too', async t => {
  const api = await openTestApi(t, { ...WITH_LOG, rates: true })
  const ann = await newUser(api.world)
  for (let count = 0; count < 7; count++) {
    const session = await newSession(api.world, ann.userId)
    const { body } = await registerDevice(api, session)
    await api.send(`DELETE /app/api/devices/${body.deviceId}`, session)
  }
  const answers = await Promise.all(Array.from({ length: 6 }, () => registerDevice(api, ann)))
  const statuses = answers.map(({ status }) => status).sort()
  t.same(statuses, [201, 201, 201, 429, 429, 429])
})

const ENDINGS = [
  ['removed', 'TOKEN_INVALID'],
  ['revoked', 'SESSION_REVOKED'],
] as const

for (const [ending, code] of ENDINGS) {
  t.test(`a session that is ${ending} while its device is being registered leaves no device`, async t => {
    const api = await openTestApi(t, WITH_LOG)
    const { world } = api
    const [ann, key] = [await newUser(world), newKey()]
    api.log.during(async () => {
      await world.database.change(change => {
        if (ending === 'removed') world.sessions.remove(change, ann.sessionId)
        else world.sessions.revoke(change, ann.sessionId, 'logged_out_everywhere')
      }, world.nowMs())
    })
    const { status, body } = await registerDevice(api, ann, key)
    t.same([status, body.code], [401, code])
    t.same(
      [
        world.database.view(view => world.devices.activeDevicesOf(view, ann.userId)),
        world.database.view(view => world.devices.allPending(view)),
      ],
      [[], []],
    )
    api.log.during(async () => {})
    t.equal((await registerDevice(api, await newSession(world, ann.userId), key)).status, 201)
  })
}

t.test('an account that is erased while its device is being registered leaves nothing', async t => {
  const api = await openTestApi(t, WITH_LOG)
  const { world } = api
  const ann = await newUser(world)
  api.log.during(() =>
    world.database.change(change => {
      world.devices.eraseOf(change, ann.userId)
      world.sessions.remove(change, ann.sessionId)
      world.accounts.remove(change, ann.userId)
    }),
  )
  t.equal((await registerDevice(api, ann)).status, 401)
  t.same(
    [
      world.database.view(view => world.devices.activeDevicesOf(view, ann.userId)),
      world.database.view(view => world.devices.allPending(view)),
    ],
    [[], []],
  )
})

t.test('the repair leaves work it can not finish, and drops abandoned attempts', async t => {
  const folder = t.testdir()
  const first = await openTestApi(t, { ...WITH_LOG, folder })
  const users: TestUser[] = []
  for (let count = 0; count < 3; count++) {
    const user = await newUser(first.world)
    const crashed = first.log.harm({ at: FINISH, harm: 'crash before' })
    void registerDevice(first, user)
    await crashed
    users.push(user)
  }
  await first.world.database.change(change => first.world.sessions.remove(change, users[0]!.sessionId))
  await first.close()

  const frozen = await openTestApi(t, { ...WITH_LOG, folder, log: 'frozen' })
  t.same(await frozen.application.registration.repairPending(), { finished: 0, abandoned: 1, left: 2 })
  await frozen.close()
  const open = await openTestApi(t, { ...WITH_LOG, folder })
  t.same(await open.application.registration.repairPending(), { finished: 2, abandoned: 0, left: 0 })
  const counts = users.map(
    ({ userId }) => open.world.database.view(view => open.world.devices.activeDevicesOf(view, userId)).length,
  )
  t.same(counts, [0, 1, 1])
  t.equal(open.log.entries().length, 3)
})
