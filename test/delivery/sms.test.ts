/** SMS, against a gateway that refuses, redirects, falls silent and never stops talking. */

import t, { type Test } from 'tap'
import { type SmsOptions, SmsSender } from '../../src/delivery/sms.ts'
import { type SmsGateway, startSmsGateway } from '../support/sms-gateway.ts'
import { startSilentServer } from '../support/smtp-sink.ts'

const SMS = { to: '+84912345678', text: 'Mã "123456"\\ {to} & = + %20\n\n@callsign.example #123456' }

async function start(t: Test): Promise<SmsGateway> {
  const gateway = await startSmsGateway()
  t.teardown(() => gateway.close())
  return gateway
}

function senderTo(gateway: SmsGateway, options: Partial<SmsOptions> = {}): SmsSender {
  return new SmsSender({ url: gateway.url, timeoutMs: 5_000, ...options })
}

t.test('by default a message is JSON of the number and the text', async t => {
  const gateway = await start(t)
  t.same(await senderTo(gateway).send(SMS), { kind: 'sent' })
  const [request] = gateway.requests
  t.match(request, { method: 'POST', path: '/send', headers: { 'content-type': 'application/json' } })
  t.same(JSON.parse(request!.body), SMS)
})

t.test('a template of one’s own keeps its form, whatever the text holds', async t => {
  const gateway = await start(t)
  const body = '{"messages":[{"to":["{to}"],"body":"Callsign: {text}","copy":"{text}"}],"from":"{x}"}'
  await senderTo(gateway, { body, headers: { 'Content-Type': 'application/vnd.api+json' } }).send(SMS)
  const copy = SMS.text
  t.same(JSON.parse(gateway.requests[0]!.body), {
    messages: [{ to: [SMS.to], body: `Callsign: ${copy}`, copy }],
    from: '{x}',
  })
})

t.test('a form is a form', async t => {
  const gateway = await start(t)
  const headers = {
    'content-type': 'application/x-www-form-urlencoded; charset=utf-8',
    Authorization: 'Bearer s3cret',
  }
  await senderTo(gateway, { headers, body: 'To={to}&From=Callsign&Body={text}' }).send(SMS)
  const [request] = gateway.requests
  t.equal(request!.headers.authorization, 'Bearer s3cret')
  t.same(
    [...new URLSearchParams(request!.body)],
    [
      ['To', SMS.to],
      ['From', 'Callsign'],
      ['Body', SMS.text],
    ],
  )
})

t.test('a name and password in the address become basic authorization', async t => {
  const gateway = await start(t)
  await senderTo(gateway, { url: gateway.url.replace('//', '//AC12:p%40ss@') }).send(SMS)
  const { authorization } = gateway.requests[0]!.headers
  t.equal(authorization, `Basic ${Buffer.from('AC12:p@ss').toString('base64')}`)
})

t.test('the status says what became of the message', async t => {
  const gateway = await start(t)
  const sender = senderTo(gateway)
  const table = [
    [{ status: 200 }, { kind: 'sent' }],
    [{ status: 202 }, { kind: 'sent' }],
    [{ status: 204 }, { kind: 'sent' }],
    [
      { status: 400, body: { error: 'number' } },
      { kind: 'refused', reason: 'http-400' },
    ],
    [{ status: 404 }, { kind: 'refused', reason: 'http-404' }],
    [{ status: 401 }, { kind: 'retry', reason: 'http-401' }],
    [{ status: 403 }, { kind: 'retry', reason: 'http-403' }],
    [{ status: 429 }, { kind: 'retry', reason: 'http-429' }],
    [
      { status: 429, headers: { 'retry-after': '7' } },
      { kind: 'retry', reason: 'http-429', afterMs: 7_000 },
    ],
    [{ status: 500 }, { kind: 'retry', reason: 'http-500' }],
    [
      { status: 503, headers: { 'retry-after': '999999' } },
      { kind: 'retry', reason: 'http-503', afterMs: 3_600_000 },
    ],
    ['close', { kind: 'retry', reason: 'network' }],
  ] as const
  for (const [act, outcome] of table) {
    gateway.answerNext(act)
    t.same(await sender.send(SMS), outcome, JSON.stringify(act))
  }
})

t.test('a redirect is not followed', async t => {
  const gateway = await start(t)
  const other = await start(t)
  for (const status of [301, 302, 303, 307, 308]) {
    gateway.answerNext({ status, headers: { location: other.url } })
    t.same(await senderTo(gateway).send(SMS), { kind: 'refused', reason: `http-${status}` })
  }
  t.equal(other.requests.length, 0)
})

for (const body of ['endless', 'stalled'] as const) {
  t.test(`a body that is ${body} is dropped, and the message sent`, async t => {
    const gateway = await start(t)
    gateway.answerNext(body)
    t.same(await senderTo(gateway, { timeoutMs: 60_000 }).send(SMS), { kind: 'sent' })
  })
}

t.test('silence is a timeout, before and after the connection', async t => {
  const gateway = await start(t)
  const timeout = { kind: 'retry', reason: 'timeout' }
  gateway.answerNext('silence')
  t.same(await senderTo(gateway, { timeoutMs: 100 }).send(SMS), timeout)
  const silent = await startSilentServer()
  t.teardown(() => silent.close())
  const url = `http://127.0.0.1:${silent.port}`
  t.same(await senderTo(gateway, { url, timeoutMs: 100 }).send(SMS), timeout)
  await silent.close()
  t.same(await senderTo(gateway, { url }).send(SMS), { kind: 'retry', reason: 'network' })
})

t.test('settings that can make no message are refused with a sentence', async t => {
  const url = 'https://sms.example/send'
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  const bad: SmsOptions[] = [
    { url: 'not an address' },
    { url, headers: { 'content-type': 'text/xml' } },
    { url, headers: { 'x y': 'z' } },
    { url, headers: { 'x-key': 'a\r\nx: y' } },
    { url, body: '{"to":"{to}"}' },
    { url, body: '{"to":{to},"text":"{text}"}' },
    { url, body: 'to={to}&text={text}' },
    { url, headers: form, body: 'to={to}' },
  ]
  for (const options of bad) t.throws(() => new SmsSender(options), JSON.stringify(options))
  t.doesNotThrow(() => new SmsSender({ url, headers: form, body: 'to={to}&text={text}' }))
})
