/** A user reports another: what moderators read of it, and what the reported user does not. */

import t from 'tap'
import { newDevice, newSession, newUser, type TestUser } from '../../support/application.ts'
import { befriend, people } from '../../support/contact-requests.ts'
import { openServerApi } from '../../support/server-api.ts'
import { openTestApi, type TestApi } from '../../support/test-api.ts'

const REPORT = 'POST /app/api/report'
const REPORTS = '/server/api/v1/reports'

function report(api: TestApi, { token }: TestUser, { userId }: TestUser, more: object = {}) {
  return api.send(REPORT, { token, body: { userId, reason: 'harassment', ...more } })
}

async function pair(t: Parameters<typeof openTestApi>[0], options: object = {}) {
  const api = await openTestApi(t, options)
  const [ann, bob] = (await people(api, 'Ann', 'Bob')) as [TestUser, TestUser]
  return { api, ann, bob }
}

t.test('moderators read who reported whom, why, and in which words', async t => {
  const { api, ann, bob } = await pair(t)
  const { send } = await openServerApi(api)
  const { status, body } = await report(api, ann, bob, { text: '  At night <b>  ', reason: 'threat' })
  t.equal(status, 201)
  const read = await send(`GET ${REPORTS}/${body.reportId}`)
  t.same(read.body, {
    reportId: body.reportId,
    state: 'open',
    stateSince: body.createdAt,
    createdAt: body.createdAt,
    reason: 'threat',
    text: 'At night <b>',
    isCallKnown: false,
    reported: { userId: String(bob.userId), displayName: 'Bob' },
    reporter: { userId: String(ann.userId), displayName: 'Ann' },
  })
  const stored = api.world.database.view(view => api.world.reports.read(view, BigInt(body.reportId)))
  t.equal(stored?.text, 'At night <b>')
})

t.test('the reported user hears nothing, and finds nothing in an export', async t => {
  const { api, ann, bob } = await pair(t)
  await befriend(api, ann, bob)
  api.told.length = 0
  await report(api, ann, bob, { text: 'secret words' })
  t.same(api.told, [])
  t.same(await api.letters(), [])
  const exported = await api.send('GET /app/api/user/export', { token: bob.token })
  t.equal(exported.status, 200)
  t.notMatch(exported.text, /secret words|harassment/)
})

t.test('the operator’s services hear of a report, without its words and who sent it', async t => {
  const { api, ann, bob } = await pair(t, { rehearses: false })
  const events: unknown[] = []
  api.world.webhooks.add = (_, event) => void events.push(event)
  const { reportId } = (await report(api, ann, bob, { text: 'secret words', callId: 7n })).body
  t.same(events, [{ kind: 'report.created', reportId, userId: bob.userId, callId: 7n, reason: 'harassment' }])
})

t.test('the server says whether it knows that both were in the call', async t => {
  const { api, ann, bob } = await pair(t)
  await befriend(api, ann, bob)
  const cid = await newUser(api.world, 'Cid')
  const phones = []
  for (const { userId } of [ann, bob]) {
    const { deviceId } = await newDevice(api.world, userId)
    phones.push({ userId, deviceId, ...(await newSession(api.world, userId, deviceId)) })
  }
  const [anns, bobs] = phones as [(typeof phones)[0], (typeof phones)[0]]
  const encryptedAESKeys = { [`${bob.userId}_${bobs.deviceId}`]: Buffer.alloc(113, 5).toString('base64') }
  const body = { calleeIds: [bob.userId], isVideo: false, encryptedAESKeys }
  const { callId } = (await api.send('POST /app/api/call/start', { token: anns.token, body })).body
  await api.send('POST /app/api/call/end', { token: anns.token, body: { callId } })
  const { send } = await openServerApi(api)
  const isKnown = async (by: TestUser, about: TestUser, callIdSaid = callId) => {
    const { reportId } = (await report(api, by, about, { callId: callIdSaid })).body
    const read = await send(`GET ${REPORTS}/${reportId}`)
    t.equal(read.body.callId, String(callIdSaid))
    return read.body.isCallKnown
  }
  const own = { ...bob, token: bobs.token }
  t.same([await isKnown(own, ann), await isKnown(cid, ann), await isKnown(own, cid)], [true, false, false])
  t.equal(await isKnown(own, ann, 77n), false)
  await api.advance(2 * 86_400_000)
  const later = { ...bob, ...(await newSession(api.world, bob.userId, bobs.deviceId)) }
  t.equal(await isKnown(later, ann), true, 'by the history, once the call itself is gone')
})

t.test('unknown users and oneself can’t be reported; a leaving user can', async t => {
  const { api, ann, bob } = await pair(t)
  t.match(await report(api, ann, ann), { status: 422, body: { code: 'SELF_REQUEST' } })
  const nobody = { userId: 7n } as TestUser
  t.match(await report(api, ann, nobody), { status: 404, body: { code: 'USER_NOT_FOUND' } })
  await api.send('DELETE /app/api/user', { token: bob.token, body: { confirm: true } })
  t.equal((await report(api, ann, bob)).status, 201)
})

t.test('a report that is sent again by its key is one report', async t => {
  const { api, ann, bob } = await pair(t)
  const request = {
    token: ann.token,
    body: { userId: bob.userId, reason: 'spam' },
    headers: { 'idempotency-key': 'a-report' },
  }
  const [first, second] = [await api.send(REPORT, request), await api.send(REPORT, request)]
  t.same(first.body, second.body)
  const { send } = await openServerApi(api)
  t.equal((await send(`GET ${REPORTS}`)).body.items.length, 1)
})

t.test('a user reports twenty times a day', async t => {
  const { api, ann, bob } = await pair(t, { rates: true, rehearses: false })
  for (let count = 0; count < 20; count++) t.equal((await report(api, ann, bob)).status, 201)
  t.match(await report(api, ann, bob), { status: 429, body: { code: 'RATE_LIMITED' } })
  t.equal((await report(api, bob, ann)).status, 201)
})

t.test('an unknown reason and too many words are refused by name', async t => {
  const { api, ann, bob } = await pair(t)
  const cases = [
    [{ reason: 'boring' }, '/reason'],
    [{ text: 'x'.repeat(2_001) }, '/text'],
  ] as const
  for (const [more, pointer] of cases) {
    const { status, body } = await report(api, ann, bob, more)
    t.same([status, body.errors[0].pointer], [422, pointer])
  }
  const { body } = await api.send('GET /app/api/report/reasons', { token: ann.token })
  for (const { reason } of body.items) t.equal((await report(api, ann, bob, { reason })).status, 201, reason)
})

t.test(
  'an erased reporter leaves the report without name and words; an erased reported user takes it along',
  async t => {
    const { api, ann, bob } = await pair(t)
    const { send } = await openServerApi(api)
    const { reportId } = (await report(api, ann, bob, { text: 'I am Ann' })).body
    const { reportId: about } = (await report(api, bob, ann)).body
    await api.send('DELETE /app/api/user', { token: ann.token, body: { confirm: true } })
    await api.advance(8 * 86_400_000)
    const kept = await send(`GET ${REPORTS}/${reportId}`)
    t.equal(kept.body.reported.displayName, 'Bob')
    t.same([kept.body.reporter, kept.body.text], [undefined, undefined])
    t.equal((await send(`GET ${REPORTS}/${about}`)).body.code, 'REPORT_NOT_FOUND')
    t.equal((await send(`GET ${REPORTS}`)).body.items.length, 1)
  },
)
