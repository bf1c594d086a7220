/** Device lists over HTTP: the first one, later ones, resets, and refusals. */

import { createHash } from 'node:crypto'
import t, { type Test } from 'tap'
import { possessionChallenge } from '../../../src/domain/accounts/token.ts'
import type { UserId } from '../../../src/domain/ids.ts'
import { parseDeviceList } from '../../../src/log/device-list.ts'
import { newSession, newUser, type TestAnswer, type TestUser } from '../../support/application.ts'
import {
  type ListedPhone,
  listBody,
  listOf,
  newPhone,
  registrationOf,
  signedList,
} from '../../support/device-lists.ts'
import {
  idOf,
  newKey,
  REGISTER,
  registerDevice,
  toldOfDevices,
  WITH_LOG,
} from '../../support/device-requests.ts'
import { openTestApi, type TestApi } from '../../support/test-api.ts'

const PUT = 'PUT /app/api/user/device-list'
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('base64')

interface Listed {
  readonly api: TestApi
  readonly ann: TestUser
  readonly phone: ListedPhone
  readonly first: Uint8Array
}

type Session = Pick<TestUser, 'token' | 'sessionId'>

function challengeOf({ world }: TestApi, { sessionId }: Session): string {
  return possessionChallenge(world.secrets.possession, sessionId)
}

/** Registers the phone, whose id is the server's unless it comes with a list. */
async function register(
  api: TestApi,
  session: Session,
  phone: ListedPhone,
  list?: Uint8Array,
): Promise<TestAnswer> {
  const body = registrationOf(phone, challengeOf(api, session), list)
  const answer = await api.send(REGISTER, { token: session.token, body })
  if (answer.status < 300) phone.deviceId = idOf(answer.body.deviceId)
  return answer
}

function put(
  api: TestApi,
  { token }: Pick<TestUser, 'token'>,
  list: Uint8Array,
  ifMatch?: string,
): Promise<TestAnswer> {
  const headers = ifMatch === undefined ? {} : { 'if-match': ifMatch }
  return api.send(PUT, { token, body: listBody(list), headers })
}

/** Ann with a phone on her first list. */
async function listedAnn(t: Test, options = {}): Promise<Listed> {
  const config = { ...WITH_LOG.config, signInWaitH: 0 }
  const api = await openTestApi(t, { ...WITH_LOG, config, ...options })
  const ann = await newUser(api.world)
  const phone = newPhone('phone')
  const first = listOf(ann.userId, [phone])
  const answer = await register(api, ann, phone, first)
  t.equal(answer.status, 201)
  return { api, ann, phone, first }
}

/** Another session of hers with a registered phone that no list names. */
async function secondPhone(api: TestApi, ann: TestUser, name = 'tablet') {
  const session = { ...ann, ...(await newSession(api.world, ann.userId)) }
  const phone = newPhone(name)
  const answer = await register(api, session, phone)
  return { session, phone, answer }
}

const outcome = ({ status, body }: TestAnswer) =>
  `${status} ${body?.code ?? ''} ${body?.errors?.[0] ? `${body.errors[0].pointer} ${body.errors[0].code}` : ''}`.trim()

const newestOf = ({ world }: TestApi, userId: UserId) =>
  world.database.view(view => world.deviceLists.newest(view, userId))

const isNewest = (api: TestApi, userId: UserId, list: Uint8Array) =>
  Buffer.from(list).equals(newestOf(api, userId)?.list ?? new Uint8Array(0))

t.test('the first device brings list 0, which is in the log under slot 0 before the answer', async t => {
  const { api, ann, phone, first } = await listedAnn(t)
  t.same(api.log.entries(), [
    `${ann.userId}_${phone.deviceId} ${phone.publicKey}`,
    `${ann.userId}_0 ${sha256(first)}`,
  ])
  const { body } = await api.send('GET /app/api/user/publicKeys', { token: ann.token })
  const hash = createHash('sha512').update(`${ann.userId}_0`).digest('base64')
  t.match(body.users[0], {
    deviceList: Buffer.from(first).toString('base64'),
    deviceListHash: hash,
    deviceListIndex: '1',
  })
})

t.test(
  'registering again with the list is answered with the device, and nothing is logged twice',
  async t => {
    const { api, ann, phone, first } = await listedAnn(t)
    t.equal((await register(api, ann, phone, first)).status, 200)
    t.equal((await register(api, ann, phone)).status, 200)
    t.equal(api.log.entries().length, 2)
    t.equal(newestOf(api, ann.userId)?.seq, 0)
    t.notMatch(toldOfDevices(api).join(), /device_list_reset/)
  },
)

t.test('a listed device puts a second one on the list, and takes it off again', async t => {
  const { api, ann, phone, first } = await listedAnn(t)
  const { phone: tablet } = await secondPhone(api, ann)
  const restricted: unknown[] = []
  api.world.database.subscribe('restriction-changed', ({ deviceId, isRestricted }) =>
    restricted.push([deviceId, isRestricted]),
  )
  const second = listOf(ann.userId, [phone, tablet], { previous: first })
  const answer = await put(api, ann, second, '"0"')
  t.equal(answer.status, 200)
  t.match(answer.body, { deviceListSeq: 1, deviceListIndex: '3' })
  t.equal(api.log.entries().at(-1), `${ann.userId}_0 ${sha256(second)}`)
  const third = listOf(ann.userId, [phone], { previous: second })
  t.match((await put(api, ann, third, '1')).body, { deviceListSeq: 2 })
  t.same(restricted, [
    [tablet.deviceId, false],
    [tablet.deviceId, true],
  ])
  t.same(newestOf(api, ann.userId)?.deviceIds, [phone.deviceId])
  const told = new Set(toldOfDevices(api).filter(told => told.startsWith('device_list')))
  t.same([...told], [`device_list_changed ${phone.deviceId} except ${phone.deviceId}`])
})

t.test('a user of an app that made no list makes the first one later, with `PUT`', async t => {
  const api = await openTestApi(t, WITH_LOG)
  const ann = await newUser(api.world)
  const phone = newPhone('phone')
  const unlisted = await registerDevice(api, ann, phone.publicKey)
  phone.deviceId = idOf(unlisted.body.deviceId)
  const list = listOf(ann.userId, [phone])
  t.equal(outcome(await put(api, ann, list)), '422 VALIDATION_FAILED /list ANOTHER_SIGNING_KEY')
  t.equal((await register(api, ann, phone)).status, 200, 'the known device gets its signing key')
  t.equal((await put(api, ann, list)).status, 200)
  t.equal((await put(api, ann, list)).status, 200, 'the same list again')
  t.equal(api.log.entries().length, 2)
})

t.test('a first list alarms the devices that it leaves out', async t => {
  const api = await openTestApi(t, WITH_LOG)
  const ann = await newUser(api.world)
  const push = { fcmToken: 'token-of-the-phone' }
  const { body } = await registerDevice(api, ann, undefined, { push })
  const { session, phone: tablet } = await secondPhone(api, ann)
  await api.world.takeSent()
  t.equal((await put(api, session, listOf(ann.userId, [tablet]))).status, 200)
  t.match(await api.world.takeSent(), [
    { deviceId: idOf(body.deviceId), notice: { kind: 'device_list_reset', deviceId: tablet.deviceId } },
  ])
})

t.test('the same list again is answered as before, whatever the sender knows', async t => {
  const { api, ann, phone, first } = await listedAnn(t)
  const { phone: tablet } = await secondPhone(api, ann)
  const second = listOf(ann.userId, [phone, tablet], { previous: first })
  const answers = [await put(api, ann, second, '0'), await put(api, ann, second, '0')]
  t.same(answers[1]!.body, answers[0]!.body)
  t.equal(api.log.entries().length, 4)
})

t.test('of two lists at once one wins, and the other hears the present seq', async t => {
  const { api, ann, phone, first } = await listedAnn(t)
  const [{ phone: tablet }, { phone: laptop }] = [
    await secondPhone(api, ann),
    await secondPhone(api, ann, 'laptop'),
  ]
  const lists = [tablet, laptop].map(other => listOf(ann.userId, [phone, other], { previous: first }))
  const answers = await Promise.all(lists.map(list => put(api, ann, list, '0')))
  t.same(answers.map(({ status }) => status).sort(), [200, 409])
  t.match(answers.find(({ status }) => status === 409)!.body, {
    code: 'DEVICE_LIST_CONFLICT',
    deviceListSeq: 1,
  })
  t.equal(api.log.entries().length, 5)
})

t.test('a list’s fault is named, and nothing is logged', async t => {
  const { api, ann, phone, first } = await listedAnn(t)
  const { phone: tablet } = await secondPhone(api, ann)
  const bob = await newUser(api.world, 'Bob')
  const logged = api.log.entries().length
  const second = listOf(ann.userId, [phone, tablet], { previous: first })
  const stranger = newPhone('stranger')
  const highS = Buffer.from(second)
  const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n
  const s = order - BigInt(`0x${highS.subarray(-32).toString('hex')}`)
  Buffer.from(s.toString(16).padStart(64, '0'), 'hex').copy(highS, highS.length - 32)
  const cases: readonly (readonly [list: Uint8Array, expected: string, ifMatch?: string])[] = [
    [listOf(bob.userId, [phone], { previous: first }), 'ANOTHER_USER'],
    [listOf(ann.userId, [phone, tablet], { previous: second }), 'SEQ_JUMP'],
    [listOf(ann.userId, [phone], { previous: listOf(ann.userId, [tablet]) }), 'WRONG_PREVIOUS_HASH'],
    [listOf(ann.userId, [phone, tablet], { previous: first, signer: tablet }), 'SIGNER_NOT_IN_PREVIOUS'],
    [highS, 'HIGH_S'],
    [second.with(-1, second.at(-1)! ^ 1), 'BAD_SIGNATURE'],
    [second.subarray(1), 'MALFORMED'],
    [listOf(ann.userId, [phone, stranger], { previous: first }), 'UNKNOWN_DEVICE'],
    [
      listOf(ann.userId, [phone, { ...tablet, publicKey: newKey() }], { previous: first }),
      'ANOTHER_PUBLIC_KEY',
    ],
    [
      listOf(ann.userId, [phone, { ...tablet, signer: stranger.signer }], { previous: first }),
      'ANOTHER_SIGNING_KEY',
    ],
  ]
  for (const [list, code] of cases)
    t.equal(outcome(await put(api, ann, list, '"0"')), `422 VALIDATION_FAILED /list ${code}`)
  t.equal(outcome(await put(api, ann, second)), '409 DEVICE_LIST_CONFLICT')
  t.equal(outcome(await put(api, ann, second, '1')), '409 DEVICE_LIST_CONFLICT')
  for (const ifMatch of ['W/"0"', '"0', '-1', 'x', '00'])
    t.equal(outcome(await put(api, ann, second, ifMatch)), '422 VALIDATION_FAILED  HEADER')
  t.equal(
    outcome(await api.send(PUT, { token: ann.token, body: { list: 'AAA' }, headers: { 'if-match': '0' } })),
    '422 VALIDATION_FAILED /list FORMAT',
  )
  t.equal(api.log.entries().length, logged)
  t.equal(isNewest(api, ann.userId, first), true)
})

t.test('ten devices fit on a list, and an eleventh is not registered', async t => {
  const { api, ann, phone, first } = await listedAnn(t)
  const phones = [phone]
  for (let number = 2; number <= 10; number++)
    phones.push((await secondPhone(api, ann, `phone ${number}`)).phone)
  const { answer } = await secondPhone(api, ann, 'phone 11')
  t.equal(outcome(answer), '409 DEVICE_LIMIT')
  const list = listOf(ann.userId, phones, { previous: first })
  t.equal((await put(api, ann, list, '0')).status, 200)
  const eleven = Buffer.from(list)
  eleven[80] = 11
  t.equal(outcome(await put(api, ann, eleven, '1')), '422 VALIDATION_FAILED /list MALFORMED')
})

t.test('starting over needs a fresh proof, and every other device hears of it', async t => {
  const { api, ann, first } = await listedAnn(t)
  api.world.tick(1_800_000)
  const { session, phone: tablet } = await secondPhone(api, ann)
  const reset = listOf(ann.userId, [tablet])
  api.world.tick(1_800_000)
  const refused = await put(api, session, reset, '0')
  t.equal(outcome(refused), '403 STEP_UP_REQUIRED')
  t.ok(refused.body.challenge.challengeId)
  t.equal(isNewest(api, ann.userId, first), true)
  const fresh = await newSession(api.world, ann.userId, idOf(String(tablet.deviceId)))
  t.match((await put(api, fresh, reset, '0')).body, { deviceListSeq: 0 })
  t.equal(toldOfDevices(api).at(-1), `device_list_reset ${tablet.deviceId} except ${tablet.deviceId}`)
  t.equal(isNewest(api, ann.userId, reset), true)
})

t.test('once there is a list, a new device shows that it has a signing key', async t => {
  const { api, ann } = await listedAnn(t)
  const other = await newSession(api.world, ann.userId)
  const tablet = newPhone('tablet')
  const body = registrationOf(tablet, challengeOf(api, other))
  const cases: readonly (readonly [body: object, expected: string])[] = [
    [{ publicKey: tablet.publicKey }, '/signingKey REQUIRED'],
    [{ ...body, possession: undefined }, '/possession REQUIRED'],
    [{ ...body, signingKey: undefined }, '/signingKey REQUIRED'],
    [registrationOf(tablet, challengeOf(api, ann)), '/possession SIGNATURE'],
    [{ ...body, signingKey: Buffer.alloc(65, 4).toString('base64') }, '/signingKey FORMAT'],
    [{ ...body, possession: Buffer.alloc(65).toString('base64') }, '/possession LENGTH'],
    [registrationOf(tablet, challengeOf(api, other), listOf(ann.userId, [tablet])), ''],
  ]
  const logged = api.log.entries().length
  for (const [sent, expected] of cases) {
    const answer = await api.send(REGISTER, { token: other.token, body: sent })
    const code =
      expected === '' ? '422 VALIDATION_FAILED /deviceList NOT_FIRST' : `422 VALIDATION_FAILED ${expected}`
    t.equal(outcome(answer), code)
  }
  t.equal(api.log.entries().length, logged)
})

t.test('a device keeps its first signing key', async t => {
  const { api, ann, phone } = await listedAnn(t)
  const thief = { ...phone, signer: newPhone('thief').signer }
  t.equal(outcome(await register(api, ann, thief)), '422 VALIDATION_FAILED /signingKey ANOTHER_KEY')
  t.equal((await api.send(REGISTER, { token: ann.token, body: { publicKey: phone.publicKey } })).status, 200)
})

t.test('a list that can not be the first one is refused before the key is logged', async t => {
  const api = await openTestApi(t, WITH_LOG)
  const ann = await newUser(api.world)
  const [phone, tablet] = [newPhone('phone'), newPhone('tablet')]
  const low = { ...phone, deviceId: 7n }
  const cases: readonly (readonly [list: Uint8Array, expected: string])[] = [
    [listOf(ann.userId, [low]), 'DEVICE_ID'],
    [listOf(ann.userId, [phone, tablet]), 'NOT_ALONE'],
    [listOf(ann.userId, [{ ...phone, publicKey: newKey() }]), 'ANOTHER_PUBLIC_KEY'],
    [listOf(ann.userId + 1n, [phone]), 'ANOTHER_USER'],
    [listOf(ann.userId, [phone], { previous: listOf(ann.userId, [phone]) }), 'SEQ_JUMP'],
    [new Uint8Array(80), 'MALFORMED'],
  ]
  for (const [list, code] of cases) {
    const body = registrationOf(phone, challengeOf(api, ann), list)
    const answer = await api.send(REGISTER, { token: ann.token, body })
    t.equal(outcome(answer), `422 VALIDATION_FAILED /deviceList ${code}`)
  }
  t.same(api.log.entries(), [])
})

t.test('contacts see the listed devices alone, their owner all', async t => {
  const options = { keysShown: () => ({ kind: 'present' }) as const }
  const { api, ann, phone, first } = await listedAnn(t, options)
  const { phone: tablet } = await secondPhone(api, ann)
  const bob = await newUser(api.world, 'Bob')
  const idsFor = async ({ token }: TestUser) => {
    const { body } = await api.send(`GET /app/api/user/publicKeys?userIds=${ann.userId}`, { token })
    return body.users[0].devices.map(({ deviceId }: { deviceId: string }) => BigInt(deviceId))
  }
  t.same(await idsFor(bob), [phone.deviceId])
  t.equal((await idsFor(ann)).length, 2)
  const { body: own } = await api.send('GET /app/api/user/publicKeys', { token: ann.token })
  const signingKeys = own.users[0].devices.map(({ signingKey }: { signingKey: string }) => signingKey)
  t.ok(
    signingKeys.includes(Buffer.from(tablet.signer.signingKey).toString('base64')),
    'to sign the next list',
  )
  await put(api, ann, listOf(ann.userId, [phone, tablet], { previous: first }), '0')
  t.equal((await idsFor(bob)).length, 2)
})

/** Commits of a `PUT`: pending row, newest row. */
const [KEEP, FINISH] = [1, 2]

for (const { at, harm, finished } of [
  { at: KEEP, harm: 'crash before', finished: 0 },
  { at: KEEP, harm: 'crash after', finished: 1 },
  { at: 'log', harm: 'crash before', finished: 1 },
  { at: 'log', harm: 'crash after', finished: 1 },
  { at: FINISH, harm: 'crash before', finished: 1 },
  { at: FINISH, harm: 'crash after', finished: 0 },
] as const) {
  t.test(
    `a list whose ${at === 'log' ? at : ['', 'keep', 'finish'][at]} met a ${harm} is whole after the start`,
    async t => {
      const folder = t.testdir()
      const api = await openTestApi(t, { ...WITH_LOG, folder })
      const ann = await newUser(api.world)
      const phone = newPhone('phone')
      const first = listOf(ann.userId, [phone])
      await register(api, ann, phone, first)
      const second = listOf(ann.userId, [phone], { previous: first })
      const crashed = api.log.harm({ at, harm })
      void put(api, ann, second, '0')
      await crashed
      await api.close()

      const next = await openTestApi(t, { ...WITH_LOG, folder })
      t.same(await next.application.lists.repairPending(), { finished, left: 0 })
      t.equal((await put(next, ann, second, '0')).status, 200)
      t.equal(newestOf(next, ann.userId)?.seq, 1)
      t.same(
        next.log.entries().filter(entry => entry.includes('_0 ')),
        [`${ann.userId}_0 ${sha256(first)}`, `${ann.userId}_0 ${sha256(second)}`],
      )
    },
  )
}

/** Commits of a registration with a list: device with the pending list, newest row, the answer. */
for (const { at, harm } of [
  { at: 1, harm: 'crash before' },
  { at: 1, harm: 'crash after' },
  { at: 2, harm: 'crash before' },
  { at: 2, harm: 'crash after' },
] as const) {
  t.test(`a registration with a list that met a ${harm} ${at} is whole after the start`, async t => {
    const folder = t.testdir()
    const api = await openTestApi(t, { ...WITH_LOG, folder })
    const ann = await newUser(api.world)
    const phone = newPhone('phone')
    const first = listOf(ann.userId, [phone])
    const crashed = api.log.harm({ at, harm })
    void register(api, ann, phone, first)
    await crashed
    await api.close()

    const next = await openTestApi(t, { ...WITH_LOG, folder })
    await next.application.registration.repairPending()
    await next.application.lists.repairPending()
    t.equal((await register(next, ann, phone, first)).status, 200)
    t.equal(isNewest(next, ann.userId, first), true)
    t.same(next.log.entries(), [
      `${ann.userId}_${phone.deviceId} ${phone.publicKey}`,
      `${ann.userId}_0 ${sha256(first)}`,
    ])
  })
}

t.test('a list that the log answers too late is finished by the next request', async t => {
  const { api, ann, phone, first } = await listedAnn(t)
  const second = listOf(ann.userId, [phone], { previous: first })
  const other = listOf(ann.userId, [{ ...phone }], { previous: second })
  void api.log.harm({ at: 'log', harm: 'late' })
  t.equal(outcome(await put(api, ann, second, '0')), '503 LOG_UNAVAILABLE')
  t.equal(newestOf(api, ann.userId)?.seq, 0, 'it is not served before it is logged')
  void api.log.harm()
  await api.log.runLate()
  t.match((await put(api, ann, other, '0')).body, { code: 'DEVICE_LIST_CONFLICT', deviceListSeq: 1 })
  t.equal((await put(api, ann, other, '1')).status, 200)
  t.equal(api.log.entries().filter(entry => entry.includes('_0 ')).length, 3)
})

t.test('a first list does not take the place of one that is being logged', async t => {
  const api = await openTestApi(t, WITH_LOG)
  const ann = await newUser(api.world)
  const phone = newPhone('phone')
  await register(api, ann, phone)
  const first = listOf(ann.userId, [phone])
  const other = signedList({ ...parseDeviceList(first), createdAtMs: 1 }, phone.signer)
  void api.log.harm({ at: 'log', harm: 'late' })
  t.equal(outcome(await put(api, ann, first)), '503 LOG_UNAVAILABLE')
  void api.log.harm()
  t.equal(outcome(await register(api, ann, phone, other)), '503 OVERLOADED')
  await api.log.runLate()
  t.same(await api.application.lists.repairPending(), { finished: 1, left: 0 })
  t.equal(isNewest(api, ann.userId, first), true)
  t.equal(outcome(await register(api, ann, phone, other)), '409 DEVICE_LIST_CONFLICT')
  t.equal(api.log.entries().length, 2)
})

t.test('those who may read a user’s keys read the lists since the user last started over', async t => {
  let isShown = true
  const keysShown = () => (isShown ? ({ kind: 'present' } as const) : undefined)
  const { api, ann, phone, first } = await listedAnn(t, { keysShown })
  const bob = await newUser(api.world, 'Bob')
  const ask = (query: string, { token }: TestUser = bob) =>
    api.send(`GET /app/api/user/device-lists?${query}`, { token })
  const lists = [first]
  for (let seq = 0; seq < 70; seq++) {
    const next = listOf(ann.userId, [phone], { previous: lists.at(-1)! })
    t.equal((await put(api, ann, next, `${seq}`)).status, 200)
    lists.push(next)
  }
  const texts = lists.map(list => Buffer.from(list).toString('base64'))
  const ofAnn = `userId=${ann.userId}`
  t.same((await ask(ofAnn)).body, { lists: texts.slice(0, 64) })
  t.same((await ask(`${ofAnn}&after=63`)).body, { lists: texts.slice(64) })
  t.same((await ask(`${ofAnn}&after=70`)).body, { lists: [] })
  t.same((await ask(`${ofAnn}&after=68`, ann)).body, { lists: texts.slice(69) })
  for (const after of ['-1', '1.5', 'x', `${2 ** 53}`])
    t.equal((await ask(`${ofAnn}&after=${after}`)).status, 422, after)
  t.same((await ask(`userId=${bob.userId}`, bob)).body, { lists: [] }, 'of a user without a list')
  t.equal(outcome(await ask('userId=7')), '404 USER_NOT_FOUND')

  const { session, phone: tablet } = await secondPhone(api, ann)
  const fresh = await newSession(api.world, ann.userId, idOf(String(tablet.deviceId)))
  t.ok(session)
  const reset = listOf(ann.userId, [tablet])
  t.equal((await put(api, fresh, reset, '70')).status, 200)
  t.same((await ask(ofAnn)).body, { lists: [Buffer.from(reset).toString('base64')] }, 'none of before')
  isShown = false
  t.equal(outcome(await ask(ofAnn)), '404 USER_NOT_FOUND')
  t.equal((await ask(ofAnn, ann)).status, 200, 'its owner reads it all the same')
})

t.test('nothing of a list is left of an erased account', async t => {
  const { api, ann } = await listedAnn(t)
  const { world } = api
  await world.database.change(change => world.deviceLists.eraseOf(change, ann.userId))
  t.equal(newestOf(api, ann.userId), undefined)
  t.same(
    world.database.view(view => world.deviceLists.chain(view, ann.userId, undefined, 64)),
    [],
  )
})

t.test('lists are counted by the day', async t => {
  const { api, ann, phone, first } = await listedAnn(t, { rates: true })
  let previous = first
  const answers: string[] = []
  for (let seq = 0; seq < 12; seq++) {
    const next = listOf(ann.userId, [phone], { previous })
    const answer = await put(api, ann, next, `${seq}`)
    answers.push(outcome(answer))
    if (answer.status !== 200) break
    previous = next
  }
  t.equal(answers.at(-1), '429 RATE_LIMITED')
})
