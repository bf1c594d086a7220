/** `GET user` shows every change that was acknowledged, whichever way it came, though its answer is kept in between. */

import t, { type Test } from 'tap'
import { userView } from '../../../src/api/accounts/user-view.ts'
import type { LoginMethod } from '../../../src/domain/accounts/account.ts'
import { type CallId, type DeviceId, type MethodId, newId } from '../../../src/domain/ids.ts'
import { formatJson } from '../../../src/schema/json.ts'
import { newDevice, newDeviceList, newSession, newUser, type TestUser } from '../../support/application.ts'
import { historyEffect } from '../../support/history-effect.ts'
import { randomFrom, seedOf } from '../../support/seed.ts'
import { openTestApi, type TestApi } from '../../support/test-api.ts'

const DAY_MS = 86_400_000

interface Person extends TestUser {
  /** Their first device, which `token` is of. */
  readonly deviceId: DeviceId
  /** Sessions by the device that they are bound to. */
  readonly tokens: Map<DeviceId | undefined, string>
}

async function newPerson({ world }: TestApi, name: string): Promise<Person> {
  const user = await newUser(world, name)
  const { deviceId } = await newDevice(world, user.userId)
  const { token } = await newSession(world, user.userId)
  return {
    ...user,
    deviceId,
    tokens: new Map([
      [undefined, token],
      [deviceId, user.token],
    ]),
  }
}

async function addDevice({ world }: TestApi, { userId, tokens }: Person): Promise<DeviceId> {
  const { deviceId } = await newDevice(world, userId)
  tokens.set(deviceId, (await newSession(world, userId, deviceId)).token)
  return deviceId
}

/** A list of the first device alone; where there is one, it goes. */
async function list({ world, stores }: TestApi, { userId, deviceId }: Person): Promise<void> {
  const { database } = world
  if (database.view(view => stores.deviceLists.newest(view, userId)) === undefined)
    await newDeviceList(world, userId, [deviceId])
  else await database.change(change => stores.deviceLists.eraseOf(change, userId))
}

async function addMethod({ world, stores }: TestApi, { userId }: Person): Promise<void> {
  const id = newId(world.randomBytes) as MethodId
  const key = `${id}@example.org`
  const at = { addedAtMs: world.nowMs(), lastUsedAtMs: world.nowMs() }
  const method: LoginMethod = { id, kind: 'email', key, shown: key, ...at }
  await world.database.change(change => stores.accounts.putMethod(change, userId, method))
}

async function missCall({ world, stores }: TestApi, { userId }: Person): Promise<void> {
  const missed = {
    callId: newId(world.randomBytes) as CallId,
    createdAtMs: world.nowMs(),
    status: 'missed',
  } as const
  await world.database.change(change => stores.history.put(change, historyEffect(userId, missed)))
}

async function ask({ send }: TestApi, sender: Person, receiver: Person): Promise<void> {
  const link = await send('POST /app/api/share-token', { token: receiver.token, body: {} })
  const body = { token: link.body.token }
  await send('POST /app/api/friend-request/by-token', { token: sender.token, body })
}

/** The answer without a cache. */
function viewOf({ stores, world }: TestApi, { userId }: Person, deviceId: DeviceId | undefined) {
  return formatJson(
    world.database.view(view => userView(view, stores, userId, deviceId)),
    'string',
  )
}

/** The people with wrong answers. */
async function stale(whole: TestApi, people: readonly Person[]): Promise<string[]> {
  const found: string[] = []
  for (const person of people) {
    for (const [deviceId, token] of person.tokens) {
      const { status, text } = await whole.send('GET /app/api/user', { token })
      if (status !== 200 || text !== viewOf(whole, person, deviceId)) found.push(`${status} ${text}`)
    }
  }
  return found
}

/** Changes by every path; each may be refused. */
const CHANGES: Readonly<Record<string, (whole: TestApi, one: Person, other: Person) => Promise<unknown>>> = {
  rename: ({ send, world }, { token }) =>
    send('PUT /app/api/user', { token, body: { displayName: `Ann ${newId(world.randomBytes)}` } }),
  set: ({ send, world }, { token }) => {
    const discoverableByEmail = world.randomBytes(1)[0]! < 128
    return send('PUT /app/api/user', { token, body: { settings: { discoverableByEmail } } })
  },
  'add a method': addMethod,
  'remove the oldest method': ({ send, stores, world }, { token, userId }) => {
    const [oldest] = world.database.view(view => stores.accounts.methodsOf(view, userId))
    return send(`DELETE /app/api/user/login-methods/${oldest?.id}`, { token })
  },
  'make the newest method the primary one': ({ send, stores, world }, { token, userId }) => {
    const id = world.database.view(view => stores.accounts.methodsOf(view, userId)).at(-1)?.id
    return send('PUT /app/api/user/login-methods/primary', { token, body: { id } })
  },
  'add a device': (whole, one) => (one.tokens.size < 5 ? addDevice(whole, one) : Promise.resolve()),
  async 'remove a device'({ send }, { token, tokens, deviceId: first }) {
    const deviceId = [...tokens.keys()].at(-1)
    if (deviceId === first) return
    await send(`DELETE /app/api/devices/${deviceId}`, { token })
    tokens.delete(deviceId)
  },
  'list the first device, or no longer': list,
  'ask somebody': ask,
  accept: ({ send }, { userId }, { token }) =>
    send('POST /app/api/friend-request/accept', { token, body: { userId } }),
  decline: ({ send }, { userId }, { token }) =>
    send('POST /app/api/friend-request/decline', { token, body: { userId } }),
  cancel: ({ send }, { token }, { userId }) =>
    send('POST /app/api/friend-request/cancel', { token, body: { userId } }),
  'remove a contact': ({ send }, { token }, { userId }) =>
    send(`DELETE /app/api/friend/${userId}`, { token }),
  block: ({ send }, { token }, { userId }) => send('POST /app/api/block', { token, body: { userId } }),
  unblock: ({ send }, { token }, { userId }) => send(`DELETE /app/api/block/${userId}`, { token }),
  'miss a call': missCall,
  'forget the calls': ({ send }, { token }) => send('DELETE /app/api/call/history', { token }),
}

async function openPeople(t: Test) {
  const whole = await openTestApi(t)
  const people = [await newPerson(whole, 'Ann'), await newPerson(whole, 'Bob'), await newPerson(whole, 'Cy')]
  return { whole, people }
}

t.test('after any change the next answers are what the store has, for all and on all devices', async t => {
  const { whole, people } = await openPeople(t)
  const seed = seedOf()
  const random = randomFrom(seed)
  const pick = <Value>(values: readonly Value[]): Value => values[Math.floor(random() * values.length)]!
  const played: string[] = []
  for (let step = 0; step < STEPS; step++) {
    const [one, other] = [pick(people), pick(people)]
    const name = pick(Object.keys(CHANGES))
    played.push(name)
    const change = CHANGES[name]!(whole, one, other)
    // A reader asks all the while, so that there is always an answer to keep.
    let isOver = false
    const over = change.finally(() => {
      isOver = true
    })
    do {
      await whole.send('GET /app/api/user', { token: one.token })
      await new Promise(resolve => setImmediate(resolve))
    } while (!isOver)
    await over
    const found = await stale(whole, people)
    if (found.length > 0) {
      t.same(found, [], `seed ${seed}: ${played.slice(-5).join(', ')}`)
      return
    }
  }
  t.ok(new Set(played).size > STEPS / 10, 'most changes were made')
})

t.test('a friend request is counted when it comes, and not when it has ended by time alone', async t => {
  const { whole, people } = await openPeople(t)
  const [ann, bob] = people as [Person, Person]
  t.same(await stale(whole, people), [], 'all answers are kept from now on')
  await ask(whole, bob, ann)
  const later = whole.world.nowMs() + 60 * DAY_MS
  t.match((await whole.send('GET /app/api/user', { token: ann.token })).body.badge, { friendRequests: 1 })
  whole.world.tick(later - whole.world.nowMs())
  const { token } = await newSession(whole.world, ann.userId, ann.deviceId)
  t.match((await whole.send('GET /app/api/user', { token })).body.badge, { friendRequests: 0 })
})

t.test('a device is shown once it is there, also to a session that was bound to it before', async t => {
  const { whole, people } = await openPeople(t)
  const { world, send } = whole
  const { userId } = people[0]!
  const deviceId = newId(world.randomBytes) as DeviceId
  const { token } = await newSession(world, userId, deviceId)
  t.equal((await send('GET /app/api/user', { token })).body.device, undefined)
  const device = await newDevice(world, userId, false)
  await world.database.change(change => world.devices.put(change, userId, { ...device, deviceId }))
  t.match((await send('GET /app/api/user', { token })).body.device, { deviceId: String(deviceId) })
})

t.test('who was erased, signed out or lost their device has no answer any more', async t => {
  const { whole, people } = await openPeople(t)
  const [ann, bob, cy] = people as [Person, Person, Person]
  const code = async ({ token }: { token: string | undefined }) =>
    (await whole.send('GET /app/api/user', { token: token! })).body.code
  t.same(await stale(whole, people), [], 'all answers are kept from now on')
  await whole.send('DELETE /app/api/user', { token: ann.token, body: { confirm: true } })
  for (const token of ann.tokens.values()) t.equal(await code({ token }), 'SESSION_REVOKED')
  await whole.send('POST /app/api/logout', { token: bob.token, body: {} })
  t.match(await code(bob), /^(SESSION_REVOKED|TOKEN_INVALID)$/)
  const device = await addDevice(whole, cy)
  await whole.send(`DELETE /app/api/devices/${device}`, { token: cy.token })
  t.equal(await code({ token: cy.tokens.get(device) }), 'SESSION_REVOKED')
  await whole.world.database.change(change => whole.stores.accounts.remove(change, cy.userId))
  t.equal(await code(cy), 'USER_NOT_FOUND')
})

const STEPS = 150
