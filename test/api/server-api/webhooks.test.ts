/** Endpoints of webhooks as the operator's command makes, tries, rotates and deletes them. */

import { randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import t from 'tap'
import { newWebhookSecret } from '../../../src/delivery/webhook.ts'
import { WebhookQueue } from '../../../src/store/operators/webhook-queue.ts'
import { openServerApi } from '../../support/server-api.ts'
import { startSmsGateway } from '../../support/sms-gateway.ts'
import { openTestApi } from '../../support/test-api.ts'
import { userCreated } from '../../support/webhooks.ts'

const PATH = '/server/api/v1/webhooks'
const URL = 'https://app.example.org/hooks'

t.test('an endpoint is made, listed without its secret, and deleted', async t => {
  const whole = await openTestApi(t)
  const { send } = await openServerApi(whole)
  t.same((await send(`GET ${PATH}`)).body, { items: [] })
  const events = ['call.missed', 'user.ended']
  const made = await send(`POST ${PATH}`, { body: { url: URL, events } })
  t.equal(made.status, 201)
  const { id, secret, ...shown } = made.body
  t.match(id, /^wh_[0-9a-f]{12}$/)
  t.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
  t.match(shown, { url: URL, events, state: 'open' })
  const listed = await send(`GET ${PATH}`)
  t.notMatch(listed.text, secret)
  t.same(listed.body.items, [{ id, ...shown, waiting: 0, dead: 0 }])
  t.equal((await send(`DELETE ${PATH}/${id}`)).status, 204)
  t.same((await send(`GET ${PATH}`)).body, { items: [] })
  for (const unknown of [id, 'wh_0', 'x', '%00', 'settings'])
    t.equal((await send(`DELETE ${PATH}/${unknown}`)).body.code, 'WEBHOOK_NOT_FOUND', unknown)
  const rows = whole.world.database.view(view => whole.stores.auditLog.read(view, { sinceMs: 0, limit: 10 }))
  t.same(rows.map(({ operation, target }) => `${operation} ${target}`).sort(), [
    `createWebhook webhook:${id}`,
    `deleteWebhook webhook:${id}`,
  ])
})

t.test('what an endpoint can’t be made of is refused', async t => {
  const { send } = await openServerApi(await openTestApi(t))
  const cases: [object, string][] = [
    [{}, '/url'],
    [{ url: 'app.example.org' }, '/url'],
    [{ url: 'http://app.example.org/' }, '/url'],
    [{ url: 'http://169.254.169.254/' }, '/url'],
    [{ url: 'https://user:pass@app.example.org/' }, '/url'],
    [{ url: `https://app.example.org/${'x'.repeat(2_000)}` }, '/url'],
    [{ url: URL, events: [] }, '/events'],
    [{ url: URL, events: ['user.created', 'user.created'] }, '/events'],
    [{ url: URL, events: ['user.*'] }, '/events/0'],
    [{ url: URL, events: ['webhook.test'] }, '/events/0'],
  ]
  for (const [body, pointer] of cases) {
    const { status, body: problem } = await send(`POST ${PATH}`, { body })
    t.same([status, problem.errors[0].pointer], [422, pointer], JSON.stringify(body).slice(0, 80))
  }
  for (let made = 0; made < 16; made++)
    t.equal((await send(`POST ${PATH}`, { body: { url: URL } })).status, 201)
  t.match(await send(`POST ${PATH}`, { body: { url: URL } }), {
    status: 409,
    body: { code: 'WEBHOOK_LIMIT' },
  })
})

t.test(
  'a test is sent at once, signed by both secrets after a rotation, and says what came of it',
  async t => {
    const { send } = await openServerApi(await openTestApi(t))
    const receiver = await startSmsGateway()
    t.teardown(() => receiver.close())
    const { id, secret } = (await send(`POST ${PATH}`, { body: { url: receiver.url } })).body
    const rotated = (await send(`POST ${PATH}/${id}/rotate`)).body
    t.not(rotated.secret, secret)
    t.same((await send(`POST ${PATH}/${id}/test`)).body, { outcome: 'taken' })
    const { headers, body } = receiver.requests[0]!
    t.match(JSON.parse(body), { type: 'webhook.test', data: { seq: 0 } })
    // The server's clock is the test's.
    const nowMs = Number(headers['webhook-timestamp']) * 1_000
    t.intercept(Date, 'now', { value: () => nowMs })
    for (const each of [secret, rotated.secret])
      new Webhook(each).verify(body, headers as Record<string, string>)
    const stranger = new Webhook(newWebhookSecret(randomBytes))
    t.throws(() => stranger.verify(body, headers as Record<string, string>))
    receiver.answerNext({ status: 500 }, { status: 410 })
    t.same((await send(`POST ${PATH}/${id}/test`)).body, { outcome: 'failed', reason: 'http-500' })
    t.same((await send(`POST ${PATH}/${id}/test`)).body, { outcome: 'failed', reason: 'http-410' })
    t.match((await send(`GET ${PATH}`)).body, { items: [{ id, state: 'open' }] }, 'a test stops nothing')
  },
)

t.test('dead events are listed in pages and wait again; an endpoint that was gone begins again', async t => {
  const whole = await openTestApi(t)
  const { world, stores } = whole
  const { send } = await openServerApi(whole)
  const { id } = (await send(`POST ${PATH}`, { body: { url: URL } })).body
  const endpointId = BigInt(`0x${id.slice(3)}`)
  await world.database.change(change => {
    for (const userId of [1, 2, 3]) stores.webhooks.add(change, userCreated(userId))
  })
  const queue = new WebhookQueue(world.database, stores.webhooks, endpointId)
  const died = [1, 2, 3].map(seq => ({ kind: 'died', seq, reason: 'expired' }) as const)
  await queue.settle(died, { isGone: true, isDown: false })
  t.match((await send(`GET ${PATH}`)).body, { items: [{ state: 'gone', waiting: 0, dead: 3 }] })
  const first = await send(`GET ${PATH}/${id}/dead?limit=2`)
  t.match(first.body.items, [
    { seq: 1, type: 'user.created', reason: 'expired', tries: 0, id: /^evt_/ },
    { seq: 2 },
  ])
  const { nextCursor } = first.body
  const second = await send(`GET ${PATH}/${id}/dead?limit=2&cursor=${nextCursor}`)
  t.same([second.body.items.map(({ seq }: { seq: number }) => seq), second.body.nextCursor], [[3], undefined])
  t.equal((await send(`GET ${PATH}/${id}/dead?cursor=x`)).status, 422)
  t.same((await send(`POST ${PATH}/${id}/retry`, { body: { from: 2 } })).body, { retried: 2 })
  t.match((await send(`GET ${PATH}`)).body, { items: [{ state: 'open', waiting: 2, dead: 1 }] })
  t.same((await send(`POST ${PATH}/${id}/retry`)).body, { retried: 1 })
})

t.test('the endpoint of the settings is changed there', async t => {
  const whole = await openTestApi(t)
  const { world, stores } = whole
  const { send } = await openServerApi(whole)
  const secrets = [newWebhookSecret(randomBytes)]
  await world.database.change(change => stores.webhooks.endpoints.settle(change, { url: URL, secrets }))
  t.match((await send(`GET ${PATH}`)).body, { items: [{ id: 'settings', url: URL }] })
  for (const request of [`DELETE ${PATH}/settings`, `POST ${PATH}/settings/rotate`])
    t.match(await send(request), { status: 404, body: { detail: /settings/ } }, request)
  t.equal((await send(`POST ${PATH}/settings/retry`)).status, 200)
})
