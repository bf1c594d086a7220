/** Calls as clients see them over HTTP (contract 4). */

import t from 'tap'
import type { CallId } from '../../../src/domain/ids.ts'
import type { Admit } from '../../../src/schema/call.ts'
import { newSession, type TestAnswer, type TestRequest } from '../../support/application.ts'
import { membersOf } from '../../support/key-members.ts'
import {
  keyFor,
  keysFor,
  nameOf,
  openRooms,
  type Person,
  type Phone,
  type TestRooms,
} from '../../support/test-rooms.ts'

type People = [Person, Person, Person]

function post(rooms: TestRooms, path: string, { token }: Phone, body?: unknown, headers = {}) {
  const request: TestRequest = { token, headers, ...(body === undefined ? {} : { body }) }
  return rooms.send(`POST /app/api/call/${path}`, request)
}

function get(rooms: TestRooms, path: string, { token }: { readonly token: string }) {
  return rooms.send(`GET /app/api/call/${path}`, { token })
}

function startBody(callees: readonly Person[], more: object = {}) {
  return {
    calleeIds: callees.map(({ userId }) => userId),
    encryptedAESKeys: keysFor(callees.flatMap(({ phones }) => phones)),
    isVideo: false,
    ...more,
  }
}

/** A call that rings; its id. */
async function started(rooms: TestRooms, by: Phone, callees: readonly Person[]): Promise<string> {
  const { body } = await post(rooms, 'start', by, startBody(callees))
  return body.callId
}

/** Status and code, which is all that most refusals are about. */
function shortOf({ status, body }: TestAnswer): unknown[] {
  return body?.code === undefined ? [status] : [status, body.code]
}

t.test('a start is answered with the record of the call, without a key', async t => {
  const rooms = openRooms(t)
  const [ann, bob] = (await rooms.people(['Ann', 'Bob'])) as People
  const answer = await post(rooms, 'start', ann.phone, startBody([bob], { roomId: 123_456_789 }))
  const createdAt = new Date(rooms.clock.nowMs()).toISOString()
  const invitation = { invitedBy: String(ann.userId), invitedAt: createdAt }
  t.equal(answer.status, 201)
  t.same(answer.body, {
    callId: answer.body.callId,
    version: 1,
    roomId: 123_456_789,
    status: 'ringing',
    isVideo: false,
    initiatorId: String(ann.userId),
    hostUserId: String(ann.userId),
    createdAt,
    ringTimeoutIn: 60,
    keyEpoch: 1,
    keyRotationIn: 600,
    maxParticipants: 32,
    participants: [
      {
        userId: String(ann.userId),
        displayName: 'Ann',
        state: 'joined',
        isHost: true,
        ...invitation,
        joinedAt: createdAt,
        mediaName: `${ann.userId}:Ann`,
        deviceId: String(ann.phone.deviceId),
        publicKeyHash: ann.phone.publicKeyHash,
      },
      {
        userId: String(bob.userId),
        displayName: 'Bob',
        state: 'invited',
        isHost: false,
        ...invitation,
        mediaName: `${bob.userId}:Bob`,
      },
    ],
    media: { kind: 'client' },
    isOnGoing: false,
  })
})

t.test('a call has one version more with each change, wherever it is read', async t => {
  const rooms = openRooms(t)
  const [ann, bob] = (await rooms.people(['Ann', 'Bob'])) as People
  const id = await started(rooms, ann.phone, [bob])
  t.match((await get(rooms, 'pending', bob.phone)).body.items, [{ callId: id, version: 1 }])
  t.match((await post(rooms, `${id}/join`, bob.phone)).body, { version: 2 })
  t.match((await post(rooms, `${id}/join`, bob.phone)).body, { version: 2 }, 'said again')
  for (const path of [id, `${id}/participants`]) {
    t.match((await get(rooms, path, ann.phone)).body, { callId: id, version: 2 })
  }
  t.match((await post(rooms, 'end', ann.phone, { callId: id })).body, { version: 3 })
})

t.test('a room is assigned where none is named, as an integer that a double holds', async t => {
  const rooms = openRooms(t)
  const [ann, bob] = (await rooms.people(['Ann', 'Bob'])) as People
  const { body } = await post(rooms, 'start', ann.phone, startBody([bob]))
  t.ok(Number.isSafeInteger(body.roomId) && body.roomId >= 2 ** 32)
})

t.test('a start is refused by the code of its fault', async t => {
  const rooms = openRooms(t)
  const [ann, bob] = (await rooms.people(['Ann', 'Bob'], 2)) as People
  const stranger = await rooms.person('Eve')
  const { userId, phone } = bob
  const keys = keysFor(bob.phones)
  const refusals: (readonly [object, unknown[]])[] = [
    [{ isVideo: undefined }, [422, 'VALIDATION_FAILED']],
    [{ calleeIds: [] }, [422, 'VALIDATION_FAILED']],
    [{ calleeIds: [userId, userId] }, [422, 'VALIDATION_FAILED']],
    [{ calleeIds: [ann.userId] }, [422, 'VALIDATION_FAILED']],
    [{ roomId: 0 }, [422, 'VALIDATION_FAILED']],
    [{ roomId: '5' }, [422, 'VALIDATION_FAILED']],
    [{ roomId: 2 ** 53 }, [422, 'VALIDATION_FAILED']],
    [{ encryptedAESKeys: { ...keys, nonsense: keyFor(phone) } }, [422, 'VALIDATION_FAILED']],
    [{ encryptedAESKeys: { ...keys, [nameOf(phone)]: 'AAAA' } }, [422, 'VALIDATION_FAILED']],
    [
      { encryptedAESKeys: { ...keys, [nameOf(phone)]: Buffer.alloc(32, 1).toString('base64') } },
      [422, 'PLAINTEXT_KEY_SUSPECTED'],
    ],
    [{ encryptedAESKeys: keysFor([phone]) }, [409, 'DEVICE_LIST_MISMATCH']],
  ]
  for (const [more, expected] of refusals) {
    const answer = await post(rooms, 'start', ann.phone, startBody([bob], more))
    t.same(
      shortOf(answer),
      expected,
      JSON.stringify(more, (_, value) => String(value)),
    )
  }
  const unknown = await post(rooms, 'start', ann.phone, startBody([stranger, bob]))
  t.match(unknown, { status: 403, body: { code: 'CALLEE_NOT_CONTACT', calleeIds: [`${stranger.userId}`] } })
  await rooms.world.database.change(change => rooms.contacts.block(change, userId, ann.userId), 0)
  const blocked = await post(rooms, 'start', ann.phone, startBody([bob]))
  t.match(blocked, { status: 403, body: { code: 'CALLEE_NOT_CONTACT', calleeIds: [`${userId}`] } })
  t.equal(rooms.index.size, 0)
})

t.test(
  'a device list that is not as it was is answered with what is missing and what is too much',
  async t => {
    const rooms = openRooms(t)
    const [ann, bob] = (await rooms.people(['Ann', 'Bob'], 2)) as People
    const gone = { userId: bob.userId, deviceId: 5n as Phone['deviceId'] }
    const keys = keysFor([bob.phone, gone])
    const answer = await post(rooms, 'start', ann.phone, startBody([bob], { encryptedAESKeys: keys }))
    t.match(answer, { status: 409, body: { code: 'DEVICE_LIST_MISMATCH' } })
    t.same(answer.body.missing, [nameOf(bob.phones[1]!)])
    t.same(answer.body.extra, [nameOf(gone)])
  },
)

t.test('only sessions with a device call', async t => {
  const rooms = openRooms(t)
  const [ann, bob] = (await rooms.people(['Ann', 'Bob'])) as People
  const { token } = await newSession(rooms.world, ann.userId)
  const answer = await rooms.send('POST /app/api/call/start', { token, body: startBody([bob]) })
  t.same(shortOf(answer), [403, 'DEVICE_REQUIRED'])
})

t.test('the older forms of the paths are the same operations', async t => {
  const rooms = openRooms(t)
  const [ann, bob, eve] = (await rooms.people(['Ann', 'Bob', 'Eve'])) as People
  const { token } = ann.phone
  const first = await rooms.send('POST /group-calls/start', { token, body: startBody([bob]) })
  t.equal(first.status, 201)
  const path = `POST /group-calls/${first.body.callId}/invite`
  const second = await rooms.send(path, { token, body: startBody([eve]) })
  t.equal(second.status, 200)
  t.equal(second.body.participants.length, 3)
  const ended = await rooms.send('POST /api/call/end', { token, body: { callId: first.body.callId } })
  t.match(ended, { status: 200, body: { status: 'cancelled', endReason: 'cancelled' } })
})

t.test('from the invitation to the end', async t => {
  const rooms = openRooms(t)
  const [ann, bob, eve] = (await rooms.people(['Ann', 'Bob', 'Eve'])) as People
  const id = await started(rooms, ann.phone, [bob])
  const joined = await post(rooms, `${id}/join`, bob.phone, {})
  t.match(joined, { status: 200, body: { status: 'active', encryptedAESKey: keyFor(bob.phone) } })
  t.equal(joined.body.startedAt, new Date(rooms.clock.nowMs()).toISOString())
  const repeated = await post(rooms, `${id}/join`, bob.phone)
  t.match(repeated, { status: 200, body: { status: 'active' } })

  const invited = await post(rooms, `${id}/invite`, bob.phone, startBody([eve], { isVideo: undefined }))
  t.match(invited, { status: 200, body: { isOnGoing: false } })
  t.match(rooms.inboxOf(eve.phone), [{ kind: 'call_invitation', isOnGoing: true, callerId: bob.userId }])
  t.same(shortOf(await post(rooms, `${id}/decline`, eve.phone, { reason: 'busy' })), [204])
  const { body } = await get(rooms, `${id}/participants`, ann.phone)
  t.equal(body.callId, id)
  t.equal(body.keyEpoch, 1)
  t.same(
    body.participants.map(({ state }: { state: string }) => state),
    ['joined', 'joined', 'busy'],
  )
  t.same(shortOf(await post(rooms, `${id}/leave`, bob.phone, {})), [204])
  t.same(shortOf(await post(rooms, `${id}/leave`, bob.phone)), [204], 'again')
  const ended = await post(rooms, `${id}/end`, ann.phone)
  t.match(ended, { status: 200, body: { status: 'ended', endReason: 'hangup' } })
  t.match(await post(rooms, 'end', ann.phone, { callId: id }), { status: 200, body: { status: 'ended' } })
})

t.test('keys: the host gives a new one, any participant the present one again', async t => {
  const rooms = openRooms(t)
  const [ann, bob, eve] = (await rooms.people(['Ann', 'Bob', 'Eve'])) as People
  const id = await started(rooms, ann.phone, [bob, eve])
  for (const { phone } of [bob, eve]) await post(rooms, `${id}/join`, phone)
  const keys = (to: readonly Person[], epoch: number, reason: string) => ({
    epoch,
    reason,
    encryptedAESKeys: keysFor(
      to.map(({ phone }) => phone),
      epoch,
    ),
  })
  const rotated = await post(rooms, `${id}/keys`, ann.phone, keys([bob, eve], 2, 'rotation'))
  t.same([rotated.status, rotated.body], [202, {}])
  t.match(rooms.inboxOf(eve.phone), [{ kind: 'key_update', epoch: 2, encryptedAESKey: keyFor(eve.phone, 2) }])
  t.same(shortOf(await post(rooms, `${id}/keys`, ann.phone, keys([bob, eve], 4, 'rotation'))), [
    409,
    'EPOCH_CONFLICT',
  ])
  t.same(shortOf(await post(rooms, `${id}/keys`, bob.phone, keys([ann, eve], 3, 'leave'))), [403, 'NOT_HOST'])
  t.same(shortOf(await post(rooms, `${id}/keys`, ann.phone, keys([bob], 3, 'leave'))), [
    409,
    'DEVICE_LIST_MISMATCH',
  ])
  t.same(shortOf(await post(rooms, `${id}/keys`, bob.phone, keys([ann, eve], 2, 'emergency'))), [202])
})

t.test('sets of devices that keys are sealed for are read back, of the newest two epochs', async t => {
  const rooms = openRooms(t)
  const [ann, bob, eve] = (await rooms.people(['Ann', 'Bob', 'Eve'])) as People
  const phonesOf = (...people: readonly Person[]) => people.map(({ phone }) => phone)
  const all = membersOf(phonesOf(ann, bob, eve))
  const start = await post(rooms, 'start', ann.phone, startBody([bob, eve], { keyMembers: all }))
  t.notOk('keySets' in start.body)
  const id = start.body.callId
  const keySets = [{ epoch: 1, keyMembers: all }]
  t.match(await get(rooms, 'pending', bob.phone), { body: { items: [{ keySets }] } })
  t.match(await post(rooms, `${id}/join`, bob.phone), { body: { keySets } })
  t.match(await get(rooms, id, ann.phone), { body: { keySets } })
  for (const epoch of [2, 3]) {
    const keys = { epoch, reason: 'rotation', encryptedAESKeys: keysFor(phonesOf(bob), epoch) }
    const keyMembers = membersOf(phonesOf(ann, bob))
    t.equal((await post(rooms, `${id}/keys`, ann.phone, { ...keys, keyMembers })).status, 202)
    const read = await get(rooms, `${id}/key-members?epoch=${epoch}`, eve.phone)
    t.same([read.status, read.body], [200, { callId: id, epoch, keyMembers }])
  }
  t.match((await get(rooms, id, eve.phone)).body.keySets, [{ epoch: 3 }, { epoch: 2 }])
  t.same(shortOf(await get(rooms, `${id}/key-members?epoch=1`, ann.phone)), [404, 'KEY_MEMBERS_NOT_FOUND'])
  t.same(shortOf(await get(rooms, `${id}/key-members?epoch=4`, ann.phone)), [404, 'KEY_MEMBERS_NOT_FOUND'])
  for (const query of ['', '?epoch=0', '?epoch=65536', '?epoch=x']) {
    t.same(shortOf(await get(rooms, `${id}/key-members${query}`, ann.phone)), [422, 'VALIDATION_FAILED'])
  }
  const tom = await rooms.person('Tom')
  t.same(shortOf(await get(rooms, `${id}/key-members?epoch=3`, tom.phone)), [404, 'CALL_NOT_FOUND'])
  t.notOk('keySets' in (await post(rooms, `${id}/end`, ann.phone)).body)
  t.same(shortOf(await get(rooms, `${id}/key-members?epoch=3`, ann.phone)), [410, 'CALL_ENDED'])
})

t.test('a set that does not hold is refused at each request that may have one', async t => {
  const rooms = openRooms(t)
  const [ann, bob, eve] = (await rooms.people(['Ann', 'Bob', 'Eve'])) as People
  const wrong = { keyMembers: membersOf([ann.phone]) }
  const fault = { status: 422, body: { errors: [{ pointer: '/keyMembers', code: 'MISMATCH' }] } }
  t.match(await post(rooms, 'start', ann.phone, startBody([bob], wrong)), fault)
  const id = await started(rooms, ann.phone, [bob])
  await post(rooms, `${id}/join`, bob.phone)
  const keys = { epoch: 2, reason: 'rotation', encryptedAESKeys: keysFor([bob.phone], 2), ...wrong }
  t.match(await post(rooms, `${id}/keys`, ann.phone, keys), fault)
  const encryptedAESKeys = keysFor([bob.phone, eve.phone], 2)
  const invite = { calleeIds: [eve.userId], encryptedAESKeys, epoch: 2, ...wrong }
  t.match(await post(rooms, `${id}/invite`, ann.phone, invite), fault)
  t.match(await post(rooms, `${id}/invite`, ann.phone, { ...invite, epoch: undefined }), {
    status: 422,
    body: { errors: [{ pointer: '/epoch', code: 'REQUIRED' }] },
  })
  t.same(rooms.kindsFor(eve.phone), [], 'nothing happened')
  const keyMembers = membersOf([ann.phone, bob.phone, eve.phone])
  t.match(await post(rooms, `${id}/invite`, ann.phone, { ...invite, keyMembers }), { body: { keyEpoch: 2 } })
  t.same(rooms.kindsFor(eve.phone), ['call_invitation'])
  t.match(rooms.inboxOf(bob.phone), [{ kind: 'key_update', epoch: 2, reason: 'invite' }])
})

t.test('a request for the key is named by sixteen bytes, if at all', async t => {
  const rooms = openRooms(t)
  const [ann, bob] = (await rooms.people(['Ann', 'Bob'])) as People
  const id = await started(rooms, ann.phone, [bob])
  await post(rooms, `${id}/join`, bob.phone)
  const nonce = Buffer.alloc(16, 0xfe).toString('base64')
  const wrong = ['', nonce.slice(1), `${nonce}\n`, nonce.replace('g==', 'h=='), nonce.replaceAll('/', '_'), 7]
  for (const each of [...wrong, Buffer.alloc(15).toString('base64'), Buffer.alloc(17).toString('base64')]) {
    const answer = await post(rooms, `${id}/request-rejoin`, bob.phone, { nonce: each })
    t.match(answer, { status: 422, body: { errors: [{ pointer: '/nonce' }] } }, String(each))
  }
  t.equal((await post(rooms, `${id}/request-rejoin`, bob.phone, { nonce })).status, 202)
  t.match(rooms.inboxOf(ann.phone), [{ kind: 'participant_request_rejoin', nonce }])
})

t.test('a device in the call that a new key leaves out hears of it', async t => {
  const rooms = openRooms(t)
  const [ann, bob, eve] = (await rooms.people(['Ann', 'Bob', 'Eve'])) as People
  const id = await started(rooms, ann.phone, [bob, eve])
  for (const { phone } of [bob, eve]) await post(rooms, `${id}/join`, phone)
  const keys = { epoch: 2, reason: 'leave', encryptedAESKeys: keysFor([bob.phone], 2) }
  const without = [nameOf(eve.phone)]
  t.same(shortOf(await post(rooms, `${id}/keys`, ann.phone, { ...keys, without })), [202])
  t.match(rooms.inboxOf(eve.phone).at(-1), { kind: 'key_missing', epoch: 2 })
  const astray = await post(rooms, `${id}/keys`, ann.phone, { ...keys, epoch: 3, without: ['1_1'] })
  t.match(astray, { status: 422, body: { errors: [{ pointer: '/without/0', code: 'NOT_JOINED' }] } })
})

t.test('a device hands out keys twelve times a minute, by invitations and otherwise', async t => {
  const rooms = openRooms(t, { rates: true })
  const [ann, bob, eve] = (await rooms.people(['Ann', 'Bob', 'Eve'])) as People
  const id = await started(rooms, ann.phone, [bob])
  await post(rooms, `${id}/join`, bob.phone)
  const keysOf = (to: Person, epoch: number, reason: string) => ({
    epoch,
    reason,
    encryptedAESKeys: keysFor([to.phone], epoch),
  })
  for (let epoch = 2; epoch <= 12; epoch++) {
    t.equal((await post(rooms, `${id}/keys`, ann.phone, keysOf(bob, epoch, 'rotation'))).status, 202)
  }
  t.equal((await post(rooms, `${id}/invite`, ann.phone, startBody([eve]))).status, 200)
  const refusal = { status: 429, body: { code: 'RATE_LIMITED', scope: 'device', retryIn: 5 } }
  t.match(await post(rooms, `${id}/keys`, ann.phone, keysOf(bob, 13, 'rotation')), refusal)
  t.match(await post(rooms, `${id}/invite`, ann.phone, startBody([eve])), refusal)
  const others = await post(rooms, `${id}/keys`, bob.phone, keysOf(ann, 12, 'emergency'))
  t.equal(others.status, 202, 'other devices are counted for themselves')
  await rooms.pass(5_000)
  t.equal((await post(rooms, `${id}/keys`, ann.phone, keysOf(bob, 13, 'rotation'))).status, 202)
})

t.test('a device that lost its key asks for it and comes back', async t => {
  const rooms = openRooms(t)
  const [ann, bob] = (await rooms.people(['Ann', 'Bob'])) as People
  const id = await started(rooms, ann.phone, [bob])
  t.same(shortOf(await post(rooms, `${id}/request-rejoin`, bob.phone)), [409, 'CALL_NOT_ACTIVE'])
  await post(rooms, `${id}/join`, bob.phone)
  await post(rooms, `${id}/leave`, bob.phone)
  t.same(shortOf(await post(rooms, `${id}/rejoin`, bob.phone)), [409, 'REJOIN_REQUIRED'])
  const asked = await post(rooms, `${id}/request-rejoin`, bob.phone, {})
  t.same([asked.status, asked.body], [202, { expiresIn: 30, asked: 1 }])
  const answer = await post(rooms, `${id}/accept-rejoin`, ann.phone, {
    requesterUserId: bob.userId,
    requesterDeviceId: bob.phone.deviceId,
    encryptedAESKey: keyFor(bob.phone),
  })
  t.equal(answer.status, 202)
  t.match(rooms.inboxOf(bob.phone), [
    { kind: 'participant_accept_rejoin', encryptedAESKey: keyFor(bob.phone), keyEpoch: 1 },
  ])
  const rejoined = await post(rooms, `${id}/rejoin`, bob.phone)
  t.match(rejoined, { status: 200, body: { status: 'active' } })
  t.ok(rejoined.body.roomId)
  await post(rooms, `${id}/leave`, ann.phone)
  await post(rooms, `${id}/leave`, bob.phone)
  t.same(shortOf(await post(rooms, `${id}/request-rejoin`, bob.phone)), [409, 'NO_ACTIVE_PARTICIPANT'])
})

t.test('only the host removes people, and a removed user may do nothing more', async t => {
  const rooms = openRooms(t)
  const [ann, bob, eve] = (await rooms.people(['Ann', 'Bob', 'Eve'])) as People
  const id = await started(rooms, ann.phone, [bob, eve])
  for (const { phone } of [bob, eve]) await post(rooms, `${id}/join`, phone)
  const remove = ({ phone }: Person, { userId }: Person) => post(rooms, `${id}/remove`, phone, { userId })
  t.same(shortOf(await remove(bob, eve)), [403, 'NOT_HOST'])
  t.same(shortOf(await remove(ann, ann)), [422, 'VALIDATION_FAILED'])
  t.same(shortOf(await remove(ann, await rooms.person('Tom'))), [404, 'USER_NOT_FOUND'])
  t.same(shortOf(await remove(ann, bob)), [204])
  t.same(shortOf(await post(rooms, `${id}/rejoin`, bob.phone)), [403, 'NOT_PARTICIPANT'])
  t.same(shortOf(await get(rooms, id, bob.phone)), [404, 'CALL_NOT_FOUND'])
  t.same(shortOf(await post(rooms, `${id}/end`, eve.phone)), [403, 'NOT_HOST'])
})

t.test('a call that one has no part in is not there, whatever one tries', async t => {
  const rooms = openRooms(t)
  const [ann, bob, eve] = (await rooms.people(['Ann', 'Bob', 'Eve'])) as People
  const foreign = await started(rooms, ann.phone, [bob])
  for (const id of [foreign, '12345', 'x', '99999999999999999999']) {
    const tries = [
      ['invite', startBody([bob])],
      ['join'],
      ['decline', {}],
      ['leave'],
      ['end'],
      ['remove', { userId: bob.userId }],
      ['request-rejoin'],
      ['rejoin'],
      ['accept-rejoin', { requesterUserId: 1, requesterDeviceId: 1, encryptedAESKey: keyFor(bob.phone) }],
      ['keys', { epoch: 2, reason: 'rotation', encryptedAESKeys: {} }],
    ] as const
    for (const [name, body] of tries) {
      t.same(shortOf(await post(rooms, `${id}/${name}`, eve.phone, body)), [404, 'CALL_NOT_FOUND'], name)
    }
    t.same(shortOf(await get(rooms, id, eve.phone)), [404, 'CALL_NOT_FOUND'])
    t.same(shortOf(await get(rooms, `${id}/participants`, eve.phone)), [404, 'CALL_NOT_FOUND'])
  }
})

t.test('an ended call has ended for all its participants', async t => {
  const rooms = openRooms(t)
  const [ann, bob, eve] = (await rooms.people(['Ann', 'Bob', 'Eve'])) as People
  const id = await started(rooms, ann.phone, [bob])
  await post(rooms, `${id}/end`, ann.phone)
  for (const ms of [0, 120_000]) {
    await rooms.pass(ms)
    t.same(shortOf(await post(rooms, `${id}/join`, bob.phone)), [410, 'CALL_ENDED'])
    t.same(shortOf(await get(rooms, id, bob.phone)), [410, 'CALL_ENDED'])
    t.same(shortOf(await get(rooms, `${id}/participants`, bob.phone)), [410, 'CALL_ENDED'])
    t.same(shortOf(await get(rooms, id, eve.phone)), [404, 'CALL_NOT_FOUND'])
    t.same(shortOf(await post(rooms, `${id}/leave`, bob.phone)), [204])
  }
})

t.test(
  'what is pending is shown to each device with its own key, newest first, until it is answered',
  async t => {
    const rooms = openRooms(t)
    const [ann, bob, eve] = (await rooms.people(['Ann', 'Bob', 'Eve'], 2)) as People
    const first = await started(rooms, ann.phone, [bob])
    await rooms.pass(1_000)
    const second = await started(rooms, eve.phone, [bob])
    for (const phone of bob.phones) {
      const { body } = await get(rooms, 'pending', phone)
      t.match(body.items, [
        { callId: second, encryptedAESKey: keyFor(phone), status: 'ringing' },
        { callId: first, encryptedAESKey: keyFor(phone) },
      ])
    }
    t.same((await get(rooms, 'pending', ann.phone)).body, { items: [] })
    await post(rooms, `${second}/decline`, bob.phone, {})
    t.match((await get(rooms, 'pending', bob.phone)).body.items, [{ callId: first }])
    await rooms.pass(66_000)
    t.same((await get(rooms, 'pending', bob.phone)).body, { items: [] })
  },
)

t.test('a start that is repeated under its key is the same call', async t => {
  const rooms = openRooms(t)
  const [ann, bob] = (await rooms.people(['Ann', 'Bob'])) as People
  const start = (more = {}, key = 'k1') =>
    post(rooms, 'start', ann.phone, startBody([bob], more), { 'idempotency-key': key })
  const both = await Promise.all([start(), start()])
  const [first, second] = both
  t.same([first.status, second.status], [201, 201])
  t.equal(second.text, first.text)
  t.same(rooms.kindsFor(bob.phone), ['call_invitation'])
  await post(rooms, 'end', ann.phone, { callId: first.body.callId })
  t.equal((await start()).text, first.text, 'also when the call is over')
  t.same(shortOf(await start({ isVideo: true })), [422, 'IDEMPOTENCY_KEY_REUSED'])
  t.not((await start({}, 'k2')).body.callId, first.body.callId)
})

t.test('a start that is repeated has the room and tokens of the gateway that the call has now', async t => {
  const admissionOf: Admit['admissionOf'] = ({ gateway, roomId }) => ({
    url: `wss://${gateway}`,
    roomToken: `into ${roomId}`,
    pluginToken: 'any',
  })
  const rooms = openRooms(t, { admit: { kind: 'janus', admissionOf } })
  const [ann, bob] = (await rooms.people(['Ann', 'Bob'])) as People
  const start = () => post(rooms, 'start', ann.phone, startBody([bob]), { 'idempotency-key': 'k' })
  const first = await start()
  t.same(first.body.media, { kind: 'janus', state: 'pending' })
  const { roomId } = first.body
  const room = rooms.room(BigInt(first.body.callId) as CallId)
  const { userId } = ann
  const devices = [{ userId, deviceId: ann.phone.deviceId }]
  for (const gateway of ['one', 'two']) {
    room.tellControl({ kind: 'media-admitted', gateway, roomId, devices })
    await rooms.rest()
    const media = { kind: 'janus', state: 'ready', url: `wss://${gateway}`, roomToken: `into ${roomId}` }
    t.same((await start()).body, { ...first.body, media: { ...media, pluginToken: 'any' } })
  }
})

t.test('a start that failed is tried again under its key, and is known after a restart', async t => {
  const before = openRooms(t)
  const [ann, bob] = (await before.people(['Ann', 'Bob'])) as People
  const start = (rooms: TestRooms) =>
    post(rooms, 'start', ann.phone, startBody([bob]), { 'idempotency-key': 'k' })
  before.writesToFail = 1
  t.same(shortOf(await start(before)), [503, 'STORE_UNAVAILABLE'])
  await before.pass(1_000)
  const first = await start(before)
  t.equal(first.status, 201)
  const after = await before.restart()
  t.equal((await start(after)).text, first.text)
})

t.test('an invitation that is repeated under its key invites once', async t => {
  const rooms = openRooms(t)
  const [ann, bob, eve] = (await rooms.people(['Ann', 'Bob', 'Eve'])) as People
  const id = await started(rooms, ann.phone, [bob])
  const invite = () => post(rooms, `${id}/invite`, ann.phone, startBody([eve]), { 'idempotency-key': 'k' })
  const answers = [await invite(), await invite()]
  t.same(
    answers.map(({ status }) => status),
    [200, 200],
  )
  t.equal(answers[1]!.text, answers[0]!.text)
  t.same(rooms.kindsFor(eve.phone), ['call_invitation'])
})

t.test('starts and requests to rejoin are limited', async t => {
  const rooms = openRooms(t, { rates: true })
  const people = await rooms.people(['Ann', 'Bob', 'Eve', 'Tom', 'Kim', 'Sue'])
  const [ann, bob, ...others] = people as People
  for (let at = 0; at < 20; at++) {
    const callee = others[at % others.length]!
    const answer = await post(rooms, 'start', ann.phone, startBody([callee]))
    t.equal(answer.status, 201)
    await post(rooms, `${answer.body.callId}/join`, callee.phone)
    await post(rooms, `${answer.body.callId}/end`, ann.phone)
  }
  const refused = await post(rooms, 'start', ann.phone, startBody([bob]))
  t.match(refused, { status: 429, body: { code: 'RATE_LIMITED', scope: 'user', retryIn: 30 } })
  const id = await started(rooms, bob.phone, [ann])
  await post(rooms, `${id}/join`, ann.phone)
  for (let at = 0; at < 6; at++) {
    t.equal((await post(rooms, `${id}/request-rejoin`, ann.phone)).status, 202)
  }
  const asked = await post(rooms, `${id}/request-rejoin`, ann.phone)
  t.match(asked, { status: 429, body: { code: 'RATE_LIMITED', scope: 'call', retryIn: 10 } })
})

t.test('history: each remembers the call as theirs, newest first, a page at a time', async t => {
  const rooms = openRooms(t)
  const [ann, bob] = (await rooms.people(['Ann', 'Bob'])) as People
  const first = await started(rooms, ann.phone, [bob])
  await post(rooms, `${first}/join`, bob.phone)
  await rooms.pass(5_000)
  await post(rooms, `${first}/end`, bob.phone)
  await rooms.pass(1_000)
  const second = await started(rooms, ann.phone, [bob])
  await post(rooms, `${second}/end`, ann.phone)
  const page = await get(rooms, 'history?limit=1', bob.phone)
  t.match(page.body.items, [
    {
      callId: second,
      direction: 'incoming',
      status: 'missed',
      seen: false,
      durationIn: 0,
      isGroup: false,
      peers: [{ userId: `${ann.userId}`, displayName: 'Ann' }],
    },
  ])
  const rest = await get(rooms, `history?limit=1&cursor=${page.body.nextCursor}`, bob.phone)
  t.match(rest.body.items, [{ callId: first, status: 'ended', durationIn: 5, seen: true }])
  t.equal(rest.body.nextCursor, undefined)
  const { items } = (await get(rooms, 'history', ann.phone)).body
  t.match(items, [
    { callId: second, direction: 'outgoing', status: 'cancelled' },
    { callId: first, direction: 'outgoing', status: 'ended' },
  ])
  t.notMatch(JSON.stringify(items), /encrypted|"key/)
})

t.test('history: a call stands in the list while it goes on for the user, by itself', async t => {
  let rooms = openRooms(t, { folder: t.testdir() })
  const [ann, bob, eve] = (await rooms.people(['Ann', 'Bob', 'Eve'])) as People
  const before = await started(rooms, ann.phone, [bob])
  await post(rooms, `${before}/end`, ann.phone)
  await rooms.pass(1_000)
  const callId = await started(rooms, ann.phone, [bob, eve])
  const of = async ({ phone }: People[number]) => {
    const { items } = (await get(rooms, 'history', phone)).body
    return (items as { callId: string; status: string }[]).map(
      one => `${one.callId === callId ? 'this' : 'other'} ${one.status}`,
    )
  }
  t.same([await of(ann), await of(bob)], [['this active', 'other cancelled'], ['other missed']])
  await post(rooms, `${callId}/join`, bob.phone)
  await post(rooms, `${callId}/decline`, eve.phone)
  t.same(
    [await of(ann), await of(bob), await of(eve)],
    [['this active', 'other cancelled'], ['this active', 'other missed'], ['this declined']],
  )
  const page = await get(rooms, 'history?limit=1', bob.phone)
  t.match(page.body.items, [{ callId, status: 'active', seen: true, direction: 'incoming' }])
  const rest = await get(rooms, `history?limit=1&cursor=${page.body.nextCursor}`, bob.phone)
  t.match(rest.body.items, [{ callId: before }])
  rooms = await rooms.restart()
  await post(rooms, `${callId}/leave`, bob.phone)
  t.same(await of(bob), ['this active', 'other missed'], 'they may come back')
  const forget = (path: string) =>
    rooms.send(`DELETE /app/api/call/history${path}`, { token: bob.phone.token })
  t.same(shortOf(await forget(`/${callId}`)), [204])
  t.same(shortOf(await forget('')), [204])
  t.same(await of(bob), ['this active'], 'what goes on can’t be forgotten')
  await post(rooms, `${callId}/end`, ann.phone)
  t.same(
    [await of(ann), await of(bob), await of(eve)],
    [['this ended', 'other cancelled'], ['this ended'], ['this declined']],
  )
})

t.test('history: missed calls are looked at, and calls forgotten', async t => {
  const rooms = openRooms(t)
  const [ann, bob] = (await rooms.people(['Ann', 'Bob'])) as People
  const { token } = bob.phone
  const ids: string[] = []
  for (let at = 0; at < 3; at++) {
    ids.push(await started(rooms, ann.phone, [bob]))
    await post(rooms, `${ids[at]}/end`, ann.phone)
  }
  const missed = () => rooms.world.database.view(view => rooms.history.missedOf(view, bob.userId))
  t.equal(missed(), 3)
  t.same(shortOf(await post(rooms, 'history/seen', bob.phone)), [204])
  t.equal(missed(), 0)
  const forget = (path: string) => rooms.send(`DELETE /app/api/call/history${path}`, { token })
  t.same(shortOf(await forget(`/${ids[0]}`)), [204])
  t.same(shortOf(await forget(`/${ids[0]}`)), [404, 'CALL_NOT_FOUND'])
  t.same(shortOf(await forget('/x')), [404, 'CALL_NOT_FOUND'])
  t.equal((await get(rooms, 'history', bob.phone)).body.items.length, 2)
  t.same(shortOf(await forget('')), [204])
  t.same((await get(rooms, 'history', bob.phone)).body, { items: [] })
  t.equal((await get(rooms, 'history', ann.phone)).body.items.length, 3)
})
