/** Push to browsers, against a sink that opens what it gets as a browser does. */

import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { generateVapidKey, vapidPublicKey } from '../../src/delivery/vapid-key.ts'
import {
  WEB_PUSH_BYTES_MAX,
  type WebPush,
  WebPushSender,
  type WebPushSettings,
} from '../../src/delivery/web-push.ts'
import { SINK_HOST, WebPushSink } from '../support/web-push-sink.ts'

const PRIVATE_KEY = generateVapidKey(randomBytes)

async function open(t: Test, settings: Partial<WebPushSettings> = {}) {
  const sink = await WebPushSink.start()
  const sender = new WebPushSender({
    privateKey: PRIVATE_KEY,
    contact: 'mailto:push@example.org',
    hosts: [SINK_HOST],
    timeoutMs: 5_000,
    sockets: sink.sockets,
    ...settings,
  })
  t.teardown(() => {
    sender.close()
    return sink.close()
  })
  const pushTo = (parts: Partial<WebPush> = {}): WebPush => ({
    subscription: sink.subscription(),
    urgency: 'high',
    ttlSeconds: 57,
    payload: { body: 'Đặng is calling' },
    ...parts,
  })
  return { sink, sender, pushTo }
}

t.test('a push is for its browser alone, and says how long and how soon', async t => {
  const { sink, sender, pushTo } = await open(t)
  t.same(await sender.send(pushTo({ topic: 'a-topic' })), { kind: 'sent' })
  const [{ text, headers, claims, signer }] = sink.received as [WebPushSink['received'][number]]
  t.same(JSON.parse(text), { body: 'Đặng is calling' })
  t.match(headers, { ttl: '57', urgency: 'high', topic: 'a-topic', 'content-encoding': 'aes128gcm' })
  t.equal(signer, vapidPublicKey(PRIVATE_KEY))
  t.match(claims, { aud: `https://${SINK_HOST}`, sub: 'mailto:push@example.org' })
  const hours = (Number(claims.exp) - Date.now() / 1000) / 3_600
  t.ok(hours > 0 && hours <= 24, 'RFC 8292 allows a day')
})

t.test('a token is signed once for six hours and for one push service', async t => {
  let nowMs = 1_790_000_000_000
  const { sink, sender, pushTo } = await open(t, { hosts: ['*.push.example'], nowMs: () => nowMs })
  const tokenOf = async (host: string) => {
    await sender.send(pushTo({ subscription: sink.subscription(host) }))
    return sink.received.at(-1)?.headers.authorization
  }
  const first = await tokenOf('a.push.example')
  t.equal(await tokenOf('a.push.example'), first)
  t.not(await tokenOf('b.push.example'), first)
  nowMs += 6 * 3_600_000
  const second = await tokenOf('a.push.example')
  t.not(second, first)
  nowMs -= 2 * 86_400_000
  t.not(await tokenOf('a.push.example'), second, 'another, once the clock was set back')
})

t.test('each answer of a push service has its outcome', async t => {
  const { sink, sender, pushTo } = await open(t)
  const retry = { kind: 'retry', isOfMessage: true }
  const outcomes = [
    [{ status: 200 }, { kind: 'sent' }],
    [{ status: 404 }, { kind: 'token-gone', reason: 'http-404' }],
    [{ status: 410 }, { kind: 'token-gone', reason: 'http-410' }],
    [{ status: 400 }, { kind: 'refused', reason: 'http-400' }],
    [{ status: 413 }, { kind: 'refused', reason: 'http-413' }],
    [{ status: 401 }, { ...retry, reason: 'http-401', afterMs: 3_600_000 }],
    [{ status: 403 }, { ...retry, reason: 'http-403', afterMs: 3_600_000 }],
    [
      { status: 429, headers: { 'retry-after': '17' } },
      { ...retry, reason: 'http-429', afterMs: 17_000 },
    ],
    [{ status: 500 }, { ...retry, reason: 'http-500' }],
    [
      { status: 503, headers: { 'retry-after': '3' } },
      { ...retry, reason: 'http-503', afterMs: 3_000 },
    ],
    ['close', { ...retry, reason: 'network' }],
  ] as const
  for (const [act, outcome] of outcomes) {
    sink.answerNext(act)
    t.same(await sender.send(pushTo()), outcome)
  }
})

t.test('a push service that is silent is given up', async t => {
  const timeout = { kind: 'retry', reason: 'timeout', isOfMessage: true }
  for (const [settings, urgency] of [
    [{ timeoutMs: 60_000, urgentTimeoutMs: 50 }, 'high'],
    [{ timeoutMs: 50, urgentTimeoutMs: 60_000 }, 'normal'],
  ] as const) {
    const { sink, sender, pushTo } = await open(t, settings)
    sink.answerNext('silence')
    t.same(await sender.send(pushTo({ urgency })), timeout)
  }
})

t.test('of an answer no more is read than tells what became of the push', async t => {
  const { sink, sender, pushTo } = await open(t)
  sink.answerNext('endless')
  t.same(await sender.send(pushTo()), { kind: 'sent' })
})

t.test('a redirect is not followed', async t => {
  const { sink, sender, pushTo } = await open(t)
  sink.answerNext({ status: 307, headers: { location: sink.subscription().endpoint } })
  t.same(await sender.send(pushTo()), { kind: 'refused', reason: 'http-307' })
  t.equal(sink.received.length, 1)
})

t.test('a host that the operator has taken from the list since gets nothing', async t => {
  const { sink, sender, pushTo } = await open(t, { hosts: [] })
  t.same(await sender.send(pushTo()), { kind: 'refused', reason: 'host-not-allowed' })
  t.equal(sink.connections, 0)
})

t.test('a name that leads into the own network gets no connection', async t => {
  const { sink } = await open(t)
  const { lookup: _, ...sockets } = sink.sockets
  const { sender, pushTo } = await open(t, { sockets, hosts: ['localhost'] })
  const outcome = await sender.send(pushTo({ subscription: sink.subscription('localhost') }))
  t.same(outcome, { kind: 'retry', reason: 'address-not-public', isOfMessage: true })
  t.equal(sink.connections, 0)
})

t.test('a server with a certificate of a strange authority gets no push', async t => {
  const { sink } = await open(t)
  const { ca: _, ...sockets } = sink.sockets
  const { sender, pushTo } = await open(t, { sockets })
  t.match(await sender.send(pushTo()), { kind: 'retry', reason: 'network' })
  t.equal(sink.received.length, 0)
})

t.test('the largest push has 4,096 octets, and a larger one is not sent', async t => {
  const { sink, sender, pushTo } = await open(t)
  const body = 'x'.repeat(WEB_PUSH_BYTES_MAX - '{"body":""}'.length)
  t.same(await sender.send(pushTo({ payload: { body } })), { kind: 'sent' })
  t.equal(sink.received[0]?.bytes, 4_096)
  t.same(await sender.send(pushTo({ payload: { body: `${body}x` } })), {
    kind: 'refused',
    reason: 'too-large',
  })
})

t.test('keys of a subscription that are none are said to be none', async t => {
  const { sink, sender, pushTo } = await open(t)
  const { endpoint, keys } = sink.subscription()
  const p256dh = Buffer.alloc(65, 4).toString('base64url')
  t.same(await sender.send(pushTo({ subscription: { endpoint, keys: { ...keys, p256dh } } })), {
    kind: 'refused',
    reason: 'bad-keys',
  })
  t.equal(sink.connections, 0)
})
