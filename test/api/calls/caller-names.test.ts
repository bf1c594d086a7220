/** By which name a caller rings: the callee's own for them, else theirs, and a stranger as one (contract 3). */

import t from 'tap'
import type { Notice } from '../../../src/domain/messages/notice.ts'
import { keysFor, openRooms, type Person, type TestRooms } from '../../support/test-rooms.ts'

async function name(rooms: TestRooms, one: Person, other: Person, alias: string | undefined): Promise<void> {
  const { world, contacts } = rooms
  await world.database.change(change => {
    contacts.rename(change, one.userId, { userId: other.userId, alias }, undefined)
  })
}

/** The members that say who calls. */
function callerIn(notice: Notice | undefined) {
  if (notice === undefined || !('callerName' in notice)) return undefined
  const { kind, callerName, displayName, alias, isContact } = notice
  return { kind, callerName, displayName, alias, isContact }
}

t.test('a contact rings by the callee’s own name for them, and is missed by it', async t => {
  const rooms = openRooms(t)
  const [mum, ann, cy] = (await rooms.people(['Eve', 'Ann', 'Cy'])) as [Person, Person, Person]
  await name(rooms, ann, mum, 'Mum')
  await name(rooms, mum, ann, 'My child')
  const start = rooms.startRequest(mum.phone, [ann, cy], rooms.newCallId())
  await rooms.ask(start.callId, start)
  const known = { callerName: 'Mum', displayName: 'Eve', alias: 'Mum', isContact: true }
  const plain = { callerName: 'Eve', displayName: 'Eve', alias: undefined, isContact: true }
  t.same(callerIn(rooms.inboxOf(ann.phone)[0]), { kind: 'call_invitation', ...known })
  t.same(callerIn(rooms.inboxOf(cy.phone)[0]), { kind: 'call_invitation', ...plain })
  const pending = async ({ phone: { token } }: Person) => {
    const { body } = await rooms.send('GET /app/api/call/pending', { token })
    return body.items[0].invitation
  }
  t.same(await pending(ann), { callerId: String(mum.userId), ...known })
  const { alias: _, ...shown } = plain
  t.same(await pending(cy), { callerId: String(mum.userId), ...shown })
  const { body } = await rooms.send(`GET /app/api/call/${start.callId}`, { token: cy.phone.token })
  t.notOk(JSON.stringify(body).includes('Mum'), 'others do not see it')
  await rooms.pass(66_000)
  t.same(callerIn(rooms.inboxOf(ann.phone)[0]), { kind: 'call_missed', ...known })
  t.same(callerIn(rooms.inboxOf(cy.phone)[0]), { kind: 'call_missed', ...plain })
})

t.test('a contact who takes the name of another rings by the name that they were given', async t => {
  const rooms = openRooms(t)
  const [bob, ann] = (await rooms.people(['Mum', 'Ann'])) as [Person, Person]
  await name(rooms, ann, bob, 'Bob')
  await rooms.start(bob.phone, [ann])
  t.match(callerIn(rooms.inboxOf(ann.phone)[0]), { callerName: 'Bob', displayName: 'Mum', isContact: true })
})

t.test('a stranger rings as one, whatever their name is', async t => {
  const rooms = openRooms(t)
  const [eve, ann] = [await rooms.person('Mum'), await rooms.person('Ann')]
  await rooms.world.database.change(change => {
    const user = rooms.world.accounts.read(change, ann.userId)!
    const settings = { ...user.settings, callsFromContactsOnly: false }
    rooms.world.accounts.put(change, ann.userId, { ...user, settings })
  })
  const callId = await rooms.start(eve.phone, [ann])
  const stranger = { callerName: 'Mum', displayName: 'Mum', alias: undefined, isContact: false }
  t.same(callerIn(rooms.inboxOf(ann.phone)[0]), { kind: 'call_invitation', ...stranger })
  await rooms.ask(callId, { kind: 'end', by: eve.phone })
  t.same(callerIn(rooms.inboxOf(ann.phone)[0]), { kind: 'call_cancelled', ...stranger })
})

t.test('a second invitation has the names of its own inviter', async t => {
  const rooms = openRooms(t)
  const [ann, bob, cy] = (await rooms.people(['Ann', 'Bob', 'Cy'])) as [Person, Person, Person]
  await name(rooms, cy, bob, 'Bobby')
  const callId = await rooms.start(ann.phone, [bob, cy])
  await rooms.ask(callId, { kind: 'join', by: bob.phone })
  await rooms.ask(callId, { kind: 'decline', by: cy.phone })
  const encryptedAESKeys = keysFor(cy.phones)
  await rooms.ask(callId, { kind: 'invite', by: bob.phone, calleeIds: [cy.userId], encryptedAESKeys })
  t.match(callerIn(rooms.inboxOf(cy.phone).at(-1)), {
    kind: 'call_invitation',
    callerName: 'Bobby',
    displayName: 'Bob',
  })
})

t.test('the history has both names, and the own one of now', async t => {
  const rooms = openRooms(t)
  const [ann, bob] = (await rooms.people(['Ann', 'Bob'])) as [Person, Person]
  const callId = await rooms.start(bob.phone, [ann])
  await rooms.ask(callId, { kind: 'end', by: bob.phone })
  const peers = async () => {
    const { body } = await rooms.send('GET /app/api/call/history', { token: ann.phone.token })
    return body.items[0].peers
  }
  const userId = String(bob.userId)
  t.same(await peers(), [{ userId, displayName: 'Bob' }])
  await name(rooms, ann, bob, 'Bobby')
  t.same(await peers(), [{ userId, displayName: 'Bob', alias: 'Bobby' }])
})

t.test('the history has no name of a person who was erased', async t => {
  const rooms = openRooms(t)
  const [ann, bob] = (await rooms.people(['Ann', 'Bob'])) as [Person, Person]
  const callId = await rooms.start(bob.phone, [ann])
  await rooms.ask(callId, { kind: 'end', by: bob.phone })
  const { accounts, database } = rooms.world
  await database.change(change => accounts.remove(change, bob.userId))
  const { body } = await rooms.send('GET /app/api/call/history', { token: ann.phone.token })
  t.same(body.items[0].peers, [{ userId: String(bob.userId), displayName: '' }])
})
