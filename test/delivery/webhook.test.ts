/** Webhooks on their way to receivers that listen, as the package `standardwebhooks` verifies them. */

import { randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import t, { type Test } from 'tap'
import { isWebhookSecret, newWebhookSecret, sendWebhook } from '../../src/delivery/webhook.ts'
import { type ReceivedSms, type SmsAct, startSmsGateway } from '../support/sms-gateway.ts'

const SECRET = newWebhookSecret(randomBytes)
const BODY = '{"type":"webhook.test","timestamp":"2026-11-20T10:08:41.983Z","data":{"seq":0,"name":"Zoë"}}'
const HOUR_MS = 3_600_000

async function start(t: Test) {
  const receiver = await startSmsGateway()
  t.teardown(() => receiver.close())
  const send = (secrets = [SECRET], nowMs = Date.now(), body = BODY) =>
    sendWebhook({ url: receiver.url, secrets, webhookId: 'evt_1', body }, nowMs)
  return { receiver, send }
}

function verify(secret: string, { headers, body }: ReceivedSms): unknown {
  return new Webhook(secret).verify(body, headers as Record<string, string>)
}

t.test('a receiver verifies it, and refuses a changed one', async t => {
  const { receiver, send } = await start(t)
  t.same(await send(), { kind: 'sent' })
  const [request] = receiver.requests
  t.match(request, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'webhook-id': 'evt_1' },
  })
  t.same(verify(SECRET, request!), JSON.parse(BODY))
  t.throws(() => verify(newWebhookSecret(randomBytes), request!), 'of another secret')
  t.throws(() => verify(SECRET, { ...request!, body: BODY.replace('Zoë', 'Zoe') }))
  t.throws(() => verify(SECRET, { ...request!, headers: { ...request!.headers, 'webhook-id': 'evt_2' } }))
})

t.test('while the secret changes, both verify it', async t => {
  const { receiver, send } = await start(t)
  const next = newWebhookSecret(randomBytes)
  await send([next, SECRET])
  const [request] = receiver.requests
  for (const secret of [next, SECRET]) t.same(verify(secret, request!), JSON.parse(BODY))
  t.match(request!.headers['webhook-signature'], /^v1,\S+ v1,\S+$/)
})

t.test('a receiver whose clock is off by an hour refuses it: the time of the try is signed', async t => {
  const { receiver, send } = await start(t)
  for (const offMs of [-HOUR_MS, HOUR_MS]) {
    await send([SECRET], Date.now() + offMs)
    t.throws(() => verify(SECRET, receiver.requests.at(-1)!), /timestamp/)
  }
  await send()
  t.ok(verify(SECRET, receiver.requests.at(-1)!), 'the next try has a time of its own')
})

t.test('any answer but 2xx is a failure; 410 says that nothing is wanted any more', async t => {
  const { receiver, send } = await start(t)
  const elsewhere = await startSmsGateway()
  t.teardown(() => elsewhere.close())
  const table: readonly (readonly [SmsAct, object])[] = [
    [{ status: 200 }, { kind: 'sent' }],
    [{ status: 204 }, { kind: 'sent' }],
    [
      { status: 301, headers: { location: elsewhere.url } },
      { kind: 'retry', reason: 'http-301' },
    ],
    [
      { status: 307, headers: { location: elsewhere.url } },
      { kind: 'retry', reason: 'http-307' },
    ],
    [{ status: 400 }, { kind: 'retry', reason: 'http-400' }],
    [{ status: 404 }, { kind: 'retry', reason: 'http-404' }],
    [{ status: 500 }, { kind: 'retry', reason: 'http-500' }],
    [
      { status: 503, headers: { 'retry-after': '120' } },
      { kind: 'retry', reason: 'http-503', afterMs: 120_000 },
    ],
    [{ status: 410 }, { kind: 'gone' }],
    ['endless', { kind: 'sent' }],
    ['close', { kind: 'retry', reason: 'network' }],
  ]
  for (const [act, outcome] of table) {
    receiver.answerNext(act)
    t.same(await send(), outcome, JSON.stringify(act))
  }
  t.same(elsewhere.requests, [], 'no redirect is followed')
})

t.test('after 15 seconds the try has ended, whether no answer comes or no end of one', async t => {
  const { receiver, send } = await start(t)
  for (const act of ['silence', 'stalled'] as const) {
    const clock = new AbortController()
    const timeouts: number[] = []
    const timeout = (ms: number) => {
      timeouts.push(ms)
      return clock.signal
    }
    t.intercept(AbortSignal, 'timeout', { value: timeout, configurable: true })
    receiver.answerNext(act)
    const came = receiver.received(receiver.requests.length + 1)
    const sending = send()
    await came
    clock.abort()
    const outcome = await sending
    if (act === 'silence') t.same(outcome, { kind: 'retry', reason: 'timeout' })
    else t.match(outcome, { kind: /^(?:sent|retry)$/ }, 'its status may have come')
    t.same(timeouts, [15_000])
  }
})

t.test(
  'a body above the limit is not sent, nor one that nothing can sign, nor to where nothing may go',
  async t => {
    const { receiver, send } = await start(t)
    t.same(await send([SECRET], Date.now(), `"${'x'.repeat(65_534)}"`), { kind: 'sent' })
    t.same(await send([SECRET], Date.now(), `"${'x'.repeat(65_535)}"`), {
      kind: 'hopeless',
      reason: 'too-large',
    })
    t.same(await send([]), { kind: 'retry', reason: 'no-secret' })
    t.equal(receiver.requests.length, 1)
    for (const url of ['http://169.254.169.254/latest', 'http://hooks.example.org/', 'https://[fe80::1]/'])
      t.same(await sendWebhook({ url, secrets: [SECRET], webhookId: 'evt_1', body: BODY }, Date.now()), {
        kind: 'retry',
        reason: 'address-not-allowed',
      })
  },
)

t.test('a secret is whsec_ and base64 of 32 bytes', async t => {
  t.ok(isWebhookSecret(SECRET))
  for (const text of [
    '',
    'whsec_',
    SECRET.slice(6),
    `${SECRET} `,
    SECRET.replace('whsec_', 'whpk_'),
    'whsec_MTIz',
  ])
    t.notOk(isWebhookSecret(text), text)
})
