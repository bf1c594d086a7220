/** `GET users/{ref}/export`: what the person themself would get, on record before the first octet. */

import t, { type Test } from 'tap'
import { newDevice, newUser } from '../../support/application.ts'
import { openServerApi } from '../../support/server-api.ts'
import { openTestApi } from '../../support/test-api.ts'

async function open(t: Test) {
  const api = await openTestApi(t, { rehearses: false })
  const server = await openServerApi(api)
  const ann = await newUser(api.world, 'Ann')
  const { world } = api
  const audited = () => world.database.view(view => world.auditLog.read(view, { sinceMs: 0, limit: 100 }))
  return { api, world, server, ann, audited }
}

t.test('it is the document that the user gets', async t => {
  const { api, world, server, ann, audited } = await open(t)
  await newDevice(world, ann.userId)
  const own = await api.send('GET /app/api/user/export', { token: ann.token })
  const ref = encodeURIComponent(`id:${ann.userId}`)
  const answer = await server.send(`GET /server/api/v1/users/${ref}/export`)
  t.equal(answer.status, 200)
  const { device, ...user } = own.body.user
  t.ok(device)
  const expected = {
    ...{ ...own.body, user },
    sessions: own.body.sessions.map((each: object) => ({ ...each, isCurrent: false })),
    devices: own.body.devices.map((each: object) => ({ ...each, current: false })),
  }
  t.same(answer.body, expected, 'but no session or device is the one that asks')
  t.equal(answer.body.user.restriction, undefined)
  t.match(audited(), [
    { operation: 'exportUserByRef', target: `id:${ann.userId}`, requestId: 'test-request' },
  ])
})

t.test('a user is found by the id of the operator’s backend, too', async t => {
  const { world, server, ann, audited } = await open(t)
  const externalId = 'crm/7 é'
  await world.database.change(change => {
    const user = world.accounts.read(change, ann.userId)!
    world.accounts.put(change, ann.userId, { ...user, externalId })
  })
  const answer = await server.send(
    `GET /server/api/v1/users/${encodeURIComponent(`ext:${externalId}`)}/export`,
  )
  t.match(answer.body, { user: { userId: String(ann.userId) }, account: { externalId } })
  t.notMatch(
    JSON.stringify(audited(), (_, value) => (typeof value === 'bigint' ? `${value}` : value)),
    externalId,
  )
})

t.test('an unknown user, nonsense and a key of another scope are refused, and leave no record', async t => {
  const { server, ann, audited } = await open(t)
  const at = (ref: string) => `GET /server/api/v1/users/${encodeURIComponent(ref)}/export`
  t.match(await server.send(at('id:99')), { status: 404, body: { code: 'USER_NOT_FOUND' } })
  t.match(await server.send(at('ext:nobody')), { status: 404, body: { code: 'USER_NOT_FOUND' } })
  t.match(await server.send(at('nonsense')), { status: 422, body: { code: 'VALIDATION_FAILED' } })
  const token = await server.newKey(['users', 'audit'])
  t.match(await server.send(at(`id:${ann.userId}`), { token }), {
    status: 403,
    body: { code: 'SCOPE_MISSING' },
  })
  t.same(audited(), [])
})

t.test('a key that is revoked while its document is made gets no more, and the record stays', async t => {
  const { api, world, server, ann, audited } = await open(t)
  const token = await server.newKey(['export'])
  const path = '/server/api/v1/users/{ref}/export'
  const route = api.application.serverRoutes.find(each => each.path === path)!
  const { body } = await route.handle({
    ...{ method: 'GET', path, params: [`id:${ann.userId}`], query: '', requestId: 'request-1' },
    ...{ contentType: '', network: 'a network', body: Buffer.alloc(0) },
    header: name => (name === 'authorization' ? `Bearer ${token}` : ''),
  })
  t.match(audited(), [{ target: `id:${ann.userId}` }])
  await world.database.change(change => world.serverKeys.revoke(change, token.split('_')[1]!))
  const parts = (body as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]()
  await t.rejects(parts.next(), { code: 'SERVER_KEY_REVOKED' })
  t.equal(audited().length, 1)
})
