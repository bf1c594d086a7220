/** By which names people are shown: the user's own for a contact, else the ones that people have chosen. */

import t from 'tap'
import { Names } from '../../src/app/names.ts'
import type { QueueEvent } from '../../src/app/wire.ts'
import { newFriends, until } from '../support/whole-apps.ts'

const BOB = { userId: '2', displayName: 'Bob' }

function told(type: 'contact_added' | 'contact_changed' | 'contact_removed', person: object): QueueEvent {
  return { v: 1, type, eventId: 'e', sentAt: 0, ...person } as QueueEvent
}

t.test('the newest names count, and each change calls the listener once', async t => {
  let changes = 0
  const names = new Names(() => {
    changes += 1
  })
  t.same(names.of(BOB), { ...BOB, name: 'Bob' }, 'whether they are a contact is not known yet')
  await names.load(async () => [{ ...BOB, alias: 'Bobby' }])
  const known = { ...BOB, name: 'Bobby', alias: 'Bobby', isContact: true }
  t.same(names.of({ ...BOB, displayName: 'Old' }), known)
  await names.load(async () => [{ ...BOB, alias: 'Bobby' }])
  t.equal(changes, 1)
  names.onEvent(told('contact_changed', { ...BOB, displayName: 'Robert', alias: 'Bobby' }))
  t.match(names.of(BOB), { name: 'Bobby', displayName: 'Robert' })
  names.onEvent(told('contact_changed', { ...BOB, displayName: 'Robert' }))
  t.same(names.of(BOB), { userId: '2', name: 'Robert', displayName: 'Robert', isContact: true })
  names.onEvent(told('contact_removed', BOB))
  t.same(names.of(BOB), { ...BOB, name: 'Bob', isContact: false })
  names.onEvent(told('contact_added', BOB))
  t.match(names.of(BOB), { isContact: true })
  t.equal(changes, 5)
})

t.test('a list that was read before a change does not undo it', async t => {
  const names = new Names(() => {})
  const cat = { userId: '3', displayName: 'Cat' }
  await names.load(async () => {
    names.put({ ...BOB, alias: 'Bobby' })
    names.onEvent(told('contact_removed', cat))
    return [BOB, cat]
  })
  t.match(names.of(BOB), { name: 'Bobby' })
  t.match(names.of(cat), { isContact: false })
})

t.test('an invitation names its caller where the list does not', async t => {
  const names = new Names(() => {})
  const caller = { ...BOB, alias: 'Bobby', isContact: true }
  t.match(names.of(caller), { name: 'Bobby', isContact: true })
  t.match(names.of({ ...BOB, isContact: false }), { name: 'Bob', isContact: false })
  await names.load(async () => [])
  t.match(names.of(caller), { isContact: true }, 'who became a contact since')
})

t.test('a contact is shown by the name that the user gives them, in calls too, on all sides', async t => {
  const [bob, ann, cat] = await newFriends(t, 3)
  const bobs = bob!.me.userId!
  const contact = await ann!.me.contacts.rename(bobs, ' My  brother ')
  t.match(contact, { userId: bobs, alias: 'My brother' })
  t.equal(ann!.me.contacts.nameOf({ userId: bobs, displayName: 'old' }), 'My brother')
  const [rung, cats] = [ann!.me.once('ringing'), cat!.me.once('ringing')]
  const call = await bob!.me.call([ann!.me.userId!, cat!.me.userId!])
  const ringing = await rung
  const displayName = bob!.me.user!.displayName
  t.same(ringing.caller, {
    userId: bobs,
    name: 'My brother',
    displayName,
    alias: 'My brother',
    isContact: true,
  })
  t.match((await cats).caller, { name: displayName, isContact: true })
  await ringing.answer()
  const nameOfBob = () => ringing.participants.find(({ userId }) => userId === bobs)?.name
  t.equal(nameOfBob(), 'My brother')
  t.equal(ringing.participants, ringing.participants, 'the same list until it changes')
  t.notOk(JSON.stringify([call.participants, (await cats).participants]).includes('brother'))
  const changed = ringing.once('changed')
  await ann!.me.contacts.rename(bobs)
  await changed
  t.equal(nameOfBob(), displayName)
  const heard = ann!.me.once('contact_changed')
  await bob!.me.account.update({ displayName: 'Robert' })
  t.match(await heard, { userId: bobs, displayName: 'Robert' })
  t.equal(nameOfBob(), 'Robert')
  await call.end()
  await until(ringing, ({ state }) => state === 'ended')
})
