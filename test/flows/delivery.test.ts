/**
 * Two people with a phone each meet through the built server in production mode: keys in the log, a share link, a
 * request, pushes as APNs and FCM get them, word for word. And what a server does that is not joined to anything.
 */

import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { LogClient } from '../../src/client/client.ts'
import { App, newPublicKey } from '../support/app.ts'
import { openServer } from '../support/open-server.ts'
import { productionEnvironment } from '../support/outside-world.ts'
import { Rehearsal } from '../support/rehearsal.ts'
import type { OpenServer } from '../support/server.ts'
import { startSmsGateway } from '../support/sms-gateway.ts'

const PAUSE_MS = 20
const EVENT_ID = /^[\w-]{22}$/
const [APNS_TOKEN, FCM_TOKEN] = ['a1'.repeat(32), 'fcm:token-of-bob']
const IPHONE = {
  deviceInfo: { platform: 'ios', name: 'Ann’s iPhone', model: 'iPhone15,2', appVersion: '1.4.2' },
  push: { apnsToken: APNS_TOKEN, apnsEnvironment: 'production', bundleId: 'org.example.callsign' },
}
const PIXEL = {
  deviceInfo: { platform: 'android', name: 'Bob’s Pixel' },
  push: { fcmToken: FCM_TOKEN },
}

function rehearse(t: Test, environment: Readonly<Record<string, string>> = {}): Promise<Rehearsal> {
  return Rehearsal.start(t, { dataFolder: join(t.testdir(), 'data'), environment })
}

interface Phone {
  readonly app: App
  readonly userId: string
  readonly deviceId: string
  readonly publicKey: string
  readonly publicKeyHash: string
}

/** Signs in and registers a device. */
async function phoneOf(
  story: Rehearsal,
  email: string,
  { publicKey, ...more }: { readonly publicKey: string },
): Promise<Phone> {
  const app = await story.signIn(email, publicKey, APNS_TOKEN, FCM_TOKEN)
  const { userId } = await app.get(200, 'GET /app/api/user')
  const device = await app.get(201, 'POST /app/api/register_device', { publicKey, ...more })
  const { deviceId, publicKeyHash } = device
  return { app, userId, deviceId, publicKey, publicKeyHash: app.hide(publicKeyHash) }
}

const annsPhone = (story: Rehearsal) =>
  phoneOf(story, 'ann@example.org', { publicKey: newPublicKey('P-256 SPKI'), ...IPHONE })
const bobsPhone = (story: Rehearsal) =>
  phoneOf(story, 'bob@example.org', { publicKey: newPublicKey('RSA PKCS#1'), ...PIXEL })

function logClientOf({ http, vkey, vrfPublicKey }: OpenServer): LogClient {
  return new LogClient({ url: http, vkey, vrfPublicKey })
}

t.test('every form of key is logged byte for byte, and a stranger’s client proves it', async t => {
  const story = await rehearse(t)
  const client = logClientOf(story.server)
  const ann = await story.signIn('ann@example.org')
  const { userId } = await ann.get(200, 'GET /app/api/user')
  for (const [at, form] of (['P-256 SPKI', 'P-256 X9.63', 'RSA SPKI', 'RSA PKCS#1'] as const).entries()) {
    const publicKey = ann.hide(newPublicKey(form))
    const device = await ann.get(201, 'POST /app/api/register_device', { publicKey })
    t.match(device, { publicKeyIndex: String(at), vrfHash: device.publicKeyHash })
    t.equal(device.keyAlgorithm, form.startsWith('RSA') ? 'RSA-2048' : 'P-256')
    t.same(await ann.get(200, 'POST /api/register_device', { publicKey }), device, 'again: the same device')
    const { deviceId, vrfHash } = device
    const found = await client.lookUp({ userId, deviceId, vrfHash, publicKey })
    t.match(found, { kind: 'verified', publicKey, index: at }, form)
    const own = await client.checkOwnKeys({ userId, deviceId, vrfHash, publicKeys: [publicKey] })
    t.match(own, { kind: 'clean' }, form)
  }
  const bad = { publicKey: newPublicKey('P-256 SPKI'), keyAlgorithm: 'RSA-2048' }
  t.equal(await ann.outcome('POST /app/api/register_device', bad), '422 VALIDATION_FAILED')
  t.equal((await ann.get(200, 'GET /app/api/devices')).items.length, 4)
  await story.endWithoutLeaks(t)
})

t.test(
  'a new device is pushed to the user’s other ones; a key has one owner; a removed device is out',
  async t => {
    const story = await rehearse(t)
    const first = await annsPhone(story)
    const tablet = story.app()
    const login = await story.googleLogin('ann')
    tablet.take(await tablet.get(200, 'POST /app/api/login', login))
    const taken = { publicKey: first.publicKey }
    t.equal(await tablet.outcome('POST /app/api/register_device', taken), '409 KEY_IN_USE')

    await story.prove(first.app, 'ann@example.org')
    const add = { kind: 'social', ...(await story.googleLogin('ann-too')) }
    t.match(await first.app.get(201, 'POST /app/api/user/login-methods', add), { provider: 'google' })
    const second = story.app()
    second.take(await second.get(200, 'POST /app/api/login', await story.googleLogin('ann-too')))
    const device = await second.get(201, 'POST /app/api/register_device', {
      publicKey: newPublicKey('P-256 X9.63'),
      deviceInfo: { platform: 'ios', name: 'iPad' },
    })
    await story.world.apns.received(2)
    const { deviceId, publicKeyHash } = device
    const payloads = story.world.apns.pushes.map(({ payload }) => payload as { readonly type: string })
    t.match(
      payloads.find(({ type }) => type === 'session_started'),
      { proof: 'social', network: '127.0.0.0/24' },
    )
    t.match(
      payloads.find(({ type }) => type === 'device_added'),
      {
        aps: { alert: { 'loc-key': 'device_added', 'loc-args': ['iPad'] }, 'thread-id': 'account' },
        type: 'device_added',
        deviceId,
        name: 'iPad',
        platform: 'ios',
        publicKeyHash,
      },
    )

    t.equal(await first.app.outcome(`DELETE /app/api/devices/${deviceId}`), '204')
    t.equal(await second.outcome('GET /app/api/user'), '401 SESSION_REVOKED')
    t.equal(await first.app.outcome(`DELETE /app/api/devices/${deviceId}`), '404 DEVICE_NOT_FOUND')
    const { items } = await first.app.get(200, 'GET /app/api/devices')
    t.match(items, [{ deviceId: first.deviceId, name: 'Ann’s iPhone', model: 'iPhone15,2', current: true }])
    await story.endWithoutLeaks(t)
  },
)

t.test(
  'a share link leads to a request, a push, a yes, a push, and contacts who see each other’s keys',
  async t => {
    const story = await rehearse(t)
    const [ann, bob] = [await annsPhone(story), await bobsPhone(story)]
    const link = await ann.app.get(201, 'POST /app/api/share-token', { label: 'conference' })
    const token = bob.app.hide(link.token)
    t.equal(link.url, `https://call.example.org/c/${token}`)
    const qr = await ann.app.send(`GET /app/api/share-token/${link.id}/qr.svg`)
    t.match([qr.headers.get('content-type'), qr.text], [/^image\/svg\+xml/, /^(<\?xml.*)?<svg/s])
    const page = await bob.app.send(`GET /c/${token}`)
    t.match([page.status, page.headers.get('content-type')], [200, /html/])
    t.notMatch(page.text, /ann/i, 'the page says no name')
    t.same(await bob.app.get(200, 'POST /app/api/share-token/resolve', { token }), {
      token,
      displayName: 'ann',
      relation: 'none',
    })

    const body = { token, message: 'It’s Bob from the conference' }
    const request = await bob.app.get(201, 'POST /app/api/friend-request/by-token', body)
    t.match(request, { status: 'pending', user: { userId: ann.userId }, publicKeyHashs: [ann.publicKeyHash] })
    await story.world.apns.received(1)
    const { requestId } = request
    assertApnsPush(t, story, { requestId, userId: bob.userId, displayName: 'bob' })
    t.equal(await bob.app.outcome('POST /app/api/friend-request/by-token', body), '200', 'asked again')
    t.match((await ann.app.get(200, 'GET /app/api/user')).badge, { total: 1, friendRequests: 1 })
    t.match((await ann.app.get(200, 'GET /app/api/friend-request')).items, [
      { requestId, message: body.message },
    ])

    const accepted = await ann.app.get(200, 'POST /app/api/friend-request/accept', { requestId })
    t.match(accepted, { contact: { userId: bob.userId }, publicKeyHashs: [bob.publicKeyHash] })
    await story.world.fcm.received(2)
    assertFcmPush(t, story, { requestId, userId: ann.userId, displayName: 'ann' })
    t.equal(story.world.apns.pushes.length, 1, 'nobody else was pushed to')
    await assertContacts(t, story, ann, bob)
    await story.endWithoutLeaks(t)
  },
)

/** The push about a request as APNs got it, in all its headers and members. */
function assertApnsPush(t: Test, { world }: Rehearsal, members: Record<string, string>): void {
  const [push] = world.apns.pushes
  t.equal(push?.token, APNS_TOKEN)
  const { headers = {}, payload } = push!
  const named = Object.entries(headers).filter(([name]) => name.startsWith('apns-'))
  t.match(Object.fromEntries(named), {
    'apns-topic': 'org.example.callsign',
    'apns-push-type': 'alert',
    'apns-priority': '10',
    'apns-expiration': /^\d{10}$/,
    'apns-id': /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/,
  })
  const { eventId, sentAt, ...rest } = payload
  t.same(rest, {
    aps: {
      alert: { 'loc-key': 'newFriendRequested', 'loc-args': [members.displayName] },
      sound: 'default',
      'thread-id': 'contacts',
      badge: 1,
    },
    type: 'newFriendRequested',
    ...members,
    badge: 1,
  })
  t.match(eventId, EVENT_ID)
  t.equal(Number(headers['apns-expiration']), Math.floor((Number(sentAt) + 86_400_000) / 1000))
}

/** Likewise as FCM got the push about the answer. */
function assertFcmPush(t: Test, { world }: Rehearsal, members: Record<string, string>): void {
  const [{ path, headers, message } = { path: '', headers: {}, message: {} }] = world.fcm.messages
  t.equal(path, '/v1/projects/callsign-test/messages:send')
  t.match(headers.authorization, /^Bearer /)
  const { data, android, ...rest } = message as { data: Record<string, string>; android: { ttl: string } }
  const { eventId, sentAt, ...told } = data
  t.same(rest, { token: FCM_TOKEN })
  t.same(told, { type: 'acceptFriendRequested', ...members, badge: '0' })
  t.match([eventId, sentAt], [EVENT_ID, /^\d{13}$/])
  const { ttl, ...how } = android
  t.same(how, {
    priority: 'HIGH',
    notification: {
      channel_id: 'callsign_contacts',
      body_loc_key: 'acceptFriendRequested',
      body_loc_args: [members.displayName],
    },
  })
  t.match(ttl, /^86(400|39\d)s$/)
}

/** Contacts see each other’s keys, which the log proves, and then no more. */
async function assertContacts(t: Test, story: Rehearsal, ann: Phone, bob: Phone): Promise<void> {
  t.match((await bob.app.get(200, 'GET /app/api/friend')).items, [{ userId: ann.userId, devices: 1 }])
  const read = await bob.app.get(200, `GET /app/api/user/publicKeys?userIds=${ann.userId}`)
  const [{ devices }] = read.users
  t.match(devices, [{ deviceId: ann.deviceId, publicKey: ann.publicKey, publicKeyHash: ann.publicKeyHash }])
  const device = { userId: ann.userId, deviceId: ann.deviceId, vrfHash: devices[0].publicKeyHash }
  t.match(await logClientOf(story.server).lookUp(device), { kind: 'verified', publicKey: ann.publicKey })

  const again = { targetUserId: ann.userId }
  t.equal(await bob.app.outcome('POST /app/api/friend-request/by-id', again), '409 ALREADY_FRIENDS')
  t.equal(await ann.app.outcome(`DELETE /app/api/friend/${bob.userId}`), '204')
  t.same((await bob.app.get(200, 'GET /app/api/friend')).items, [])
  const hidden = await bob.app.get(200, `GET /app/api/user/publicKeys?userIds=${ann.userId}`)
  t.same(hidden, { users: [], unavailable: [ann.userId] })
  t.equal(await ann.app.outcome('POST /app/api/block', { userId: bob.userId }), '204')
  t.match(await bob.app.send('POST /app/api/friend-request/by-id', again), {
    status: 201,
    body: { status: 'pending' },
  })
  t.same((await ann.app.get(200, 'GET /app/api/friend-request')).items, [], 'and nothing comes of it')
  t.match((await ann.app.get(200, 'GET /app/api/block')).items, [{ userId: bob.userId }])
}

t.test('a push that is refused for good takes its token back; one that fails comes again', async t => {
  const story = await rehearse(t)
  const [ann, bob] = [await annsPhone(story), await bobsPhone(story)]
  const ask = (asker: Phone, asked: Phone) =>
    asker.app.get(201, 'POST /app/api/friend-request/by-id', { targetUserId: asked.userId })
  story.world.apns.answerNext({ status: 503, reason: 'ServiceUnavailable' })
  const { requestId } = await ask(bob, ann)
  await story.world.apns.received(2)
  const [first, second] = story.world.apns.pushes
  t.same(second?.payload, first?.payload)
  t.equal(second?.headers['apns-id'], first?.headers['apns-id'])

  t.equal(await bob.app.outcome('POST /app/api/friend-request/cancel', { requestId }), '204')
  story.world.apns.answerNext({ status: 410, reason: 'Unregistered', timestamp: Date.now() + 60_000 })
  const next = await ask(bob, ann)
  await story.world.apns.received(3)
  await bob.app.get(204, 'POST /app/api/friend-request/cancel', { requestId: next.requestId })
  await eventually(async () => {
    const metrics = await (await fetch(`${story.server.admin}/metrics`)).text()
    return /^callsign_deliveries_total\{channel="push",outcome="token-gone"\} 1$/m.test(metrics)
  })
  await ask(bob, ann)
  const { requestId: answered } = (await ann.app.get(200, 'GET /app/api/friend-request')).items[0]
  await ann.app.get(200, 'POST /app/api/friend-request/accept', { requestId: answered })
  await story.world.fcm.received(2)
  t.equal(story.world.apns.pushes.length, 3, 'the token that is gone gets nothing more')
  await story.endWithoutLeaks(t)
})

t.test('a login check keeps codes back, and the figures show where it does not answer', async t => {
  const service = await startSmsGateway()
  t.teardown(() => service.close())
  const allow = (isAllowed: boolean) => ({ status: 200, body: { allow: isAllowed } })
  service.answerNext(allow(true), allow(false), { status: 500 })
  const story = await rehearse(t, {
    CALLSIGN_LOGIN_CHECK_URL: service.url,
    CALLSIGN_LOGIN_CHECK_TOKEN: 'token-of-the-check',
    CALLSIGN_SMS_COUNTRIES: 'VN',
  })
  const app = story.app()
  const attestation = app.hide('attestation-of-the-app')
  const ask = (phone: string) => app.get(200, 'POST /app/api/login', { phone, attestation })
  await ask('+84912345601')
  await story.world.sms.smsTo('+84912345601')
  await ask('+84912345602')
  await service.received(2)
  await ask('+84912345603')
  await story.world.sms.smsTo('+84912345603')
  t.equal(await app.outcome('POST /app/api/login', { phone: '+4915112345678' }), '403 BLOCKED_COUNTRY')
  t.notOk(story.world.sms.requests.some(({ body }) => body.includes('+84912345602')))
  t.match(service.requests[0], { headers: { authorization: 'Bearer token-of-the-check' } })
  t.same(JSON.parse(service.requests[0]!.body), {
    ...{
      kind: 'sms',
      prefix: '+8491234',
      country: 'VN',
      network: '127.0.0.0/24',
      purpose: 'login',
      attestation,
    },
  })
  const metrics = await (await fetch(`${story.server.admin}/metrics`)).text()
  for (const outcome of ['allowed', 'denied', 'failed'])
    t.match(metrics, `\ncallsign_login_checks_total{outcome="${outcome}"} 1\n`)
  await story.endWithoutLeaks(t)
})

/** Resolves once it holds; the test's own deadline ends it else. */
async function eventually(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await setTimeout(PAUSE_MS)
}

async function startBare(t: Test, environment: Readonly<Record<string, string>> = {}): Promise<OpenServer> {
  const server = await openServer({
    dataFolder: join(t.testdir(), 'data'),
    dev: false,
    environment: { ...productionEnvironment(), ...environment },
  })
  t.teardown(() => server.end())
  return server
}

const REVIEWER = { CALLSIGN_TEST_IDENTIFIERS: '{"review@example.org":"424242"}' }

/** Signs in with the address of the reviewer, to which nothing is sent. */
async function signInAsReviewer({ http }: OpenServer): Promise<{ app: App; userId: unknown }> {
  const app = new App(http)
  const { challengeId } = await app.get(200, 'POST /app/api/login', { email: 'review@example.org' })
  const body = { challengeId, otp: '424242' }
  const { user } = app.take(await app.get(200, 'POST /app/api/verify-login', body))
  return { app, userId: user.userId }
}

t.test('without mail and SMS no code is promised, but the reviewer gets in', async t => {
  const server = await startBare(t, REVIEWER)
  const app = new App(server.http)
  for (const body of [{ email: 'ann@example.org' }, { phone: '+84912345678' }]) {
    const refused = await app.send('POST /app/api/login', body)
    t.match(refused.body, { status: 503, code: 'DELIVERY_UNAVAILABLE' })
    t.ok(Number(refused.headers.get('retry-after')) > 0)
  }
  const social = { verified: true, provider: 'google', idToken: 'a.b.c' }
  t.equal(await app.outcome('POST /app/api/login', social), '400 PROVIDER_TOKEN_INVALID')
  const meta = await app.get(200, 'GET /app/api/meta')
  t.match(meta, { loginMethods: [], features: { mail: false, sms: false, apns: false, fcm: false } })
  const { app: reviewer } = await signInAsReviewer(server)
  t.equal(await reviewer.outcome('GET /app/api/user'), '200')
})

t.test('production has no pages for developers', async t => {
  const app = new App((await startBare(t)).http)
  for (const path of ['/dev/inbox', '/dev/pushes', '/dev', '/docs', '/docs/', '/docs/api/initializer.js']) {
    t.equal(await app.outcome(`GET ${path}`), '404 NOT_FOUND', path)
  }
  t.equal(
    (await app.send('POST /app/api/login', { email: 'x', typo: 1 })).headers.get('x-unknown-fields'),
    null,
  )
  t.equal(await app.outcome('GET /openapi.json'), '200')
})

t.test('lookups need a token where the operator says so, the public log never', async t => {
  const server = await startBare(t, { ...REVIEWER, CALLSIGN_KT_REQUIRE_AUTH: '1', KT_INDEX_PRIVATE_KEY: '' })
  const { app } = await signInAsReviewer(server)
  const publicKey = newPublicKey('P-256 SPKI')
  const { publicKeyHash } = await app.get(201, 'POST /app/api/register_device', { publicKey })
  const targets = { targets: [{ publicKeyHash }] }
  const stranger = new App(server.http)
  t.equal(await stranger.outcome('POST /api/get-public-keys', targets), '401 TOKEN_MISSING')
  t.equal(await stranger.outcome('POST /api/get-key-history', { publicKeyHash }), '401 TOKEN_MISSING')
  const lookup = `GET /index/lookup/${'0'.repeat(64)}`
  t.equal(await stranger.outcome(lookup), '401 TOKEN_MISSING')
  t.equal(await app.outcome(lookup), '503 INDEX_UNAVAILABLE', 'there is no key of an index')
  t.equal((await fetch(`${server.http}/index/checkpoint`)).status, 404)
  t.equal(await stranger.outcome('GET /checkpoint'), '200')
  t.equal(await stranger.outcome('GET /tile/entries/000.p/1'), '200')
  t.match(await app.get(200, 'POST /api/get-public-keys', targets), { results: [{ publicKey }] })
  t.match(await stranger.get(200, 'GET /app/api/meta'), { features: { lookupsNeedToken: true } })
})

t.test('ids are bare digits where the operator says so, and none loses one', async t => {
  const server = await startBare(t, { ...REVIEWER, CALLSIGN_JSON_IDS: 'number' })
  const { app, userId } = await signInAsReviewer(server)
  t.type(userId, 'number')
  const { text } = await app.send('GET /app/api/user')
  t.match(text, new RegExp(`"userId":${userId},`))
  const largest = '18446744073709551615'
  const { text: unavailable } = await app.send(`GET /app/api/user/publicKeys?userIds=${largest}`)
  t.match(unavailable, `"unavailable":[${largest}]`)
  const raw = await fetch(`${server.http}/app/api/friend-request/by-id`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${app.accessToken}` },
    body: `{"targetUserId":${userId}}`,
  })
  t.match(await raw.json(), { status: 422, code: 'SELF_REQUEST' }, 'they are read as well')
})
