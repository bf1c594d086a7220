/** The topic of a call says that a callee can't be reached: when, and when never. */

import t, { type Test } from 'tap'
import type { CallId } from '../../../src/domain/ids.ts'
import { keysFor, openRooms, type Person, type TestRooms } from '../../support/test-rooms.ts'
import { kinds, watchers } from '../../support/test-watchers.ts'

type People = [Person, Person, Person]

/** Ann has called Bob, and watches. */
async function called(t: Test) {
  const rooms = openRooms(t)
  const [ann, bob, carol] = (await rooms.people(['Ann', 'Bob', 'Carol'], 2)) as People
  const { watch, seenBy } = watchers(rooms)
  const callId = await rooms.start(ann.phone, [bob])
  await watch(callId, ann.phone, 'a')
  return { rooms, ann, bob, carol, callId, watch, seenBy, heard: () => kinds(seenBy('a')).slice(1) }
}

function takeRing(rooms: TestRooms, callId: CallId, { userId }: Person): void {
  rooms.room(callId).tell({ kind: 'ring-taken', userId })
}

t.test('a callee without a sign of life for five seconds is unreachable, once', async t => {
  const { rooms, bob, callId, seenBy, heard } = await called(t)
  const before = rooms.call(callId)
  await rooms.pass(4_000)
  t.same(heard(), [])
  await rooms.pass(2_000)
  t.match(seenBy('a')[1], {
    v: 1,
    type: 'participant_unreachable',
    callId: String(callId),
    version: 1,
    userId: String(bob.userId),
    hasUnapprovedDevice: false,
  })
  t.same(rooms.call(callId), before, 'the call is as it was')
  await rooms.pass(58_000)
  t.same(heard(), ['participant_unreachable'])
  await rooms.pass(2_000)
  t.equal(rooms.system.figures().timersArmed, 0)
})

t.test('it says whether the callee has a new device that they have not approved', async t => {
  const { rooms, ann, bob, carol, callId, seenBy } = await called(t)
  rooms.restricted.add(carol.userId)
  const encryptedAESKeys = keysFor(carol.phones)
  await rooms.ask(callId, { kind: 'join', by: bob.phone })
  await rooms.ask(callId, { kind: 'invite', by: ann.phone, calleeIds: [carol.userId], encryptedAESKeys })
  await rooms.pass(6_000)
  const said = { type: 'participant_unreachable', userId: String(carol.userId), hasUnapprovedDevice: true }
  t.match(seenBy('a').at(-1), said)
})

t.test('a callee can ring later, and is shown as ringing then', async t => {
  const { rooms, bob, callId, heard } = await called(t)
  await rooms.pass(6_000)
  await rooms.ask(callId, { kind: 'ringing', by: bob.phone })
  await rooms.pass(10_000)
  t.same(heard(), ['participant_unreachable', 'participant_ringing'])
})

t.test('a device that has a socket, or had one since, is within reach', async t => {
  const has = openRooms(t)
  const [ann, bob] = (await has.people(['Ann', 'Bob'], 2)) as People
  const { watch, seenBy } = watchers(has)
  has.connect(bob.phones[1]!)
  const callId = await has.start(ann.phone, [bob])
  await watch(callId, ann.phone, 'a')
  has.disconnect(bob.phones[1]!)
  await has.pass(10_000)
  t.same(kinds(seenBy('a')), ['joined 1'])
})

t.test('a device that had a socket for a moment is within reach', async t => {
  const had = await called(t)
  await had.rooms.pass(3_000)
  await had.rooms.tell(had.callId, { kind: 'device-online', by: had.bob.phones[1]! })
  await had.rooms.tell(had.callId, { kind: 'device-offline', by: had.bob.phones[1]! })
  await had.rooms.pass(10_000)
  t.same(had.heard(), [])
})

t.test('a callee is within reach where a push was taken', async t => {
  const { rooms, bob, callId, heard } = await called(t)
  takeRing(rooms, callId, bob)
  await rooms.pass(10_000)
  t.same(heard(), [])
})

t.test('a callee who is rung by a phone is within reach', async t => {
  const { rooms, bob, callId, heard } = await called(t)
  await rooms.ask(callId, { kind: 'ringing', by: bob.phone })
  await rooms.pass(10_000)
  t.same(heard(), ['participant_ringing'])
})

t.test('a callee who has answered is not unreachable', async t => {
  const { rooms, bob, callId, heard } = await called(t)
  await rooms.ask(callId, { kind: 'join', by: bob.phone })
  await rooms.pass(10_000)
  t.same(heard(), ['participant_joined', 'call_status'])
})

t.test('a callee who has blocked the caller is never said to be unreachable', async t => {
  const rooms = openRooms(t)
  const [ann, bob, carol] = (await rooms.people(['Ann', 'Bob', 'Carol'])) as People
  const { accounts, database } = rooms.world
  const user = database.view(view => accounts.read(view, bob.userId))!
  const settings = { ...user.settings, callsFromContactsOnly: false }
  await database.change(change => accounts.put(change, bob.userId, { ...user, settings }))
  await database.change(change => rooms.contacts.block(change, bob.userId, ann.userId), rooms.clock.nowMs())
  const { watch, seenBy } = watchers(rooms)
  const callId = await rooms.start(ann.phone, [bob, carol])
  await watch(callId, ann.phone, 'a')
  await rooms.pass(10_000)
  const [, ...events] = seenBy('a') as { type: string; userId: string }[]
  t.same(
    events.map(({ type, userId }) => [type, userId]),
    [['participant_unreachable', String(carol.userId)]],
  )
})

t.test('an invitation into a call has five seconds of its own', async t => {
  const { rooms, ann, bob, carol, callId, watch, seenBy, heard } = await called(t)
  await rooms.ask(callId, { kind: 'join', by: bob.phone })
  await watch(callId, bob.phone, 'b')
  await rooms.pass(20_000)
  const invite = {
    kind: 'invite' as const,
    by: ann.phone,
    calleeIds: [carol.userId],
    encryptedAESKeys: keysFor(carol.phones),
  }
  await rooms.ask(callId, invite)
  await rooms.pass(4_000)
  const before = ['participant_joined', 'call_status', 'participant_invited']
  t.same(heard(), before)
  await rooms.pass(2_000)
  t.same(heard(), [...before, 'participant_unreachable'])
  t.same(kinds(seenBy('b')), ['joined 1', 'participant_invited', 'participant_unreachable'])

  await rooms.ask(callId, { kind: 'decline', by: carol.phone })
  await rooms.ask(callId, { ...invite, encryptedAESKeys: keysFor(carol.phones, 2) })
  takeRing(rooms, callId, carol)
  await rooms.pass(10_000)
  const again = ['participant_declined', 'participant_invited']
  t.same(heard(), [...before, 'participant_unreachable', ...again], 'a later invitation counts anew')
})

t.test('a call that ends within the five seconds tells nothing and leaves no timer', async t => {
  const { rooms, ann, callId, heard } = await called(t)
  await rooms.pass(2_000)
  await rooms.ask(callId, { kind: 'end', by: ann.phone })
  t.equal(rooms.system.figures().timersArmed, 0)
  await rooms.pass(10_000)
  t.same(heard(), ['call_status'])
  t.equal(rooms.system.figures().liveActors - 1, 0, 'but the watcher')
})

t.test('a room that is built anew after a failed write still knows whom it has not reached', async t => {
  const { rooms, ann, carol, callId, heard } = await called(t)
  await rooms.pass(2_000)
  rooms.writesToFail = 1
  const invite = {
    kind: 'invite' as const,
    by: ann.phone,
    calleeIds: [carol.userId],
    encryptedAESKeys: keysFor(carol.phones),
  }
  await t.rejects(rooms.ask(callId, invite), { code: 'STORE_UNAVAILABLE' })
  await rooms.pass(10_000)
  t.same(heard(), ['participant_unreachable'], 'and nothing of those whom it has not called after all')
})

t.test('a restart forgets it, and the call goes on', async t => {
  const { rooms, ann, bob, callId } = await called(t)
  await rooms.pass(2_000)
  const after = await rooms.restart()
  const { watch, seenBy } = watchers(after)
  await watch(callId, ann.phone, 'a')
  await after.pass(10_000)
  t.same(kinds(seenBy('a')), ['joined 1'])
  await after.ask(callId, { kind: 'join', by: bob.phone })
  t.same(kinds(seenBy('a')), ['joined 1', 'participant_joined', 'call_status'])
})
