/** `GET user/export`: the whole of an account, for its user alone, after a proof. */

import t from 'tap'
import { newDevice, newUser, prove } from '../../support/application.ts'
import { askById, befriend, people, shareTokenOf } from '../../support/contact-requests.ts'
import { openTestApi } from '../../support/test-api.ts'

const EXPORT = 'GET /app/api/user/export'

t.test('it has what each list shows, and nothing else of other people, and no secret', async t => {
  const api = await openTestApi(t)
  const [ann, bob, cat, dan, eve] = await people(api, 'Ann', 'Bob', 'Cat', 'Dan', 'Eve')
  const { deviceId } = await newDevice(api.world, ann!.userId)
  await newDevice(api.world, bob!.userId)
  const { token } = ann!
  await befriend(api, ann!, bob!)
  await askById(api, cat!, ann!)
  await askById(api, ann!, dan!)
  await api.send('POST /app/api/block', { token, body: { userId: eve!.userId } })
  const link = await shareTokenOf(api, ann!)
  const body = { calleeIds: [bob!.userId], encryptedAESKeys: {}, isVideo: false }
  const bobs = api.world.database.view(view => api.world.devices.activeDevicesOf(view, bob!.userId))
  const key = Buffer.alloc(113, 1).toString('base64')
  const started = await api.send('POST /app/api/call/start', {
    token,
    body: { ...body, encryptedAESKeys: { [`${bob!.userId}_${bobs[0]!.deviceId}`]: key } },
  })
  t.equal(started.status, 201)
  await api.send('POST /app/api/call/end', { token, body: { callId: started.body.callId } })
  const { status, body: exported, text } = await api.send(EXPORT, { token })
  t.equal(status, 200)
  t.match(exported, {
    exportedAt: '2026-01-01T00:00:00.000Z',
    user: { userId: String(ann!.userId), email: ann!.email, loginMethods: [{ value: ann!.email }] },
    devices: [{ deviceId: String(deviceId) }],
    contacts: [{ userId: String(bob!.userId), displayName: 'Bob' }],
    incomingRequests: [{ user: { displayName: 'Cat' } }],
    outgoingRequests: [{ user: { displayName: 'Dan' } }],
    blocks: [{ displayName: 'Eve' }],
    shareTokens: [{ id: link.id }],
    calls: [{ callId: started.body.callId }],
  })
  const lists = [
    ['sessions', 'user/sessions'],
    ['devices', 'devices'],
    ['contacts', 'friend'],
    ['incomingRequests', 'friend-request'],
    ['outgoingRequests', 'friend-request?direction=outgoing'],
    ['blocks', 'block'],
    ['shareTokens', 'share-token'],
    ['calls', 'call/history'],
  ] as const
  for (const [member, path] of lists) {
    const { items } = (await api.send(`GET /app/api/${path}`, { token })).body
    t.same(exported[member], items, member)
    t.equal(items.length, 1, member)
  }
  t.same(exported.user, (await api.send('GET /app/api/user', { token })).body)
  for (const secret of [link.text, 'token-', key, bob!.email, cat!.email]) t.notMatch(text, secret)
})

t.test('a list of several pages is whole', async t => {
  const api = await openTestApi(t, { rehearses: false })
  const ann = await newUser(api.world, 'Ann')
  const names = Array.from({ length: 401 }, (_, at) => `Person ${at}`)
  const others = await people(api, ...names)
  await api.world.database.change(change => {
    for (const { userId } of others) api.world.contacts.block(change, ann.userId, userId)
  })
  const { blocks } = (await api.send(EXPORT, { token: ann.token })).body
  t.same(new Set(blocks.map(({ displayName }: { displayName: string }) => displayName)), new Set(names))
  t.equal(blocks.length, names.length)
})

t.test('it takes a proof, which it sends no code for, and is had five times a day', async t => {
  const api = await openTestApi(t, { rates: true })
  const { accessToken: token } = (await api.codeLogin('ann@example.org')).body
  for (let at = 0; at < 6; at++) {
    const refused = await api.send(EXPORT, { token })
    t.match(refused, { status: 403, body: { code: 'STEP_UP_REQUIRED', ways: ['code'], signed: false } })
    t.equal(refused.body.challenge, undefined)
  }
  t.same(await api.letters(), [])
  await prove(api.world, token)
  for (let at = 0; at < 5; at++) t.equal((await api.send(EXPORT, { token })).status, 200)
  t.match(await api.send(EXPORT, { token }), { status: 429, body: { code: 'RATE_LIMITED', scope: 'user' } })
})
