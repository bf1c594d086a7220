/** Contacts that a backend makes and ends, and a server whose users make none of their own. */

import t, { type Test } from 'tap'
import { newUser, type TestUser } from '../../support/application.ts'
import { askById, befriend, people, shareTokenOf, takeKindsTold } from '../../support/contact-requests.ts'
import { openServerApi } from '../../support/server-api.ts'
import { openTestApi, type TestApiOptions } from '../../support/test-api.ts'

const PATH = '/server/api/v1/contacts'

async function setUp(t: Test, options?: TestApiOptions) {
  const whole = await openTestApi(t, options)
  const [ann, bob, cid] = (await people(whole, 'Ann', 'Bob', 'Cid')) as [TestUser, TestUser, TestUser]
  const { send } = await openServerApi(whole)
  const refOf = ({ userId }: TestUser) => `id:${userId}`
  return {
    whole,
    ann,
    bob,
    cid,
    send,
    link: (a: TestUser, b: TestUser) => send(`PUT ${PATH}`, { body: { a: refOf(a), b: refOf(b) } }),
    unlink: (a: TestUser, b: TestUser) => send(`DELETE ${PATH}?a=${refOf(a)}&b=${refOf(b)}`),
    contactsOf: async ({ token }: TestUser) =>
      (await whole.send('GET /app/api/friend', { token })).body.items.map(
        (item: { displayName: string }) => item.displayName,
      ),
    audit: () =>
      whole.world.database.view(view =>
        whole.stores.auditLog
          .read(view, { sinceMs: 0, limit: 100 })
          .map(({ operation, target }) => `${operation} ${target}`)
          .reverse(),
      ),
  }
}

t.test('a backend makes contacts and ends them, and both users hear it', async t => {
  const { whole, ann, bob, link, unlink, contactsOf, audit } = await setUp(t)
  const made = await link(ann, bob)
  t.same(made.body, {
    userIds: [String(ann.userId), String(bob.userId)],
    since: new Date(whole.world.nowMs()).toISOString(),
  })
  t.same([await contactsOf(ann), await contactsOf(bob)], [['Bob'], ['Ann']])
  const added = (of: TestUser, by: TestUser, displayName: string) => {
    const { body } = whole.told.find(({ userId }) => userId === of.userId)!
    t.same(body, { kind: 'contact_added', userId: by.userId, displayName, isPushed: false })
  }
  added(ann, bob, 'Bob')
  added(bob, ann, 'Ann')
  whole.told.length = 0
  whole.world.tick(60_000)
  t.same((await link(bob, ann)).body.since, made.body.since, 'made again it is as it was')
  t.same(whole.told, [])
  t.equal((await unlink(bob, ann)).status, 204)
  t.same([await contactsOf(ann), await contactsOf(bob)], [[], []])
  t.same([takeKindsTold(whole, ann), takeKindsTold(whole, bob)], [['contact_removed'], ['contact_removed']])
  t.equal((await unlink(bob, ann)).status, 204, 'again')
  t.same(await audit(), [
    `linkContacts id:${ann.userId} id:${bob.userId}`,
    `unlinkContacts id:${bob.userId} id:${ann.userId}`,
  ])
})

t.test('requests between the two are accepted by it, in either direction', async t => {
  const { whole, ann, bob, cid, link } = await setUp(t)
  await askById(whole, ann, bob)
  await askById(whole, cid, ann)
  await whole.world.advance(1_000)
  await link(ann, bob)
  await link(ann, cid)
  for (const { token } of [ann, bob, cid])
    for (const direction of ['incoming', 'outgoing']) {
      const { body } = await whole.send(`GET /app/api/friend-request?direction=${direction}`, { token })
      t.same(body.items, [])
    }
  const badges = [ann, bob].map(({ userId }) =>
    whole.world.database.view(view => whole.stores.badgeOf(view, userId).total),
  )
  t.same(badges, [0, 0])
})

t.test('a block by either stands', async t => {
  const { whole, ann, bob, cid, link, contactsOf } = await setUp(t)
  const block = (by: TestUser, other: TestUser) =>
    whole.send('POST /app/api/block', { token: by.token, body: { userId: other.userId } })
  await block(ann, bob)
  await block(cid, ann)
  for (const other of [bob, cid]) {
    const { status, body } = await link(ann, other)
    t.same([status, body.code], [409, 'USER_BLOCKED'])
  }
  t.same(await contactsOf(ann), [])
})

t.test('what names no two users is refused', async t => {
  const { send, ann, link } = await setUp(t)
  const put = async (body: object) => (await send(`PUT ${PATH}`, { body })).body
  t.match(await link(ann, ann), { status: 422, body: { code: 'SELF_REQUEST' } })
  t.match(await put({ a: `id:${ann.userId}`, b: 'id:7' }), { code: 'USER_NOT_FOUND' })
  t.match(await put({ a: `id:${ann.userId}`, b: 'ext:nobody' }), { code: 'USER_NOT_FOUND' })
  t.match(await put({ a: 'Ann', b: 'ext:' }), { code: 'VALIDATION_FAILED', errors: [{ pointer: '/a' }] })
  t.match(await put({ a: `id:${ann.userId}` }), { code: 'VALIDATION_FAILED', errors: [{ pointer: '/b' }] })
  t.match((await send(`DELETE ${PATH}?a=id:7`)).body, { code: 'VALIDATION_FAILED' })
})

t.test('an external id stands in a body as it is, and in a query encoded once', async t => {
  const { whole, ann, send, contactsOf } = await setUp(t)
  const externalId = 'shop/42 ä%2F'
  const dan = await newUser(whole.world, 'Dan')
  await whole.world.database.change(change => {
    const user = whole.stores.accounts.read(change, dan.userId)!
    whole.stores.accounts.put(change, dan.userId, { ...user, externalId })
  })
  const body = { a: `ext:${externalId}`, b: `id:${ann.userId}` }
  t.equal((await send(`PUT ${PATH}`, { body })).status, 200)
  t.same(await contactsOf(ann), ['Dan'])
  const query = `a=${encodeURIComponent(body.a)}&b=${body.b}`
  t.equal((await send(`DELETE ${PATH}?${query}`)).status, 204)
  t.same(await contactsOf(ann), [])
})

t.test(
  'where the backend makes contacts, users send no requests; names, blocks and removals stay theirs',
  async t => {
    const { whole, ann, bob, cid, link, contactsOf } = await setUp(t, { config: { contactsBy: 'server' } })
    t.equal(whole.application.features.contacts, 'server')
    const as = async ({ token }: TestUser, methodAndPath: string, body?: object) => {
      const answer = await whole.send(methodAndPath, { token, ...(body && { body }) })
      return answer.body?.code ?? answer.status
    }
    const refused = async (methodAndPath: string, body: object) =>
      t.equal(await as(ann, methodAndPath, body), 'CONTACTS_BY_SERVER', methodAndPath)
    await refused('POST /app/api/friend-request/by-id', { targetUserId: bob.userId })
    await refused('POST /app/api/friend-request/by-token', { token: `c_${'A'.repeat(22)}` })
    await refused('POST /app/api/friend-request', { email: bob.email })
    await refused('POST /app/api/friend-request', {
      publicKeyHash: `${Buffer.alloc(64).toString('base64')}`,
    })
    await refused('POST /app/api/friend-request/accept', { userId: bob.userId })
    await refused('POST /app/api/share-token', {})
    await refused('POST /app/api/share-token/resolve', { token: `c_${'A'.repeat(22)}` })
    await link(ann, bob)
    await link(ann, cid)
    t.equal(await as(ann, `PUT /app/api/friend/${bob.userId}`, { alias: 'Bobby' }), 200)
    t.equal(await as(ann, `DELETE /app/api/friend/${bob.userId}`), 204)
    t.equal(await as(ann, 'POST /app/api/block', { userId: cid.userId }), 204)
    t.same(await contactsOf(ann), [])
  },
)

t.test('requests from before can be declined and taken back', async t => {
  const folder = t.testdir()
  const before = await openTestApi(t, { folder })
  const [ann, bob] = (await people(before, 'Ann', 'Bob')) as [TestUser, TestUser]
  await befriend(before, ann, (await people(before, 'Cid'))[0]!)
  const { requestId } = (await askById(before, ann, bob)).body
  await shareTokenOf(before, ann)
  await before.advance(1_000)
  await before.close()
  const { send } = await openTestApi(t, { folder, config: { contactsBy: 'server' } })
  const decline = await send('POST /app/api/friend-request/decline', {
    token: bob.token,
    body: { requestId },
  })
  t.equal(decline.status, 204)
  t.equal(
    (await send('POST /app/api/friend-request/cancel', { token: ann.token, body: { requestId } })).status,
    204,
  )
})
