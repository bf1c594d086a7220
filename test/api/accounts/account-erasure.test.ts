import t from 'tap'
import { newDevice, newSession, newUser, prove } from '../../support/application.ts'
import { storedTable } from '../../support/stored-table.ts'
import { openTestApi, type TestApi } from '../../support/test-api.ts'

const DAY_MS = 86_400_000

/** The tables that hold one of the texts, or the id in a key or a value, which is the same 8 bytes in both. */
function tablesWith({ world }: TestApi, userId: bigint, texts: readonly string[]): string[] {
  const id = Buffer.alloc(8)
  id.writeBigUInt64BE(userId)
  const needles = [id, ...texts.map(text => Buffer.from(text))]
  return world.database.tableNames().filter(name => {
    const rows = world.database.view(view => [...view.range(storedTable(name))])
    const bytes = Buffer.concat(rows.flatMap(({ key, value }) => [Buffer.from(key), Buffer.from(value)]))
    return needles.some(needle => bytes.includes(needle))
  })
}

async function deleteUser({ world, send }: TestApi, token: string) {
  await prove(world, token)
  return send('DELETE /app/api/user', { token, body: { confirm: true } })
}

t.test('an account is not deleted by the way', async t => {
  const api = await openTestApi(t)
  const { token, userId } = await newUser(api.world, 'Ann')
  for (const body of [{}, { confirm: false }, { confirm: 'true' }, { confirm: null }]) {
    const answer = await api.send('DELETE /app/api/user', { token, body })
    t.match(answer, { status: 422, body: { code: 'VALIDATION_FAILED' } })
  }
  t.equal(api.world.database.view(view => api.world.accounts.read(view, userId))?.erasesAtMs, undefined)
})

t.test('it ends every session at once and says when the account is gone', async t => {
  const api = await openTestApi(t)
  const ann = await newUser(api.world, 'Ann', 'ann@example.org')
  const other = await newSession(api.world, ann.userId)
  t.match(await deleteUser(api, ann.token), { status: 202, body: { erasesAt: '2026-01-08T00:00:00.000Z' } })
  for (const token of [ann.token, other.token]) {
    const answer = await api.send('GET /app/api/user', { token })
    t.match(answer, { status: 401, body: { code: 'SESSION_REVOKED' } })
  }
  t.same(await api.letters(), ['mail ann@example.org erasure-planned'])
})

t.test('the other devices hear of it, in their last push', async t => {
  const api = await openTestApi(t)
  const { world } = api
  const { userId } = await newUser(world, 'Ann', 'ann@example.org')
  const [mine, other] = [await newDevice(world, userId), await newDevice(world, userId)]
  const { token } = await newSession(world, userId, mine.deviceId)
  await deleteUser(api, token)
  const pushes = (await world.takeSent()).filter(({ channel }) => channel === 'push')
  t.match(pushes, [
    {
      deviceId: other.deviceId,
      lastTokens: other.push,
      notice: { kind: 'session_revoked', reason: 'account_deleted' },
    },
  ])
  t.equal(pushes.length, 1, 'and not the one that asked')
  t.same(
    world.database.view(view => world.devices.activeDevicesOf(view, userId)).map(({ push }) => push),
    [undefined, undefined],
  )
})

t.test('a refresh token of before restores nothing', async t => {
  const api = await openTestApi(t)
  const { body } = await api.codeLogin('ann@example.org')
  await deleteUser(api, body.accessToken)
  const refreshed = await api.send('POST /app/api/refresh-token', {
    body: { refreshToken: body.refreshToken },
  })
  t.match(refreshed, { status: 401, body: { code: 'REFRESH_TOKEN_INVALID' } })
  await api.world.advance(7 * DAY_MS)
  t.match((await api.codeLogin('ann@example.org')).body, { isNewUser: true })
})

t.test('signing in within seven days restores it as it was', async t => {
  const api = await openTestApi(t)
  const { body } = await api.codeLogin('ann@example.org')
  await deleteUser(api, body.accessToken)
  await api.world.advance(7 * DAY_MS - 1)
  const back = await api.codeLogin('ann@example.org')
  t.match(back.body, { isNewUser: false, user: { userId: body.user.userId } })
  await api.world.advance(30 * DAY_MS)
  t.equal((await api.codeLogin('ann@example.org')).body.user.userId, body.user.userId)
})

t.test('a code that was only sent restores nothing', async t => {
  const api = await openTestApi(t)
  const { body } = await api.codeLogin('ann@example.org')
  await deleteUser(api, body.accessToken)
  await api.send('POST /app/api/login', { body: { email: 'ann@example.org' } })
  await api.world.advance(7 * DAY_MS)
  t.match((await api.codeLogin('ann@example.org')).body, { isNewUser: true })
})

t.test('in the days between its addresses are still taken', async t => {
  const api = await openTestApi(t)
  const ann = await newUser(api.world, 'Ann', 'ann@example.org')
  await deleteUser(api, ann.token)
  await api.letters()
  const eve = await newUser(api.world, 'Eve')
  await api.send('PUT /app/api/user', { token: eve.token, body: { email: 'ann@example.org' } })
  t.same(await api.letters(), ['mail ann@example.org address-tried'])
})

t.test('after that nothing in the store names the user', async t => {
  const api = await openTestApi(t, { identities: 'with Apple key' })
  const { world } = api
  const [ann, bob] = [await newUser(world, 'Ann Aardvark', 'ann@example.org'), await newUser(world, 'Bob')]
  const device = await newDevice(world, ann.userId)
  const { token } = await newSession(world, ann.userId, device.deviceId)
  const social = {
    kind: 'social',
    provider: 'apple',
    idToken: await api.identities.appleToken('ann-at-apple', { email: 'ann@example.com' }),
    authorizationCode: api.identities.appleCode('ann-at-apple'),
  }
  await api.send('POST /app/api/user/login-methods', { token, body: social })
  await api.send('PUT /app/api/user', { token, body: { phone: '+84912345678' } })
  await deleteUser(api, token)
  const texts = [
    'Ann Aardvark',
    'ann@example.org',
    'ann@example.com',
    'ann-at-apple',
    '+84912345678',
    device.publicKey,
  ]
  t.ok(tablesWith(api, ann.userId, texts).length >= 5, 'until then it does')
  await world.advance(7 * DAY_MS)
  t.ok((await api.letters()).includes('apple org.example.callsign'), 'Apple is told to forget, too')
  t.same(
    tablesWith(api, ann.userId, texts),
    ['user-changes', 'user-changes-by-user'],
    'the id alone, for backends that follow changes',
  )
  await world.advance(30 * DAY_MS)
  t.same(tablesWith(api, ann.userId, texts), [])
  t.ok(tablesWith(api, bob.userId, []).includes('users'), 'and Bob is still here')
})

t.test('what other parts hold of the user is erased in the same change', async t => {
  const erased = new Set<bigint>()
  const api = await openTestApi(t)
  api.world.contacts.eraseOf = (_, userId) => void erased.add(userId)
  const ann = await newUser(api.world, 'Ann')
  await deleteUser(api, ann.token)
  await api.world.advance(7 * DAY_MS)
  t.same([...erased], [ann.userId])
})
