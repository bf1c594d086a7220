/** Users of the server API: made by the backend's id, changed, found, followed, signed out, erased. */

import t, { type Test } from 'tap'
import type { UserId } from '../../../src/domain/ids.ts'
import { newDevice, newSession, newUser } from '../../support/application.ts'
import { openServerApi } from '../../support/server-api.ts'
import { openTestApi } from '../../support/test-api.ts'

const PATH = '/server/api/v1/users'
const DAY_MS = 86_400_000

async function open(t: Test) {
  const whole = await openTestApi(t)
  const { send } = await openServerApi(whole)
  const at = (ref: string) => `${PATH}/${encodeURIComponent(ref)}`
  return {
    ...whole,
    server: send,
    put: (ref: string, body: object = {}) => send(`PUT ${at(ref)}`, { body }),
    get: (ref: string, rest = '') => send(`GET ${at(ref)}${rest}`),
    audited: () => {
      const { world } = whole
      return world.database
        .view(view => world.auditLog.read(view, { sinceMs: 0, limit: 100 }))
        .map(({ operation, target }) => `${operation} ${target}`)
        .reverse()
    },
  }
}

t.test('a user is made by the backend’s id, once, and is there for the app', async t => {
  const { put, get, audited, world } = await open(t)
  const body = {
    displayName: ' Ann  Lee ',
    email: 'Ann@Example.org',
    phone: '+84 912 345 678',
    reachable: 'all',
  }
  const made = await put('ext:7/ü?#%', body)
  t.equal(made.status, 201)
  t.match(made.body, {
    externalId: '7/ü?#%',
    displayName: 'Ann Lee',
    state: 'active',
    email: 'Ann@Example.org',
    phone: '+84912345678',
    reachable: 'all',
    ownsSignIn: false,
    loginMethods: [],
  })
  const { userId } = made.body
  t.match(await put('ext:7/ü?#%', body), { status: 200, body: made.body })
  t.same((await get(`id:${userId}`)).body, made.body)
  t.same(audited(), [`putUser id:${userId}`], 'said again, nothing was changed')
  const user = world.database.view(view => world.accounts.read(view, userId))
  t.match(user, {
    isMadeByServer: true,
    settings: { callsFromContactsOnly: false, discoverableByEmail: true, discoverableByPhone: true },
  })
  t.match((await put('ext:8')).body, { displayName: 'User', reachable: 'contacts' })
  t.match((await put('ext:9', { email: 'bob@example.org' })).body, { displayName: 'bob' })
  t.equal((await put('id:4294967297')).body.code, 'USER_NOT_FOUND', 'by the server’s id none is made')
})

t.test('a member left out stays, an empty one goes', async t => {
  const { put, get } = await open(t)
  await put('ext:ann', { displayName: 'Ann', email: 'ann@example.org', phone: '+84912345678' })
  const { body } = await put('ext:ann', { email: '', reachable: 'all' })
  t.match(body, { displayName: 'Ann', phone: '+84912345678', reachable: 'all' })
  t.notOk('email' in body)
  t.notOk('phone' in (await put(`id:${body.userId}`, { phone: '', externalId: '' })).body)
  t.equal((await get('ext:ann')).body.code, 'USER_NOT_FOUND')
  t.equal((await put(`id:${body.userId}`, { externalId: 'ann-2' })).body.externalId, 'ann-2')
  t.equal((await get('ext:ann-2')).body.userId, body.userId)
})

t.test('a bad reference, name, address or external id is refused as in the app', async t => {
  const { put, get, world } = await open(t)
  for (const ref of ['7', 'id:x', 'ext:', `ext:${'é'.repeat(129)}`])
    for (const answer of [await put(ref), await get(ref), await get(ref, '/sessions')])
      t.match(answer.body, { code: 'VALIDATION_FAILED', errors: [{ pointer: '/ref' }] }, ref)
  const cases: [object, string][] = [
    [{ displayName: 'Ann\nLee' }, '/displayName'],
    [{ displayName: '' }, '/displayName'],
    [{ email: 'ann' }, '/email'],
    [{ phone: '123' }, '/phone'],
    [{ phone: '+442079460000' }, '/phone'],
    [{ reachable: 'nobody' }, '/reachable'],
    [{ externalId: 'another' }, '/externalId'],
  ]
  for (const [body, pointer] of cases)
    t.match((await put('ext:ann', body)).body, { code: 'VALIDATION_FAILED', errors: [{ pointer }] }, pointer)
  t.equal((await put('ext:ann', { phone: '+850 192 123 4567' })).body.code, 'BLOCKED_COUNTRY')
  t.match((await put('ext:ann', { phone: '0912345678', country: 'VN' })).body, { phone: '+84912345678' })
  const { userId } = (await put('ext:ann')).body
  const long = await put(`id:${userId}`, { externalId: 'x'.repeat(257) })
  t.match(long.body, { errors: [{ pointer: '/externalId' }] })
  t.equal(
    world.database.view(view => world.accounts.list(view, { limit: 10 })).length,
    1,
    'and none was made',
  )
})

t.test('an address by which another account signs in is not taken', async t => {
  const { put, world, audited } = await open(t)
  const ann = await newUser(world, 'Ann', 'ann@example.org')
  for (const ref of ['ext:new', 'ext:new']) {
    const { status, body } = await put(ref, { email: 'ANN@example.org' })
    t.same([status, body.code], [409, 'METHOD_IN_USE'])
  }
  t.same(audited(), [])
  const own = await put(`id:${ann.userId}`, { email: 'ann@example.org', externalId: 'ann' })
  t.match(own, { status: 200, body: { email: 'ann@example.org', externalId: 'ann', ownsSignIn: true } })
  t.equal((await put('ext:new', { email: 'home@example.org' })).status, 201)
  t.equal(
    (await put('ext:other', { email: 'home@example.org' })).status,
    201,
    'what nobody has proven may be two’s',
  )
  const taken = await put(`id:${ann.userId}`, { externalId: 'new' })
  t.same([taken.status, taken.body.code], [409, 'EXTERNAL_ID_IN_USE'])
})

t.test('contact data opens no sign-in, and no other user finds a person by it', async t => {
  const { put, get, send, codeLogin, world } = await open(t)
  const { userId } = (await put('ext:ann', { email: 'ann@example.org' })).body
  const { body } = await codeLogin('ann@example.org')
  t.not(body.user.userId, userId, 'who proves the address gets an account of their own')
  t.match((await get('ext:ann')).body, { ownsSignIn: false, loginMethods: [] })
  const bob = await newUser(world, 'Bob')
  const cid = BigInt((await put('ext:cid', { email: 'cid@example.org' })).body.userId) as UserId
  const search = { token: bob.token, body: { email: 'cid@example.org' } }
  await send('POST /app/api/friend-request', search)
  await world.advance(60_000)
  const badge = world.database.view(view => world.contacts.badgeOf(view, cid, world.nowMs()))
  t.equal(badge.friendRequests, 0)
})

t.test('a changed name reaches the user’s devices and contacts', async t => {
  const { put, world, told } = await open(t)
  const ann = await newUser(world)
  await put(`id:${ann.userId}`, { displayName: 'Ann', reachable: 'contacts', email: 'x@example.org' })
  t.same(told, [], 'contact data is nothing that an app shows')
  await put(`id:${ann.userId}`, { displayName: 'Dr. Ann Lee' })
  t.match(told, [{ userId: ann.userId, body: { kind: 'profile_changed' } }])
  const { body } = await put(`id:${ann.userId}`, { reachable: 'all' })
  t.equal(body.reachable, 'contacts', 'the setting of a user who signs in by themselves is their own')
  t.equal(told.length, 1)
})

t.test('users are listed whole, page by page, and by an address', async t => {
  const { put, server, world } = await open(t)
  const ids = new Set<string>()
  for (let count = 0; count < 5; count++)
    ids.add((await put(`ext:${count}`, { email: 'all@example.org' })).body.userId)
  const proven = await newUser(world, 'Bob', 'bob@example.org')
  for (const [query, expected] of [
    ['', [...ids, `${proven.userId}`]],
    ['&email=ALL%40example.org', [...ids]],
    ['&email=bob@example.org', [`${proven.userId}`]],
    ['&email=nobody@example.org', []],
    ['&phone=%2B84912345678', []],
  ] as const) {
    const found: string[] = []
    let cursor = ''
    do {
      const { body } = await server(`GET ${PATH}?limit=2${query}${cursor}`)
      t.ok(body.items.length <= 2)
      found.push(...body.items.map((each: { userId: string }) => each.userId))
      cursor = body.nextCursor === undefined ? '' : `&cursor=${body.nextCursor}`
    } while (cursor !== '')
    t.same(
      found,
      expected.toSorted((a, b) => (BigInt(a) < BigInt(b) ? -1 : 1)),
      query,
    )
  }
  const late = await newUser(world, 'Eve', 'eve@example.org')
  await put('ext:0', { email: 'eve@example.org' })
  const both = await server(`GET ${PATH}?email=eve@example.org`)
  t.same(
    both.body.items.map((each: { userId: string }) => each.userId),
    [`${late.userId}`],
  )
  for (const query of ['email=a', 'phone=1', 'email=a@b.co&phone=%2B84912345678', 'cursor=x', 'limit=0'])
    t.equal((await server(`GET ${PATH}?${query}`)).body.code, 'VALIDATION_FAILED', query)
})

t.test('an address finds the user who proved it, and all users who have it as contact data', async t => {
  const { put, server, world, codeLogin } = await open(t)
  const said: string[] = []
  for (let count = 0; count < 3; count++)
    said.push((await put(`ext:${count}`, { email: 'x@example.org' })).body.userId)
  const owner = (await codeLogin('x@example.org')).body.user.userId
  const expected = [...said, owner].sort((a, b) => (BigInt(a) < BigInt(b) ? -1 : 1))
  const found: string[] = []
  let cursor = ''
  do {
    const { body } = await server(`GET ${PATH}?limit=1&email=x@example.org${cursor}`)
    found.push(...body.items.map((each: { userId: string }) => each.userId))
    cursor = body.nextCursor === undefined ? '' : `&cursor=${body.nextCursor}`
  } while (cursor !== '')
  t.same(found, expected)
  t.ok(world)
})

t.test('changes are followed from the last time on', async t => {
  const { put, server, world } = await open(t)
  const changes = async (query = '') => (await server(`GET ${PATH}/changes${query}`)).body
  t.same(await changes(), { items: [], next: 0, hasMore: false })
  const ann = (await put('ext:ann', { displayName: 'Ann' })).body.userId
  await put('ext:bob', { displayName: 'Bob' })
  await put('ext:ann', { displayName: 'Ann Lee' })
  const first = await changes('?limit=1')
  t.match(first, { items: [{ state: 'active', user: { externalId: 'bob' } }], next: 2, hasMore: true })
  const second = await changes(`?since=${first.next}&limit=1`)
  t.match(second, { items: [{ userId: ann, user: { displayName: 'Ann Lee' } }], next: 3, hasMore: false })
  t.same(await changes(`?since=${second.next}`), { items: [], next: 3, hasMore: false })
  await server(`DELETE ${PATH}/ext:ann`)
  t.match(await changes('?since=3'), { items: [{ userId: ann, state: 'ending' }], next: 4 })
  await world.advance(7 * DAY_MS)
  const { items } = await changes('?since=4')
  t.same(Object.keys(items[0]).sort(), ['changedAt', 'state', 'userId'], 'of an erased user the id alone')
  t.match(items, [{ userId: ann, state: 'erased' }])
  await world.advance(30 * DAY_MS)
  t.same((await changes('?since=4')).items, [])
  t.match(await changes('?since=6'), { code: 'VALIDATION_FAILED', errors: [{ pointer: '/since' }] })
  await put('ext:cid')
  t.match(await changes('?since=5'), { items: [{ user: { externalId: 'cid' } }], next: 6 })
})

t.test('an account ends in seven days, in which it is found and may be kept', async t => {
  const { server, put, get, codeLogin, send, audited } = await open(t)
  const { body } = await codeLogin('ann@example.org')
  const { userId } = body.user
  await put(`id:${userId}`, { externalId: 'ann' })
  const ended = await server(`DELETE ${PATH}/ext:ann`)
  t.equal(ended.status, 202)
  t.match((await get('ext:ann')).body, { state: 'ending', erasesAt: ended.body.erasesAt })
  t.same(await server(`DELETE ${PATH}/ext:ann`), ended, 'asked for again, it stays as it was')
  t.equal((await send('GET /app/api/user', { token: body.accessToken })).status, 401)
  t.equal(
    (await put('ext:ann', { displayName: 'Ann Lee' })).body.state,
    'ending',
    'it can be changed, and ends',
  )
  t.same(
    audited(),
    ['putUser', 'deleteUser', 'putUser'].map(operation => `${operation} id:${userId}`),
  )
  t.equal((await codeLogin('ann@example.org')).body.user.userId, userId)
  t.match((await get('ext:ann')).body, { state: 'active' })
  t.equal((await server(`DELETE ${PATH}/ext:nobody`)).body.code, 'USER_NOT_FOUND')
})

t.test('an account ends at once, for good, and its external id is free', async t => {
  const { server, put, get, codeLogin, advance, letters, world } = await open(t)
  const { body } = await codeLogin('ann@example.org')
  await put(`id:${body.user.userId}`, { externalId: 'ann' })
  await letters()
  await server(`DELETE ${PATH}/ext:ann`)
  t.same(await letters(), ['mail ann@example.org erasure-planned'])
  t.equal((await server(`DELETE ${PATH}/ext:ann?now=true`)).status, 202, 'also during the days of grace')
  t.same(await letters(), [], 'nothing that speaks of seven days')
  await advance(1)
  t.equal((await get('ext:ann')).body.code, 'USER_NOT_FOUND')
  t.equal((await get(`id:${body.user.userId}`)).body.code, 'USER_NOT_FOUND')
  t.equal((await put('ext:ann')).status, 201)
  t.match((await codeLogin('ann@example.org')).body, { isNewUser: true })
  t.ok(world)
})

t.test('a sign-in that comes between the request and the erasure restores nothing', async t => {
  const { server, get, codeLogin, advance } = await open(t)
  const { userId } = (await codeLogin('ann@example.org')).body.user
  await server(`DELETE ${PATH}/id:${userId}?now=true`)
  await codeLogin('ann@example.org')
  await advance(1)
  t.equal((await get(`id:${userId}`)).body.code, 'USER_NOT_FOUND')
})

t.test('sessions and devices are seen, and all sessions end', async t => {
  const { server, get, world, send, told, audited } = await open(t)
  const ann = await newUser(world)
  const device = await newDevice(world, ann.userId)
  world.tick(1_000)
  const { token } = await newSession(world, ann.userId, device.deviceId)
  const ref = `id:${ann.userId}`
  t.match((await get(ref, '/sessions')).body.items, [
    { proof: 'otp', device: { deviceId: `${device.deviceId}` } },
    { userAgent: 'test' },
  ])
  t.match((await get(ref, '/devices')).body.items, [
    { deviceId: `${device.deviceId}`, publicKeyHash: device.publicKeyHash },
  ])
  t.same((await get(ref, '/calls')).body, { items: [] })
  t.equal((await server(`POST ${PATH}/${ref}/sign-out`)).status, 204)
  for (const each of [token, ann.token])
    t.match((await send('GET /app/api/user', { token: each })).body, { code: 'SESSION_REVOKED' })
  t.same((await get(ref, '/sessions')).body, { items: [] })
  t.equal((await get(ref, '/devices')).body.items.length, 1, 'the device stays')
  t.match(told.at(-1), { body: { kind: 'session_revoked', reason: 'logged_out_everywhere' } })
  t.same(audited(), [`signOutUser ${ref}`])
  for (const path of ['sessions', 'devices', 'calls'])
    t.equal((await get('ext:nobody', `/${path}`)).body.code, 'USER_NOT_FOUND', path)
  t.equal((await server(`POST ${PATH}/ext:nobody/sign-out`)).body.code, 'USER_NOT_FOUND')
})
