/** Push to Apple devices, against a stand-in that speaks HTTP/2 over TLS and verifies every provider token. */

import { generateKeyPairSync } from 'node:crypto'
import t, { type Test } from 'tap'
import { type ApnsOptions, ApnsSender } from '../../src/delivery/apns.ts'
import type { ApnsPush } from '../../src/delivery/apns-link.ts'
import { type ApnsStandIn, startApnsStandIn } from '../support/apns-stand-in.ts'
import { startSilentServer } from '../support/smtp-sink.ts'

const TOKEN = 'ab'.repeat(32)
const UNREGISTERED_AT_MS = 1_790_000_000_123

async function start(t: Test): Promise<ApnsStandIn> {
  const apns = await startApnsStandIn()
  t.teardown(() => apns.close())
  return apns
}

/** A sender with the stand-in as both environments, under two names. */
function senderTo(t: Test, apns: ApnsStandIn, options: Partial<ApnsOptions> = {}): ApnsSender {
  const { key, keyId, teamId, ca, port } = apns
  const hosts = { production: 'localhost', development: '127.0.0.1' }
  const sender = new ApnsSender({ key, keyId, teamId, ca, port, hosts, timeoutMs: 5_000, ...options })
  t.teardown(() => sender.close())
  return sender
}

function pushOf(changes: Partial<ApnsPush> = {}): ApnsPush {
  return {
    token: TOKEN,
    environment: 'production',
    topic: 'example.callsign.voip',
    pushType: 'voip',
    isUrgent: true,
    priority: 10,
    expiresAtMs: 1_790_000_010_999,
    id: '7f3c2b9e-0c1d-4e5f-8a9b-0c1d2e3f4a5b',
    payload: { aps: {}, callId: '18446744073709551615', callerName: 'Đặng “Q”' },
    ...changes,
  }
}

t.test('a push arrives with the headers asked for and exactly the payload', async t => {
  const apns = await start(t)
  const push = pushOf({ collapseId: 'call-1' })
  t.same(await senderTo(t, apns).send(push), { kind: 'sent', environment: 'production' })
  const [received] = apns.pushes
  t.equal(received!.token, TOKEN)
  t.equal(received!.body, JSON.stringify(push.payload))
  const names = Object.keys(received!.headers).filter(name => name.startsWith('apns-'))
  t.same(Object.fromEntries(names.map(name => [name, received!.headers[name]])), {
    'apns-topic': 'example.callsign.voip',
    'apns-push-type': 'voip',
    'apns-priority': '10',
    'apns-expiration': '1790000010',
    'apns-id': push.id,
    'apns-collapse-id': 'call-1',
  })
})

t.test('an empty payload is sent as it is', async t => {
  const apns = await start(t)
  apns.decide = () => ({ status: 200 })
  t.equal((await senderTo(t, apns).send(pushOf({ payload: { aps: {} } }))).kind, 'sent')
  t.equal(apns.pushes[0]!.body, '{"aps":{}}')
})

t.test('pushes share one session and one provider token, sent one by one or together', async t => {
  const apns = await start(t)
  const sender = senderTo(t, apns)
  await sender.send(pushOf())
  const outcomes = await Promise.all(Array.from({ length: 50 }, () => sender.send(pushOf())))
  t.ok(outcomes.every(({ kind }) => kind === 'sent'))
  t.equal(apns.sessions(), 1)
  t.equal(new Set(apns.pushes.map(({ providerToken }) => providerToken)).size, 1)
})

t.test('a key that is not the team’s is refused, which is ours to mend', async t => {
  const apns = await start(t)
  const { key } = await start(t)
  const refused = { kind: 'retry', reason: 'InvalidProviderToken', isOfAccount: true }
  t.same(await senderTo(t, apns, { key }).send(pushOf()), refused)
  t.same(await senderTo(t, apns, { teamId: 'OTHERTEAM1' }).send(pushOf()), refused)
})

t.test('a key that can sign no token is refused at the start, and never taken for a file', async t => {
  const apns = await start(t)
  const rsaKey = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
  for (const key of ['', '/etc/hostname', rsaKey.export({ type: 'pkcs8', format: 'pem' }).toString()]) {
    t.throws(() => senderTo(t, apns, { key }), /p8/)
  }
})

t.test('each answer of Apple has its outcome', async t => {
  const apns = await start(t)
  const sender = senderTo(t, apns, { hosts: { production: 'localhost', development: 'localhost' } })
  const table = [
    [
      { status: 410, reason: 'Unregistered', timestamp: UNREGISTERED_AT_MS },
      { kind: 'token-gone', reason: 'Unregistered', sinceMs: UNREGISTERED_AT_MS },
    ],
    [
      { status: 410, reason: 'ExpiredToken' },
      { kind: 'token-gone', reason: 'ExpiredToken' },
    ],
    [
      { status: 400, reason: 'BadDeviceToken' },
      { kind: 'token-unknown', reason: 'BadDeviceToken' },
    ],
    [
      { status: 400, reason: 'ExpiredToken' },
      { kind: 'token-gone', reason: 'ExpiredToken' },
    ],
    [
      { status: 400, reason: 'BadTopic' },
      { kind: 'refused', reason: 'BadTopic' },
    ],
    [
      { status: 400, reason: 'no word <script>' },
      { kind: 'refused', reason: 'http-400' },
    ],
    [
      { status: 403, reason: 'BadEnvironmentKeyInToken' },
      { kind: 'refused', reason: 'BadEnvironmentKeyInToken' },
    ],
    [
      { status: 413, reason: 'PayloadTooLarge' },
      { kind: 'refused', reason: 'PayloadTooLarge' },
    ],
    [
      { status: 429, reason: 'TooManyRequests' },
      { kind: 'retry', reason: 'TooManyRequests', isOfMessage: true },
    ],
    [
      { status: 429, reason: 'TooManyProviderTokenUpdates' },
      { kind: 'retry', reason: 'TooManyProviderTokenUpdates' },
    ],
    [
      { status: 500, reason: 'InternalServerError' },
      { kind: 'retry', reason: 'InternalServerError' },
    ],
    [
      { status: 503, reason: 'ServiceUnavailable' },
      { kind: 'retry', reason: 'ServiceUnavailable' },
    ],
  ] as const
  for (const [answer, outcome] of table) {
    apns.answerNext(answer)
    const before = apns.pushes.length
    t.same(await sender.send(pushOf()), outcome, answer.reason)
    t.equal(apns.pushes.length, before + 1, 'sent once')
  }
})

for (const failure of ['goaway', 'close', 'reset'] as const) {
  t.test(`a session that fails by ${failure} is replaced and the push sent again, once`, async t => {
    const apns = await start(t)
    const sender = senderTo(t, apns, { timeoutMs: 60_000, urgentTimeoutMs: 60_000 })
    await sender.send(pushOf())
    apns.answerNext(failure)
    t.same(await sender.send(pushOf()), { kind: 'sent', environment: 'production' })
    t.equal(apns.sessions(), 2)
    const [first, , second] = apns.pushes
    t.equal(second!.headers['apns-id'], first!.headers['apns-id'])
    t.equal(second!.providerToken, first!.providerToken, 'with the same provider token')

    apns.answerNext(failure, failure)
    t.same(await sender.send(pushOf()), { kind: 'retry', reason: 'network' })
    t.equal(apns.pushes.length, 5, 'not a third time')
  })
}

t.test('a silent session is replaced, and none is left behind', async t => {
  const apns = await start(t)
  // Long enough for an answer on a busy machine.
  const sender = senderTo(t, apns, { timeoutMs: 1_500 })
  const { isUrgent: _, ...push } = pushOf({ pushType: 'alert' })
  await sender.send(push)
  apns.answerNext('silence')
  t.same(await sender.send(push), { kind: 'sent', environment: 'production' })
  t.equal(apns.sessions(), 2)
  t.equal(apns.openSessions(), 1)
  apns.answerNext('silence', 'silence')
  t.same(await sender.send(push), { kind: 'retry', reason: 'timeout' })
})

t.test('a call push is given up sooner than other pushes', async t => {
  const apns = await start(t)
  const sender = senderTo(t, apns, { timeoutMs: 60_000, urgentTimeoutMs: 100 })
  apns.answerNext('silence', 'silence')
  t.same(await sender.send(pushOf()), { kind: 'retry', reason: 'timeout' })
})

t.test('pushes that fail with their session all go to the one that replaces it', async t => {
  const apns = await start(t)
  const sender = senderTo(t, apns, { timeoutMs: 60_000, urgentTimeoutMs: 60_000 })
  await sender.send(pushOf())
  apns.answerNext(...Array.from({ length: 19 }, () => 'silence' as const), 'close')
  const outcomes = await Promise.all(Array.from({ length: 20 }, () => sender.send(pushOf())))
  t.ok(outcomes.every(({ kind }) => kind === 'sent'))
  t.equal(apns.sessions(), 2)
})

t.test('a push after a goodbye in peace goes to a new session', async t => {
  const apns = await start(t)
  const sender = senderTo(t, apns)
  apns.answerNext('last')
  t.equal((await sender.send(pushOf())).kind, 'sent')
  t.equal((await sender.send(pushOf())).kind, 'sent')
})

t.test('a server that never finishes its handshake is a timeout', async t => {
  const apns = await start(t)
  const silent = await startSilentServer()
  t.teardown(() => silent.close())
  const sender = senderTo(t, apns, {
    port: silent.port,
    hosts: { production: '127.0.0.1', development: '127.0.0.1' },
    urgentTimeoutMs: 100,
  })
  t.same(await sender.send(pushOf()), { kind: 'retry', reason: 'timeout' })
})

t.test('a certificate that is not trusted, and a port that is closed, are network failures', async t => {
  const apns = await start(t)
  const { key, keyId, teamId, port } = apns
  const hosts = { production: 'localhost', development: 'localhost' }
  const distrustful = new ApnsSender({ key, keyId, teamId, port, hosts })
  t.teardown(() => distrustful.close())
  t.same(await distrustful.send(pushOf()), { kind: 'retry', reason: 'network' })
  t.equal(apns.pushes.length, 0)

  const gone = await startSilentServer()
  await gone.close()
  t.same(await senderTo(t, apns, { port: gone.port }).send(pushOf()), { kind: 'retry', reason: 'network' })
})

t.test('a token of the other environment is found there, which is reported', async t => {
  const apns = await start(t)
  apns.decide = ({ host }) =>
    host.startsWith('localhost') ? { status: 400, reason: 'BadDeviceToken' } : { status: 200 }
  const sender = senderTo(t, apns)
  t.same(await sender.send(pushOf()), { kind: 'sent', environment: 'development' })
  t.same(await sender.send(pushOf({ environment: 'development' })), {
    kind: 'sent',
    environment: 'development',
  })
  t.same(
    apns.pushes.map(({ host }) => host),
    ['localhost', '127.0.0.1', '127.0.0.1'],
  )
})

t.test('a token that neither environment knows is unknown: it may be of another app', async t => {
  const apns = await start(t)
  apns.decide = () => ({ status: 400, reason: 'BadDeviceToken' })
  t.same(await senderTo(t, apns).send(pushOf()), { kind: 'token-unknown', reason: 'BadDeviceToken' })
  t.equal(apns.pushes.length, 2)
})

t.test('where the key is not good for the other environment the first answer stands', async t => {
  const apns = await start(t)
  apns.answerNext(
    { status: 400, reason: 'BadDeviceToken' },
    { status: 403, reason: 'BadEnvironmentKeyInToken' },
  )
  t.same(await senderTo(t, apns).send(pushOf()), { kind: 'token-unknown', reason: 'BadDeviceToken' })
})

t.test('while the other environment is away a bad token is not given up', async t => {
  const apns = await start(t)
  apns.answerNext({ status: 400, reason: 'BadDeviceToken' }, { status: 503, reason: 'Shutdown' })
  t.same(await senderTo(t, apns).send(pushOf()), { kind: 'retry', reason: 'Shutdown' })
})

t.test('a payload over the limit, and a token of no possible form, are not sent', async t => {
  const apns = await start(t)
  const sender = senderTo(t, apns)
  const ofBytes = (bytes: number) => ({ é: 'x'.repeat(bytes - 9) })
  t.equal(Buffer.byteLength(JSON.stringify(ofBytes(5_120))), 5_120)
  t.equal((await sender.send(pushOf({ payload: ofBytes(5_120) }))).kind, 'sent')
  t.equal((await sender.send(pushOf({ pushType: 'alert', payload: ofBytes(4_096) }))).kind, 'sent')
  const refused = { kind: 'refused', reason: 'PayloadTooLarge' }
  t.same(await sender.send(pushOf({ payload: ofBytes(5_121) })), refused)
  t.same(await sender.send(pushOf({ pushType: 'alert', payload: ofBytes(4_097) })), refused)
  for (const token of ['', '../../x', 'ab cd', 'ab\r\nx: y']) {
    t.same(await sender.send(pushOf({ token })), { kind: 'token-gone', reason: 'BadDeviceToken' }, token)
  }
  t.equal(apns.pushes.length, 2)
})

t.test('a provider token serves 50 minutes', async t => {
  const apns = await start(t)
  let nowMs = 0
  const sender = senderTo(t, apns, { nowMs: () => nowMs })
  for (const minutes of [0, 49.9, 50, 99.9, 100]) {
    nowMs = minutes * 60_000
    await sender.send(pushOf())
  }
  const [first, second, third] = [...new Set(apns.pushes.map(({ providerToken }) => providerToken))]
  t.same(
    apns.pushes.map(({ providerToken }) => providerToken),
    [first, first, second, second, third],
  )
})

for (const reason of ['ExpiredProviderToken', 'InvalidProviderToken']) {
  t.test(
    `a provider token that Apple refuses (${reason}) is replaced at once, then not for 20 minutes`,
    async t => {
      const apns = await start(t)
      let nowMs = 5_000
      const sender = senderTo(t, apns, { nowMs: () => nowMs })
      const tokens = () => new Set(apns.pushes.map(({ providerToken }) => providerToken)).size
      const refused = { status: 403, reason }
      await sender.send(pushOf())
      apns.answerNext(refused)
      t.equal((await sender.send(pushOf())).kind, 'sent', 'the same push again')
      t.same([apns.pushes.length, tokens()], [3, 2])
      nowMs += 20 * 60_000 - 1
      apns.answerNext(refused)
      t.same(await sender.send(pushOf()), { kind: 'retry', reason, isOfAccount: true })
      t.equal((await sender.send(pushOf())).kind, 'sent', 'pushes go on with the present one')
      t.same([apns.pushes.length, tokens()], [5, 2])
      nowMs += 1
      apns.answerNext(refused, refused)
      t.same(await sender.send(pushOf()), { kind: 'retry', reason, isOfAccount: true })
      t.same([apns.pushes.length, tokens()], [7, 3])
    },
  )
}

t.test('pushes that are refused together share one new token', async t => {
  const apns = await start(t)
  const sender = senderTo(t, apns)
  await sender.send(pushOf())
  apns.answerNext(...Array.from({ length: 20 }, () => ({ status: 403, reason: 'ExpiredProviderToken' })))
  const outcomes = await Promise.all(Array.from({ length: 20 }, () => sender.send(pushOf())))
  t.ok(outcomes.every(({ kind }) => kind === 'sent'))
  t.equal(new Set(apns.pushes.map(({ providerToken }) => providerToken)).size, 2)
})

t.test('a push that comes while a session is silent goes to another, with the same token', async t => {
  const apns = await start(t)
  const sender = senderTo(t, apns, { urgentTimeoutMs: 60_000 })
  await sender.send(pushOf())
  apns.answerNext('silence')
  const waiting = sender.send(pushOf())
  await apns.received(2)
  const now = performance.now
  t.teardown(() => Object.assign(performance, { now }))
  performance.now = () => now.call(performance) + 1_000
  t.equal((await sender.send(pushOf())).kind, 'sent')
  t.equal(apns.sessions(), 2)
  t.equal(new Set(apns.pushes.map(({ providerToken }) => providerToken)).size, 1)
  sender.close()
  t.same(await waiting, { kind: 'retry', reason: 'network' }, 'closing ends the silent one, too')
})

t.test('a token of a clock that was set back since is replaced', async t => {
  const apns = await start(t)
  let nowMs = 5 * 3_600_000
  const sender = senderTo(t, apns, { nowMs: () => nowMs })
  await sender.send(pushOf())
  nowMs = 0
  t.equal((await sender.send(pushOf())).kind, 'sent')
  t.equal(apns.sessions(), 2)
})

t.test('a session of a replaced token is closed when its last answer has come', async t => {
  const apns = await start(t)
  let nowMs = 0
  const sender = senderTo(t, apns, { nowMs: () => nowMs })
  await sender.send(pushOf())
  nowMs = 50 * 60_000
  await sender.send(pushOf())
  t.equal(apns.sessions(), 2)
  await sender.send(pushOf())
  t.equal(apns.openSessions(), 1)
})

t.test('closing ends the sessions, and a push under way with them', async t => {
  const apns = await start(t)
  const sender = senderTo(t, apns, { urgentTimeoutMs: 60_000 })
  apns.answerNext('silence')
  const sending = sender.send(pushOf())
  await apns.received(1)
  sender.close()
  t.same(await sending, { kind: 'retry', reason: 'network' })
  t.same(await sender.send(pushOf()), { kind: 'retry', reason: 'network' })
  t.equal(apns.sessions(), 1)
})

t.test('closing ends a connection that is still being made', async t => {
  const apns = await start(t)
  const silent = await startSilentServer()
  t.teardown(() => silent.close())
  const hosts = { production: '127.0.0.1', development: '127.0.0.1' }
  const sender = senderTo(t, apns, { port: silent.port, hosts, urgentTimeoutMs: 60_000 })
  const sending = sender.send(pushOf())
  await silent.reached
  sender.close()
  t.same(await sending, { kind: 'retry', reason: 'network' })
})
