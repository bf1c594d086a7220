/**
 * A call's room over a real store: its messages to devices, their times, and the state after a failed write or a
 * restart.
 */

import t from 'tap'
import type { CallRequest } from '../../../src/domain/calls/call-command.ts'
import type { CallId } from '../../../src/domain/ids.ts'
import { keyFor, keysFor, nameOf, openRooms, type Person, type Phone } from '../../support/test-rooms.ts'

type People = [Person, Person, Person]

function simple(kind: 'join' | 'request-rejoin' | 'rejoin', by: Phone): CallRequest {
  return { kind, by }
}

t.test(
  'each device that is called gets one invitation with its own key, once the call is durable',
  async t => {
    const rooms = openRooms(t)
    const [ann, bob] = (await rooms.people(['Ann', 'Bob'], 2)) as People
    const callId = rooms.newCallId()
    const asked = rooms.askOf(callId, rooms.startRequest(ann.phone, [bob], callId, 4711))
    t.same(rooms.kindsFor(bob.phone), [], 'nothing before it is written')
    await rooms.rest()
    t.match(await asked, { kind: 'record', record: { callId, roomId: 4711, status: 'ringing' } })
    for (const phone of bob.phones) {
      t.match(rooms.inboxOf(phone), [
        {
          kind: 'call_invitation',
          callId,
          roomId: 4711,
          callerId: ann.userId,
          callerName: 'Ann',
          isVideo: true,
          isOnGoing: false,
          encryptedAESKey: keyFor(phone),
        },
      ])
    }
    t.same(
      ann.phones.flatMap(phone => rooms.kindsFor(phone)),
      [],
    )
  },
)

t.test('a key map that misses a device rings no device, and leaves no room behind', async t => {
  const rooms = openRooms(t)
  const [ann, bob] = (await rooms.people(['Ann', 'Bob'], 2)) as People
  const callId = rooms.newCallId()
  const request = rooms.startRequest(ann.phone, [bob], callId)
  const asked = rooms.ask(callId, { ...request, encryptedAESKeys: keysFor([bob.phone]) })
  const missing = [nameOf(bob.phones[1]!)]
  await t.rejects(asked, { code: 'DEVICE_LIST_MISMATCH', members: { missing, extra: [] } })
  t.same(rooms.kindsFor(bob.phone), [])
  t.equal(rooms.system.figures().liveActors, 0)
  t.equal(rooms.index.size, 0)
})

t.test('an unanswered call is missed after 65 seconds, and then forgotten', async t => {
  const rooms = openRooms(t)
  const [ann, bob] = (await rooms.people(['Ann', 'Bob'])) as People
  const callId = await rooms.start(ann.phone, [bob])
  await rooms.pass(64_000)
  t.same(rooms.statesOf(callId), ['joined', 'invited'])
  await rooms.pass(2_000)
  t.equal(rooms.call(callId)?.status, 'missed')
  t.same(rooms.kindsFor(bob.phone), ['call_missed'])
  t.same(rooms.kindsFor(ann.phone), ['call_ended'])
  t.equal(rooms.index.size, 0)
  t.equal(rooms.system.figures().timersArmed, 0)
  await rooms.pass(2_000)
  t.equal(rooms.system.figures().liveActors, 0)
})

t.test(
  'what comes late or again to a call that is over is answered as before, strangers hear of no call',
  async t => {
    const rooms = openRooms(t)
    const [ann, bob, eve] = (await rooms.people(['Ann', 'Bob', 'Eve'])) as People
    const callId = await rooms.start(ann.phone, [bob])
    const ended = await rooms.ask(callId, { kind: 'end', by: ann.phone })
    await rooms.pass(120_000)
    t.equal(rooms.system.figures().liveActors, 0)
    t.same(await rooms.ask(callId, { kind: 'end', by: ann.phone }), ended)
    await t.rejects(rooms.ask(callId, simple('join', bob.phone)), { code: 'CALL_ENDED' })
    await t.rejects(rooms.ask(callId, simple('join', eve.phone)), { code: 'CALL_NOT_FOUND' })
    await t.rejects(rooms.ask(rooms.newCallId(), simple('join', bob.phone)), { code: 'CALL_NOT_FOUND' })
    t.match(await rooms.ask(callId, { kind: 'leave', by: bob.phone }), { kind: 'done' })
    await rooms.tell(callId, { kind: 'device-seen', by: bob.phone })
    await rooms.pass(2_000)
    t.equal(rooms.system.figures().liveActors, 0)
  },
)

t.test('of two devices that ring, one answers and the other hears so', async t => {
  const rooms = openRooms(t)
  const [ann, bob] = (await rooms.people(['Ann', 'Bob'], 2)) as People
  const callId = await rooms.start(ann.phone, [bob])
  const joined = await rooms.ask(callId, simple('join', bob.phone))
  t.match(joined, { record: { status: 'active', encryptedAESKey: keyFor(bob.phone) } })
  t.same(rooms.kindsFor(bob.phone), [])
  t.same(rooms.kindsFor(bob.phones[1]!), ['call_answered_elsewhere'])
  await rooms.ask(callId, simple('join', bob.phones[1]!))
  t.same(rooms.kindsFor(bob.phone), ['call_moved'])
})

t.test('a caller who gives up takes every invitation back', async t => {
  const rooms = openRooms(t)
  const [ann, bob] = (await rooms.people(['Ann', 'Bob'], 2)) as People
  const callId = await rooms.start(ann.phone, [bob])
  await rooms.ask(callId, { kind: 'end', by: ann.phone })
  for (const phone of bob.phones) t.same(rooms.kindsFor(phone), ['call_cancelled'])
  await t.rejects(rooms.ask(callId, simple('join', bob.phone)), { code: 'CALL_ENDED' })
})

t.test('join and end in one tick have one order, the same for everybody', async t => {
  for (const order of [
    ['join', 'end'],
    ['end', 'join'],
  ] as const) {
    const rooms = openRooms(t, { folder: t.testdir() })
    const [ann, bob] = (await rooms.people(['Ann', 'Bob'])) as People
    const callId = await rooms.start(ann.phone, [bob])
    const requests: Record<'join' | 'end', CallRequest> = {
      join: simple('join', bob.phone),
      end: { kind: 'end', by: ann.phone },
    }
    const asked = order.map(kind => rooms.askOf(callId, requests[kind]))
    const results = await Promise.allSettled(asked)
    await rooms.rest()
    const isAnswered = order[0] === 'join'
    t.same(
      results.map(({ status }) => status),
      ['fulfilled', isAnswered ? 'fulfilled' : 'rejected'],
    )
    t.equal(rooms.call(callId)?.status, isAnswered ? 'ended' : 'cancelled')
    t.same(rooms.kindsFor(bob.phone), [isAnswered ? 'call_ended' : 'call_cancelled'])
    await rooms.close()
  }
})

t.test('who asks for the key is answered by all who have it, and by each alone', async t => {
  const rooms = openRooms(t)
  const [ann, bob, eve] = (await rooms.people(['Ann', 'Bob', 'Eve'], 2)) as People
  const callId = await rooms.start(ann.phone, [bob, eve])
  await rooms.ask(callId, simple('join', bob.phone))
  await rooms.ask(callId, simple('join', eve.phone))
  await rooms.ask(callId, { kind: 'leave', by: eve.phone })
  const asked = await rooms.ask(callId, simple('request-rejoin', eve.phone))
  t.same(asked, { kind: 'asked', asked: 2, expiresInS: 30 })
  for (const { phones } of [ann, bob]) {
    t.match(rooms.inboxOf(phones[0]!), [
      { kind: 'participant_request_rejoin', userId: eve.userId, deviceId: eve.phone.deviceId },
    ])
  }
  for (const { phone } of [ann, bob]) {
    await rooms.ask(callId, {
      kind: 'accept-rejoin',
      by: phone,
      encryptedAESKey: keyFor(eve.phone),
      requesterUserId: eve.userId,
      requesterDeviceId: eve.phone.deviceId,
    })
  }
  t.match(rooms.inboxOf(eve.phone), [
    { kind: 'participant_accept_rejoin', fromUserId: ann.userId, encryptedAESKey: keyFor(eve.phone) },
    { kind: 'participant_accept_rejoin', fromUserId: bob.userId, encryptedAESKey: keyFor(eve.phone) },
  ])
  await rooms.ask(callId, simple('rejoin', eve.phone))
  t.same(rooms.statesOf(callId), ['joined', 'joined', 'joined'])
})

t.test('the call goes to the next host when its host leaves, and ends when all have', async t => {
  const rooms = openRooms(t)
  const [ann, bob, eve] = (await rooms.people(['Ann', 'Bob', 'Eve'])) as People
  const callId = await rooms.start(ann.phone, [bob, eve])
  for (const { phone } of [bob, eve]) await rooms.ask(callId, simple('join', phone))
  await rooms.ask(callId, { kind: 'leave', by: ann.phone })
  t.equal(rooms.call(callId)?.hostUserId, bob.userId)
  await rooms.ask(callId, { kind: 'remove', by: bob.phone, userId: eve.userId })
  await rooms.ask(callId, { kind: 'leave', by: bob.phone })
  await rooms.pass(29_000)
  t.ok(rooms.call(callId))
  await rooms.pass(2_000)
  t.match(rooms.call(callId), { status: 'ended', endReason: 'empty' })
})

t.test('a ring goes on over a restart and ends when it was to end', async t => {
  const before = openRooms(t)
  const [ann, bob] = (await before.people(['Ann', 'Bob'])) as People
  const callId = await before.start(ann.phone, [bob])
  await before.pass(20_000)
  const after = await before.restart({}, 15_000)
  t.same(after.statesOf(callId), ['joined', 'invited'])
  await after.pass(29_000)
  t.same(after.statesOf(callId), ['joined', 'invited'], '64 seconds')
  await after.pass(2_000)
  t.equal(after.call(callId)?.status, 'missed', '66 seconds')
})

t.test('a ring that expired while the server was away ends as soon as it is back', async t => {
  const before = openRooms(t)
  const [ann, bob] = (await before.people(['Ann', 'Bob'])) as People
  const callId = await before.start(ann.phone, [bob])
  const after = await before.restart({}, 66_000)
  await after.pass(200)
  t.equal(after.call(callId)?.status, 'missed')
  t.same(after.kindsFor(bob.phone), ['call_missed'])
})

t.test('a clock that is set neither ends a ring nor prolongs it', async t => {
  for (const jumpMs of [600_000, -600_000]) {
    const rooms = openRooms(t, { folder: t.testdir() })
    const [ann, bob] = (await rooms.people(['Ann', 'Bob'])) as People
    const callId = await rooms.start(ann.phone, [bob])
    rooms.clock.setWallClock(rooms.clock.nowMs() + jumpMs)
    await rooms.tell(callId, { kind: 'ringing', by: bob.phone })
    rooms.writesToFail = 1
    await t.rejects(rooms.ask(callId, { kind: 'decline', by: bob.phone }), { code: 'STORE_UNAVAILABLE' })
    await rooms.pass(64_000)
    t.same(rooms.statesOf(callId), ['joined', 'ringing'], 'also in a room that was built anew')
    await rooms.pass(2_000)
    t.equal(rooms.call(callId)?.status, 'missed')
    await rooms.close()
  }
})

t.test('a push that Google lowered is counted once its ring is durable', async t => {
  let lowered = 0
  const rooms = openRooms(t, { roomDeps: () => ({ loweredPushes: { inc: () => lowered++ } }) })
  const [ann, bob] = (await rooms.people(['Ann', 'Bob'], 2)) as People
  const callId = await rooms.start(ann.phone, [bob])
  rooms.writesToFail = 1
  await t.rejects(rooms.ask(callId, { kind: 'ringing', by: bob.phone, wasLowered: true }))
  await rooms.pass(1_000)
  await rooms.ask(callId, { kind: 'ringing', by: bob.phone, wasLowered: false })
  t.equal(lowered, 0)
  await rooms.ask(callId, { kind: 'ringing', by: bob.phones[1]!, wasLowered: true })
  t.equal(lowered, 1)
})

t.test('a start that could not be written has not happened', async t => {
  const rooms = openRooms(t)
  const [ann, bob] = (await rooms.people(['Ann', 'Bob'])) as People
  const callId = rooms.newCallId()
  rooms.writesToFail = 1
  const asked = rooms.ask(callId, rooms.startRequest(ann.phone, [bob], callId, 5))
  await t.rejects(asked, { code: 'STORE_UNAVAILABLE' })
  await rooms.pass(1_000)
  t.same(rooms.kindsFor(bob.phone), [])
  t.equal(rooms.index.size, 0)
  t.equal(rooms.system.figures().timersArmed, 0)
  const again = rooms.newCallId()
  await rooms.ask(again, rooms.startRequest(ann.phone, [bob], again, 5))
  t.same(rooms.kindsFor(bob.phone), ['call_invitation'], 'neither the caller nor the room is taken')
})

t.test(
  'what was decided on a write that failed fails with it, and the room goes on from the store',
  async t => {
    const rooms = openRooms(t)
    const [ann, bob, eve] = (await rooms.people(['Ann', 'Bob', 'Eve'])) as People
    const callId = await rooms.start(ann.phone, [bob, eve])
    rooms.writesToFail = 1
    const asked = [
      rooms.askOf(callId, simple('join', bob.phone)),
      // Decided in the same tick, on a call that is active in memory alone.
      rooms.askOf(callId, { kind: 'leave', by: ann.phone }),
      rooms.askOf(callId, simple('join', bob.phone)),
    ]
    const results = await Promise.allSettled(asked)
    await rooms.pass(1_000)
    t.same(
      results.map(result => (result.status === 'rejected' ? result.reason.code : 'done')),
      ['STORE_UNAVAILABLE', 'STORE_UNAVAILABLE', 'STORE_UNAVAILABLE'],
    )
    t.same(rooms.statesOf(callId), ['joined', 'invited', 'invited'])
    t.same(rooms.kindsFor(bob.phone), ['call_invitation'])
    await rooms.ask(callId, simple('join', bob.phone))
    t.same(rooms.statesOf(callId), ['joined', 'joined', 'invited'])
  },
)

t.test('the room answers only from durable state, even with a refusal', async t => {
  const rooms = openRooms(t)
  const [ann, bob] = (await rooms.people(['Ann', 'Bob'])) as People
  const callId = await rooms.start(ann.phone, [bob])
  const answered: string[] = []
  rooms.writesToFail = 1
  const asked = (['end', 'join'] as const).map(async kind => {
    const by = kind === 'end' ? ann.phone : bob.phone
    await rooms.askOf(callId, { kind, by }).catch(({ code }) => answered.push(`${kind} ${code}`))
  })
  await Promise.all(asked)
  await rooms.rest()
  t.same(answered, ['end STORE_UNAVAILABLE', 'join STORE_UNAVAILABLE'], 'not CALL_ENDED, which it is not')
})

t.test('a ring whose end could not be written ends all the same, without another command', async t => {
  const rooms = openRooms(t)
  const [ann, bob] = (await rooms.people(['Ann', 'Bob'])) as People
  const callId = await rooms.start(ann.phone, [bob])
  await rooms.pass(64_000)
  rooms.writesToFail = 2
  await rooms.pass(6_000)
  t.equal(rooms.writesToFail, 0, 'at the deadline, and once after it')
  t.equal(rooms.call(callId)?.status, 'missed')
  t.same(rooms.kindsFor(bob.phone), ['call_missed'])
  t.same(rooms.system.figures().timersArmed, 0)
})

t.test('who is in a call starts no other, and two calls have two rooms', async t => {
  const rooms = openRooms(t)
  const [ann, bob, eve] = (await rooms.people(['Ann', 'Bob', 'Eve'])) as People
  const [first, second, third] = [rooms.newCallId(), rooms.newCallId(), rooms.newCallId()]
  const asked = [
    rooms.askOf(first, rooms.startRequest(ann.phone, [bob], first, 9)),
    rooms.askOf(second, rooms.startRequest(ann.phone, [bob], second)),
    rooms.askOf(third, rooms.startRequest(eve.phone, [bob], third, 9)),
  ]
  const results = await Promise.allSettled(asked)
  await rooms.rest()
  t.same(
    results.map(result => (result.status === 'rejected' ? result.reason.code : 'done')),
    ['done', 'ALREADY_IN_CALL', 'ROOM_IN_USE'],
  )
  await rooms.ask(first, { kind: 'end', by: ann.phone })
  await rooms.ask(third, rooms.startRequest(eve.phone, [bob], third, 9))
  t.equal(rooms.call(third)?.roomId, 9, 'the room of a call that is over is free')
})

t.test('a device is in one call: it comes into no other before it has left', async t => {
  const rooms = openRooms(t)
  const [ann, bob, eve] = (await rooms.people(['Ann', 'Bob', 'Eve'], 2)) as People
  const [first, second] = [await rooms.start(ann.phone, [bob]), await rooms.start(eve.phone, [bob])]
  await rooms.ask(first, simple('join', bob.phone))
  const inFirst = { code: 'ALREADY_IN_CALL', members: { callId: String(first) } }
  await t.rejects(rooms.ask(second, simple('join', bob.phone)), inFirst)
  await rooms.ask(first, simple('join', bob.phone))
  await rooms.ask(second, simple('join', bob.phones[1]!))
  await t.rejects(rooms.ask(second, simple('join', bob.phone)), inFirst, 'nor moves one to it')
  await rooms.ask(first, { kind: 'leave', by: bob.phone })
  await rooms.ask(second, simple('join', bob.phone))
  await rooms.ask(first, simple('request-rejoin', bob.phone))
  const inSecond = { code: 'ALREADY_IN_CALL', members: { callId: String(second) } }
  await t.rejects(rooms.ask(first, simple('rejoin', bob.phone)), inSecond)
  await rooms.ask(second, { kind: 'end', by: eve.phone })
  await rooms.ask(first, simple('rejoin', bob.phone))
  t.same(rooms.statesOf(first), ['joined', 'joined'])
})

t.test('two calls that a device answers at once have it in one', async t => {
  const rooms = openRooms(t)
  const [ann, bob, eve] = (await rooms.people(['Ann', 'Bob', 'Eve'])) as People
  const calls = [await rooms.start(ann.phone, [bob]), await rooms.start(eve.phone, [bob])]
  const asked = calls.map(callId => rooms.askOf(callId, simple('join', bob.phone)))
  const results = await Promise.allSettled(asked)
  t.same(
    results.map(result => (result.status === 'rejected' ? result.reason.code : 'done')),
    ['done', 'ALREADY_IN_CALL'],
  )
})

t.test(
  'a stranger rings those alone who take calls from strangers, and who has blocked them hears nothing',
  async t => {
    const rooms = openRooms(t, { rates: true })
    const [ann, bob, eve] = (await rooms.people(['Ann', 'Bob', 'Eve'])) as People
    const { accounts, database } = rooms.world
    await database.change(
      change => rooms.contacts.unlink(change, ann.userId, bob.userId),
      rooms.clock.nowMs(),
    )
    await t.rejects(rooms.start(ann.phone, [bob]), { code: 'CALLEE_NOT_CONTACT' })
    const user = database.view(view => accounts.read(view, bob.userId))!
    const settings = { ...user.settings, callsFromContactsOnly: false }
    await database.change(change => accounts.put(change, bob.userId, { ...user, settings }))
    const rung = await rooms.start(ann.phone, [bob])
    t.same(rooms.kindsFor(bob.phone), ['call_invitation'])
    await rooms.ask(rung, simple('join', bob.phone))
    await rooms.ask(rung, { kind: 'end', by: ann.phone })
    await database.change(change => rooms.contacts.block(change, bob.userId, ann.userId), rooms.clock.nowMs())
    const told = rooms.kindsFor(bob.phone)
    const rows = () => rooms.historyOf(bob.userId).length
    const before = rows()
    for (let count = 0; count < 5; count++) {
      const callId = await rooms.start(ann.phone, [bob])
      t.same(rooms.index.callsOf(bob.userId), [])
      await t.rejects(rooms.ask(callId, simple('join', bob.phone)), { code: 'CALL_NOT_FOUND' })
      await rooms.ask(callId, { kind: 'end', by: ann.phone })
    }
    await t.rejects(
      rooms.start(ann.phone, [bob]),
      { code: 'RATE_LIMITED' },
      'as with anybody who does not answer',
    )
    t.same([rooms.kindsFor(bob.phone), rows()], [told, before])
    await rooms.start(eve.phone, [bob])
    t.match(rooms.kindsFor(bob.phone).at(-1), 'call_invitation')
  },
)

t.test('people and room of a call are free once its end is durable, and not before', async t => {
  const rooms = openRooms(t)
  const [ann, bob, eve] = (await rooms.people(['Ann', 'Bob', 'Eve'])) as People
  const [first, second, third] = [await rooms.start(ann.phone, [bob]), rooms.newCallId(), rooms.newCallId()]
  const { roomId } = rooms.call(first)!
  rooms.writesToFail = 1
  const asked = [
    rooms.askOf(first, { kind: 'end', by: ann.phone }),
    rooms.askOf(second, rooms.startRequest(ann.phone, [bob], second)),
    rooms.askOf(third, rooms.startRequest(eve.phone, [bob], third, roomId)),
  ]
  const results = await Promise.allSettled(asked)
  t.same(
    results.map(result => (result.status === 'rejected' ? result.reason.code : 'done')),
    ['STORE_UNAVAILABLE', 'ALREADY_IN_CALL', 'ROOM_IN_USE'],
  )
  await rooms.pass(1_000)
  t.equal(rooms.index.callInRoom(roomId), first)
  await rooms.ask(first, { kind: 'end', by: ann.phone })
  t.equal(rooms.index.size, 0)
})

t.test(
  'a device that has a socket when it joins is there; without one it is lost after 90 quiet seconds',
  async t => {
    const rooms = openRooms(t)
    const [ann, bob, eve] = (await rooms.people(['Ann', 'Bob', 'Eve'])) as People
    rooms.connect(ann.phone)
    rooms.connect(bob.phone)
    const callId = await rooms.start(ann.phone, [bob, eve])
    await rooms.ask(callId, simple('join', bob.phone))
    await rooms.ask(callId, simple('join', eve.phone))
    await rooms.pass(60_000)
    await rooms.tell(callId, { kind: 'device-seen', by: eve.phone })
    await rooms.pass(60_000)
    t.same(rooms.statesOf(callId), ['joined', 'joined', 'joined'])
    await rooms.pass(31_000)
    t.same(rooms.statesOf(callId), ['joined', 'joined', 'lost'])
    rooms.disconnect(bob.phone)
    await rooms.tell(callId, { kind: 'device-offline', by: bob.phone })
    await rooms.pass(91_000)
    t.same(rooms.statesOf(callId), ['joined', 'lost', 'lost'])
  },
)

t.test('a rebuilt room knows who is there, also after a deadline that passed before', async t => {
  const rooms = openRooms(t)
  const [ann, bob, eve] = (await rooms.people(['Ann', 'Bob', 'Eve'])) as People
  for (const { phone } of [ann, bob]) rooms.connect(phone)
  const callId = await rooms.start(ann.phone, [bob, eve])
  await rooms.ask(callId, simple('join', bob.phone))
  await rooms.pass(64_000)
  rooms.writesToFail = 1
  await t.rejects(rooms.ask(callId, { kind: 'ringing', by: eve.phone }), { code: 'STORE_UNAVAILABLE' })
  rooms.clock.jump(1_500)
  await rooms.rest()
  await rooms.pass(120_000)
  t.same(rooms.statesOf(callId), ['joined', 'joined', 'missed'])
})

t.test(
  'a caller whose socket closes while it rings has 30 seconds, of which a restart takes none',
  async t => {
    const before = openRooms(t)
    const [ann, bob] = (await before.people(['Ann', 'Bob'])) as People
    before.connect(ann.phone)
    const callId = await before.start(ann.phone, [bob])
    before.disconnect(ann.phone)
    await before.tell(callId, { kind: 'device-offline', by: ann.phone })
    await before.pass(20_000)
    const after = await before.restart({}, 5_000)
    await after.pass(29_000)
    t.ok(after.call(callId))
    await after.pass(2_000)
    t.match(after.call(callId), { status: 'cancelled', endReason: 'caller_lost' })
  },
)

t.test('a device that is removed is out of the call', async t => {
  const rooms = openRooms(t)
  const [ann, bob] = (await rooms.people(['Ann', 'Bob'])) as People
  const callId = await rooms.start(ann.phone, [bob])
  await rooms.ask(callId, simple('join', bob.phone))
  t.same(rooms.index.callsWith(bob.userId, bob.phone.deviceId), [callId])
  await rooms.tell(callId, { kind: 'device-removed', by: bob.phone })
  t.same(rooms.statesOf(callId), ['joined', 'left'])
  t.same(rooms.index.callsWith(bob.userId, bob.phone.deviceId), [])
})

t.test(
  'what a device asked for before its removal, and is overtaken by it, brings it into no call',
  async t => {
    const rooms = openRooms(t)
    const [ann, bob] = (await rooms.people(['Ann', 'Bob'], 2)) as People
    const callId = await rooms.start(ann.phone, [bob])
    const { deviceId, userId } = bob.phone
    const { database, devices } = rooms.world
    await database.change(change => void devices.remove(change, userId, deviceId), rooms.clock.nowMs())
    await rooms.tell(callId, { kind: 'device-removed', by: bob.phone })
    const other = rooms.newCallId()
    const asked = [
      rooms.ask(callId, simple('join', bob.phone)),
      rooms.ask(callId, simple('request-rejoin', bob.phone)),
      rooms.ask(callId, simple('rejoin', bob.phone)),
      rooms.ask(other, rooms.startRequest(bob.phone, [ann], other)),
    ]
    for (const refused of asked) await t.rejects(refused, { code: 'DEVICE_NOT_REGISTERED' })
    t.same(rooms.index.callsWith(userId, deviceId), [])
    t.equal(rooms.call(other), undefined)
  },
)

t.test('a person who does not answer is rung five times in ten minutes; an answer begins anew', async t => {
  const rooms = openRooms(t, { rates: true })
  const [ann, bob, eve] = (await rooms.people(['Ann', 'Bob', 'Eve'])) as People
  const ring = async (callee: Person) => {
    const callId = await rooms.start(ann.phone, [callee])
    await rooms.ask(callId, { kind: 'end', by: ann.phone })
  }
  for (let at = 0; at < 5; at++) await ring(bob)
  await t.rejects(ring(bob), { code: 'RATE_LIMITED', members: { retryIn: 120, scope: 'callee' } })
  await ring(eve)
  await rooms.pass(121_000)
  const callId = await rooms.start(ann.phone, [bob])
  await rooms.ask(callId, simple('join', bob.phone))
  await rooms.ask(callId, { kind: 'end', by: ann.phone })
  for (let at = 0; at < 5; at++) await ring(bob)
  await t.rejects(ring(bob), { code: 'RATE_LIMITED' })
})

t.test('a room that fails again and again ends its call as failed', async t => {
  const rooms = openRooms(t, {
    roomDeps: ({ presence }) => ({
      presence: {
        ...presence,
        isConnected(userId, deviceId) {
          if (rooms.connected.has('a defect')) throw new Error('a defect')
          return presence.isConnected(userId, deviceId)
        },
      },
    }),
  })
  const [ann, bob] = (await rooms.people(['Ann', 'Bob'])) as People
  const callId = await rooms.start(ann.phone, [bob])
  rooms.connected.add('a defect')
  await t.rejects(rooms.ask(callId, simple('join', bob.phone)), { code: 'INTERNAL' })
  await rooms.pass(10_000)
  // No room is there to wait for its write, which comes before this one.
  await rooms.world.database.change(() => undefined)
  t.match(rooms.call(callId), { status: 'failed', endReason: 'internal' })
  t.same(rooms.kindsFor(bob.phone), ['call_cancelled'])
  t.equal(rooms.index.size, 0)
})

/** A whole call, step by step; each step makes its request from the state at its turn. */
function story([ann, bob, eve]: People, callId: CallId, start: CallRequest): CallRequest[] {
  return [
    start,
    { kind: 'ringing', by: bob.phone },
    { kind: 'decline', by: eve.phone },
    simple('join', bob.phone),
    {
      kind: 'invite',
      by: bob.phone,
      calleeIds: [eve.userId],
      isVideo: false,
      encryptedAESKeys: keysFor(eve.phones),
    },
    simple('join', eve.phones[1]!),
    {
      kind: 'keys',
      by: ann.phone,
      epoch: 2,
      reason: 'rotation',
      encryptedAESKeys: keysFor([bob.phone, eve.phones[1]!], 2),
    },
    { kind: 'leave', by: ann.phone },
    { kind: 'remove', by: bob.phone, userId: eve.userId },
    simple('request-rejoin', ann.phone),
    simple('rejoin', ann.phone),
    { kind: 'end', by: bob.phone },
  ].map(request => ({ ...request, callId }) as unknown as CallRequest)
}

t.test(
  'a restart between any two steps of a call changes nothing, and a step that is repeated does nothing',
  async t => {
    const steps = 12
    const outcomes: string[] = []
    for (let restartAt = 0; restartAt <= steps; restartAt++) {
      let rooms = openRooms(t, { folder: t.testdir() })
      const people = (await rooms.people(['Ann', 'Bob', 'Eve'], 2)) as People
      const callId = rooms.newCallId()
      const [ann, ...others] = people
      const requests = story(people, callId, rooms.startRequest(ann.phone, others, callId, 12))
      t.equal(requests.length, steps)
      for (const [at, request] of requests.entries()) {
        if (at === restartAt) rooms = await rooms.restart()
        await rooms.ask(callId, request)
        const seen = people.flatMap(({ phones }) => phones.map(phone => rooms.inboxOf(phone).length))
        await rooms.ask(callId, request)
        const seenAgain = people.flatMap(({ phones }) => phones.map(phone => rooms.inboxOf(phone).length))
        if (String(seen) !== String(seenAgain)) t.fail(`${request.kind} told something twice`)
      }
      const inboxes = people.flatMap(({ phones }) => phones.map(phone => rooms.kindsFor(phone).join()))
      const rows = people.map(({ userId }) => rooms.historyOf(userId))
      const statuses = rows.map(list => list.map(({ status }) => status).join())
      outcomes.push([...inboxes, ...statuses, rooms.call(callId)?.status].join(' | '))
      t.same(rooms.failures, [])
      await rooms.close()
    }
    t.same([...new Set(outcomes)], [outcomes[0]])
  },
)
