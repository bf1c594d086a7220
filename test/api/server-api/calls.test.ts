/** Calls as an operator sees them, ends them and takes people out of them. */

import t, { type Test } from 'tap'
import type { CallId, DeviceId } from '../../../src/domain/ids.ts'
import { newDevice, newUser, type TestAnswer, type TestUser } from '../../support/application.ts'
import { callTo } from '../../support/call-provocations.ts'
import { befriend } from '../../support/contact-requests.ts'
import { openServerApi } from '../../support/server-api.ts'
import { openTestApi } from '../../support/test-api.ts'

const PATH = '/server/api/v1/calls'

interface Person extends TestUser {
  readonly deviceId: DeviceId
}

async function setUp(t: Test, options: Parameters<typeof openTestApi>[1] = {}) {
  const whole = await openTestApi(t, options)
  const people: Person[] = []
  for (const name of ['Ann', 'Bob', 'Cid']) {
    const user = await newUser(whole.world, name)
    people.push({ ...user, deviceId: (await newDevice(whole.world, user.userId)).deviceId })
  }
  const [ann, bob, cid] = people as [Person, Person, Person]
  for (const other of [bob, cid]) await befriend(whole, ann, other)
  const { send } = await openServerApi(whole)
  const post = ({ token }: Person, path: string, body?: object) =>
    whole.send(`POST /app/api/call/${path}`, { token, ...(body && { body }) })
  return {
    whole,
    ann,
    bob,
    cid,
    send,
    post,
    start: async (by: Person, ...callees: readonly Person[]): Promise<string> => {
      const { status, text, body } = await post(by, 'start', startBody(callees))
      if (status !== 201) throw new Error(text)
      return body.callId
    },
    read: async (callId: string) => (await send(`GET ${PATH}/${callId}`)).body,
    list: async (query = '') => (await send(`GET ${PATH}${query}`)).body,
    end: (callId: string, headers = {}) => send(`POST ${PATH}/${callId}/end`, { headers }),
    remove: (callId: string, { userId }: Pick<Person, 'userId'>, headers = {}) =>
      send(`POST ${PATH}/${callId}/remove`, { body: { ref: `id:${userId}` }, headers }),
    /** Kinds and reasons of the messages in the device's inbox, oldest first. */
    inboxOf: ({ userId, deviceId }: Person) =>
      whole.world.database
        .view(view =>
          whole.stores.inbox.after(view, userId, deviceId, {
            offset: 0,
            limit: 100,
            nowMs: whole.world.nowMs(),
          }),
        )
        .flatMap(({ item }) => (item.kind === 'notice' ? [item.body] : []))
        .filter(({ kind }) => kind.startsWith('call_'))
        .map(notice => ('endReason' in notice ? `${notice.kind} ${notice.endReason}` : notice.kind)),
    audit: () =>
      whole.world.database.view(view =>
        whole.stores.auditLog
          .read(view, { sinceMs: 0, limit: 100 })
          .map(({ operation, target }) => `${operation} ${target}`),
      ),
  }
}

function startBody(callees: readonly Person[]): object {
  return { ...callTo(callees), isVideo: false }
}

function shortOf({ status, body }: TestAnswer): unknown[] {
  return body?.code === undefined ? [status] : [status, body.code]
}

t.test(
  'a live call with its people, by the ids that the backend has, and its time line; never a key',
  async t => {
    const { whole, ann, bob, cid, start, post, read, list } = await setUp(t)
    const { accounts, database } = whole.stores
    await database.change(change => {
      const user = accounts.read(change, bob.userId)!
      accounts.put(change, bob.userId, { ...user, externalId: 'shop 42' })
    })
    const invitedAt = new Date(whole.world.nowMs()).toISOString()
    const callId = await start(ann, bob, cid)
    whole.world.tick(3_000)
    await post(bob, `${callId}/join`)
    const at = new Date(whole.world.nowMs()).toISOString()
    const [a, b, c] = [ann, bob, cid].map(({ userId }) => String(userId))
    const person = { invitedBy: a, invitedAt, talkedIn: 0, isWithheld: false }
    const call = {
      callId,
      status: 'active',
      isVideo: false,
      initiatorId: a,
      hostUserId: a,
      createdAt: invitedAt,
      startedAt: at,
      participants: [
        {
          ...{ ...person, userId: a, displayName: 'Ann', state: 'joined', isHost: true },
          ...{ joinedAt: invitedAt, deviceId: String(ann.deviceId) },
        },
        {
          ...{ ...person, userId: b, externalId: 'shop 42', displayName: 'Bob', state: 'joined' },
          ...{ isHost: false, joinedAt: at, deviceId: String(bob.deviceId) },
        },
        { ...person, userId: c, displayName: 'Cid', state: 'invited', isHost: false },
      ],
    }
    const shown = await read(callId)
    t.same(shown, {
      ...call,
      timeLine: [
        { at: invitedAt, event: 'started', userIds: [a] },
        { at: invitedAt, event: 'invited', userIds: [b, c], byUserId: a },
        { at, event: 'joined', userIds: [b] },
      ],
    })
    t.same(await list('?live=true'), { items: [call] })
    for (const key of Object.values(callTo([bob, cid]).encryptedAESKeys))
      t.notMatch(JSON.stringify(shown), key)
  },
)

t.test('live calls and ended ones, newest first, a page at a time', async t => {
  const { whole, ann, bob, cid, start, end, list } = await setUp(t, { rehearses: false })
  const dan = { ...(await newUser(whole.world, 'Dan')), deviceId: 0n as DeviceId }
  const eve = { ...dan, deviceId: (await newDevice(whole.world, dan.userId)).deviceId }
  await befriend(whole, bob, eve)
  const first = await start(ann, cid)
  whole.world.tick(1_000)
  const second = await start(bob, eve)
  const idsOf = ({ items }: { items: { callId: string }[] }) => items.map(({ callId }) => callId)
  t.same(idsOf(await list()), [second, first])
  const page = await list('?limit=1')
  t.same(idsOf(page), [second])
  t.same(idsOf(await list(`?limit=1&cursor=${page.nextCursor}`)), [first])
  t.same(idsOf(await list('?live=false')), [])
  for (const callId of [second, first]) {
    whole.world.tick(1_000)
    await end(callId)
  }
  t.same(idsOf(await list()), [])
  const ended = await list('?live=false&limit=1')
  t.same(idsOf(ended), [first])
  const next = await list(`?live=false&limit=1&cursor=${ended.nextCursor}`)
  t.same([idsOf(next), next.nextCursor], [[second], undefined])
  await whole.advance(86_400_000 - 1_000)
  t.same(idsOf(await list('?live=false')), [first])
  await whole.advance(1_000)
  t.same(idsOf(await list('?live=false')), [])
  const { database } = whole.world
  t.equal(database.rowCount(database.storedRows('calls-by-end')), 0)
})

t.test('an operator ends a call: its people hear it, and the audit log has it once', async t => {
  const { ann, bob, cid, start, post, read, end, inboxOf, audit } = await setUp(t)
  const callId = await start(ann, bob, cid)
  await post(bob, `${callId}/join`)
  t.same(shortOf(await end(callId)), [204])
  t.match(await read(callId), { status: 'ended', endReason: 'operator', endedBy: undefined })
  t.same((await read(callId)).timeLine.at(-1).event, 'ended')
  t.same(
    [inboxOf(ann), inboxOf(bob), inboxOf(cid)],
    [['call_ended operator'], ['call_ended operator'], ['call_cancelled']],
  )
  t.same(shortOf(await end(callId)), [204], 'again')
  t.same(shortOf(await end(callId, { 'idempotency-key': 'once-more-with-a-key' })), [204])
  t.same(await audit(), [`endCallOfUsers call:${callId}`])
  t.same(shortOf(await post(bob, `${callId}/rejoin`)), [410, 'CALL_ENDED'])
})

t.test('an operator ends a call that rings', async t => {
  const { ann, bob, start, read, end, inboxOf, whole } = await setUp(t)
  const callId = await start(ann, bob)
  t.same(shortOf(await end(callId)), [204])
  t.match(await read(callId), { status: 'cancelled', endReason: 'operator' })
  t.same([inboxOf(ann), inboxOf(bob)], [['call_ended operator'], ['call_cancelled']])
  const { body } = await whole.send('GET /app/api/call/history', { token: ann.token })
  t.match(body.items, [{ callId, status: 'cancelled' }])
})

t.test('an operator takes a user out, who does not come back', async t => {
  const { ann, bob, cid, start, post, read, remove, inboxOf, audit } = await setUp(t)
  const callId = await start(ann, bob, cid)
  for (const person of [bob, cid]) await post(person, `${callId}/join`)
  t.same(shortOf(await remove(callId, ann)), [204], 'the host, too')
  const { hostUserId, status, participants, timeLine } = await read(callId)
  t.same(
    [hostUserId, status, participants.map(({ state }: { state: string }) => state)],
    [String(bob.userId), 'active', ['removed', 'joined', 'joined']],
  )
  t.match(timeLine.at(-1), { event: 'removed', userIds: [String(ann.userId)], byUserId: undefined })
  t.same(inboxOf(ann), ['call_ended removed'])
  t.same(shortOf(await post(ann, `${callId}/join`)), [403, 'NOT_PARTICIPANT'])
  t.same(shortOf(await remove(callId, ann)), [204], 'again')
  t.same(await audit(), [`removeUserFromCall call:${callId} id:${ann.userId}`])
})

t.test('a call that a removal leaves to one person ends by it', async t => {
  const { ann, bob, cid, start, post, read, remove, end } = await setUp(t)
  const outcomes: unknown[] = []
  const outcomeOf = async (callId: string) => {
    const { status, endReason } = await read(callId)
    outcomes.push([status, endReason])
    await end(callId)
  }
  const two = await start(ann, bob)
  await post(bob, `${two}/join`)
  await remove(two, bob)
  await outcomeOf(two)
  const alone = await start(ann, bob, cid)
  await remove(alone, bob)
  const { status } = await read(alone)
  await remove(alone, cid)
  await outcomeOf(alone)
  const withoutCaller = await start(ann, bob, cid)
  await remove(withoutCaller, ann)
  await outcomeOf(withoutCaller)
  t.equal(status, 'ringing', 'one still rings')
  t.same(outcomes, [
    ['ended', 'operator'],
    ['cancelled', 'operator'],
    ['cancelled', 'operator'],
  ])
})

t.test('a command that a call can not follow is refused, and nothing is written', async t => {
  const { whole, ann, bob, cid, send, start, end, remove, audit } = await setUp(t)
  const callId = await start(ann, bob)
  t.same(shortOf(await end('7')), [404, 'CALL_NOT_FOUND'])
  t.same(shortOf(await end('ann')), [404, 'CALL_NOT_FOUND'])
  t.same(shortOf(await send(`GET ${PATH}/7`)), [404, 'CALL_NOT_FOUND'])
  t.same(shortOf(await remove('7', ann)), [404, 'CALL_NOT_FOUND'])
  t.same(shortOf(await remove(callId, cid)), [404, 'USER_NOT_FOUND'], 'who has no part in it')
  t.same(shortOf(await remove(callId, { userId: 7n as Person['userId'] })), [404, 'USER_NOT_FOUND'])
  const body = { ref: 'ext:nobody' }
  t.same(shortOf(await send(`POST ${PATH}/${callId}/remove`, { body })), [404, 'USER_NOT_FOUND'])
  t.same(shortOf(await send(`POST ${PATH}/${callId}/remove`, { body: { ref: 'Ann' } })), [
    422,
    'VALIDATION_FAILED',
  ])
  t.same(await audit(), [])
  await end(callId)
  t.same(shortOf(await remove(callId, bob)), [410, 'CALL_ENDED'])
  t.equal((await audit()).length, 1)
  t.equal(whole.rooms.index.size, 0)
})

t.test(
  'several who end and remove at once: each is answered, and each act stands once in the audit log',
  async t => {
    const { ann, bob, cid, start, post, end, remove, audit } = await setUp(t)
    const callId = await start(ann, bob, cid)
    for (const person of [bob, cid]) await post(person, `${callId}/join`)
    const answers = await Promise.all([
      ...[remove(callId, bob), remove(callId, bob), end(callId), end(callId)],
      ...[remove(callId, cid), remove(callId, bob)],
    ])
    const outcomes = new Set(answers.map(answer => shortOf(answer).join(' ')))
    t.notOk([...outcomes].some(outcome => !['200', '204', '410 CALL_ENDED'].includes(outcome)))
    const rows = await audit()
    t.equal(new Set(rows).size, rows.length)
    t.ok(rows.length >= 1 && rows.length <= 3)
  },
)

t.test('a call that starts in this moment is ended once it is there', async t => {
  const { whole, ann, bob, post, end, read } = await setUp(t, { rehearses: false })
  const callId = '8905371541254727' as unknown as CallId
  const starting = post(ann, 'start', { ...startBody([bob]), callId })
  // Its room has decided the start, which need not be durable yet.
  while (whole.rooms.index.size === 0) await new Promise(resolve => setImmediate(resolve))
  const ending = end(String(callId))
  t.equal((await starting).status, 201)
  t.same(shortOf(await ending), [204])
  t.match(await read(String(callId)), { status: 'cancelled', endReason: 'operator' })
  t.equal(whole.rooms.index.size, 0)
})

t.test('a request under the same key is carried out once', async t => {
  const { ann, bob, cid, start, post, remove, read } = await setUp(t)
  const callId = await start(ann, bob, cid)
  for (const person of [bob, cid]) await post(person, `${callId}/join`)
  const headers = { 'idempotency-key': 'take-bob-out-of-this-call' }
  await remove(callId, bob, headers)
  await post(ann, `${callId}/invite`, callTo([bob]))
  t.same(shortOf(await remove(callId, bob, headers)), [204])
  t.equal((await read(callId)).participants[1].state, 'invited', 'the host has invited him back')
})
