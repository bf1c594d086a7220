/** Contacts as clients see them (contract 3.4). */

import t from 'tap'
import { newDevice, type TestUser } from '../../support/application.ts'
import { askById, befriend, people } from '../../support/contact-requests.ts'
import { openTestApi } from '../../support/test-api.ts'

t.test('contacts are listed newest first, with how many devices they have', async t => {
  const api = await openTestApi(t)
  const [ann, bob, cy] = (await people(api, 'Ann', 'Bob', 'Cy')) as [TestUser, TestUser, TestUser]
  await newDevice(api.world, bob.userId)
  await newDevice(api.world, bob.userId)
  await befriend(api, ann, bob)
  await api.world.advance(1_000)
  await befriend(api, cy, ann)
  const { body } = await api.send('GET /app/api/friend', { token: ann.token })
  t.same(body, {
    items: [
      { userId: String(cy.userId), displayName: 'Cy', since: '2026-01-01T00:00:01.000Z', devices: 0 },
      { userId: String(bob.userId), displayName: 'Bob', since: '2026-01-01T00:00:00.000Z', devices: 2 },
    ],
  })
  const page = await api.send('GET /app/api/friend?limit=1', { token: ann.token })
  t.match(page.body, { items: [{ displayName: 'Cy' }], nextCursor: /./ })
  const next = await api.send(`GET /app/api/friend?cursor=${page.body.nextCursor}`, { token: ann.token })
  t.match(next.body.items, [{ displayName: 'Bob' }])
  t.same(Object.keys(next.body), ['items'])
})

t.test('a contact is shown as they are now, however often they were looked at before', async t => {
  const api = await openTestApi(t)
  const { world } = api
  const [ann, bob] = (await people(api, 'Ann', 'Bob')) as [TestUser, TestUser]
  await befriend(api, ann, bob)
  const shown = async () => {
    const { body } = await api.send('GET /app/api/friend', { token: ann.token })
    return body.items.map(({ displayName, devices }: Record<string, unknown>) => `${displayName} ${devices}`)
  }
  t.same([await shown(), await shown()], [['Bob 0'], ['Bob 0']])
  const { deviceId } = await newDevice(world, bob.userId)
  t.same([await shown(), await shown()], [['Bob 1'], ['Bob 1']])
  const user = world.database.view(view => world.accounts.read(view, bob.userId))!
  const renaming = world.database.change(change => {
    world.accounts.put(change, bob.userId, { ...user, displayName: 'Robert' })
    world.devices.remove(change, bob.userId, deviceId)
  }, 0)
  t.same(await shown(), ['Bob 1'], 'not before it is durable')
  await renaming
  t.same([await shown(), await shown()], [['Robert 0'], ['Robert 0']])
})

t.test('a removed contact is gone for both sides, and both hear of it without a push', async t => {
  const api = await openTestApi(t)
  const [ann, bob] = (await people(api, 'Ann', 'Bob')) as [TestUser, TestUser]
  await newDevice(api.world, ann.userId)
  await newDevice(api.world, bob.userId)
  await befriend(api, ann, bob)
  api.told.length = 0
  await api.world.takeSent()
  const remove = (id: bigint | string) => api.send(`DELETE /app/api/friend/${id}`, { token: ann.token })
  t.equal((await remove(bob.userId)).status, 204)
  t.match(api.told, [
    { userId: ann.userId, body: { kind: 'contact_removed', userId: bob.userId, displayName: 'Bob' } },
    { userId: bob.userId, body: { kind: 'contact_removed', userId: ann.userId, displayName: 'Ann' } },
  ])
  t.same(await api.world.takeSent(), [])
  for (const { token } of [ann, bob])
    t.same((await api.send('GET /app/api/friend', { token })).body, { items: [] })
  for (const id of [bob.userId, ann.userId, 5n, 'x', '18446744073709551616']) {
    t.match(await remove(id), { status: 404, body: { code: 'USER_NOT_FOUND' } })
  }
  t.equal((await askById(api, bob, ann)).status, 201, 'either may ask again')
})

t.test('two removals at one moment: one finds the contact', async t => {
  const api = await openTestApi(t)
  const [ann, bob] = (await people(api, 'Ann', 'Bob')) as [TestUser, TestUser]
  await befriend(api, ann, bob)
  api.told.length = 0
  const answers = await Promise.all([
    api.send(`DELETE /app/api/friend/${bob.userId}`, { token: ann.token }),
    api.send(`DELETE /app/api/friend/${ann.userId}`, { token: bob.token }),
  ])
  t.same(
    answers.map(({ status }) => status),
    [204, 404],
  )
  t.equal(api.told.length, 2)
})

t.test('the badge counts waiting requests, and goes down with each answer', async t => {
  const api = await openTestApi(t)
  const [ann, bob, cy] = (await people(api, 'Ann', 'Bob', 'Cy')) as [TestUser, TestUser, TestUser]
  const badges = () =>
    api.told
      .splice(0)
      .flatMap(({ userId, body }) => (userId === ann.userId && body.kind === 'badge' ? body.badge.total : []))
  for (const from of [bob, cy]) {
    await askById(api, from, ann)
    await api.world.advance(0)
  }
  t.same(badges(), [1, 2])
  await api.send('POST /app/api/friend-request/accept', { token: ann.token, body: { userId: bob.userId } })
  t.same(badges(), [1])
  await askById(api, ann, cy)
  t.same(badges(), [0], 'a request back answers, too')
})
