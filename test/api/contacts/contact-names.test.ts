/** A user's own names for contacts, and how contacts hear of a new display name (contract 3). */

import t from 'tap'
import type { UserId } from '../../../src/domain/ids.ts'
import { newDevice, newSession, newUser, type TestUser } from '../../support/application.ts'
import { befriend, people, takeKindsTold } from '../../support/contact-requests.ts'
import { openTestApi, type TestApi } from '../../support/test-api.ts'

function rename({ send }: TestApi, { token }: Pick<TestUser, 'token'>, userId: UserId, body: object) {
  return send(`PUT /app/api/friend/${userId}`, { token, body })
}

async function contactsOf({ send }: TestApi, { token }: TestUser): Promise<unknown[]> {
  return (await send('GET /app/api/friend', { token })).body.items
}

async function callThemselves({ send }: TestApi, { token }: TestUser, displayName: string): Promise<void> {
  await send('PUT /app/api/user', { token, body: { displayName } })
}

/** The names in the `contact_changed` messages that wait for a device. */
function namesFor({ world }: TestApi, userId: UserId, deviceId: bigint) {
  const range = { offset: 0, limit: 500, nowMs: world.nowMs(), queue: 'contacts' }
  const messages = world.database.view(view => world.inbox.after(view, userId, deviceId as never, range))
  return messages.flatMap(({ item }) => {
    if (item.kind !== 'notice' || item.body.kind !== 'contact_changed') return []
    const { displayName, alias } = item.body
    return [alias === undefined ? displayName : `${alias}, ${displayName}`]
  })
}

t.test('a name of one’s own is kept beside the other, who never sees it', async t => {
  const api = await openTestApi(t)
  const [ann, bob] = (await people(api, 'Ann', 'Bob')) as [TestUser, TestUser]
  await befriend(api, ann, bob)
  const { status, body } = await rename(api, ann, bob.userId, { alias: '  My\u200b  brother ' })
  const view = {
    userId: String(bob.userId),
    displayName: 'Bob',
    alias: 'My brother',
    since: '2026-01-01T00:00:00.000Z',
    devices: 0,
  }
  t.same([status, body], [200, view])
  t.same(await contactsOf(api, ann), [view])
  t.notOk(JSON.stringify(await contactsOf(api, bob)).includes('brother'))
  for (const none of [{ alias: null }, { alias: '' }, { alias: ' ' }, {}]) {
    await rename(api, ann, bob.userId, { alias: 'Bobby' })
    const { alias: _, ...bare } = view
    t.same((await rename(api, ann, bob.userId, none)).body, bare, JSON.stringify(none))
  }
})

t.test('it has the rules of names, and is for contacts alone', async t => {
  const api = await openTestApi(t)
  const [ann, bob, cy] = (await people(api, 'Ann', 'Bob', 'Cy')) as [TestUser, TestUser, TestUser]
  await befriend(api, ann, bob)
  for (const alias of ['a'.repeat(51), 'a\nb', 'a\u202eb', '\u200b', '\u2800']) {
    const { status, body } = await rename(api, ann, bob.userId, { alias })
    t.match([status, body], [422, { code: 'VALIDATION_FAILED', errors: [{ pointer: '/alias' }] }])
  }
  t.match(await rename(api, ann, bob.userId, { alias: 'a'.repeat(401) }), { status: 422 })
  for (const userId of [cy.userId, ann.userId, 5n as UserId])
    t.match(await rename(api, ann, userId, { alias: 'x' }), { status: 404, body: { code: 'USER_NOT_FOUND' } })
  await rename(api, ann, bob.userId, { alias: 'Bobby' })
  api.told.length = 0
  await api.send(`DELETE /app/api/friend/${bob.userId}`, { token: ann.token })
  t.match(api.told, [
    { userId: ann.userId, body: { kind: 'contact_removed', alias: 'Bobby' } },
    { userId: bob.userId, body: { kind: 'contact_removed', alias: undefined } },
  ])
  await befriend(api, ann, bob)
  t.notOk('alias' in ((await contactsOf(api, ann))[0] as object), 'it ends with the contact')
})

t.test('the other devices of the user hear of it, and no other user does', async t => {
  const api = await openTestApi(t)
  const [ann, bob] = (await people(api, 'Ann', 'Bob')) as [TestUser, TestUser]
  await befriend(api, ann, bob)
  const [phone, tablet] = [await newDevice(api.world, ann.userId), await newDevice(api.world, ann.userId)]
  const { deviceId: bobs } = await newDevice(api.world, bob.userId)
  const onPhone = await newSession(api.world, ann.userId, phone.deviceId)
  await api.world.takeSent()
  await rename(api, onPhone, bob.userId, { alias: 'Bobby' })
  await rename(api, onPhone, bob.userId, { alias: 'Bobby' })
  const heard = () =>
    [
      [ann.userId, phone.deviceId],
      [ann.userId, tablet.deviceId],
      [bob.userId, bobs],
    ].map(([userId, deviceId]) => namesFor(api, userId as UserId, deviceId as bigint))
  t.same(heard(), [[], ['Bobby, Bob'], []])
  t.same(await api.world.takeSent(), [], 'without a push')
  await rename(api, onPhone, bob.userId, { alias: null })
  t.same(heard(), [[], ['Bob'], []], 'the newest alone waits')
})

t.test('contacts hear of a new name, each with their own name for its bearer', async t => {
  const api = await openTestApi(t)
  const [bob, ann, cy, stranger] = (await people(api, 'Bob', 'Ann', 'Cy', 'Di')) as [
    TestUser,
    TestUser,
    TestUser,
    TestUser,
  ]
  await befriend(api, bob, ann)
  await api.world.advance(1)
  await befriend(api, bob, cy)
  await rename(api, ann, bob.userId, { alias: 'Bobby' })
  await api.world.takeSent()
  api.told.length = 0
  await callThemselves(api, bob, 'Mum')
  t.same(takeKindsTold(api, ann), [], 'not in the change that renames')
  await api.advance(1_000)
  const changed = { kind: 'contact_changed', userId: bob.userId, displayName: 'Mum' }
  t.match(
    api.told.filter(({ body }) => body.kind === 'contact_changed'),
    [
      { userId: cy.userId, body: { ...changed, alias: undefined } },
      { userId: ann.userId, body: { ...changed, alias: 'Bobby' } },
    ],
  )
  t.same(takeKindsTold(api, stranger), [])
  t.same(await api.world.takeSent(), [])
  api.told.length = 0
  await callThemselves(api, bob, 'Mum')
  await api.send('PUT /app/api/user', {
    token: bob.token,
    body: { settings: { discoverableByEmail: false } },
  })
  await api.advance(1_000)
  t.notOk(
    api.told.some(({ body }) => body.kind === 'contact_changed'),
    'the name is what it was',
  )
})

t.test('many contacts hear of it once each, some in each change, and of the newest name', async t => {
  const api = await openTestApi(t, { rehearses: false })
  const { notices } = api.world
  const bob = await newUser(api.world, 'Bob')
  const others: UserId[] = []
  for (let at = 0; at < 120; at++) {
    const other = await newUser(api.world, `Contact ${at}`)
    await befriend(api, bob, other)
    others.push(other.userId)
  }
  const heard = new Map<object, UserId[]>()
  const tell = notices.tell.bind(notices)
  notices.tell = (change, userId, body, except) => {
    if (body.kind === 'contact_changed') heard.set(change, [...(heard.get(change) ?? []), userId])
    tell(change, userId, body, except)
  }
  await callThemselves(api, bob, 'Robert')
  await api.advance(1_000)
  const rounds = [...heard.values()]
  t.same(
    rounds.map(({ length }) => length),
    [50, 50, 20],
  )
  t.same(rounds.flat().sort(), others.sort())
  api.told.length = 0
  await callThemselves(api, bob, 'Rob')
  await callThemselves(api, bob, 'Bobby')
  await api.advance(1_000)
  const names = api.told.flatMap(({ body }) => (body.kind === 'contact_changed' ? [body.displayName] : []))
  t.same([...new Set(names)], ['Bobby'])
})

t.test('a contact who takes name after name pushes nothing out of an inbox', async t => {
  const api = await openTestApi(t, { rehearses: false })
  const [ann, bob, cy] = (await people(api, 'Ann', 'Bob', 'Cy')) as [TestUser, TestUser, TestUser]
  for (const other of [bob, cy]) await befriend(api, ann, other)
  const { deviceId } = await newDevice(api.world, ann.userId)
  await callThemselves(api, cy, 'Cyril')
  await api.advance(1_000)
  for (let at = 0; at < 30; at++) {
    await callThemselves(api, bob, `Bob ${at}`)
    await api.advance(1_000)
  }
  t.same(namesFor(api, ann.userId, deviceId), ['Cyril', 'Bob 29'])
  const { inbox, database } = api.world
  t.equal(
    database.view(view => inbox.head(view, ann.userId, deviceId).count),
    2,
  )
  database.view(view => inbox.assertConsistent(view))
})
