/** What is kept of people who are called: it follows each row that it is made of. */

import t from 'tap'
import type { DeviceId, UserId } from '../../../src/domain/ids.ts'
import { CalledPeople } from '../../../src/store/calls/called-people.ts'
import type { Change } from '../../../src/store/engine/store.ts'
import { newDevice, newDeviceList, newUser, openWorld } from '../../support/application.ts'

t.test('what is kept of people follows their rows', async t => {
  const world = openWorld(t.testdir())
  t.teardown(() => world.database.close())
  const { accounts, contacts, database, devices } = world
  const [{ userId }, { userId: otherId }] = [await newUser(world, 'Ann'), await newUser(world, 'Bob')]
  const people = new CalledPeople(world)
  const change = (write: (change: Change) => unknown) => database.change(change => void write(change))
  const user = (id = userId) => database.view(view => people.user(view, id))
  const towards = (one: UserId, other: UserId) => database.view(view => people.towards(view, one, other))
  const account = database.view(view => accounts.read(view, userId))!
  const put = (changes: object) =>
    change(change => accounts.put(change, userId, { ...account, ...changes } as typeof account))

  t.equal(user(5n as UserId), undefined)
  t.same(user(), {
    displayName: 'Ann',
    isSuspended: false,
    takesCallsFromStrangers: false,
    deviceIds: [],
    deviceList: undefined,
  })
  t.equal(user(), user(), 'and is not made anew')
  await put({ settings: { ...account.settings, callsFromContactsOnly: false } })
  t.match(user(), { takesCallsFromStrangers: true })
  await put({ displayName: 'Anna', suspension: { sinceMs: 1 } })
  t.match(user(), { displayName: 'Anna', isSuspended: true })
  const { deviceId } = await newDevice(world, userId)
  t.same(user()?.deviceIds, [deviceId])
  await newDeviceList(world, userId, [deviceId, 7n as DeviceId], 3)
  t.same(user()?.deviceList, { seq: 3, deviceIds: [deviceId, 7n] })
  await change(change => devices.remove(change, userId, deviceId))
  t.same(user()?.deviceIds, [])

  t.same(towards(userId, otherId), { link: undefined, blockedAtMs: undefined })
  await change(change => contacts.link(change, userId, otherId))
  t.match(towards(userId, otherId).link, { sinceMs: world.nowMs() })
  t.match(towards(otherId, userId).link, { sinceMs: world.nowMs() })
  await change(change => contacts.block(change, userId, otherId))
  t.match(towards(userId, otherId), { blockedAtMs: world.nowMs() })
  t.equal(towards(otherId, userId).blockedAtMs, undefined)
  await change(change => contacts.unblock(change, userId, otherId))
  t.equal(towards(userId, otherId).blockedAtMs, undefined)
})
