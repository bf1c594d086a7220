/** By which names people are shown: the user's own for a contact, else the ones that people have chosen. */

import t from 'tap'
import { type Named, Names } from '../../src/app/names.ts'
import type { QueueEvent } from '../../src/app/wire.ts'
import { readVectors } from '../support/vectors.ts'
import { newFriends, until } from '../support/whole-apps.ts'

interface Case {
  readonly name: string
  readonly steps: readonly Step[]
}

interface Step {
  readonly contacts?: readonly Named[]
  readonly meanwhile?: readonly QueueEvent[]
  readonly event?: QueueEvent
  readonly shown?: Named
  readonly as?: object
  readonly changes?: number
}

for (const { name, steps } of readVectors<{ readonly cases: readonly Case[] }>('contact-names').cases) {
  t.test(name, async t => {
    let changes = 0
    const names = new Names(() => {
      changes += 1
    })
    for (const { contacts, meanwhile = [], event, shown, as, changes: expected } of steps) {
      if (contacts !== undefined)
        await names.load(async () => {
          for (const each of meanwhile) names.onEvent(each)
          return contacts
        })
      if (event !== undefined) names.onEvent(event)
      if (shown !== undefined) t.same(names.of(shown), { userId: shown.userId, ...as })
      if (expected !== undefined) t.equal(changes, expected)
    }
  })
}

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
