/** Whose keys a user reads (contract 2.5, `GET user/publicKeys`). */

import t, { type Test } from 'tap'
import { PRESENT_KEYS } from '../../../src/domain/contacts/friend-request.ts'
import type { UserId } from '../../../src/domain/ids.ts'
import { newUser, type TestUser } from '../../support/application.ts'
import { newKey, openHouse, registerDevice, twoDevices } from '../../support/device-house.ts'

/** A house in which the users of `pairs` may read each other's keys. */
async function houseOfContacts(t: Test, pairs: [UserId, UserId][]) {
  const keysShown = (asker: UserId, owner: UserId) =>
    pairs.some(pair => pair.includes(asker) && pair.includes(owner) && asker !== owner)
      ? PRESENT_KEYS
      : undefined
  return openHouse(t, t.testdir(), { keysShown })
}

t.test('users read their own keys and permitted ones, and all the rest are unavailable alike', async t => {
  const pairs: [UserId, UserId][] = []
  const house = await houseOfContacts(t, pairs)
  const users: TestUser[] = []
  for (const name of ['Ann', 'Bob', 'Carol']) users.push(await newUser(house.world, name))
  const [ann, bob, carol] = users as [TestUser, TestUser, TestUser]
  pairs.push([ann.userId, bob.userId])
  const keys = new Map<UserId, object>()
  for (const user of [ann, bob, carol]) {
    const publicKey = newKey()
    const { vrfHash: _, ...registered } = (await registerDevice(house, user, publicKey)).body
    keys.set(user.userId, { ...registered, publicKey })
  }
  const ofUser = ({ userId }: TestUser, displayName: string) => ({
    userId: String(userId),
    displayName,
    devices: [keys.get(userId)],
  })
  const read = (query: string) => house.send(`GET /app/api/user/publicKeys${query}`, { token: ann.token })
  t.same((await read('')).body, { users: [ofUser(ann, 'Ann')], unavailable: [] })
  const ids = [bob.userId, carol.userId, 7n, ann.userId, bob.userId, 2n ** 64n - 1n].join()
  t.same((await read(`?userIds=${ids}`)).body, {
    users: [ofUser(bob, 'Bob'), ofUser(ann, 'Ann')],
    unavailable: [String(carol.userId), '7', '18446744073709551615'],
  })
})

t.test('a removed device has no key to be read', async t => {
  const { house, ann, first, second } = await twoDevices(t)
  await house.send(`DELETE /app/api/devices/${second}`, { token: ann.token })
  const { body } = await house.send('GET /app/api/user/publicKeys', { token: ann.token })
  t.same(
    body.users[0].devices.map(({ deviceId }: { deviceId: string }) => deviceId),
    [first],
  )
})

t.test('keys as of a time are those of the devices of then, removed ones among them', async t => {
  const atMs = Date.UTC(2026, 0, 1) + 1_000
  const house = await openHouse(t, t.testdir(), { keysShown: () => ({ kind: 'as-of', atMs }) })
  const [ann, bob] = [await newUser(house.world, 'Ann'), await newUser(house.world, 'Bob')]
  const old: string[] = []
  for (let at = 0; at < 2; at++) old.push((await registerDevice(house, ann)).body.deviceId)
  const read = async () => {
    const path = `GET /app/api/user/publicKeys?userIds=${ann.userId}`
    return (await house.send(path, { token: bob.token })).body.users[0].devices
  }
  const before = await read()
  t.same(before.map(({ deviceId }: { deviceId: string }) => deviceId).sort(), old.toSorted())
  house.world.advance(2_000)
  await registerDevice(house, ann)
  await house.send(`DELETE /app/api/devices/${old[0]}`, { token: ann.token })
  t.same(await read(), before)
})

t.test('keys of 64 users at most are asked for at once', async t => {
  const house = await openHouse(t, t.testdir())
  const { token } = await newUser(house.world)
  const read = (count: number) => {
    const ids = Array.from({ length: count }, (_, at) => at + 1)
    return house.send(`GET /app/api/user/publicKeys?userIds=${ids.join()}`, { token })
  }
  t.equal((await read(64)).body.unavailable.length, 64)
  t.same([(await read(65)).status, (await read(65)).body.code], [422, 'VALIDATION_FAILED'])
  const bad = await house.send('GET /app/api/user/publicKeys?userIds=1,x', { token })
  t.same([bad.status, bad.body.errors[0].pointer], [422, '/userIds/1'])
})

t.test('600 ids that lead to no keys are tried in an hour', async t => {
  const house = await openHouse(t, t.testdir(), { rates: true })
  const { token } = await newUser(house.world)
  const read = async (count: number) => {
    const ids = Array.from({ length: count }, (_, at) => at + 1)
    const answer = await house.send(`GET /app/api/user/publicKeys?userIds=${ids.join()}`, { token })
    return answer.status
  }
  for (let count = 0; count < 10; count++) t.equal(await read(60), 200)
  t.equal(await read(1), 429)
  t.equal(
    (await house.send('GET /app/api/user/publicKeys', { token })).status,
    200,
    'one’s own are read all the same',
  )
  house.world.advance(6_000)
  t.equal(await read(1), 200)
})

t.test('keys are read 120 times a minute', async t => {
  const house = await openHouse(t, t.testdir(), { rates: true })
  const { token } = await newUser(house.world)
  const statuses = new Map<number, number>()
  for (let count = 0; count < 121; count++) {
    const { status } = await house.send('GET /app/api/user/publicKeys', { token })
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
  }
  t.same(Object.fromEntries(statuses), { 200: 120, 429: 1 })
})
