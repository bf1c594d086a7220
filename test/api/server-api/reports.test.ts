/** The work of moderators: queues of reports, decisions, and the record of them. */

import t from 'tap'
import type { TestUser } from '../../support/application.ts'
import { people } from '../../support/contact-requests.ts'
import { openServerApi } from '../../support/server-api.ts'
import { openTestApi } from '../../support/test-api.ts'

const REPORTS = '/server/api/v1/reports'

/** Ann has reported Bob so often, a second apart. */
async function openReports(t: Parameters<typeof openTestApi>[0], count: number) {
  const api = await openTestApi(t)
  const [ann, bob] = (await people(api, 'Ann', 'Bob')) as [TestUser, TestUser]
  const { send, newKey } = await openServerApi(api)
  const ids: string[] = []
  for (let at = 0; at < count; at++) {
    const body = { userId: bob.userId, reason: 'spam' }
    ids.push((await api.send('POST /app/api/report', { token: ann.token, body })).body.reportId)
    api.world.tick(1_000)
  }
  const list = async (query = '') => {
    const { body } = await send(`GET ${REPORTS}${query}`)
    return { ids: body.items.map((item: { reportId: string }) => item.reportId), cursor: body.nextCursor }
  }
  const change = (reportId: string, body: object, more: object = {}) =>
    send(`PATCH ${REPORTS}/${reportId}`, { body, ...more })
  return { api, send, newKey, ann, bob, ids, list, change }
}

t.test('the queue has the longest waiting first, closed reports the newest first, page by page', async t => {
  const { ids, list, change, api } = await openReports(t, 5)
  const pagesOf = async (state: string) => {
    const found: string[] = []
    for (let cursor = ''; ; ) {
      const page = await list(`?state=${state}&limit=2${cursor}`)
      t.ok(page.ids.length <= 2)
      found.push(...page.ids)
      if (page.cursor === undefined) return found
      cursor = `&cursor=${page.cursor}`
    }
  }
  t.same(await pagesOf('open'), ids)
  t.same((await list()).ids, ids)
  for (const id of ids) {
    await change(id, { state: 'dismissed' })
    api.world.tick(1_000)
  }
  t.same(await pagesOf('dismissed'), ids.toReversed())
  t.same(await pagesOf('open'), [])
})

t.test('a report moves between states, with a note and who moved it', async t => {
  const { ids, change, list, send, newKey, api } = await openReports(t, 1)
  const [id] = ids as [string]
  const { key: moderator } = await api.world.database.change(change =>
    api.world.serverKeys.create(change, { name: 'mod', person: 'Mara', scopes: ['reports', 'console'] }),
  )
  const taken = await change(id, { state: 'in-review' }, { token: moderator })
  t.match(taken, { status: 200, body: { state: 'in-review', handledBy: 'Mara' } })
  t.match(await change(id, { note: '  Asked both  ' }), {
    body: { state: 'in-review', note: 'Asked both', handledBy: 'test', stateSince: taken.body.stateSince },
  })
  t.match(await change(id, { state: 'resolved' }), { body: { state: 'resolved', note: 'Asked both' } })
  t.notOk((await change(id, { note: '' })).body.note)
  t.same((await list('?state=resolved')).ids, [id])
  t.match(await change(id, { state: 'open' }), { body: { state: 'open' } }, 'opened again')
  t.match(await change('7', { state: 'open' }), { status: 404, body: { code: 'REPORT_NOT_FOUND' } })
  t.match(await change('x', { state: 'open' }), { status: 404, body: { code: 'REPORT_NOT_FOUND' } })
  for (const body of [{}, { state: 'gone' }, { note: 'x'.repeat(2_001) }])
    t.equal((await change(id, body)).status, 422)
  const token = await newKey(['users'])
  t.equal((await send(`GET ${REPORTS}`, { token })).body.code, 'SCOPE_MISSING')
})

t.test('all reports about a user, whatever their state, by either reference', async t => {
  const { ids, list, change, ann, bob, send, api } = await openReports(t, 2)
  await change(ids[0]!, { state: 'resolved' })
  t.same((await list(`?about=id:${bob.userId}`)).ids, ids.toReversed())
  t.same((await list(`?about=id:${ann.userId}`)).ids, [], 'none about the reporter')
  const { accounts, database } = api.world
  await database.change(change => {
    const user = accounts.read(change, bob.userId)!
    accounts.put(change, bob.userId, { ...user, externalId: 'bob/1' })
  })
  t.same((await list(`?about=${encodeURIComponent('ext:bob/1')}`)).ids, ids.toReversed())
  t.equal((await send(`GET ${REPORTS}?about=id:7`)).body.code, 'USER_NOT_FOUND')
  t.equal((await send(`GET ${REPORTS}?about=bob`)).body.code, 'VALIDATION_FAILED')
  for (const cursor of ['x', 'AAAA']) t.equal((await send(`GET ${REPORTS}?cursor=${cursor}`)).status, 422)
})

t.test(
  'the audit log says who changed what, newest first, and never a user’s words or addresses',
  async t => {
    const { ids, change, send, api } = await openReports(t, 3)
    const startedAt = new Date(api.world.nowMs()).toISOString()
    for (const id of ids) {
      await change(id, { state: 'resolved', note: 'private' })
      api.world.tick(1_000)
    }
    const { body, text } = await send('GET /server/api/v1/audit?limit=2')
    t.match(body.items, [
      { operation: 'changeReport', target: `report:${ids[2]}`, requestId: 'test-request' },
      { target: `report:${ids[1]}` },
    ])
    t.notMatch(text, 'private')
    const next = await send(`GET /server/api/v1/audit?limit=2&cursor=${body.nextCursor}`)
    t.same(
      next.body.items.map(({ target }: { target: string }) => target),
      [`report:${ids[0]}`],
    )
    t.notOk(next.body.nextCursor)
    const since = new Date(Date.parse(startedAt) + 1_000).toISOString()
    t.equal((await send(`GET /server/api/v1/audit?since=${since}`)).body.items.length, 2)
    for (const query of ['cursor=x', 'since=yesterday'])
      t.equal((await send(`GET /server/api/v1/audit?${query}`)).status, 422, query)
  },
)

t.test('reads and refused requests leave no audit row', async t => {
  const { ids, change, send } = await openReports(t, 1)
  await send(`GET ${REPORTS}/${ids[0]}`)
  await change('7', { state: 'open' })
  t.same((await send('GET /server/api/v1/audit')).body.items, [])
})

t.test('a moderator’s key is traded for a session that has its scopes, for a quarter of an hour', async t => {
  const { ids, send, api } = await openReports(t, 1)
  const scopes = ['reports', 'audit', 'console'] as const
  const { key, keyId } = await api.world.database.change(change =>
    api.world.serverKeys.create(change, { name: 'mod', person: 'Mara', scopes }),
  )
  const started = await send('POST /server/api/v1/console-sessions', { token: key })
  t.match(started, { status: 201, body: { person: 'Mara', scopes, expiresAt: String } })
  const { token, expiresAt } = started.body
  t.match(token, new RegExp(`^cos_${keyId}_`))
  t.equal(Date.parse(expiresAt) - api.world.nowMs(), 15 * 60_000)
  api.world.tick(1)
  t.equal((await send(`PATCH ${REPORTS}/${ids[0]}`, { token, body: { state: 'resolved' } })).status, 200)
  const { items } = (await send('GET /server/api/v1/audit', { token })).body
  t.match(items, [
    { operation: 'changeReport', keyId, person: 'Mara' },
    { operation: 'startConsoleSession', target: `key:${keyId}` },
  ])
  const [mac] = token.split('_').slice(-1)
  for (const forged of [
    `cos_${keyId}_9999999999_${mac}`,
    token.replace(keyId, '0'.repeat(12)),
    `${token}0`,
    'cos_',
  ])
    t.equal((await send(`GET ${REPORTS}`, { token: forged })).body.code, 'SERVER_KEY_INVALID', forged)
  await api.advance(15 * 60_000)
  t.equal((await send(`GET ${REPORTS}`, { token })).body.code, 'SERVER_KEY_EXPIRED')
})
