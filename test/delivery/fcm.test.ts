/** Push to Android, against a stand-in that sells access tokens for verified assertions only. */

import { generateKeyPairSync } from 'node:crypto'
import t, { type Test } from 'tap'
import type { FcmPush } from '../../src/delivery/fcm.ts'
import { type FcmOptions, FcmSender } from '../../src/delivery/fcm.ts'
import { type FcmStandIn, startFcmStandIn, UNREGISTERED } from '../support/fcm-stand-in.ts'
import { startSilentServer } from '../support/smtp-sink.ts'

const NOW_MS = 1_790_000_000_000

async function start(t: Test, options: { expiresIn?: number } = {}): Promise<FcmStandIn> {
  const fcm = await startFcmStandIn(options)
  t.teardown(() => fcm.close())
  return fcm
}

function senderTo(fcm: FcmStandIn, options: Partial<FcmOptions> = {}): FcmSender {
  const { url, serviceAccount } = fcm
  return new FcmSender({ url, serviceAccount, timeoutMs: 5_000, nowMs: () => NOW_MS, ...options })
}

const PUSH: FcmPush = {
  token: 'dQw4w9WgXcQ:APA91b',
  priority: 'high',
  ttlSeconds: 57.9,
  data: { type: 'call_invitation', callId: '18446744073709551615' },
}

function googleError(status: string, message: string, details: unknown[] = []) {
  return { error: { code: 0, status, message, details } }
}

t.test('a data message arrives as HTTP v1 wants it', async t => {
  const fcm = await start(t)
  t.same(await senderTo(fcm).send(PUSH), { kind: 'sent' })
  const [{ path, message }] = fcm.messages as [FcmStandIn['messages'][number]]
  t.equal(path, '/v1/projects/callsign-test/messages:send')
  t.same(message, {
    token: PUSH.token,
    data: PUSH.data,
    android: { priority: 'HIGH', ttl: '57s' },
  })
})

t.test('a notification carries its words, its channel and its collapse key', async t => {
  const fcm = await start(t)
  await senderTo(fcm).send({
    ...PUSH,
    priority: 'normal',
    collapseKey: 'call-1',
    channelId: 'contacts',
    notification: { title: 'Callsign', bodyLocKey: 'friend_request', bodyLocArgs: ['Đặng'] },
  })
  t.same(fcm.messages[0]!.message.android, {
    priority: 'NORMAL',
    ttl: '57s',
    collapse_key: 'call-1',
    notification: {
      channel_id: 'contacts',
      title: 'Callsign',
      body_loc_key: 'friend_request',
      body_loc_args: ['Đặng'],
    },
  })
})

t.test('the assertion asks for messaging alone, for an hour', async t => {
  const fcm = await start(t)
  await senderTo(fcm).send(PUSH)
  t.same(fcm.assertions, [
    {
      iss: fcm.serviceAccount.client_email,
      aud: fcm.serviceAccount.token_uri,
      scope: 'https://www.googleapis.com/auth/firebase.messaging',
      iat: NOW_MS / 1000,
      exp: NOW_MS / 1000 + 3_600,
    },
  ])
})

t.test('one purchase serves all who wait, until five minutes before its end', async t => {
  const fcm = await start(t, { expiresIn: 3_600 })
  let nowMs = NOW_MS
  const sender = senderTo(fcm, { nowMs: () => nowMs })
  const outcomes = await Promise.all(Array.from({ length: 20 }, () => sender.send(PUSH)))
  t.ok(outcomes.every(({ kind }) => kind === 'sent'))
  t.equal(fcm.assertions.length, 1)
  nowMs = NOW_MS + 3_300_000 - 1
  await sender.send(PUSH)
  t.equal(fcm.assertions.length, 1)
  nowMs = NOW_MS + 3_300_000
  const before = fcm.messages.length
  await sender.send(PUSH)
  await fcm.received(before + 3)
  t.equal(fcm.assertions.length, 2)
})

t.test(
  'a push waits for no purchase while the token is good: a seller who is out goes unnoticed',
  async t => {
    const fcm = await start(t, { expiresIn: 3_600 })
    let nowMs = NOW_MS
    const sender = senderTo(fcm, { nowMs: () => nowMs })
    await sender.send(PUSH)
    nowMs = NOW_MS + 3_570_000 - 1
    fcm.answerNextPurchase('silence')
    t.same(await sender.send(PUSH), { kind: 'sent' })
    await fcm.received(4)
    t.same(await sender.send(PUSH), { kind: 'sent' })
    t.equal(fcm.assertions.length, 1)
  },
)

t.test('Google’s word that another service refuses the project is no fault of the access token', async t => {
  const fcm = await start(t)
  const sender = senderTo(fcm)
  const details = [{ errorCode: 'THIRD_PARTY_AUTH_ERROR' }]
  fcm.answerNext({ status: 401, body: googleError('UNAUTHENTICATED', '-', details) })
  t.same(await sender.send(PUSH), { kind: 'retry', reason: 'THIRD_PARTY_AUTH_ERROR', isOfMessage: true })
  t.equal(fcm.assertions.length, 1)
})

t.test('a token that is taken back is bought again, once for all', async t => {
  const fcm = await start(t)
  const sender = senderTo(fcm)
  await sender.send(PUSH)
  fcm.revokeTokens()
  const outcomes = await Promise.all(Array.from({ length: 10 }, () => sender.send(PUSH)))
  t.ok(outcomes.every(({ kind }) => kind === 'sent'))
  t.equal(fcm.assertions.length, 2)
})

t.test('a token that is refused when it is new is not bought for ever', async t => {
  const fcm = await start(t)
  const bad = { status: 200, body: { access_token: 'unknown', expires_in: 3_600 } }
  fcm.answerNextPurchase(bad, bad)
  t.same(await senderTo(fcm).send(PUSH), { kind: 'retry', reason: 'UNAUTHENTICATED', isOfAccount: true })
  t.equal(fcm.assertions.length, 0, 'no third purchase')
})

t.test('a purchase that fails is a retry, and the next send buys anew', async t => {
  const fcm = await start(t)
  const sender = senderTo(fcm)
  fcm.answerNextPurchase(
    { status: 503, headers: { 'retry-after': '3' } },
    { status: 400, body: { error: 'invalid_grant' } },
    { status: 200, body: 'not JSON' },
    { status: 200, body: { access_token: 7 } },
    'close',
  )
  t.same(await sender.send(PUSH), { kind: 'retry', reason: 'token-http-503', afterMs: 3_000 })
  t.same(await sender.send(PUSH), { kind: 'retry', reason: 'invalid_grant', isOfAccount: true })
  t.same(await sender.send(PUSH), { kind: 'retry', reason: 'token-http-200' })
  t.same(await sender.send(PUSH), { kind: 'retry', reason: 'token-http-200' })
  t.same(await sender.send(PUSH), { kind: 'retry', reason: 'network' })
  t.same(await sender.send(PUSH), { kind: 'sent' })
})

t.test('an account without an RSA key is refused at the start', async t => {
  const fcm = await start(t)
  const ecKey = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
  for (const private_key of ['', 'not a key', ecKey.export({ type: 'pkcs8', format: 'pem' }).toString()]) {
    const serviceAccount = { ...fcm.serviceAccount, private_key }
    t.throws(() => senderTo(fcm, { serviceAccount }), /RSA/)
  }
})

t.test('each answer of Google has its outcome', async t => {
  const fcm = await start(t)
  const sender = senderTo(fcm)
  const fcmError = (errorCode: string) => ({
    '@type': 'type.googleapis.com/google.firebase.fcm.v1.FcmError',
    errorCode,
  })
  const inField = (field: string) => ({
    '@type': 'type.googleapis.com/google.rpc.BadRequest',
    fieldViolations: [{ field, description: 'Invalid' }],
  })
  const badToken = 'The registration token is not a valid FCM registration token'
  const table = [
    [UNREGISTERED, { kind: 'token-gone', reason: 'UNREGISTERED' }],
    [
      {
        status: 400,
        body: googleError('INVALID_ARGUMENT', badToken, [fcmError('INVALID_ARGUMENT')]),
      },
      { kind: 'token-gone', reason: 'INVALID_ARGUMENT' },
    ],
    [
      { status: 400, body: googleError('INVALID_ARGUMENT', 'Invalid', [inField('message.token')]) },
      { kind: 'token-gone', reason: 'INVALID_ARGUMENT' },
    ],
    [
      { status: 400, body: googleError('INVALID_ARGUMENT', 'Message is too big', [inField('message.data')]) },
      { kind: 'refused', reason: 'INVALID_ARGUMENT' },
    ],
    [
      { status: 403, body: googleError('PERMISSION_DENIED', '-', [fcmError('SENDER_ID_MISMATCH')]) },
      { kind: 'refused', reason: 'SENDER_ID_MISMATCH' },
    ],
    [
      { status: 403, body: googleError('PERMISSION_DENIED', 'the API is off') },
      { kind: 'retry', reason: 'PERMISSION_DENIED', isOfAccount: true },
    ],
    [
      { status: 404, body: googleError('NOT_FOUND', 'no such project') },
      { kind: 'refused', reason: 'NOT_FOUND' },
    ],
    [
      { status: 404, body: '<html>' },
      { kind: 'refused', reason: 'http-404' },
    ],
    [
      { status: 302, headers: { location: 'http://127.0.0.1:1/' } },
      { kind: 'refused', reason: 'http-302' },
    ],
    [
      { status: 400, body: '{"error":{"details":[null,7,{"fieldViolations":[null]}]}}' },
      { kind: 'refused', reason: 'http-400' },
    ],
    [
      { status: 429, body: googleError('RESOURCE_EXHAUSTED', '-', [fcmError('QUOTA_EXCEEDED')]) },
      { kind: 'retry', reason: 'QUOTA_EXCEEDED', isOfMessage: true },
    ],
    [
      { status: 503, headers: { 'retry-after': '20' }, body: googleError('UNAVAILABLE', '-') },
      { kind: 'retry', reason: 'UNAVAILABLE', afterMs: 20_000 },
    ],
    [
      { status: 500, body: googleError('INTERNAL', '-') },
      { kind: 'retry', reason: 'INTERNAL' },
    ],
    ['close', { kind: 'sent' }],
  ] as const
  for (const [act, outcome] of table) {
    fcm.answerNext(act)
    t.same(await sender.send(PUSH), outcome, JSON.stringify(act))
  }
})

t.test('silence of either endpoint is a timeout', async t => {
  const fcm = await start(t)
  const sender = senderTo(fcm, { timeoutMs: 150 })
  fcm.answerNextPurchase('silence')
  t.same(await sender.send(PUSH), { kind: 'retry', reason: 'timeout' })
  fcm.answerNext('silence')
  t.same(await sender.send(PUSH), { kind: 'retry', reason: 'timeout' })
  const silent = await startSilentServer()
  t.teardown(() => silent.close())
  // Over TLS, such a session never gets as far as to be connected.
  for (const scheme of ['http', 'https']) {
    const url = `${scheme}://127.0.0.1:${silent.port}`
    const outcome = await senderTo(fcm, { url, timeoutMs: 150 }).send(PUSH)
    t.same(outcome, { kind: 'retry', reason: 'timeout' }, scheme)
  }
})

t.test('pushes share one session', async t => {
  const fcm = await start(t)
  const sender = senderTo(fcm)
  const outcomes = await Promise.all(Array.from({ length: 150 }, () => sender.send(PUSH)))
  t.same(new Set(outcomes.map(({ kind }) => kind)), new Set(['sent']))
  t.equal(fcm.messages.length, 150)
  t.equal(fcm.sessions(), 1)
})

t.test('a push whose session ends under it is sent on a new one, once', async t => {
  const fcm = await start(t)
  const sender = senderTo(fcm)
  await sender.send(PUSH)
  for (const end of ['close', 'goaway'] as const) {
    fcm.answerNext(end)
    t.same(await sender.send(PUSH), { kind: 'sent' }, end)
  }
  t.equal(fcm.messages.length, 5)
  fcm.answerNext('close', 'close')
  t.same(await sender.send(PUSH), { kind: 'retry', reason: 'network' })
  t.equal(fcm.messages.length, 7)
})

t.test('a session that has fallen silent is replaced', async t => {
  const fcm = await start(t)
  const sender = senderTo(fcm, { timeoutMs: 300 })
  await sender.send(PUSH)
  fcm.answerNext('silence')
  t.same(await sender.send(PUSH), { kind: 'retry', reason: 'timeout' })
  t.same(await sender.send(PUSH), { kind: 'sent' })
  t.equal(fcm.sessions(), 1)
})

t.test('an answer of any length is read no further than it is looked at', async t => {
  const fcm = await start(t)
  fcm.answerNext({ status: 400, body: 'x'.repeat(1_000_000) })
  t.same(await senderTo(fcm).send(PUSH), { kind: 'refused', reason: 'http-400' })
})

t.test('a sender that is closed sends nothing more', async t => {
  const fcm = await start(t)
  const sender = senderTo(fcm)
  await sender.send(PUSH)
  fcm.answerNext('silence')
  const underWay = sender.send(PUSH)
  await fcm.received(3)
  sender.close()
  t.same(await underWay, { kind: 'retry', reason: 'network' })
  t.same(await sender.send(PUSH), { kind: 'retry', reason: 'network' })
  t.equal(fcm.messages.length, 2)
})
