/** Circles: their members call each other and read each other's keys as contacts do, and are no contacts. */

import t, { type Test } from 'tap'
import type { CallId, DeviceId, UserId } from '../../../src/domain/ids.ts'
import { Router } from '../../../src/transport/router.ts'
import { newDevice, newSession, newUser, type TestUser } from '../../support/application.ts'
import { openServerApi } from '../../support/server-api.ts'
import { openTestApi, type TestApi } from '../../support/test-api.ts'

const DAY_MS = 86_400_000
const KEY = Buffer.alloc(113, 7).toString('base64')

interface Person extends TestUser {
  readonly name: string
  readonly deviceId: DeviceId
}

async function setUp(t: Test, ...names: readonly string[]) {
  const whole = await openTestApi(t)
  const people: Person[] = []
  for (const name of names) {
    const user = await newUser(whole.world, name)
    people.push({ ...user, name, deviceId: (await newDevice(whole.world, user.userId)).deviceId })
  }
  const { send } = await openServerApi(whole)
  const circle = (method: string, path: string) => send(`${method} /server/api/v1/circles/${path}`)
  return {
    whole,
    people: people as [Person, Person, Person, Person],
    server: send,
    circle,
    join: async (name: string, ...members: readonly Person[]) => {
      for (const { userId } of members)
        t.equal((await circle('PUT', `${encodeURIComponent(name)}/members/id:${userId}`)).status, 204)
    },
    leave: (name: string, { userId }: Person) =>
      circle('DELETE', `${encodeURIComponent(name)}/members/id:${userId}`),
    membersOf: async (name: string) =>
      (await circle('GET', `${encodeURIComponent(name)}/members`)).body.items.map(
        (item: { displayName: string }) => item.displayName,
      ),
    audit: () =>
      whole.world.database.view(view =>
        whole.stores.auditLog
          .read(view, { sinceMs: 0, limit: 100 })
          .map(({ operation, target }) => `${operation} ${target}`),
      ),
  }
}

/** `call/start`; status and code. */
async function call(
  { send }: TestApi,
  by: Person,
  ...callees: readonly Person[]
): Promise<{ readonly outcome: string; readonly callId: string }> {
  const keys = callees.map(({ userId, deviceId }) => [`${userId}_${deviceId}`, KEY])
  const body = {
    calleeIds: callees.map(({ userId }) => userId),
    encryptedAESKeys: Object.fromEntries(keys),
    isVideo: false,
  }
  const answer = await send('POST /app/api/call/start', { token: by.token, body })
  return { outcome: `${answer.status} ${answer.body.code ?? ''}`.trim(), callId: answer.body.callId }
}

/** Names of these whose keys the person may read. */
async function keysOf({ send }: TestApi, by: Person, ...of: readonly Person[]): Promise<string[]> {
  const ids = of.map(({ userId }) => userId).join()
  const { body } = await send(`GET /app/api/user/publicKeys?userIds=${ids}`, { token: by.token })
  return body.users
    .filter(({ devices }: { devices: unknown[] }) => devices.length > 0)
    .map(({ displayName }: { displayName: string }) => displayName)
}

t.test('circle and member have names of any octets, as long as they may be', async t => {
  const { whole } = await setUp(t)
  const { send } = await openServerApi(whole)
  const [name, ref] = [encodeURIComponent('ü'.repeat(128)), encodeURIComponent(`ext:${'é'.repeat(128)}`)]
  await send(`PUT /server/api/v1/users/${ref}`, { body: {} })
  const router = new Router(whole.application.serverRoutes)
  const path = `/server/api/v1/circles/${name}/members/${ref}`
  t.same(router.find(path)?.params, ['ü'.repeat(128), `ext:${'é'.repeat(128)}`])
  t.equal((await send(`PUT ${path}`)).status, 204)
})

t.test('members call each other, read each other’s keys and lists, and become no contacts', async t => {
  const { whole, people, join } = await setUp(t, 'Ann', 'Bob', 'Cid')
  const [ann, bob, cid] = people
  t.equal((await call(whole, ann, bob)).outcome, '403 CALLEE_NOT_CONTACT')
  t.same(await keysOf(whole, ann, bob, cid), [])
  await join('team', ann, bob)
  t.same(await keysOf(whole, ann, bob, cid), ['Bob'])
  const lists = (of: Person) =>
    whole.send(`GET /app/api/user/device-lists?userId=${of.userId}`, { token: ann.token })
  t.same([(await lists(bob)).status, (await lists(cid)).status], [200, 404])
  const { outcome, callId } = await call(whole, ann, bob)
  t.equal(outcome, '201')
  const pending = await whole.send('GET /app/api/call/pending', { token: bob.token })
  t.match(
    pending.body.items,
    [{ callId, invitation: { callerName: 'Ann', isContact: true } }],
    'Ann is no stranger',
  )
  t.same((await whole.send('GET /app/api/friend', { token: ann.token })).body.items, [])
  t.equal((await call(whole, cid, bob)).outcome, '403 CALLEE_NOT_CONTACT')
})

t.test('a member invites another into a call', async t => {
  const { whole, people, join } = await setUp(t, 'Ann', 'Bob', 'Cid')
  const [ann, bob, cid] = people
  await join('team', ann, bob)
  await join('other', ann, cid)
  const { callId } = await call(whole, ann, bob)
  const invite = async (by: Person) => {
    const body = {
      calleeIds: [cid.userId],
      encryptedAESKeys: { [`${cid.userId}_${cid.deviceId}`]: KEY },
    }
    const { status, body: answer } = await whole.send(`POST /app/api/call/${callId}/invite`, {
      token: by.token,
      body,
    })
    return [status, answer.code]
  }
  await whole.send(`POST /app/api/call/${callId}/join`, { token: bob.token })
  t.same(await invite(bob), [403, 'CALLEE_NOT_CONTACT'], 'Bob has no circle with Cid')
  t.same(await invite(ann), [200, undefined])
})

t.test('who leaves a circle can be called no more; a call that they are in goes on', async t => {
  const { whole, people, join, leave, membersOf } = await setUp(t, 'Ann', 'Bob')
  const [ann, bob] = people
  await join('team', ann, bob)
  const { callId } = await call(whole, ann, bob)
  await whole.send(`POST /app/api/call/${callId}/join`, { token: bob.token })
  t.equal((await leave('team', bob)).status, 204)
  t.same(await membersOf('team'), ['Ann'])
  const { body } = await whole.send(`GET /app/api/call/${callId}`, { token: bob.token })
  t.equal(body.status, 'active')
  t.same(await keysOf(whole, ann, bob), ['Bob'], 'for as long as they talk')
  await whole.send(`POST /app/api/call/${callId}/end`, { token: ann.token })
  t.same(await keysOf(whole, ann, bob), [])
  t.equal((await call(whole, ann, bob)).outcome, '403 CALLEE_NOT_CONTACT')
  t.equal((await leave('team', bob)).status, 204, 'again')
})

t.test('a block counts for more than a circle, and who is blocked sees no difference', async t => {
  const { whole, people, join } = await setUp(t, 'Ann', 'Bob')
  const [ann, bob] = people
  await join('team', ann, bob)
  await whole.send('POST /app/api/block', { token: bob.token, body: { userId: ann.userId } })
  t.equal((await call(whole, bob, ann)).outcome, '403 CALLEE_NOT_CONTACT', 'who blocks does not call')
  whole.world.tick(1_000)
  await newDevice(whole.world, bob.userId)
  const keys = await whole.send(`GET /app/api/user/publicKeys?userIds=${bob.userId}`, { token: ann.token })
  t.match(keys.body.users, [{ devices: [{ deviceId: String(bob.deviceId) }] }], 'as when the block began')
  const { outcome } = await call(whole, ann, bob)
  t.equal(outcome, '201')
  t.same((await whole.send('GET /app/api/call/pending', { token: bob.token })).body.items, [])
})

t.test('a suspended member can not be reached, and the caller hears no reason', async t => {
  const { whole, people, server, join } = await setUp(t, 'Ann', 'Bob')
  const [ann, bob] = people
  await join('team', ann, bob)
  const body = { reason: 'abuse' }
  t.equal((await server(`POST /server/api/v1/users/id:${bob.userId}/suspend`, { body })).status, 200)
  const { outcome, callId } = await call(whole, ann, bob)
  t.equal(outcome, '201')
  t.match(whole.stores.calls.open(BigInt(callId) as CallId)?.participants, [
    { state: 'joined' },
    { state: 'invited', devices: [] },
  ])
  t.same(await keysOf(whole, ann, bob), ['Bob'])
  t.equal((await call(whole, bob, ann)).outcome.slice(0, 3), '401')
})

t.test('an ended circle counts no more, from that moment on', async t => {
  const { whole, people, circle, join, membersOf } = await setUp(t, 'Ann', 'Bob', 'Cid')
  const [ann, bob, cid] = people
  await join('team/ä', ann, bob, cid)
  t.equal((await circle('DELETE', encodeURIComponent('team/ä'))).status, 204)
  t.same(await keysOf(whole, ann, bob, cid), [])
  t.same(await membersOf('team/ä'), [])
  await join('team/ä', ann, cid)
  t.same(await keysOf(whole, ann, bob, cid), ['Cid'], 'it is another circle of this id')
  await whole.advance(1_000)
  t.same((await membersOf('team/ä')).sort(), ['Ann', 'Cid'])
  const rows = (name: string) => whole.world.database.rowCount(whole.world.database.storedRows(name))
  t.same(
    ['circles', 'circles-by-name', 'circle-members', 'circles-of-user'].map(rows),
    [1, 1, 2, 2],
    'nothing is left of the first',
  )
})

t.test('pages of members, and who is none of them', async t => {
  const { people, circle, join } = await setUp(t, 'Ann', 'Bob', 'Cid')
  await join('team', ...people)
  const seen: string[] = []
  let cursor = ''
  do {
    const { body } = await circle('GET', `team/members?limit=2${cursor}`)
    for (const { userId } of body.items) seen.push(userId)
    cursor = body.nextCursor && `&cursor=${body.nextCursor}`
  } while (cursor)
  const ids = people.map(({ userId }) => userId).sort((one, other) => (one < other ? -1 : 1))
  t.same(seen, ids.map(String))
  t.same((await circle('GET', 'unknown/members')).body, { items: [] })
})

t.test('ids of circles are compared by octets; the audit log has none of them', async t => {
  const { people, circle, join, membersOf, audit } = await setUp(t, 'Ann', 'Bob')
  const [ann, bob] = people
  // The same letter, in one code point and in two.
  await join('caf\u00e9', ann)
  await join('cafe\u0301', bob)
  await join('caf\u00e9', ann)
  t.same([await membersOf('caf\u00e9'), await membersOf('cafe\u0301')], [['Ann'], ['Bob']])
  t.equal((await audit()).length, 2, 'what changed nothing stands nowhere')
  t.notMatch((await audit()).join(), /caf/)
  const tooLong = await circle('PUT', `${'x'.repeat(257)}/members/id:${ann.userId}`)
  t.match(tooLong.body, { code: 'VALIDATION_FAILED', errors: [{ pointer: '/circleId' }] })
  const nobody = await circle('PUT', 'team/members/ext:nobody')
  t.same([nobody.status, nobody.body.code], [404, 'USER_NOT_FOUND'])
  t.equal((await circle('PUT', 'team/members/Ann')).body.code, 'VALIDATION_FAILED')
})

t.test('nothing of circles is left of who is erased', async t => {
  const { whole, people, join, membersOf } = await setUp(t, 'Ann', 'Bob')
  const [ann, bob] = people
  await join('team', ann, bob)
  await join('alone', bob)
  const answer = await whole.send('DELETE /app/api/user', { token: bob.token, body: { confirm: true } })
  t.equal(answer.status, 202)
  t.equal((await call(whole, ann, bob)).outcome, '201', 'as with a contact who is leaving')
  await whole.advance(8 * DAY_MS)
  t.same([await membersOf('team'), await membersOf('alone')], [['Ann'], []])
  const again = { ...ann, ...(await newSession(whole.world, ann.userId, ann.deviceId)) }
  t.equal((await call(whole, again, bob)).outcome, '403 CALLEE_NOT_CONTACT')
  const { database } = whole.world
  t.same(
    ['circles', 'circle-members'].map(name => database.rowCount(database.storedRows(name))),
    [1, 1],
  )
})

t.test('no circle has too many members, and no user is in too many', async t => {
  const { whole, people, circle, join } = await setUp(t, 'Ann', 'Bob')
  const [ann, bob] = people
  const { circles, database } = whole.stores
  await database.change(change => {
    for (let at = 1; at <= 10_000; at++) circles.add(change, 'crowd', BigInt(at) as UserId)
    for (let at = 1; at <= 32; at++) circles.add(change, `circle ${at}`, bob.userId)
  })
  const full = await circle('PUT', `crowd/members/id:${ann.userId}`)
  t.same([full.status, full.body.code], [409, 'CIRCLE_FULL'])
  t.equal((await circle('PUT', `one%20more/members/id:${bob.userId}`)).body.code, 'CIRCLE_FULL')
  await circle('DELETE', 'circle%201')
  await join('one more', bob)
})
