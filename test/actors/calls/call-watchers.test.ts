/** Messages to a call's live subscribers: permission, order, and durability before delivery. */

import t from 'tap'
import { openRooms, type Person } from '../../support/test-rooms.ts'
import { kinds, watchers } from '../../support/test-watchers.ts'

t.test('a subscriber hears of each change, in order, with the whole participant', async t => {
  const rooms = openRooms(t)
  const { watch, seenBy } = watchers(rooms)
  const [ann, bob] = (await rooms.people(['Ann', 'Bob'])) as [Person, Person]
  const callId = await rooms.start(ann.phone, [bob])
  await watch(callId, ann.phone, 'a', 7)
  await rooms.ask(callId, { kind: 'ringing', by: bob.phone })
  await rooms.ask(callId, { kind: 'join', by: bob.phone })
  await rooms.ask(callId, { kind: 'leave', by: ann.phone })
  t.same(kinds(seenBy('a')), [
    'joined 7',
    'participant_ringing',
    'participant_joined',
    'call_status',
    'participant_left',
    'host_changed',
  ])
  const [, , joined] = seenBy('a') as { headers: string[]; eventId: string; sentAt: number }[]
  t.match(joined, {
    v: 1,
    type: 'participant_joined',
    callId: String(callId),
    participant: {
      userId: String(bob.userId),
      state: 'joined',
      isHost: false,
      deviceId: String(bob.phone.deviceId),
      displayName: 'Bob',
      mediaName: `${bob.userId}:Bob`,
      publicKeyHash: bob.phone.publicKeyHash,
    },
  })
  t.ok(joined!.headers.includes('type:participant_joined'))
  t.ok(joined!.headers.includes(`message-id:${joined!.eventId}`))
  t.ok(joined!.headers.includes(`timestamp:${joined!.sentAt}`))
})

t.test('subscribers hear nothing of a change that could not be written, and stay', async t => {
  const rooms = openRooms(t)
  const { watch, seenBy } = watchers(rooms)
  const [ann, bob] = (await rooms.people(['Ann', 'Bob'])) as [Person, Person]
  const callId = await rooms.start(ann.phone, [bob])
  await watch(callId, ann.phone, 'a')
  rooms.writesToFail = 1
  await t.rejects(rooms.ask(callId, { kind: 'join', by: bob.phone }), { code: 'STORE_UNAVAILABLE' })
  await rooms.pass(1_000)
  t.same(kinds(seenBy('a')), ['joined 1'])
  await rooms.ask(callId, { kind: 'join', by: bob.phone })
  t.same(kinds(seenBy('a')), ['joined 1', 'participant_joined', 'call_status'])
})

t.test('only those who have a part in a live call may watch it', async t => {
  const rooms = openRooms(t)
  const { watch, seenBy } = watchers(rooms)
  const [ann, bob, eve] = (await rooms.people(['Ann', 'Bob', 'Eve'])) as [Person, Person, Person]
  const callId = await rooms.start(ann.phone, [bob])
  await t.rejects(watch(callId, eve.phone, 'e'), { code: 'CALL_NOT_FOUND' })
  await t.rejects(watch(rooms.newCallId(), ann.phone, 'e'), { code: 'CALL_NOT_FOUND' })
  await watch(callId, bob.phone, 'b')
  await rooms.ask(callId, { kind: 'end', by: ann.phone })
  t.same(kinds(seenBy('b')), ['joined 1', 'call_status'])
  await t.rejects(watch(callId, bob.phone, 'b2'), { code: 'CALL_ENDED' })
  await rooms.pass(120_000)
  await t.rejects(watch(callId, bob.phone, 'b3'), { code: 'CALL_ENDED' })
  await t.rejects(watch(callId, eve.phone, 'e'), { code: 'CALL_NOT_FOUND' })
  t.same(seenBy('e'), [])
  await rooms.pass(2_000)
  t.equal(rooms.system.figures().kinds['call-room']?.live, 0)
})

t.test('a removed participant hears nothing more, not even of the removal', async t => {
  const rooms = openRooms(t)
  const { watch, seenBy } = watchers(rooms)
  const [ann, bob, eve] = (await rooms.people(['Ann', 'Bob', 'Eve'])) as [Person, Person, Person]
  const callId = await rooms.start(ann.phone, [bob, eve])
  await watch(callId, ann.phone, 'a')
  await watch(callId, bob.phone, 'b')
  await rooms.ask(callId, { kind: 'remove', by: ann.phone, userId: bob.userId })
  await rooms.ask(callId, { kind: 'join', by: eve.phone })
  t.same(kinds(seenBy('a')), ['joined 1', 'participant_left', 'participant_joined', 'call_status'])
  t.same(kinds(seenBy('b')), ['joined 1'])
  await t.rejects(watch(callId, bob.phone, 'b'), { code: 'NOT_PARTICIPANT' })
})

t.test('a session hears events until it has taken back as many subscriptions as it made', async t => {
  const rooms = openRooms(t)
  const { watch, seenBy } = watchers(rooms)
  const [ann, bob] = (await rooms.people(['Ann', 'Bob'])) as [Person, Person]
  const callId = await rooms.start(ann.phone, [bob])
  await watch(callId, ann.phone, 'a', 1)
  await watch(callId, ann.phone, 'a', 2)
  const unsubscribe = () => rooms.room(callId).tell({ kind: 'unsubscribe', connectionId: 'a' })
  unsubscribe()
  await rooms.ask(callId, { kind: 'ringing', by: bob.phone })
  unsubscribe()
  unsubscribe()
  await rooms.ask(callId, { kind: 'join', by: bob.phone })
  t.same(kinds(seenBy('a')), ['joined 1', 'joined 2', 'participant_ringing'])
})
