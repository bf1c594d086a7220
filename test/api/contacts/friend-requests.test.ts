/** Friend requests as clients see them (contract 3.2 to 3.4). */

import t, { type Test } from 'tap'
import { addressIdentifier } from '../../../src/domain/accounts/account.ts'
import type { MethodId, UserId } from '../../../src/domain/ids.ts'
import { newDevice, type TestAnswer, type TestUser } from '../../support/application.ts'
import { askById, befriend, people, shareTokenOf, takeKindsTold } from '../../support/contact-requests.ts'
import { openTestApi, type TestApi } from '../../support/test-api.ts'

const DAY_MS = 86_400_000

function post(api: TestApi, path: string, { token }: TestUser, body: object, headers = {}) {
  return api.send(`POST /app/api/friend-request${path}`, { token, body, headers })
}

async function requestsOf(api: TestApi, { token }: TestUser, direction: string, query = '') {
  const { body } = await api.send(`GET /app/api/friend-request?direction=${direction}${query}`, { token })
  return body.items as readonly { requestId: string; user: { displayName: string }; message?: string }[]
}

async function namesOf(api: TestApi, user: TestUser, direction: string): Promise<string[]> {
  return (await requestsOf(api, user, direction)).map(({ user }) => user.displayName)
}

/** Status and code, which is all that most refusals are about. */
function shortOf({ status, body }: TestAnswer): unknown[] {
  return body?.code === undefined ? [status] : [status, body.code]
}

t.test('a request by id reaches the other, with its message, and the badge', async t => {
  const api = await openTestApi(t)
  const [ann, bob] = (await people(api, 'Ann', 'Bob')) as [TestUser, TestUser]
  const device = await newDevice(api.world, bob.userId)
  const answer = await post(api, '/by-id', ann, { targetUserId: bob.userId, message: '  hello\nBob ' })
  t.equal(answer.status, 201)
  t.match(answer.body, {
    status: 'pending',
    user: { userId: String(bob.userId), displayName: 'Bob' },
    createdAt: new Date(api.world.nowMs()).toISOString(),
    publicKeyHashs: undefined,
    devices: undefined,
  })
  t.match(await requestsOf(api, bob, 'incoming'), [
    { requestId: answer.body.requestId, user: { displayName: 'Ann' }, message: 'hello Bob' },
  ])
  await api.world.advance(0)
  t.match(api.told, [
    {
      userId: bob.userId,
      body: {
        kind: 'friend_request',
        userId: ann.userId,
        displayName: 'Ann',
        message: 'hello Bob',
      },
    },
    { userId: bob.userId, body: { kind: 'badge', badge: { total: 1 } } },
  ])
  t.match(await api.world.takeSent(), [
    { channel: 'push', userId: bob.userId, deviceId: device.deviceId, notice: { kind: 'friend_request' } },
  ])
})

t.test('the same request again is the same record, without another push', async t => {
  const api = await openTestApi(t)
  const [ann, bob] = (await people(api, 'Ann', 'Bob')) as [TestUser, TestUser]
  const first = await askById(api, ann, bob)
  await api.world.advance(60_000)
  api.told.length = 0
  const second = await askById(api, ann, bob)
  await api.world.advance(0)
  t.same([first.status, second.status], [201, 200])
  t.same(second.body, first.body)
  t.same(api.told, [])
})

t.test('crossing requests make contacts, whichever comes first', async t => {
  const api = await openTestApi(t)
  const [ann, bob] = (await people(api, 'Ann', 'Bob')) as [TestUser, TestUser]
  const device = await newDevice(api.world, ann.userId)
  await askById(api, ann, bob)
  api.told.length = 0
  const answer = await askById(api, bob, ann)
  t.equal(answer.status, 200)
  t.match(answer.body, {
    status: 'accepted',
    user: { displayName: 'Ann' },
    publicKeyHashs: [device.publicKeyHash],
    devices: [
      { deviceId: String(device.deviceId), publicKeyHash: device.publicKeyHash, keyAlgorithm: 'P-256' },
    ],
  })
  t.match(api.told, [
    { userId: ann.userId, body: { kind: 'contact_added', userId: bob.userId, isPushed: true } },
    { userId: bob.userId, body: { kind: 'contact_added', userId: ann.userId, isPushed: false } },
    { userId: bob.userId, body: { kind: 'badge', badge: { total: 0 } } },
  ])
  t.same(shortOf(await askById(api, ann, bob)), [409, 'ALREADY_FRIENDS'])
  t.same([await requestsOf(api, ann, 'outgoing'), await requestsOf(api, bob, 'incoming')], [[], []])
})

t.test('requests that cross at one moment make contacts once', async t => {
  const api = await openTestApi(t)
  for (let round = 0; round < 10; round++) {
    const [ann, bob] = (await people(api, 'Ann', 'Bob')) as [TestUser, TestUser]
    const answers = await Promise.all([
      askById(api, ann, bob),
      askById(api, bob, ann),
      askById(api, ann, bob),
      askById(api, bob, ann),
    ])
    t.same(answers.map(shortOf), [[201], [200], [409, 'ALREADY_FRIENDS'], [409, 'ALREADY_FRIENDS']])
    t.equal(takeKindsTold(api, ann).filter(kind => kind === 'contact_added').length, 1)
    t.same(await requestsOf(api, bob, 'incoming'), [])
  }
})

t.test('of accepting, cancelling and declining at one moment, one takes place', async t => {
  const api = await openTestApi(t)
  const [ann, bob] = (await people(api, 'Ann', 'Bob')) as [TestUser, TestUser]
  const { requestId } = (await askById(api, ann, bob)).body
  const answers = await Promise.all([
    post(api, '/accept', bob, { requestId }),
    post(api, '/cancel', ann, { requestId }),
    post(api, '/decline', bob, { requestId }),
  ])
  t.same(answers.map(shortOf), [[200], [409, 'REQUEST_CLOSED'], [409, 'REQUEST_CLOSED']])
})

t.test('accepting answers with the contact and its keys; the sender alone is pushed', async t => {
  const api = await openTestApi(t)
  const [ann, bob, cy] = (await people(api, 'Ann', 'Bob', 'Cy')) as [TestUser, TestUser, TestUser]
  const device = await newDevice(api.world, ann.userId)
  await newDevice(api.world, bob.userId)
  const { requestId } = (await askById(api, ann, bob)).body
  await api.world.takeSent()
  const answer = await post(api, '/accept', bob, { requestId })
  t.equal(answer.status, 200)
  t.same(answer.body, {
    contact: {
      userId: String(ann.userId),
      displayName: 'Ann',
      since: new Date(api.world.nowMs()).toISOString(),
    },
    publicKeyHashs: [device.publicKeyHash],
    devices: [
      { deviceId: String(device.deviceId), publicKeyHash: device.publicKeyHash, keyAlgorithm: 'P-256' },
    ],
  })
  t.match(await api.world.takeSent(), [
    { channel: 'push', userId: ann.userId, notice: { kind: 'contact_added', requestId: BigInt(requestId) } },
  ])
  await askById(api, cy, bob)
  const bySender = await post(api, '/accept', bob, { userId: cy.userId })
  t.match(bySender, { status: 200, body: { contact: { displayName: 'Cy' } } })
  t.same(shortOf(await post(api, '/accept', bob, { userId: cy.userId })), [404, 'REQUEST_NOT_FOUND'])
})

t.test('a request is declined by its sender’s id, and taken back by its receiver’s', async t => {
  const api = await openTestApi(t)
  const [ann, bob, cy] = (await people(api, 'Ann', 'Bob', 'Cy')) as [TestUser, TestUser, TestUser]
  await askById(api, ann, bob)
  const declined = () => post(api, '/decline', bob, { userId: ann.userId })
  t.equal((await declined()).status, 204)
  t.same(shortOf(await declined()), [404, 'REQUEST_NOT_FOUND'])
  await askById(api, bob, cy)
  const cancelled = () => post(api, '/cancel', bob, { userId: cy.userId })
  t.same(shortOf(await post(api, '/cancel', cy, { userId: bob.userId })), [404, 'REQUEST_NOT_FOUND'])
  t.equal((await cancelled()).status, 204)
  t.same(shortOf(await cancelled()), [404, 'REQUEST_NOT_FOUND'])
  t.same(shortOf(await post(api, '/cancel', bob, {})), [422, 'VALIDATION_FAILED'])
})

t.test('a foreign request looks like none, a closed one like a closed one', async t => {
  const api = await openTestApi(t)
  const [ann, bob, cy] = (await people(api, 'Ann', 'Bob', 'Cy')) as [TestUser, TestUser, TestUser]
  const { requestId } = (await askById(api, ann, bob)).body
  const noneOf = async (user: TestUser, paths: readonly string[]) => {
    for (const path of paths) {
      t.same(shortOf(await post(api, path, user, { requestId })), [404, 'REQUEST_NOT_FOUND'], path)
    }
  }
  await noneOf(cy, ['/accept', '/decline', '/cancel'])
  await noneOf(ann, ['/accept', '/decline'])
  await noneOf(bob, ['/cancel'])
  t.equal((await api.send(`DELETE /app/api/friend-request/${requestId}`, { token: ann.token })).status, 204)
  for (const [path, user] of [
    ['/accept', bob],
    ['/decline', bob],
    ['/cancel', ann],
  ] as const) {
    t.same(shortOf(await post(api, path, user, { requestId })), [409, 'REQUEST_CLOSED'], path)
  }
  const atPath = await api.send(`DELETE /app/api/friend-request/abc`, { token: ann.token })
  t.same(shortOf(atPath), [404, 'REQUEST_NOT_FOUND'])
})

t.test('cancelling takes the request out of the list and the badge of its receiver', async t => {
  const api = await openTestApi(t)
  const [ann, bob] = (await people(api, 'Ann', 'Bob')) as [TestUser, TestUser]
  const { requestId } = (await askById(api, ann, bob)).body
  await api.world.advance(0)
  api.told.length = 0
  t.equal((await post(api, '/cancel', ann, { requestId })).status, 204)
  await api.world.advance(0)
  t.match(api.told, [
    { userId: bob.userId, body: { kind: 'friend_request_cancelled', requestId: BigInt(requestId) } },
    { userId: bob.userId, body: { kind: 'badge', badge: { total: 0 } } },
  ])
  t.same(await requestsOf(api, bob, 'incoming'), [])
})

t.test('a request that has expired before the sweep is not announced as made', async t => {
  const api = await openTestApi(t)
  const [ann, bob] = (await people(api, 'Ann', 'Bob')) as [TestUser, TestUser]
  const { requestId } = (await askById(api, ann, bob)).body
  await post(api, '/accept', bob, { requestId })
  await api.world.advance(0)
  t.same(takeKindsTold(api, bob), ['contact_added', 'badge'])
})

t.test('the sender of a declined request keeps seeing it, and reaches no one for seven days', async t => {
  const api = await openTestApi(t)
  const [ann, bob] = (await people(api, 'Ann', 'Bob')) as [TestUser, TestUser]
  const { requestId } = (await askById(api, ann, bob)).body
  t.equal((await post(api, '/decline', bob, { requestId })).status, 204)
  t.same(takeKindsTold(api, ann), [])
  t.same(await namesOf(api, ann, 'outgoing'), ['Bob'])
  t.equal((await askById(api, ann, bob)).status, 200)
  t.equal((await post(api, '/cancel', ann, { requestId })).status, 204)
  await api.world.advance(0)
  api.told.length = 0
  t.equal((await askById(api, ann, bob)).status, 201)
  await api.world.advance(0)
  t.same([api.told, await namesOf(api, bob, 'incoming')], [[], []])
})

t.test('a request by token answers with keys, which both may read as long as it stands', async t => {
  const api = await openTestApi(t)
  const [ann, bob] = (await people(api, 'Ann', 'Bob')) as [TestUser, TestUser]
  const device = await newDevice(api.world, bob.userId)
  const { text } = await shareTokenOf(api, bob)
  const { world } = api
  const { contacts } = world
  const mayRead = () =>
    world.database.view(view => [
      contacts.keysShown(view, ann.userId, bob.userId, world.nowMs()) !== undefined,
      contacts.keysShown(view, bob.userId, ann.userId, world.nowMs()) !== undefined,
    ])
  await askById(api, ann, bob)
  t.same(mayRead(), [false, false])
  const answer = await post(api, '/by-token', ann, { token: text })
  t.match(answer, { status: 200, body: { status: 'pending', publicKeyHashs: [device.publicKeyHash] } })
  t.same(mayRead(), [true, true])
  await post(api, '/decline', bob, { requestId: answer.body.requestId })
  t.same(mayRead(), [true, false], 'the sender can not tell')
  await post(api, '/cancel', ann, { requestId: answer.body.requestId })
  t.same(mayRead(), [false, false])
})

/** Ann asks Bob by his token, who may have blocked her before or blocks her then; what she sees of his devices, later. */
async function hashesSeen(t: Test, blocks: 'never' | 'before' | 'after'): Promise<readonly unknown[]> {
  const api = await openTestApi(t)
  const [ann, bob] = (await people(api, 'Ann', 'Bob')) as [TestUser, TestUser]
  const { database, devices } = api.world
  const names = new Map<string, string>()
  const add = async (name: string) => {
    const device = await newDevice(api.world, bob.userId)
    names.set(device.publicKeyHash, name)
    api.keysLogged.set(device.publicKeyHash, { userId: bob.userId, deviceId: device.deviceId })
    return device
  }
  const { text } = await shareTokenOf(api, bob)
  const [phone] = [await add('phone'), await add('tablet')]
  const block = () => api.send('POST /app/api/block', { token: bob.token, body: { userId: ann.userId } })
  api.world.tick(1_000)
  if (blocks === 'before') await block()
  api.world.tick(1_000)
  const seen: unknown[] = []
  const look = async () => {
    const { status, body } = await post(api, '/by-token', ann, { token: text })
    seen.push([status, body.publicKeyHashs.map((hash: string) => names.get(hash)).sort()])
    const search = { publicKeyHash: phone!.publicKeyHash }
    seen.push((await api.send('POST /app/api/friend-request', { token: ann.token, body: search })).status)
    return body.requestId
  }
  await look()
  if (blocks === 'after') await block()
  api.world.tick(1_000)
  await add('desktop')
  await database.change(change => devices.remove(change, bob.userId, phone!.deviceId), api.world.nowMs())
  api.world.tick(1_000)
  const requestId = await look()
  if (blocks === 'never') return seen
  await post(api, '/cancel', ann, { requestId })
  await look()
  return seen
}

t.test('who asked by token sees the devices of then, blocked or not, also when asking again', async t => {
  const then = ['phone', 'tablet']
  const seen = [[201, then], 200, [200, then], 200]
  t.same(await hashesSeen(t, 'never'), seen)
  t.same(await hashesSeen(t, 'before'), [...seen, [201, then], 200])
  t.same(await hashesSeen(t, 'after'), [...seen, [201, then], 200])
})

t.test('who is no contact any more, or asks again unblocked, sees the devices of now', async t => {
  const api = await openTestApi(t)
  const [ann, bob] = (await people(api, 'Ann', 'Bob')) as [TestUser, TestUser]
  const { text } = await shareTokenOf(api, bob)
  await newDevice(api.world, bob.userId)
  api.world.tick(1_000)
  const { requestId } = (await post(api, '/by-token', ann, { token: text })).body
  api.world.tick(1_000)
  await newDevice(api.world, bob.userId)
  api.world.tick(1_000)
  const again = await post(api, '/by-token', ann, { token: text })
  t.equal(again.body.devices.length, 1)
  await post(api, '/cancel', ann, { requestId })
  t.equal((await post(api, '/by-token', ann, { token: text })).body.devices.length, 2)
})

t.test('a token is used by the requests that it makes, and by nothing else', async t => {
  const api = await openTestApi(t)
  const [ann, bob, cy] = (await people(api, 'Ann', 'Bob', 'Cy')) as [TestUser, TestUser, TestUser]
  const { text } = await shareTokenOf(api, bob, { maxUses: 2 })
  const uses = async () =>
    (await api.send('GET /app/api/share-token', { token: bob.token })).body.items[0]?.uses
  t.same(shortOf(await post(api, '/by-token', bob, { token: text })), [422, 'SELF_REQUEST'])
  t.equal((await post(api, '/by-token', ann, { token: text })).status, 201)
  t.equal((await post(api, '/by-token', ann, { token: text })).status, 200)
  t.equal(await uses(), 1)
  t.equal((await post(api, '/by-token', cy, { token: text })).status, 201)
  t.equal(await uses(), undefined, 'it is over')
  t.same(shortOf(await post(api, '/by-token', ann, { token: text })), [410, 'SHARE_TOKEN_EXPIRED'])
})

t.test('the last use of a token is given once', async t => {
  const api = await openTestApi(t)
  const [bob, ...others] = (await people(api, 'Bob', 'Ann', 'Cy', 'Di')) as [TestUser, ...TestUser[]]
  const { text } = await shareTokenOf(api, bob, { maxUses: 1 })
  const answers = await Promise.all(others.map(user => post(api, '/by-token', user, { token: text })))
  t.same(answers.map(shortOf), [[201], [410, 'SHARE_TOKEN_EXPIRED'], [410, 'SHARE_TOKEN_EXPIRED']])
})

t.test(
  'a search by address answers alike for users and strangers, and reveals nothing afterwards',
  async t => {
    const api = await openTestApi(t)
    const [ann, bob, cy, di] = (await people(api, 'Ann', 'Bob', 'Cy', 'Di')) as [
      TestUser,
      TestUser,
      TestUser,
      TestUser,
    ]
    await befriend(api, ann, di)
    const user = api.world.database.view(view => api.world.accounts.read(view, cy.userId))!
    await api.world.database.change(change =>
      api.world.accounts.put(change, cy.userId, {
        ...user,
        settings: { ...user.settings, discoverableByEmail: false },
      }),
    )
    api.told.length = 0
    const before = await requestsOf(api, ann, 'outgoing')
    const emails = [bob.email, bob.email.toUpperCase(), cy.email, di.email, ann.email, 'nobody@example.org']
    const answers = await Promise.all(emails.map(email => post(api, '', ann, { email })))
    t.same(
      answers.map(({ status, text }) => [status, text]),
      Array(6).fill([202, '{"status":"submitted"}']),
    )
    t.same(api.told, [], 'nothing is looked for before the answers')
    await api.world.advance(0)
    t.same(await requestsOf(api, ann, 'outgoing'), before)
    t.same(takeKindsTold(api, ann), [])
    t.same(takeKindsTold(api, bob), ['friend_request', 'badge'], 'once')
    t.same([takeKindsTold(api, cy), takeKindsTold(api, di)], [[], []])
    // The found user's request looks like one made anew.
    const byId = await askById(api, ann, bob)
    t.equal(byId.status, 201)
    await api.world.advance(0)
    t.same(takeKindsTold(api, bob), ['friend_request_cancelled', 'friend_request', 'badge'])
    t.same(await namesOf(api, bob, 'incoming'), ['Ann'])
  },
)

t.test('a search writes the same rows with and without a match, until the sweep', async t => {
  const api = await openTestApi(t, { rates: true })
  const { database } = api.world
  const [ann, bob, cy] = (await people(api, 'Ann', 'Bob', 'Cy')) as [TestUser, TestUser, TestUser]
  const rows = () => database.tableNames().map(name => database.rowCount(database.storedRows(name)))
  const growth: number[][] = []
  for (const [from, email] of [
    [ann, bob.email],
    [cy, 'nobody@example.org'],
  ] as const) {
    const before = rows()
    await post(api, '', from, { email })
    growth.push(rows().map((count, at) => count - before[at]!))
  }
  t.same(growth[0], growth[1])
  await api.world.advance(0)
  t.same([await namesOf(api, bob, 'incoming'), takeKindsTold(api, cy)], [['Ann'], []])
})

t.test('a search is done once, also when the process ends behind its answer', async t => {
  const folder = t.testdir()
  let api = await openTestApi(t, { folder })
  const [ann, bob] = (await people(api, 'Ann', 'Bob')) as [TestUser, TestUser]
  await post(api, '', ann, { email: bob.email, message: 'hello' })
  await api.world.database.close()
  api = await openTestApi(t, { folder })
  await api.world.advance(0)
  t.match(await requestsOf(api, bob, 'incoming'), [{ user: { displayName: 'Ann' }, message: 'hello' }])
  t.same(takeKindsTold(api, bob), ['friend_request', 'badge'])
})

t.test('a search finds no user when its sender has gone', async t => {
  const api = await openTestApi(t)
  const { accounts, database } = api.world
  const [ann, bob] = (await people(api, 'Ann', 'Bob')) as [TestUser, TestUser]
  await post(api, '', ann, { email: bob.email })
  await database.change(change => {
    api.world.contacts.eraseOf(change, ann.userId)
    accounts.remove(change, ann.userId)
  }, api.world.nowMs())
  await api.world.advance(0)
  t.same([api.told, await requestsOf(api, bob, 'incoming')], [[], []])
})

t.test('a search by phone finds who has proven the number', async t => {
  const api = await openTestApi(t)
  const [ann, bob] = (await people(api, 'Ann', 'Bob')) as [TestUser, TestUser]
  const { accounts, database } = api.world
  const number = {
    id: 5n as MethodId,
    kind: 'phone',
    key: '+84912345678',
    shown: '0912345678',
    addedAtMs: 0,
    lastUsedAtMs: 0,
  } as const
  await database.change(change => accounts.putMethod(change, bob.userId, number))
  t.ok(database.view(view => accounts.ownerOf(view, addressIdentifier('phone', '+84912345678'))))
  t.equal((await post(api, '', ann, { phone: '0912 345 678', country: 'VN' })).status, 202)
  await api.world.advance(0)
  t.same(await namesOf(api, bob, 'incoming'), ['Ann'])
  t.same(shortOf(await post(api, '', ann, { phone: 'abc' })), [422, 'VALIDATION_FAILED'])
})

t.test('a search by the hash of a key answers as one by id', async t => {
  const api = await openTestApi(t)
  const [ann, bob] = (await people(api, 'Ann', 'Bob')) as [TestUser, TestUser]
  const device = await newDevice(api.world, bob.userId)
  const { publicKeyHash, deviceId } = device
  api.keysLogged.set(publicKeyHash, { userId: bob.userId, deviceId })
  t.match(await post(api, '', ann, { publicKeyHash }), {
    status: 201,
    body: { user: { displayName: 'Bob' } },
  })
  t.equal((await post(api, '', ann, { publicKeyHash })).status, 200)
  const unknown = Buffer.alloc(64, 5).toString('base64')
  api.keysLogged.set(unknown, { userId: 77n, deviceId: 78n })
  t.same(shortOf(await post(api, '', ann, { publicKeyHash: unknown })), [404, 'USER_NOT_FOUND'])
  await api.world.database.change(
    change => api.world.devices.remove(change, bob.userId, deviceId),
    api.world.nowMs(),
  )
  t.same(shortOf(await post(api, '', ann, { publicKeyHash })), [404, 'USER_NOT_FOUND'], 'a removed device')
})

t.test('a search names one thing', async t => {
  const api = await openTestApi(t)
  const [ann] = (await people(api, 'Ann')) as [TestUser]
  const publicKeyHash = Buffer.alloc(64, 5).toString('base64')
  const bodies = [{}, { email: 'a@b.co', phone: '+84912345678' }, { email: 'a@b.co', publicKeyHash }]
  for (const body of bodies) {
    t.same(shortOf(await post(api, '', ann, body)), [422, 'VALIDATION_FAILED'])
  }
  t.same(shortOf(await post(api, '/accept', ann, {})), [422, 'VALIDATION_FAILED'])
  t.same(shortOf(await post(api, '/accept', ann, { requestId: '1', userId: '2' })), [
    422,
    'VALIDATION_FAILED',
  ])
})

t.test('a request to oneself, to an unknown user, or to one who is leaving is refused', async t => {
  const api = await openTestApi(t)
  const [ann, bob] = (await people(api, 'Ann', 'Bob')) as [TestUser, TestUser]
  const { accounts, database } = api.world
  const { text } = await shareTokenOf(api, bob)
  t.same(shortOf(await askById(api, ann, ann)), [422, 'SELF_REQUEST'])
  t.same(shortOf(await post(api, '/by-id', ann, { targetUserId: '18446744073709551615' })), [
    404,
    'USER_NOT_FOUND',
  ])
  const user = database.view(view => accounts.read(view, bob.userId))!
  await database.change(change =>
    accounts.put(change, bob.userId, { ...user, erasesAtMs: change.nowMs + DAY_MS }),
  )
  t.same(shortOf(await askById(api, ann, bob)), [404, 'USER_NOT_FOUND'])
  t.same(shortOf(await post(api, '/by-token', ann, { token: text })), [404, 'SHARE_TOKEN_NOT_FOUND'])
  await post(api, '', ann, { email: bob.email })
  await api.world.advance(0)
  t.same(api.told, [])
})

t.test('a message has at most 200 characters', async t => {
  const api = await openTestApi(t)
  const [ann, bob] = (await people(api, 'Ann', 'Bob')) as [TestUser, TestUser]
  const send = (message: string | null) => post(api, '/by-id', ann, { targetUserId: bob.userId, message })
  const refused = await send('é'.repeat(201))
  t.match(refused, { status: 422, body: { errors: [{ pointer: '/message' }] } })
  t.equal((await send('👩‍👩‍👧'.repeat(60))).status, 201)
  t.match(
    (await send('👩‍👩‍👧'.repeat(100))).body,
    { detail: /1,600 bytes/ },
    'few enough characters, of too many bytes',
  )
})

t.test('20 requests an hour and 50 a day count what they make or try, also over a new start', async t => {
  const folder = t.testdir()
  let api = await openTestApi(t, { folder, rates: true })
  const [ann, ...others] = (await people(
    api,
    'Ann',
    ...Array.from({ length: 60 }, (_, at) => `user ${at}`),
  )) as [TestUser, ...TestUser[]]
  const unknown = { userId: 5n as UserId } as TestUser
  for (const other of others.slice(0, 10)) t.equal((await askById(api, ann, other)).status, 201)
  for (let count = 0; count < 30; count++) await askById(api, ann, others[0]!)
  for (let count = 0; count < 9; count++) {
    t.same(shortOf(await askById(api, ann, unknown)), [404, 'USER_NOT_FOUND'])
  }
  t.equal((await askById(api, ann, others[10]!)).status, 201)
  await api.world.database.close()
  api = await openTestApi(t, { folder, rates: true })
  const refused = await askById(api, ann, others[11]!)
  t.match(refused, { status: 429, body: { code: 'RATE_LIMITED', retryIn: 180, scope: 'user' } })
  t.equal(refused.headers['ratelimit-policy'], '"user";q=20;w=3600')
  t.same(shortOf(await askById(api, ann, unknown)), [429, 'RATE_LIMITED'], 'nor is it told who there is')
  t.equal((await askById(api, ann, others[0]!)).status, 200, 'what stands is not refused')
  t.equal((await post(api, '', ann, { email: 'nobody@example.org' })).status, 202, 'searches count apart')
})

t.test('ten searches an hour, with or without a match', async t => {
  const api = await openTestApi(t, { rates: true })
  const [ann, bob] = (await people(api, 'Ann', 'Bob')) as [TestUser, TestUser]
  for (let count = 0; count < 5; count++) {
    t.equal((await post(api, '', ann, { email: bob.email })).status, 202)
    t.equal((await post(api, '', ann, { email: 'nobody@example.org' })).status, 202)
  }
  for (const email of [bob.email, 'nobody@example.org']) {
    t.same(shortOf(await post(api, '', ann, { email })), [429, 'RATE_LIMITED'])
  }
  t.equal((await askById(api, ann, bob)).status, 201, 'the search did not count as a request')
})

t.test('a repeated request with its Idempotency-Key gets the first answer', async t => {
  const api = await openTestApi(t)
  const [ann, bob] = (await people(api, 'Ann', 'Bob')) as [TestUser, TestUser]
  const headers = { 'idempotency-key': 'k-1' }
  const body = { targetUserId: bob.userId }
  const first = await post(api, '/by-id', ann, body, headers)
  await post(api, '/cancel', ann, { requestId: first.body.requestId })
  const again = await post(api, '/by-id', ann, body, headers)
  t.same([again.status, again.text], [201, first.text])
})

t.test('also when the first one has used the share token up', async t => {
  const api = await openTestApi(t)
  const [ann, bob] = (await people(api, 'Ann', 'Bob')) as [TestUser, TestUser]
  const { text } = await shareTokenOf(api, bob, { maxUses: 1 })
  const headers = { 'idempotency-key': 'k-1' }
  const first = await post(api, '/by-token', ann, { token: text }, headers)
  const again = await post(api, '/by-token', ann, { token: text }, headers)
  t.same([again.status, again.text], [201, first.text])
})

t.test('a search names one thing to search by', async t => {
  const api = await openTestApi(t)
  const [ann] = (await people(api, 'Ann')) as [TestUser]
  const publicKeyHash = `${'A'.repeat(86)}==`
  for (const body of [{}, { email: 'a@b.co', phone: '+84912345678' }, { email: 'a@b.co', publicKeyHash }]) {
    t.match(await post(api, '', ann, body), {
      status: 422,
      body: { detail: 'the body has to name one of email, phone and publicKeyHash' },
    })
  }
})

t.test('lists are paged, newest first, and stay whole while they change', async t => {
  const api = await openTestApi(t)
  const [ann, ...others] = (await people(api, 'Ann', '0', '1', '2', '3', '4', '5')) as [
    TestUser,
    ...TestUser[],
  ]
  for (const other of others) {
    await askById(api, other, ann)
    if (other !== others[2]) await api.world.advance(1_000)
  }
  const page = async (query: string) =>
    (await api.send(`GET /app/api/friend-request?limit=2${query}`, { token: ann.token })).body
  const names = ({ items }: { items: readonly { user: { displayName: string } }[] }) =>
    items.map(({ user }) => user.displayName)
  const first = await page('')
  t.same(names(first), ['5', '4'])
  // The last one that was seen goes, and so does one to come; a new one comes in front.
  await post(api, '/decline', ann, { requestId: first.items[1].requestId })
  const second = await page(`&cursor=${first.nextCursor}`)
  t.same(names(second).sort(), ['2', '3'], 'two of one moment')
  await post(api, '/accept', ann, { userId: others[1]!.userId })
  const third = await page(`&cursor=${second.nextCursor}`)
  t.same(names(third), ['0'])
  t.notOk('nextCursor' in third)
  const badCursors = ['x', `${first.nextCursor}A`, first.nextCursor.slice(1), '%20']
  for (const cursor of badCursors) {
    const answer = await api.send(`GET /app/api/friend?cursor=${cursor}`, { token: ann.token })
    t.match(answer, { status: 422, body: { errors: [{ pointer: '/cursor' }] } })
  }
  for (const limit of ['0', '201', '-1', 'x']) {
    const answer = await api.send(`GET /app/api/friend?limit=${limit}`, { token: ann.token })
    t.match(answer, { status: 422, body: { errors: [{ pointer: '/limit' }] } })
  }
})
