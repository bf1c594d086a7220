/** `verifyWebhook` against webhooks signed by the `standardwebhooks` package, and forged ones. */

import { randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import t from 'tap'
import { CallsignServerError, verifyWebhook } from '../../src/backend/server.ts'

const SECRET = `whsec_${randomBytes(32).toString('base64')}`
const OTHER = `whsec_${randomBytes(32).toString('base64')}`
const NOW = new Date('2026-01-02T03:04:05Z')
const BODY = '{"type":"user.created","timestamp":"2026-01-02T03:04:05.000Z","data":{"name":"Ngọc"}}'

function signedBy(secrets: readonly string[], body = BODY, at = NOW): Record<string, string> {
  const signatures = secrets.map(secret => new Webhook(secret).sign('msg_1', at, body))
  return {
    'webhook-id': 'msg_1',
    'webhook-timestamp': `${Math.floor(at.getTime() / 1000)}`,
    'webhook-signature': signatures.join(' '),
  }
}

const at = { nowMs: NOW.getTime() }
const invalid = (pattern: RegExp) => ({ code: 'WEBHOOK_INVALID', message: pattern })

t.test('a webhook is its sender’s, as text or bytes, in any kind of headers', async t => {
  const headers = signedBy([SECRET])
  const event = await verifyWebhook(headers, BODY, SECRET, at)
  t.match(event, { id: 'msg_1', type: 'user.created', data: { name: 'Ngọc' } })
  t.same(await verifyWebhook(new Headers(headers), Buffer.from(BODY), SECRET, at), event)
  const asLists = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]))
  t.same(await verifyWebhook(asLists, BODY, SECRET, at), event)
})

t.test('during a rotation each of two secrets is enough', async t => {
  const headers = signedBy([OTHER, SECRET])
  for (const secret of [SECRET, OTHER]) t.ok(await verifyWebhook(headers, BODY, secret, at))
})

t.test('a forged, changed, old or malformed webhook is refused', async t => {
  const good = signedBy([SECRET])
  const cases: [string, Record<string, string>, string, RegExp][] = [
    ['another secret', signedBy([OTHER]), BODY, /no signature/],
    ['another body', good, BODY.replace('created', 'ended'), /no signature/],
    ['another id', { ...good, 'webhook-id': 'msg_2' }, BODY, /no signature/],
    ['another time', { ...good, 'webhook-timestamp': `${NOW.getTime() / 1000 + 1}` }, BODY, /no signature/],
    ['no signature', { ...good, 'webhook-signature': '' }, BODY, /lacks/],
    ['no id', { ...good, 'webhook-id': '' }, BODY, /lacks/],
    ['a time that is none', { ...good, 'webhook-timestamp': 'now' }, BODY, /lacks/],
    ['a signature of another version', { ...good, 'webhook-signature': 'v2,AAAA' }, BODY, /no signature/],
    ['a signature that is no base64', { ...good, 'webhook-signature': 'v1,***' }, BODY, /no signature/],
    ['no JSON', signedBy([SECRET], 'hello'), 'hello', /not JSON/],
    ['no event', signedBy([SECRET], '[]'), '[]', /no event/],
  ]
  for (const [what, headers, body, pattern] of cases)
    await t.rejects(verifyWebhook(headers, body, SECRET, at), invalid(pattern), what)
  const many = { ...good, 'webhook-signature': `${'v1,AAAA '.repeat(100)}${good['webhook-signature']}` }
  await t.rejects(verifyWebhook(many, BODY, SECRET, at), invalid(/no signature/), 'a hundred signatures')
})

t.test('a clock that is off by an hour refuses, and says by how much', async t => {
  for (const offMs of [-3_600_000, 3_600_000]) {
    const nowMs = NOW.getTime() + offMs
    await t.rejects(verifyWebhook(signedBy([SECRET]), BODY, SECRET, { nowMs }), invalid(/3600 s/))
  }
  const later = { nowMs: NOW.getTime() + 299_000 }
  t.ok(await verifyWebhook(signedBy([SECRET]), BODY, SECRET, later))
  t.ok(
    await verifyWebhook(signedBy([SECRET]), BODY, SECRET, {
      nowMs: later.nowMs + 3_600_000,
      toleranceS: 4_000,
    }),
  )
})

t.test('a body that a parser has read is the caller’s mistake', async t => {
  for (const body of [JSON.parse(BODY), {}, undefined])
    await t.rejects(verifyWebhook(signedBy([SECRET]), body, SECRET, at), TypeError)
})

t.test('a secret that is none is the caller’s mistake', async t => {
  for (const secret of ['', 'whsec_', 'whsec_***', 'whsec_AAAA'])
    await t.rejects(verifyWebhook(signedBy([SECRET]), BODY, secret, at), TypeError)
  t.ok(new CallsignServerError('WEBHOOK_INVALID', 'x') instanceof Error)
})
