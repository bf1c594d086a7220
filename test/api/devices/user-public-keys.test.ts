/** Whose keys a user reads (contract 2.5, `GET user/publicKeys`). */

import t, { type Test } from 'tap'
import type { ApiDeps } from '../../../src/api/deps.ts'
import { possessionChallenge } from '../../../src/domain/accounts/token.ts'
import { PRESENT_KEYS } from '../../../src/domain/contacts/friend-request.ts'
import type { UserId } from '../../../src/domain/ids.ts'
import { SignalError } from '../../../src/errors.ts'
import { newUser, type TestUser } from '../../support/application.ts'
import { listOf, newPhone, registrationOf } from '../../support/device-lists.ts'
import { newKey, registerDevice, twoDevices, WITH_LOG } from '../../support/device-requests.ts'
import { openTestApi } from '../../support/test-api.ts'

const INDEX_PROOF = {
  output_log_cp: 'bm90ZQ==',
  output_log_leaf: 'bGVhZg==',
  output_log_proof: [Array<number>(32).fill(7)],
  index_value: [],
  index_proof: '',
}

/** An application in which the users of `pairs` may read each other's keys. */
async function openForContacts(t: Test, pairs: [UserId, UserId][]) {
  const keysShown = (asker: UserId, owner: UserId) =>
    pairs.some(pair => pair.includes(asker) && pair.includes(owner) && asker !== owner)
      ? PRESENT_KEYS
      : undefined
  return openTestApi(t, { ...WITH_LOG, keysShown })
}

t.test('users read their own keys and permitted ones, and all the rest are unavailable alike', async t => {
  const pairs: [UserId, UserId][] = []
  const api = await openForContacts(t, pairs)
  const users: TestUser[] = []
  for (const name of ['Ann', 'Bob', 'Carol']) users.push(await newUser(api.world, name))
  const [ann, bob, carol] = users as [TestUser, TestUser, TestUser]
  pairs.push([ann.userId, bob.userId])
  const keys = new Map<UserId, object>()
  for (const user of [ann, bob, carol]) {
    const publicKey = newKey()
    const { vrfHash: _, ...registered } = (await registerDevice(api, user, publicKey)).body
    keys.set(user.userId, { ...registered, publicKey })
  }
  const ofUser = ({ userId }: TestUser, displayName: string) => ({
    userId: String(userId),
    displayName,
    devices: [keys.get(userId)],
  })
  const read = (query: string) => api.send(`GET /app/api/user/publicKeys${query}`, { token: ann.token })
  t.same((await read('')).body, { users: [ofUser(ann, 'Ann')], unavailable: [] })
  const ids = [bob.userId, carol.userId, 7n, ann.userId, bob.userId, 2n ** 64n - 1n].join()
  t.same((await read(`?userIds=${ids}`)).body, {
    users: [ofUser(bob, 'Bob'), ofUser(ann, 'Ann')],
    unavailable: [String(carol.userId), '7', '18446744073709551615'],
  })
})

t.test('of users without a list, and of them alone, it is proved that none is logged', async t => {
  const pairs: [UserId, UserId][] = []
  const asked: bigint[][] = []
  let meanwhile = async () => {}
  const proveAbsences: ApiDeps['proveAbsences'] = async userIds => {
    asked.push([...userIds])
    await meanwhile()
    return userId =>
      userIds.includes(userId) && userId !== hidden?.userId
        ? { deviceId: 0n, vrfHash: `hash of ${userId}`, vrfProof: 'proof', indexProof: INDEX_PROOF }
        : undefined
  }
  let hidden: TestUser | undefined
  const keysShown = (asker: UserId, owner: UserId) =>
    pairs.some(pair => pair.includes(asker) && pair.includes(owner)) ? PRESENT_KEYS : undefined
  const api = await openTestApi(t, { ...WITH_LOG, keysShown, proveAbsences })
  const [ann, bob, carol] = [await newUser(api.world), await newUser(api.world), await newUser(api.world)]
  pairs.push([ann.userId, bob.userId])
  const listFirst = async ({ userId, sessionId, token }: TestUser) => {
    const phone = newPhone('phone')
    const challenge = possessionChallenge(api.world.secrets.possession, sessionId)
    const body = registrationOf(phone, challenge, listOf(userId, [phone]))
    t.equal((await api.send('POST /app/api/register_device', { token, body })).status, 201)
  }
  const read = async () => {
    const path = `GET /app/api/user/publicKeys?userIds=${[ann, bob, carol, { userId: 7n }].map(({ userId }) => userId)}`
    const { status, body } = await api.send(path, { token: ann.token })
    t.equal(status, 200)
    return body.users.map((user: object) => [
      'absent' in user ? user.absent : undefined,
      'deviceList' in user,
    ])
  }
  const absentOf = ({ userId }: TestUser) => ({
    deviceId: '0',
    vrfHash: `hash of ${userId}`,
    vrfProof: 'proof',
    indexProof: INDEX_PROOF,
  })
  t.same(await read(), [
    [absentOf(ann), false],
    [absentOf(bob), false],
  ])
  t.same(asked.splice(0), [[ann.userId, bob.userId]], 'the hash of nobody else is proved')
  hidden = bob
  t.same((await read())[1], [undefined, false], 'where the index does not show it, it is not said')
  hidden = undefined
  meanwhile = () => listFirst(ann)
  t.same((await read())[0], [undefined, true], 'a list that comes meanwhile is shown')
  meanwhile = async () => {}
  asked.splice(0)
  t.same((await read())[0], [undefined, true])
  t.same(asked, [[bob.userId]])
})

t.test('a proof that can’t be made refuses the answer, which would else look like a lie', async t => {
  const proveAbsences = () => Promise.reject(new SignalError('OVERLOADED', 'ordered by the test'))
  const api = await openTestApi(t, { ...WITH_LOG, proveAbsences })
  const { token } = await newUser(api.world)
  const { status, body } = await api.send('GET /app/api/user/publicKeys', { token })
  t.same([status, body.code], [503, 'OVERLOADED'])
})

t.test('a removed device has no key to be read', async t => {
  const { api, ann, first, second } = await twoDevices(t)
  await api.send(`DELETE /app/api/devices/${second}`, { token: ann.token })
  const { body } = await api.send('GET /app/api/user/publicKeys', { token: ann.token })
  t.same(
    body.users[0].devices.map(({ deviceId }: { deviceId: string }) => deviceId),
    [first],
  )
})

t.test('keys as of a time are those of the devices of then, removed ones among them', async t => {
  const atMs = Date.UTC(2026, 0, 1) + 1_000
  const api = await openTestApi(t, { ...WITH_LOG, keysShown: () => ({ kind: 'as-of', atMs }) })
  const [ann, bob] = [await newUser(api.world, 'Ann'), await newUser(api.world, 'Bob')]
  const old: string[] = []
  for (let at = 0; at < 2; at++) old.push((await registerDevice(api, ann)).body.deviceId)
  const read = async () => {
    const path = `GET /app/api/user/publicKeys?userIds=${ann.userId}`
    return (await api.send(path, { token: bob.token })).body.users[0].devices
  }
  const before = await read()
  t.same(before.map(({ deviceId }: { deviceId: string }) => deviceId).sort(), old.toSorted())
  api.world.advance(2_000)
  await registerDevice(api, ann)
  await api.send(`DELETE /app/api/devices/${old[0]}`, { token: ann.token })
  t.same(await read(), before)
})

t.test('keys of 64 users at most are asked for at once', async t => {
  const api = await openTestApi(t, WITH_LOG)
  const { token } = await newUser(api.world)
  const read = (count: number) => {
    const ids = Array.from({ length: count }, (_, at) => at + 1)
    return api.send(`GET /app/api/user/publicKeys?userIds=${ids.join()}`, { token })
  }
  t.equal((await read(64)).body.unavailable.length, 64)
  t.same([(await read(65)).status, (await read(65)).body.code], [422, 'VALIDATION_FAILED'])
  const bad = await api.send('GET /app/api/user/publicKeys?userIds=1,x', { token })
  t.same([bad.status, bad.body.errors[0].pointer], [422, '/userIds/1'])
})

t.test('600 ids that lead to no keys are tried in an hour', async t => {
  const api = await openTestApi(t, { ...WITH_LOG, rates: true })
  const { token } = await newUser(api.world)
  const read = async (count: number) => {
    const ids = Array.from({ length: count }, (_, at) => at + 1)
    const answer = await api.send(`GET /app/api/user/publicKeys?userIds=${ids.join()}`, { token })
    return answer.status
  }
  for (let count = 0; count < 10; count++) t.equal(await read(60), 200)
  t.equal(await read(1), 429)
  t.equal(
    (await api.send('GET /app/api/user/publicKeys', { token })).status,
    200,
    'one’s own are read all the same',
  )
  api.world.advance(6_000)
  t.equal(await read(1), 200)
})

t.test('keys are read 120 times a minute', async t => {
  const api = await openTestApi(t, { ...WITH_LOG, rates: true })
  const { token } = await newUser(api.world)
  const statuses = new Map<number, number>()
  for (let count = 0; count < 121; count++) {
    const { status } = await api.send('GET /app/api/user/publicKeys', { token })
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
  }
  t.same(Object.fromEntries(statuses), { 200: 120, 429: 1 })
})
