/** Friend requests as clients see them (contract 3.2 to 3.4). */

import t, { type Test } from 'tap'
import { addressIdentifier } from '../../../src/domain/accounts/account.ts'
import type { MethodId, UserId } from '../../../src/domain/ids.ts'
import { newDevice, type TestAnswer, type TestUser } from '../../support/application.ts'
import {
  askById,
  befriend,
  type ContactHouse,
  openContacts,
  people,
  shareTokenOf,
} from '../../support/contact-house.ts'

const DAY_MS = 86_400_000

function post(house: ContactHouse, path: string, { token }: TestUser, body: object, headers = {}) {
  return house.send(`POST /app/api/friend-request${path}`, { token, body, headers })
}

async function requestsOf(house: ContactHouse, { token }: TestUser, direction: string, query = '') {
  const { body } = await house.send(`GET /app/api/friend-request?direction=${direction}${query}`, { token })
  return body.items as readonly { requestId: string; user: { displayName: string }; message?: string }[]
}

async function namesOf(house: ContactHouse, user: TestUser, direction: string): Promise<string[]> {
  return (await requestsOf(house, user, direction)).map(({ user }) => user.displayName)
}

/** Status and code, which is all that most refusals are about. */
function shortOf({ status, body }: TestAnswer): unknown[] {
  return body?.code === undefined ? [status] : [status, body.code]
}

t.test('a request by id reaches the other, with what was said, and the badge', async t => {
  const house = openContacts(t)
  const [ann, bob] = (await people(house, 'Ann', 'Bob')) as [TestUser, TestUser]
  const device = await newDevice(house.world, bob.userId)
  const answer = await post(house, '/by-id', ann, { targetUserId: bob.userId, message: '  hello\nBob ' })
  t.equal(answer.status, 201)
  t.match(answer.body, {
    status: 'pending',
    user: { userId: String(bob.userId), displayName: 'Bob' },
    createdAt: new Date(house.world.nowMs()).toISOString(),
    publicKeyHashs: undefined,
    devices: undefined,
  })
  t.match(await requestsOf(house, bob, 'incoming'), [
    { requestId: answer.body.requestId, user: { displayName: 'Ann' }, message: 'hello Bob' },
  ])
  await house.world.advance(0)
  t.match(house.told, [
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
  t.match(await house.world.takeSent(), [
    { channel: 'push', userId: bob.userId, deviceId: device.deviceId, notice: { kind: 'friend_request' } },
  ])
})

t.test('the same request again is the same record, without another push', async t => {
  const house = openContacts(t)
  const [ann, bob] = (await people(house, 'Ann', 'Bob')) as [TestUser, TestUser]
  const first = await askById(house, ann, bob)
  await house.world.advance(60_000)
  house.told.length = 0
  const second = await askById(house, ann, bob)
  await house.world.advance(0)
  t.same([first.status, second.status], [201, 200])
  t.same(second.body, first.body)
  t.same(house.told, [])
})

t.test('crossing requests make contacts, whichever comes first', async t => {
  const house = openContacts(t)
  const [ann, bob] = (await people(house, 'Ann', 'Bob')) as [TestUser, TestUser]
  const device = await newDevice(house.world, ann.userId)
  await askById(house, ann, bob)
  house.told.length = 0
  const answer = await askById(house, bob, ann)
  t.equal(answer.status, 200)
  t.match(answer.body, {
    status: 'accepted',
    user: { displayName: 'Ann' },
    publicKeyHashs: [device.publicKeyHash],
    devices: [
      { deviceId: String(device.deviceId), publicKeyHash: device.publicKeyHash, keyAlgorithm: 'P-256' },
    ],
  })
  t.match(house.told, [
    { userId: ann.userId, body: { kind: 'contact_added', userId: bob.userId, isPushed: true } },
    { userId: bob.userId, body: { kind: 'contact_added', userId: ann.userId, isPushed: false } },
    { userId: bob.userId, body: { kind: 'badge', badge: { total: 0 } } },
  ])
  t.same(shortOf(await askById(house, ann, bob)), [409, 'ALREADY_FRIENDS'])
  t.same([await requestsOf(house, ann, 'outgoing'), await requestsOf(house, bob, 'incoming')], [[], []])
})

t.test('requests that cross at one moment make contacts once', async t => {
  const house = openContacts(t)
  for (let round = 0; round < 10; round++) {
    const [ann, bob] = (await people(house, 'Ann', 'Bob')) as [TestUser, TestUser]
    const answers = await Promise.all([
      askById(house, ann, bob),
      askById(house, bob, ann),
      askById(house, ann, bob),
      askById(house, bob, ann),
    ])
    t.same(answers.map(shortOf), [[201], [200], [409, 'ALREADY_FRIENDS'], [409, 'ALREADY_FRIENDS']])
    t.equal(house.kindsTold(ann).filter(kind => kind === 'contact_added').length, 1)
    t.same(await requestsOf(house, bob, 'incoming'), [])
  }
})

t.test('of accepting, cancelling and declining at one moment, one takes place', async t => {
  const house = openContacts(t)
  const [ann, bob] = (await people(house, 'Ann', 'Bob')) as [TestUser, TestUser]
  const { requestId } = (await askById(house, ann, bob)).body
  const answers = await Promise.all([
    post(house, '/accept', bob, { requestId }),
    post(house, '/cancel', ann, { requestId }),
    post(house, '/decline', bob, { requestId }),
  ])
  t.same(answers.map(shortOf), [[200], [409, 'REQUEST_CLOSED'], [409, 'REQUEST_CLOSED']])
})

t.test('accepting answers with the contact and its keys; the sender alone is pushed', async t => {
  const house = openContacts(t)
  const [ann, bob, cy] = (await people(house, 'Ann', 'Bob', 'Cy')) as [TestUser, TestUser, TestUser]
  const device = await newDevice(house.world, ann.userId)
  await newDevice(house.world, bob.userId)
  const { requestId } = (await askById(house, ann, bob)).body
  await house.world.takeSent()
  const answer = await post(house, '/accept', bob, { requestId })
  t.equal(answer.status, 200)
  t.same(answer.body, {
    contact: {
      userId: String(ann.userId),
      displayName: 'Ann',
      since: new Date(house.world.nowMs()).toISOString(),
    },
    publicKeyHashs: [device.publicKeyHash],
    devices: [
      { deviceId: String(device.deviceId), publicKeyHash: device.publicKeyHash, keyAlgorithm: 'P-256' },
    ],
  })
  t.match(await house.world.takeSent(), [
    { channel: 'push', userId: ann.userId, notice: { kind: 'contact_added', requestId: BigInt(requestId) } },
  ])
  await askById(house, cy, bob)
  const bySender = await post(house, '/accept', bob, { userId: cy.userId })
  t.match(bySender, { status: 200, body: { contact: { displayName: 'Cy' } } })
  t.same(shortOf(await post(house, '/accept', bob, { userId: cy.userId })), [404, 'REQUEST_NOT_FOUND'])
})

t.test('a request is declined by its sender’s id, and taken back by its receiver’s', async t => {
  const house = openContacts(t)
  const [ann, bob, cy] = (await people(house, 'Ann', 'Bob', 'Cy')) as [TestUser, TestUser, TestUser]
  await askById(house, ann, bob)
  const declined = () => post(house, '/decline', bob, { userId: ann.userId })
  t.equal((await declined()).status, 204)
  t.same(shortOf(await declined()), [404, 'REQUEST_NOT_FOUND'])
  await askById(house, bob, cy)
  const cancelled = () => post(house, '/cancel', bob, { userId: cy.userId })
  t.same(shortOf(await post(house, '/cancel', cy, { userId: bob.userId })), [404, 'REQUEST_NOT_FOUND'])
  t.equal((await cancelled()).status, 204)
  t.same(shortOf(await cancelled()), [404, 'REQUEST_NOT_FOUND'])
  t.same(shortOf(await post(house, '/cancel', bob, {})), [422, 'VALIDATION_FAILED'])
})

t.test('a foreign request looks like none, a closed one like a closed one', async t => {
  const house = openContacts(t)
  const [ann, bob, cy] = (await people(house, 'Ann', 'Bob', 'Cy')) as [TestUser, TestUser, TestUser]
  const { requestId } = (await askById(house, ann, bob)).body
  const noneOf = async (user: TestUser, paths: readonly string[]) => {
    for (const path of paths) {
      t.same(shortOf(await post(house, path, user, { requestId })), [404, 'REQUEST_NOT_FOUND'], path)
    }
  }
  await noneOf(cy, ['/accept', '/decline', '/cancel'])
  await noneOf(ann, ['/accept', '/decline'])
  await noneOf(bob, ['/cancel'])
  t.equal((await house.send(`DELETE /app/api/friend-request/${requestId}`, { token: ann.token })).status, 204)
  for (const [path, user] of [
    ['/accept', bob],
    ['/decline', bob],
    ['/cancel', ann],
  ] as const) {
    t.same(shortOf(await post(house, path, user, { requestId })), [409, 'REQUEST_CLOSED'], path)
  }
  const atPath = await house.send(`DELETE /app/api/friend-request/abc`, { token: ann.token })
  t.same(shortOf(atPath), [404, 'REQUEST_NOT_FOUND'])
})

t.test('cancelling takes the request out of the list and the badge of its receiver', async t => {
  const house = openContacts(t)
  const [ann, bob] = (await people(house, 'Ann', 'Bob')) as [TestUser, TestUser]
  const { requestId } = (await askById(house, ann, bob)).body
  await house.world.advance(0)
  house.told.length = 0
  t.equal((await post(house, '/cancel', ann, { requestId })).status, 204)
  await house.world.advance(0)
  t.match(house.told, [
    { userId: bob.userId, body: { kind: 'friend_request_cancelled', requestId: BigInt(requestId) } },
    { userId: bob.userId, body: { kind: 'badge', badge: { total: 0 } } },
  ])
  t.same(await requestsOf(house, bob, 'incoming'), [])
})

t.test('a request that has expired before the sweep is not announced as made', async t => {
  const house = openContacts(t)
  const [ann, bob] = (await people(house, 'Ann', 'Bob')) as [TestUser, TestUser]
  const { requestId } = (await askById(house, ann, bob)).body
  await post(house, '/accept', bob, { requestId })
  await house.world.advance(0)
  t.same(house.kindsTold(bob), ['contact_added', 'badge'])
})

t.test('the sender of a declined request keeps seeing it, and reaches no one for seven days', async t => {
  const house = openContacts(t)
  const [ann, bob] = (await people(house, 'Ann', 'Bob')) as [TestUser, TestUser]
  const { requestId } = (await askById(house, ann, bob)).body
  t.equal((await post(house, '/decline', bob, { requestId })).status, 204)
  t.same(house.kindsTold(ann), [])
  t.same(await namesOf(house, ann, 'outgoing'), ['Bob'])
  t.equal((await askById(house, ann, bob)).status, 200)
  t.equal((await post(house, '/cancel', ann, { requestId })).status, 204)
  await house.world.advance(0)
  house.told.length = 0
  t.equal((await askById(house, ann, bob)).status, 201)
  await house.world.advance(0)
  t.same([house.told, await namesOf(house, bob, 'incoming')], [[], []])
})

t.test('a request by token answers with keys, which both may read as long as it stands', async t => {
  const house = openContacts(t)
  const [ann, bob] = (await people(house, 'Ann', 'Bob')) as [TestUser, TestUser]
  const device = await newDevice(house.world, bob.userId)
  const { text } = await shareTokenOf(house, bob)
  const { contacts, world } = house
  const mayRead = () =>
    world.database.view(view => [
      contacts.keysShown(view, ann.userId, bob.userId, world.nowMs()) !== undefined,
      contacts.keysShown(view, bob.userId, ann.userId, world.nowMs()) !== undefined,
    ])
  await askById(house, ann, bob)
  t.same(mayRead(), [false, false])
  const answer = await post(house, '/by-token', ann, { token: text })
  t.match(answer, { status: 200, body: { status: 'pending', publicKeyHashs: [device.publicKeyHash] } })
  t.same(mayRead(), [true, true])
  await post(house, '/decline', bob, { requestId: answer.body.requestId })
  t.same(mayRead(), [true, false], 'the sender can not tell')
  await post(house, '/cancel', ann, { requestId: answer.body.requestId })
  t.same(mayRead(), [false, false])
})

/** Ann asks Bob by his token, who may have blocked her before or blocks her then; what she sees of his devices, later. */
async function hashesSeen(t: Test, blocks: 'never' | 'before' | 'after'): Promise<readonly unknown[]> {
  const house = openContacts(t)
  const [ann, bob] = (await people(house, 'Ann', 'Bob')) as [TestUser, TestUser]
  const { database, devices } = house.world
  const names = new Map<string, string>()
  const add = async (name: string) => {
    const device = await newDevice(house.world, bob.userId)
    names.set(device.publicKeyHash, name)
    house.logged.set(device.publicKeyHash, { userId: bob.userId, deviceId: device.deviceId })
    return device
  }
  const { text } = await shareTokenOf(house, bob)
  const [phone] = [await add('phone'), await add('tablet')]
  const block = () => house.send('POST /app/api/block', { token: bob.token, body: { userId: ann.userId } })
  house.world.pass(1_000)
  if (blocks === 'before') await block()
  house.world.pass(1_000)
  const seen: unknown[] = []
  const look = async () => {
    const { status, body } = await post(house, '/by-token', ann, { token: text })
    seen.push([status, body.publicKeyHashs.map((hash: string) => names.get(hash)).sort()])
    const search = { publicKeyHash: phone!.publicKeyHash }
    seen.push((await house.send('POST /app/api/friend-request', { token: ann.token, body: search })).status)
    return body.requestId
  }
  await look()
  if (blocks === 'after') await block()
  house.world.pass(1_000)
  await add('desktop')
  await database.change(change => devices.remove(change, bob.userId, phone!.deviceId), house.world.nowMs())
  house.world.pass(1_000)
  const requestId = await look()
  if (blocks === 'never') return seen
  await post(house, '/cancel', ann, { requestId })
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
  const house = openContacts(t)
  const [ann, bob] = (await people(house, 'Ann', 'Bob')) as [TestUser, TestUser]
  const { text } = await shareTokenOf(house, bob)
  await newDevice(house.world, bob.userId)
  house.world.pass(1_000)
  const { requestId } = (await post(house, '/by-token', ann, { token: text })).body
  house.world.pass(1_000)
  await newDevice(house.world, bob.userId)
  house.world.pass(1_000)
  const again = await post(house, '/by-token', ann, { token: text })
  t.equal(again.body.devices.length, 1)
  await post(house, '/cancel', ann, { requestId })
  t.equal((await post(house, '/by-token', ann, { token: text })).body.devices.length, 2)
})

t.test('a token is used by the requests that it makes, and by nothing else', async t => {
  const house = openContacts(t)
  const [ann, bob, cy] = (await people(house, 'Ann', 'Bob', 'Cy')) as [TestUser, TestUser, TestUser]
  const { text } = await shareTokenOf(house, bob, { maxUses: 2 })
  const uses = async () =>
    (await house.send('GET /app/api/share-token', { token: bob.token })).body.items[0]?.uses
  t.same(shortOf(await post(house, '/by-token', bob, { token: text })), [422, 'SELF_REQUEST'])
  t.equal((await post(house, '/by-token', ann, { token: text })).status, 201)
  t.equal((await post(house, '/by-token', ann, { token: text })).status, 200)
  t.equal(await uses(), 1)
  t.equal((await post(house, '/by-token', cy, { token: text })).status, 201)
  t.equal(await uses(), undefined, 'it is over')
  t.same(shortOf(await post(house, '/by-token', ann, { token: text })), [410, 'SHARE_TOKEN_EXPIRED'])
})

t.test('the last use of a token is given once', async t => {
  const house = openContacts(t)
  const [bob, ...others] = (await people(house, 'Bob', 'Ann', 'Cy', 'Di')) as [TestUser, ...TestUser[]]
  const { text } = await shareTokenOf(house, bob, { maxUses: 1 })
  const answers = await Promise.all(others.map(user => post(house, '/by-token', user, { token: text })))
  t.same(answers.map(shortOf), [[201], [410, 'SHARE_TOKEN_EXPIRED'], [410, 'SHARE_TOKEN_EXPIRED']])
})

t.test(
  'a search by address answers alike for users and strangers, and reveals nothing afterwards',
  async t => {
    const house = openContacts(t)
    const [ann, bob, cy, di] = (await people(house, 'Ann', 'Bob', 'Cy', 'Di')) as [
      TestUser,
      TestUser,
      TestUser,
      TestUser,
    ]
    await befriend(house, ann, di)
    const user = house.world.database.view(view => house.world.accounts.read(view, cy.userId))!
    await house.world.database.change(change =>
      house.world.accounts.put(change, cy.userId, {
        ...user,
        settings: { ...user.settings, discoverableByEmail: false },
      }),
    )
    house.told.length = 0
    const before = await requestsOf(house, ann, 'outgoing')
    const emails = [bob.email, bob.email.toUpperCase(), cy.email, di.email, ann.email, 'nobody@example.org']
    const answers = await Promise.all(emails.map(email => post(house, '', ann, { email })))
    t.same(
      answers.map(({ status, text }) => [status, text]),
      Array(6).fill([202, '{"status":"submitted"}']),
    )
    t.same(house.told, [], 'nothing is looked for before the answers')
    await house.world.advance(0)
    t.same(await requestsOf(house, ann, 'outgoing'), before)
    t.same(house.kindsTold(ann), [])
    t.same(house.kindsTold(bob), ['friend_request', 'badge'], 'once')
    t.same([house.kindsTold(cy), house.kindsTold(di)], [[], []])
    // The found user's request looks like one made anew.
    const byId = await askById(house, ann, bob)
    t.equal(byId.status, 201)
    await house.world.advance(0)
    t.same(house.kindsTold(bob), ['friend_request_cancelled', 'friend_request', 'badge'])
    t.same(await namesOf(house, bob, 'incoming'), ['Ann'])
  },
)

t.test('a search writes the same rows with and without a match, until the sweep', async t => {
  const house = openContacts(t, t.testdir(), { rates: true })
  const { database } = house.world
  const [ann, bob, cy] = (await people(house, 'Ann', 'Bob', 'Cy')) as [TestUser, TestUser, TestUser]
  const rows = () => database.tableNames().map(name => database.rowCount(database.storedRows(name)))
  const growth: number[][] = []
  for (const [from, email] of [
    [ann, bob.email],
    [cy, 'nobody@example.org'],
  ] as const) {
    const before = rows()
    await post(house, '', from, { email })
    growth.push(rows().map((count, at) => count - before[at]!))
  }
  t.same(growth[0], growth[1])
  await house.world.advance(0)
  t.same([await namesOf(house, bob, 'incoming'), house.kindsTold(cy)], [['Ann'], []])
})

t.test('a search is done once, also when the process ends behind its answer', async t => {
  const folder = t.testdir()
  let house = openContacts(t, folder)
  const [ann, bob] = (await people(house, 'Ann', 'Bob')) as [TestUser, TestUser]
  await post(house, '', ann, { email: bob.email, message: 'hello' })
  await house.world.database.close()
  house = openContacts(t, folder)
  await house.world.advance(0)
  t.match(await requestsOf(house, bob, 'incoming'), [{ user: { displayName: 'Ann' }, message: 'hello' }])
  t.same(house.kindsTold(bob), ['friend_request', 'badge'])
})

t.test('a search finds no user when its sender has gone meanwhile', async t => {
  const house = openContacts(t)
  const { accounts, database } = house.world
  const [ann, bob] = (await people(house, 'Ann', 'Bob')) as [TestUser, TestUser]
  await post(house, '', ann, { email: bob.email })
  await database.change(change => {
    house.contacts.eraseOf(change, ann.userId)
    accounts.remove(change, ann.userId)
  }, house.world.nowMs())
  await house.world.advance(0)
  t.same([house.told, await requestsOf(house, bob, 'incoming')], [[], []])
})

t.test('a search by phone finds who has proven the number', async t => {
  const house = openContacts(t)
  const [ann, bob] = (await people(house, 'Ann', 'Bob')) as [TestUser, TestUser]
  const { accounts, database } = house.world
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
  t.equal((await post(house, '', ann, { phone: '0912 345 678', country: 'VN' })).status, 202)
  await house.world.advance(0)
  t.same(await namesOf(house, bob, 'incoming'), ['Ann'])
  t.same(shortOf(await post(house, '', ann, { phone: 'abc' })), [422, 'VALIDATION_FAILED'])
})

t.test('a search by the hash of a key answers as one by id', async t => {
  const house = openContacts(t)
  const [ann, bob] = (await people(house, 'Ann', 'Bob')) as [TestUser, TestUser]
  const device = await newDevice(house.world, bob.userId)
  const { publicKeyHash, deviceId } = device
  house.logged.set(publicKeyHash, { userId: bob.userId, deviceId })
  t.match(await post(house, '', ann, { publicKeyHash }), {
    status: 201,
    body: { user: { displayName: 'Bob' } },
  })
  t.equal((await post(house, '', ann, { publicKeyHash })).status, 200)
  const unknown = Buffer.alloc(64, 5).toString('base64')
  house.logged.set(unknown, { userId: 77n, deviceId: 78n })
  t.same(shortOf(await post(house, '', ann, { publicKeyHash: unknown })), [404, 'USER_NOT_FOUND'])
  await house.world.database.change(
    change => house.world.devices.remove(change, bob.userId, deviceId),
    house.world.nowMs(),
  )
  t.same(shortOf(await post(house, '', ann, { publicKeyHash })), [404, 'USER_NOT_FOUND'], 'a removed device')
})

t.test('a search names one thing', async t => {
  const house = openContacts(t)
  const [ann] = (await people(house, 'Ann')) as [TestUser]
  const publicKeyHash = Buffer.alloc(64, 5).toString('base64')
  const bodies = [{}, { email: 'a@b.co', phone: '+84912345678' }, { email: 'a@b.co', publicKeyHash }]
  for (const body of bodies) {
    t.same(shortOf(await post(house, '', ann, body)), [422, 'VALIDATION_FAILED'])
  }
  t.same(shortOf(await post(house, '/accept', ann, {})), [422, 'VALIDATION_FAILED'])
  t.same(shortOf(await post(house, '/accept', ann, { requestId: '1', userId: '2' })), [
    422,
    'VALIDATION_FAILED',
  ])
})

t.test('a request to oneself, to an unknown user, or to one who is leaving is refused', async t => {
  const house = openContacts(t)
  const [ann, bob] = (await people(house, 'Ann', 'Bob')) as [TestUser, TestUser]
  const { accounts, database } = house.world
  const { text } = await shareTokenOf(house, bob)
  t.same(shortOf(await askById(house, ann, ann)), [422, 'SELF_REQUEST'])
  t.same(shortOf(await post(house, '/by-id', ann, { targetUserId: '18446744073709551615' })), [
    404,
    'USER_NOT_FOUND',
  ])
  const user = database.view(view => accounts.read(view, bob.userId))!
  await database.change(change =>
    accounts.put(change, bob.userId, { ...user, erasesAtMs: change.nowMs + DAY_MS }),
  )
  t.same(shortOf(await askById(house, ann, bob)), [404, 'USER_NOT_FOUND'])
  t.same(shortOf(await post(house, '/by-token', ann, { token: text })), [404, 'SHARE_TOKEN_NOT_FOUND'])
  await post(house, '', ann, { email: bob.email })
  await house.world.advance(0)
  t.same(house.told, [])
})

t.test('a message has at most 200 characters', async t => {
  const house = openContacts(t)
  const [ann, bob] = (await people(house, 'Ann', 'Bob')) as [TestUser, TestUser]
  const send = (message: string | null) => post(house, '/by-id', ann, { targetUserId: bob.userId, message })
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
  let house = openContacts(t, folder, { rates: true })
  const [ann, ...others] = (await people(
    house,
    'Ann',
    ...Array.from({ length: 60 }, (_, at) => `user ${at}`),
  )) as [TestUser, ...TestUser[]]
  const unknown = { userId: 5n as UserId } as TestUser
  for (const other of others.slice(0, 10)) t.equal((await askById(house, ann, other)).status, 201)
  for (let count = 0; count < 30; count++) await askById(house, ann, others[0]!)
  for (let count = 0; count < 9; count++) {
    t.same(shortOf(await askById(house, ann, unknown)), [404, 'USER_NOT_FOUND'])
  }
  t.equal((await askById(house, ann, others[10]!)).status, 201)
  await house.world.database.close()
  house = openContacts(t, folder, { rates: true })
  const refused = await askById(house, ann, others[11]!)
  t.match(refused, { status: 429, body: { code: 'RATE_LIMITED', retryIn: 180, scope: 'user' } })
  t.equal(refused.headers['ratelimit-policy'], '"user";q=20;w=3600')
  t.same(shortOf(await askById(house, ann, unknown)), [429, 'RATE_LIMITED'], 'nor is it told who there is')
  t.equal((await askById(house, ann, others[0]!)).status, 200, 'what stands is not refused')
  t.equal((await post(house, '', ann, { email: 'nobody@example.org' })).status, 202, 'searches count apart')
})

t.test('ten searches an hour, with or without a match', async t => {
  const house = openContacts(t, t.testdir(), { rates: true })
  const [ann, bob] = (await people(house, 'Ann', 'Bob')) as [TestUser, TestUser]
  for (let count = 0; count < 5; count++) {
    t.equal((await post(house, '', ann, { email: bob.email })).status, 202)
    t.equal((await post(house, '', ann, { email: 'nobody@example.org' })).status, 202)
  }
  for (const email of [bob.email, 'nobody@example.org']) {
    t.same(shortOf(await post(house, '', ann, { email })), [429, 'RATE_LIMITED'])
  }
  t.equal((await askById(house, ann, bob)).status, 201, 'the search did not count as a request')
})

t.test('a repeated request with its Idempotency-Key gets the first answer', async t => {
  const house = openContacts(t)
  const [ann, bob] = (await people(house, 'Ann', 'Bob')) as [TestUser, TestUser]
  const headers = { 'idempotency-key': 'k-1' }
  const body = { targetUserId: bob.userId }
  const first = await post(house, '/by-id', ann, body, headers)
  await post(house, '/cancel', ann, { requestId: first.body.requestId })
  const again = await post(house, '/by-id', ann, body, headers)
  t.same([again.status, again.text], [201, first.text])
})

t.test('also when the first one has used the share token up', async t => {
  const house = openContacts(t)
  const [ann, bob] = (await people(house, 'Ann', 'Bob')) as [TestUser, TestUser]
  const { text } = await shareTokenOf(house, bob, { maxUses: 1 })
  const headers = { 'idempotency-key': 'k-1' }
  const first = await post(house, '/by-token', ann, { token: text }, headers)
  const again = await post(house, '/by-token', ann, { token: text }, headers)
  t.same([again.status, again.text], [201, first.text])
})

t.test('a search names one thing to search by', async t => {
  const house = openContacts(t)
  const [ann] = (await people(house, 'Ann')) as [TestUser]
  const publicKeyHash = `${'A'.repeat(86)}==`
  for (const body of [{}, { email: 'a@b.co', phone: '+84912345678' }, { email: 'a@b.co', publicKeyHash }]) {
    t.match(await post(house, '', ann, body), {
      status: 422,
      body: { detail: 'the body has to name one of email, phone and publicKeyHash' },
    })
  }
})

t.test('lists are paged, newest first, and stay whole while they change', async t => {
  const house = openContacts(t)
  const [ann, ...others] = (await people(house, 'Ann', '0', '1', '2', '3', '4', '5')) as [
    TestUser,
    ...TestUser[],
  ]
  for (const other of others) {
    await askById(house, other, ann)
    if (other !== others[2]) await house.world.advance(1_000)
  }
  const page = async (query: string) =>
    (await house.send(`GET /app/api/friend-request?limit=2${query}`, { token: ann.token })).body
  const names = ({ items }: { items: readonly { user: { displayName: string } }[] }) =>
    items.map(({ user }) => user.displayName)
  const first = await page('')
  t.same(names(first), ['5', '4'])
  // The last one that was seen goes, and so does one to come; a new one comes in front.
  await post(house, '/decline', ann, { requestId: first.items[1].requestId })
  const second = await page(`&cursor=${first.nextCursor}`)
  t.same(names(second).sort(), ['2', '3'], 'two of one moment')
  await post(house, '/accept', ann, { userId: others[1]!.userId })
  const third = await page(`&cursor=${second.nextCursor}`)
  t.same(names(third), ['0'])
  t.notOk('nextCursor' in third)
  const badCursors = ['x', `${first.nextCursor}A`, first.nextCursor.slice(1), '%20']
  for (const cursor of badCursors) {
    const answer = await house.send(`GET /app/api/friend?cursor=${cursor}`, { token: ann.token })
    t.match(answer, { status: 422, body: { errors: [{ pointer: '/cursor' }] } })
  }
  for (const limit of ['0', '201', '-1', 'x']) {
    const answer = await house.send(`GET /app/api/friend?limit=${limit}`, { token: ann.token })
    t.match(answer, { status: 422, body: { errors: [{ pointer: '/limit' }] } })
  }
})
