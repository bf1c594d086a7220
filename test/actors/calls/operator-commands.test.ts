/** The operator's commands to a call's room, and the time line that the room keeps with the call. */

import t from 'tap'
import type { OperatorRequest } from '../../../src/domain/calls/call-command.ts'
import type { CallId } from '../../../src/domain/ids.ts'
import { openRooms, type Person, type TestRooms } from '../../support/test-rooms.ts'

type People = [Person, Person, Person]

const AUDIT = { keyId: 'aabbccddeeff', operation: 'endCallOfUsers', target: 'call:1', requestId: 'one' }

function operate(rooms: TestRooms, callId: CallId, command: OperatorRequest) {
  const asked = rooms
    .room(callId)
    .ask(reply => ({ kind: 'operator', command, audit: AUDIT, reply }) as const, 10_000)
  asked.catch(() => undefined)
  return asked
}

function rowsOf({ world }: TestRooms): number {
  return world.database.view(view => world.auditLog.read(view, { sinceMs: 0, limit: 100 })).length
}

/** Moments of the call, with its people as `a`, `b` and `c`. */
function told(rooms: TestRooms, callId: CallId): string[] {
  const { participants, timeLine } = rooms.world.database.view(view => rooms.calls.read(view, callId))!
  const placeOf = (userId: bigint) => 'abc'[participants.findIndex(one => one.userId === userId)]
  return timeLine.map(({ kind, userIds, byUserId }) =>
    [kind, userIds.map(placeOf).join(''), byUserId === undefined ? '' : `by ${placeOf(byUserId)}`]
      .filter(text => text !== '')
      .join(' '),
  )
}

t.test('what an operator does and the row that says so are durable together, or neither is', async t => {
  const rooms = openRooms(t)
  const [ann, bob] = (await rooms.people(['Ann', 'Bob'])) as People
  const callId = await rooms.start(ann.phone, [bob])
  rooms.writesToFail = 1
  await t.rejects(operate(rooms, callId, { kind: 'operator-end' }), { code: 'STORE_UNAVAILABLE' })
  await rooms.pass(1_000)
  t.equal(rowsOf(rooms), 0)
  t.equal(rooms.call(callId)?.status, 'ringing', 'the room begins again with what the store has')
  const again = operate(rooms, callId, { kind: 'operator-end' })
  await rooms.rest()
  t.same(await again, { kind: 'done' })
  t.equal(rowsOf(rooms), 1)
  const once = operate(rooms, callId, { kind: 'operator-end' })
  await rooms.rest()
  t.same(await once, { kind: 'done' })
  t.equal(rowsOf(rooms), 1, 'what changes nothing leaves no row')
})

t.test('an end meets a start that is being written', async t => {
  const rooms = openRooms(t)
  const [ann, bob] = (await rooms.people(['Ann', 'Bob'])) as People
  const callId = rooms.newCallId()
  const starting = rooms.askOf(callId, rooms.startRequest(ann.phone, [bob], callId))
  const ending = operate(rooms, callId, { kind: 'operator-end' })
  await rooms.rest()
  t.match(await starting, { record: { status: 'ringing' } })
  t.same(await ending, { kind: 'done' })
  t.match(
    rooms.world.database.view(view => rooms.calls.read(view, callId)),
    {
      status: 'cancelled',
      endReason: 'operator',
    },
  )
})

t.test('the time line of a call, from its start to its end', async t => {
  const rooms = openRooms(t)
  const [ann, bob, cid] = (await rooms.people(['Ann', 'Bob', 'Cid'], 2)) as People
  const callId = await rooms.start(ann.phone, [bob, cid])
  const room = rooms.room(callId)
  for (let at = 0; at < 2; at++) room.tell({ kind: 'ring-taken', userId: bob.userId })
  await rooms.pass(6_000)
  await rooms.ask(callId, { kind: 'ringing', by: bob.phone })
  await rooms.ask(callId, { kind: 'join', by: bob.phone })
  await rooms.ask(callId, { kind: 'join', by: bob.phones[1]! })
  await rooms.ask(callId, { kind: 'decline', by: cid.phone })
  const { roomId } = rooms.call(callId)!
  const { userId, deviceId } = ann.phone
  room.tell({ kind: 'media-admitted', gateway: 'janus', roomId, devices: [{ userId, deviceId }] })
  room.tell({ kind: 'media-lost' })
  await rooms.rest()
  await rooms.ask(callId, { kind: 'remove', by: ann.phone, userId: cid.userId })
  await rooms.ask(callId, { kind: 'leave', by: bob.phones[1]! })
  await rooms.ask(callId, { kind: 'end', by: ann.phone })
  t.same(told(rooms, callId), [
    'started a',
    'invited bc by a',
    'push_taken b',
    'unreachable c',
    'ringing b',
    'joined b',
    'moved b',
    'declined c',
    'media_ready a',
    'media_lost a',
    'removed c by a',
    'left b',
    'left a',
    'ended by a',
  ])
})

t.test('why a call failed: no device was reached, and the ring ran out', async t => {
  const rooms = openRooms(t)
  const [ann, bob] = (await rooms.people(['Ann', 'Bob'])) as People
  const callId = await rooms.start(ann.phone, [bob])
  await rooms.pass(70_000)
  t.same(told(rooms, callId), ['started a', 'invited b by a', 'unreachable b', 'left a', 'missed b', 'ended'])
})

t.test('of a long call the latest is kept', async t => {
  const rooms = openRooms(t)
  const [ann, bob] = (await rooms.people(['Ann', 'Bob'], 2)) as People
  const callId = await rooms.start(ann.phone, [bob])
  for (let at = 0; at < 210; at++) await rooms.ask(callId, { kind: 'join', by: bob.phones[at % 2]! })
  const { timeLine } = rooms.call(callId)!
  t.equal(timeLine.length, 200)
  t.ok(timeLine.every(({ kind }) => kind === 'moved'))
})
