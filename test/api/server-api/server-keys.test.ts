/** Server keys from their making to their end, and the record of who made them. */

import t from 'tap'
import { openServerApi } from '../../support/server-api.ts'
import { openTestApi } from '../../support/test-api.ts'

const PATH = '/server/api/v1/server-keys'

t.test('a key is shown once, listed without its secret, and revoked', async t => {
  const whole = await openTestApi(t)
  const { send } = await openServerApi(whole)
  const expiresAt = '2026-06-01T00:00:00.000Z'
  const made = await send(`POST ${PATH}`, { body: { name: 'shop', scopes: ['users', 'calls'], expiresAt } })
  t.equal(made.status, 201)
  const { id, key } = made.body
  t.match(key, new RegExp(`^csk_${id}_[0-9a-f]{64}$`))
  const listed = await send(`GET ${PATH}`)
  t.notMatch(listed.text, key.split('_')[2])
  t.match(
    listed.body.items.find((each: { id: string }) => each.id === id),
    { name: 'shop', scopes: ['users', 'calls'], expiresAt },
  )
  t.equal((await send(`DELETE ${PATH}/${id}`)).status, 204)
  t.equal((await send(`DELETE ${PATH}/${id}`)).status, 204, 'again: it stays revoked')
  t.ok((await send(`GET ${PATH}`)).body.items.find((each: { id: string }) => each.id === id).revokedAt)
  for (const unknown of ['0'.repeat(12), 'x', '%00'])
    t.equal((await send(`DELETE ${PATH}/${unknown}`)).body.code, 'SERVER_KEY_NOT_FOUND', unknown)
  await whole.advance(91 * 86_400_000)
  t.notOk(
    (await send(`GET ${PATH}`)).body.items.some((each: { id: string }) => each.id === id),
    'gone',
  )
})

t.test('what a key can’t be made of is refused', async t => {
  const whole = await openTestApi(t)
  const { send } = await openServerApi(whole)
  const cases: [object, string][] = [
    [{ name: '', scopes: ['users'] }, '/name'],
    [{ name: 'x'.repeat(101), scopes: ['users'] }, '/name'],
    [{ name: 'shop', scopes: [] }, '/scopes'],
    [{ name: 'shop', scopes: ['users', 'users'] }, '/scopes'],
    [{ name: 'shop', scopes: ['everything'] }, '/scopes/0'],
    [{ name: 'shop', scopes: ['console'] }, '/person'],
    [{ name: 'shop', scopes: ['users'], person: 'Ann' }, '/person'],
    [{ name: 'shop', scopes: ['users'], expiresAt: '2020-01-01T00:00:00Z' }, '/expiresAt'],
    [{ name: 'shop', scopes: ['users'], expiresAt: 'tomorrow' }, '/expiresAt'],
  ]
  for (const [body, pointer] of cases) {
    const { status, body: problem } = await send(`POST ${PATH}`, { body })
    t.same([status, problem.errors[0].pointer], [422, pointer], JSON.stringify(body))
  }
})

t.test('what the operator’s command did is on record, in the same change', async t => {
  const whole = await openTestApi(t)
  const { world } = whole
  const { send } = await openServerApi(whole)
  const { body } = await send(`POST ${PATH}`, { body: { name: 'shop', scopes: ['users'] } })
  await send(`DELETE ${PATH}/${body.id}`)
  await send(`DELETE ${PATH}/${'0'.repeat(12)}`)
  const rows = world.database.view(view => world.auditLog.read(view, { sinceMs: 0, limit: 10 }))
  t.match(rows, [
    { keyId: 'operator', operation: 'revokeServerKey', target: `key:${body.id}` },
    { keyId: 'operator', operation: 'createServerKey', target: `key:${body.id}`, requestId: 'test-request' },
  ])
  t.equal(rows.length, 2, 'a refusal is no change')
})
