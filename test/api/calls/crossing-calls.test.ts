/** Two who call each other, as their apps see it over HTTP. */

import t from 'tap'
import type { CallId } from '../../../src/domain/ids.ts'
import type { TestAnswer } from '../../support/application.ts'
import { keysFor, openRooms, type Person, type Phone, type TestRooms } from '../../support/test-rooms.ts'

type People = [Person, Person, Person]

function start(
  rooms: TestRooms,
  { token }: Phone,
  callees: readonly Person[],
  headers = {},
): Promise<TestAnswer> {
  const encryptedAESKeys = keysFor(callees.flatMap(({ phones }) => phones))
  const calleeIds = callees.map(({ userId }) => userId)
  return rooms.send('POST /app/api/call/start', {
    token,
    headers,
    body: { calleeIds, encryptedAESKeys, isVideo: false },
  })
}

async function started(rooms: TestRooms, by: Phone, callees: readonly Person[]): Promise<string> {
  return (await start(rooms, by, callees)).body.callId
}

function call(rooms: TestRooms, callId: string) {
  return rooms.call(BigInt(callId) as CallId)
}

async function openPeople(rooms: TestRooms): Promise<People> {
  return (await rooms.people(['Ann', 'Bob', 'Carol'])) as People
}

t.test('whoever starts second is given the call of the first, and joins it', async t => {
  for (const isAnnFirst of [true, false]) {
    const rooms = openRooms(t, { folder: t.testdir() })
    const [ann, bob] = await openPeople(rooms)
    const [first, second] = isAnnFirst ? [ann, bob] : [bob, ann]
    const callId = await started(rooms, first.phone, [second])
    const answer = await start(rooms, second.phone, [first])
    const { requestId: _, ...problem } = answer.body
    t.same(
      [answer.status, problem],
      [
        409,
        {
          type: 'urn:problem:call-crossed',
          title: 'They are calling you',
          status: 409,
          code: 'CALL_CROSSED',
          detail: `they are calling you in call ${callId}: join it`,
          callId,
        },
      ],
    )
    const pending = await rooms.send('GET /app/api/call/pending', { token: second.phone.token })
    t.match(pending.body.items, [{ callId, encryptedAESKey: String }])
    const joined = await rooms.send(`POST /app/api/call/${callId}/join`, { token: second.phone.token })
    t.match(joined, { status: 200, body: { callId, status: 'active', encryptedAESKey: String } })
    t.same(rooms.failures, [])
    await rooms.close()
  }
})

t.test(
  'of two starts in one instant one makes the call, and the other is given it once it is durable',
  async t => {
    const rooms = openRooms(t)
    const [ann, bob] = await openPeople(rooms)
    const answers = await Promise.all([start(rooms, ann.phone, [bob]), start(rooms, bob.phone, [ann])])
    t.same(answers.map(({ status }) => status).sort(), [201, 409])
    const ids = answers.map(({ body }) => body.callId)
    t.equal(ids[0], ids[1])
    t.equal(rooms.index.size, 1)
  },
)

t.test('a call that could not be written is not named', async t => {
  const rooms = openRooms(t)
  const [ann, bob] = await openPeople(rooms)
  rooms.writesToFail = 1
  const answers = await Promise.all([start(rooms, ann.phone, [bob]), start(rooms, bob.phone, [ann])])
  t.same(
    answers.map(({ body }) => body.code),
    ['STORE_UNAVAILABLE', 'STORE_UNAVAILABLE'],
  )
  await rooms.pass(1_000)
  t.equal((await start(rooms, bob.phone, [ann])).status, 201)
})

t.test('a refused start may be repeated, and makes a call once the other one is over', async t => {
  const rooms = openRooms(t)
  const [ann, bob] = await openPeople(rooms)
  const callId = await started(rooms, bob.phone, [ann])
  const again = () => start(rooms, ann.phone, [bob], { 'idempotency-key': 'k' })
  for (let times = 0; times < 2; times++) t.match(await again(), { status: 409, body: { callId } })
  await rooms.send('POST /app/api/call/end', { token: bob.phone.token, body: { callId } })
  const made = await again()
  t.equal(made.status, 201)
  t.equal((await again()).body.callId, made.body.callId)
  t.match(await start(rooms, ann.phone, [bob]), { status: 409, body: { code: 'ALREADY_IN_CALL' } })
})

t.test('a device that was registered since the ring is given the call like any other', async t => {
  const rooms = openRooms(t)
  const [ann, bob] = await openPeople(rooms)
  const callId = await started(rooms, bob.phone, [ann])
  const tablet = await rooms.phoneOf(ann.userId)
  t.match(await start(rooms, tablet, [bob]), { status: 409, body: { code: 'CALL_CROSSED', callId } })
})

t.test('the call of a caller who is gone ends as the other one starts', async t => {
  const rooms = openRooms(t)
  const [ann, bob] = await openPeople(rooms)
  const old = await started(rooms, bob.phone, [ann])
  await rooms.pass(10_100)
  const answer = await start(rooms, ann.phone, [bob])
  t.equal(answer.status, 201)
  t.match(call(rooms, old), { status: 'cancelled', endReason: 'caller_lost', version: 2 })
  t.match(call(rooms, answer.body.callId), { status: 'ringing' })
  t.equal(rooms.index.size, 1)
  t.same(rooms.kindsFor(ann.phone), ['call_cancelled'])
  t.same(rooms.kindsFor(bob.phone), ['call_ended', 'call_invitation'])
  // The room of the old call is at its end, too.
  const late = await rooms.send(`POST /app/api/call/${old}/join`, { token: ann.phone.token })
  t.match(late, { status: 410, body: { code: 'CALL_ENDED' } })
  await rooms.pass(66_000)
  t.same([call(rooms, old)?.endReason, call(rooms, answer.body.callId)?.status], ['caller_lost', 'missed'])
  t.same(rooms.failures, [])
})

t.test('where the change fails, the old call goes on and no other one starts', async t => {
  const rooms = openRooms(t)
  const [ann, bob] = await openPeople(rooms)
  const old = await started(rooms, bob.phone, [ann])
  await rooms.pass(10_100)
  rooms.writesToFail = 1
  t.match((await start(rooms, ann.phone, [bob])).body, { code: 'STORE_UNAVAILABLE' })
  await rooms.pass(1_000)
  t.match(call(rooms, old), { status: 'ringing', version: 1 })
  t.equal(rooms.index.size, 1)
  t.match(await rooms.send(`POST /app/api/call/${old}/join`, { token: ann.phone.token }), { status: 200 })
})

t.test('a start that comes while the old call is ending waits for that', async t => {
  const rooms = openRooms(t)
  const [ann, bob] = await openPeople(rooms)
  const callId = await started(rooms, bob.phone, [ann])
  await rooms.pass(10_100)
  const end = rooms.send('POST /app/api/call/end', { token: bob.phone.token, body: { callId } })
  const answers = await Promise.all([end, start(rooms, ann.phone, [bob])])
  t.match(answers, [
    { status: 200, body: { endReason: 'cancelled' } },
    { status: 503, body: { code: 'OVERLOADED' } },
  ])
  t.equal((await start(rooms, ann.phone, [bob])).status, 201)
})

t.test('a call to more than the two is another call', async t => {
  const rooms = openRooms(t)
  const [ann, bob, carol] = await openPeople(rooms)
  await started(rooms, bob.phone, [ann, carol])
  t.equal((await start(rooms, ann.phone, [bob])).status, 201)
  t.equal((await start(rooms, carol.phone, [bob])).status, 201)
})

t.test('a start to more than the one who is calling makes a call', async t => {
  const rooms = openRooms(t)
  const [ann, bob, carol] = await openPeople(rooms)
  await started(rooms, bob.phone, [ann])
  t.equal((await start(rooms, ann.phone, [bob, carol])).status, 201)
})

t.test(
  'of a call from somebody whom the callee had blocked the callee hears nothing, also by calling',
  async t => {
    const rooms = openRooms(t)
    const { database } = rooms.world
    const [ann, bob] = await openPeople(rooms)
    const block = (isBlocked: boolean) =>
      database.change(change => {
        if (isBlocked) rooms.contacts.block(change, ann.userId, bob.userId)
        else rooms.contacts.unblock(change, ann.userId, bob.userId)
      }, rooms.clock.nowMs())
    await block(true)
    await started(rooms, bob.phone, [ann])
    t.match(await start(rooms, ann.phone, [bob]), { status: 403, body: { code: 'CALLEE_NOT_CONTACT' } })
    await block(false)
    await rooms.befriend(ann.userId, bob.userId)
    t.equal((await start(rooms, ann.phone, [bob])).status, 201)
  },
)

t.test('a stranger who calls is no one whom the callee may call back', async t => {
  const rooms = openRooms(t)
  const [ann, bob] = [await rooms.person('Ann'), await rooms.person('Bob')] as const
  const { accounts, database } = rooms.world
  await database.change(change => {
    const user = accounts.read(change, ann.userId)!
    accounts.put(change, ann.userId, {
      ...user,
      settings: { ...user.settings, callsFromContactsOnly: false },
    })
  }, 0)
  t.equal((await start(rooms, bob.phone, [ann])).status, 201)
  t.match(await start(rooms, ann.phone, [bob]), { status: 403, body: { code: 'CALLEE_NOT_CONTACT' } })
})

t.test('a caller who rings a third person, or has been answered, is in a call of their own', async t => {
  const rooms = openRooms(t)
  const [ann, bob, carol] = await openPeople(rooms)
  const toCarol = await started(rooms, ann.phone, [carol])
  const toAnn = await started(rooms, bob.phone, [ann])
  const busy = { status: 409, body: { code: 'ALREADY_IN_CALL' } }
  t.match(await start(rooms, ann.phone, [bob]), { ...busy, body: { callId: toCarol } })
  await rooms.send('POST /app/api/call/end', { token: ann.phone.token, body: { callId: toCarol } })
  await rooms.send(`POST /app/api/call/${toAnn}/join`, { token: ann.phone.token })
  t.match(await start(rooms, ann.phone, [bob]), { ...busy, body: { callId: toAnn } })
})
