/** Pushes as Apple and Google get them (contract 6): the rows of its table, header by header and byte by byte. */

import fc from 'fast-check'
import t, { type Test } from 'tap'
import { ApnsSender } from '../../src/delivery/apns.ts'
import { Delivery } from '../../src/delivery/delivery.ts'
import { FcmSender, finishedFcmPush } from '../../src/delivery/fcm.ts'
import { finishedApnsPush } from '../../src/delivery/finished-push.ts'
import { apnsPushOf, fcmPushOf } from '../../src/delivery/push.ts'
import { pushContentOf } from '../../src/delivery/push-content.ts'
import type { CallNoticeBody } from '../../src/domain/calls/call-notice.ts'
import type { Device, PushTokens } from '../../src/domain/devices/device.ts'
import type { CallId, DeviceId, RequestId, UserId } from '../../src/domain/ids.ts'
import type { Notice, NoticeBody } from '../../src/domain/messages/notice.ts'
import { anyNotice, NOTICES } from '../support/any-notice.ts'
import { startApnsStandIn } from '../support/apns-stand-in.ts'
import { startFcmStandIn } from '../support/fcm-stand-in.ts'
import { checkProperty } from '../support/property.ts'
import { deviceWith } from '../support/push-samples.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 3, 48, 41, 983)
const RING_ENDS_MS = NOW_MS + 60_000
const EVENT_ID = Buffer.alloc(16, 0x5a).toString('base64url')
const EVENT_UUID = '5a5a5a5a-5a5a-5a5a-5a5a-5a5a5a5a5a5a'
const USER = 9_007_199_254_740_991n as UserId
const DEVICE = 18_446_744_073_709_551_615n as DeviceId
const CALL = 8_000_000_001n as CallId
const CALLER = {
  callerId: 5_000_000_009n as UserId,
  callerName: 'Đặng “Q”',
  displayName: 'Đặng',
  alias: 'Đặng “Q”',
  isContact: true,
  isVideo: true,
}
/** The same in a push. */
const CALLER_MEMBERS = {
  callerId: '5000000009',
  callerName: 'Đặng “Q”',
  displayName: 'Đặng',
  alias: 'Đặng “Q”',
  isContact: true,
}
const KEY = Buffer.alloc(256, 7).toString('base64')

const ALERT_TOKEN = 'a1'.repeat(32)
const VOIP_TOKEN = 'b2'.repeat(32)
const FCM_TOKEN = 'fcm:token'
const BUNDLE = {
  bundleId: 'org.example.callsign',
  apnsEnvironment: 'production',
  registeredAtMs: {},
} as const
const IPHONE: PushTokens = { ...BUNDLE, apnsToken: ALERT_TOKEN, apnsVoipToken: VOIP_TOKEN }
const PIXEL: PushTokens = { fcmToken: FCM_TOKEN, registeredAtMs: { fcmToken: 1 } }

const INVITATION: CallNoticeBody = {
  kind: 'call_invitation',
  callId: CALL,
  version: 2,
  ...CALLER,
  encryptedAESKey: KEY,
  roomId: 123_456_789,
  isOnGoing: false,
  expiresAtMs: RING_ENDS_MS,
  participants: [{ userId: USER, displayName: 'Ann' }],
  keyEpoch: 1,
  keyFromUserId: CALLER.callerId,
  keyFromDeviceId: 9_000_000_001n as DeviceId,
}
const MISSED: CallNoticeBody = { kind: 'call_missed', callId: CALL, version: 2, ...CALLER, atMs: NOW_MS }

/** The members of every call push. */
const ENVELOPE = { eventId: EVENT_ID, sentAt: NOW_MS, deviceId: '18446744073709551615' }

function phoneWith(push: PushTokens | undefined): Device {
  return deviceWith({ deviceId: DEVICE, ...(push && { push }) })
}

function noticeOf(body: NoticeBody): Notice {
  return { ...body, eventId: EVENT_ID, sentAtMs: NOW_MS }
}

/** Pushes to a device with these tokens, and what came out at Apple's and Google's end. */
async function startProviders(t: Test) {
  const [apple, google] = await Promise.all([startApnsStandIn(), startFcmStandIn()])
  const { key, keyId, teamId, ca, port } = apple
  const hosts = { production: 'localhost', development: '127.0.0.1' }
  const apns = new ApnsSender({ key, keyId, teamId, ca, port, hosts })
  t.teardown(async () => {
    apns.close()
    await Promise.all([apple.close(), google.close()])
  })
  const fcm = new FcmSender({ serviceAccount: google.serviceAccount, url: google.url })
  async function push(tokens: PushTokens, body: NoticeBody, expiresAtMs: number, nowMs = NOW_MS) {
    const delivery = new Delivery({
      senders: { apns, fcm },
      letters: { appName: 'Callsign', domain: 'call.example', language: 'en' },
      nowMs: () => nowMs,
      deviceOf: () => phoneWith(tokens),
      badgeOf: () => 3,
      isRinging: () => true,
      onRingTaken: () => undefined,
      judgeToken: async () => {},
      setApnsEnvironment: async () => {},
      wait: () => new Promise(() => undefined),
      onTryFailed: () => undefined,
    })
    const notice = noticeOf(body)
    const outcome = await delivery.send({
      channel: 'push',
      userId: USER,
      deviceId: DEVICE,
      notice,
      expiresAtMs,
      provider: 'apns',
    })
    return outcome.kind
  }
  const atApple = () =>
    apple.pushes.map(({ token, headers, body }) => {
      const own = Object.entries(headers).filter(([name]) => name.startsWith('apns-'))
      return { token, headers: Object.fromEntries(own), body }
    })
  const atGoogle = () => google.messages.map(({ message }) => message)
  return { push, atApple, atGoogle }
}

function seconds(atMs: number): string {
  return String(Math.floor(atMs / 1000))
}

t.test('an invitation rings by the VoIP token until the ring ends, with the key and its epoch', async t => {
  const { push, atApple } = await startProviders(t)
  t.equal(await push(IPHONE, INVITATION, RING_ENDS_MS), 'sent')
  t.same(atApple(), [
    {
      token: VOIP_TOKEN,
      headers: {
        'apns-topic': 'org.example.callsign.voip',
        'apns-push-type': 'voip',
        'apns-priority': '10',
        'apns-expiration': seconds(RING_ENDS_MS),
        'apns-id': EVENT_UUID,
      },
      body: JSON.stringify({
        aps: {},
        type: 'call_invitation',
        callId: '8000000001',
        ...CALLER_MEMBERS,
        encryptedAESKey: KEY,
        keyEpoch: 1,
        keyFromUserId: '5000000009',
        keyFromDeviceId: '9000000001',
        roomId: 123_456_789,
        isVideo: true,
        isOnGoing: false,
        ...ENVELOPE,
        expiresAt: '2026-11-20T03:49:41.983Z',
      }),
    },
  ])
  t.ok(Buffer.byteLength(atApple()[0]!.body) < 900)
})

t.test('without a VoIP token an invitation is an alert that wakes the app', async t => {
  const { push, atApple } = await startProviders(t)
  await push({ ...BUNDLE, apnsToken: ALERT_TOKEN }, { ...INVITATION, isOnGoing: true }, RING_ENDS_MS)
  const [{ token, headers, body }] = atApple() as [ReturnType<typeof atApple>[number]]
  t.equal(token, ALERT_TOKEN)
  t.same(headers, {
    'apns-topic': 'org.example.callsign',
    'apns-push-type': 'alert',
    'apns-priority': '10',
    'apns-expiration': seconds(RING_ENDS_MS),
    'apns-collapse-id': '8000000001',
    'apns-id': EVENT_UUID,
  })
  const { aps, ...members } = JSON.parse(body)
  t.same(aps, {
    alert: { 'loc-key': 'call_invitation', 'loc-args': ['Đặng “Q”'] },
    sound: 'default',
    'thread-id': 'calls',
    'interruption-level': 'time-sensitive',
    'content-available': 1,
  })
  t.match(members, { type: 'call_invitation', isOnGoing: true, encryptedAESKey: KEY, ...ENVELOPE })
})

t.test('Android gets an invitation as data, texts only, for as long as it still rings', async t => {
  const { push, atGoogle } = await startProviders(t)
  await push(PIXEL, INVITATION, RING_ENDS_MS, NOW_MS + 5)
  await push(PIXEL, INVITATION, RING_ENDS_MS, RING_ENDS_MS - 12_000)
  const data = {
    type: 'call_invitation',
    callId: '8000000001',
    ...CALLER_MEMBERS,
    isContact: 'true',
    encryptedAESKey: KEY,
    keyEpoch: '1',
    keyFromUserId: '5000000009',
    keyFromDeviceId: '9000000001',
    roomId: '123456789',
    isVideo: 'true',
    isOnGoing: 'false',
    eventId: EVENT_ID,
    sentAt: String(NOW_MS),
    deviceId: '18446744073709551615',
    expiresAt: '2026-11-20T03:49:41.983Z',
  }
  t.same(atGoogle(), [
    { token: FCM_TOKEN, data, android: { priority: 'HIGH', ttl: '60s' } },
    { token: FCM_TOKEN, data, android: { priority: 'HIGH', ttl: '12s' } },
  ])
})

for (const [body, told] of [
  [{ kind: 'call_cancelled', callId: CALL, version: 2, ...CALLER, atMs: NOW_MS }, { reason: 'cancelled' }],
  [
    {
      kind: 'call_answered_elsewhere',
      callId: CALL,
      version: 2,
      ...CALLER,
      atMs: NOW_MS,
      reason: 'answered',
    },
    { reason: 'answered_elsewhere' },
  ],
  [
    {
      kind: 'call_answered_elsewhere',
      callId: CALL,
      version: 2,
      ...CALLER,
      atMs: NOW_MS,
      reason: 'declined',
    },
    { reason: 'declined_elsewhere' },
  ],
  [
    { kind: 'call_answered_elsewhere', callId: CALL, version: 2, ...CALLER, atMs: NOW_MS, reason: 'busy' },
    { reason: 'declined_elsewhere' },
  ],
  [
    { kind: 'call_ended', callId: CALL, version: 2, status: 'ended', endReason: 'hangup', endedAtMs: NOW_MS },
    { reason: 'ended', endReason: 'hangup' },
  ],
] satisfies [CallNoticeBody, object][]) {
  t.test(`${body.kind} (${told.reason}) stops the ringing in the background, never by VoIP`, async t => {
    const { push, atApple, atGoogle } = await startProviders(t)
    const expiresAtMs = NOW_MS + 30_000
    await push(IPHONE, body, expiresAtMs)
    await push(PIXEL, body, expiresAtMs, NOW_MS + 40)
    const caller = body.kind === 'call_ended' ? {} : { callerId: '5000000009', callerName: 'Đặng “Q”' }
    const members = { type: 'call_cancel', ...told, callId: '8000000001', ...caller, ...ENVELOPE }
    const [{ token, headers, body: sent }] = atApple() as [ReturnType<typeof atApple>[number]]
    t.equal(token, ALERT_TOKEN)
    t.same(headers, {
      'apns-topic': 'org.example.callsign',
      'apns-push-type': 'background',
      'apns-priority': '5',
      'apns-expiration': seconds(expiresAtMs),
      'apns-collapse-id': '8000000001',
      'apns-id': EVENT_UUID,
    })
    const { aps, ...flat } = JSON.parse(sent)
    t.same(aps, { 'content-available': 1 })
    t.match(flat, members)
    const [message] = atGoogle()
    t.same(message?.android, { priority: 'HIGH', ttl: '30s' })
    t.match(message?.data, { ...members, sentAt: String(NOW_MS) })
  })
}

t.test('a missed call is shown in the place of the call, with the badge', async t => {
  const { push, atApple, atGoogle } = await startProviders(t)
  const expiresAtMs = NOW_MS + 86_400_000
  await push(IPHONE, MISSED, expiresAtMs)
  await push(PIXEL, MISSED, expiresAtMs)
  const members = {
    type: 'missed_call',
    callId: '8000000001',
    ...CALLER_MEMBERS,
    isVideo: true,
    at: '2026-11-20T03:48:41.983Z',
    badge: 3,
    ...ENVELOPE,
    expiresAt: '2026-11-21T03:48:41.983Z',
  }
  const [{ token, headers, body }] = atApple() as [ReturnType<typeof atApple>[number]]
  t.equal(token, ALERT_TOKEN)
  t.same(headers, {
    'apns-topic': 'org.example.callsign',
    'apns-push-type': 'alert',
    'apns-priority': '10',
    'apns-expiration': seconds(expiresAtMs),
    'apns-collapse-id': '8000000001',
    'apns-id': EVENT_UUID,
  })
  t.same(JSON.parse(body), {
    aps: {
      alert: { 'loc-key': 'missed_call', 'loc-args': ['Đặng “Q”'] },
      sound: 'default',
      'thread-id': 'calls',
      badge: 3,
    },
    ...members,
  })
  t.same(atGoogle(), [
    {
      token: FCM_TOKEN,
      data: Object.fromEntries(Object.entries(members).map(([name, value]) => [name, String(value)])),
      android: {
        priority: 'HIGH',
        ttl: '86400s',
        notification: {
          channel_id: 'callsign_missed',
          body_loc_key: 'missed_call',
          body_loc_args: ['Đặng “Q”'],
          tag: '8000000001',
        },
      },
    },
  ])
})

t.test('a stranger rings as one, whatever their name is', async t => {
  const { push, atApple, atGoogle } = await startProviders(t)
  const stranger = { callerName: 'Mum', displayName: 'Mum', alias: undefined, isContact: false }
  const noVoip = { ...BUNDLE, apnsToken: ALERT_TOKEN }
  await push(noVoip, { ...INVITATION, ...stranger }, RING_ENDS_MS)
  await push(IPHONE, { ...INVITATION, ...stranger }, RING_ENDS_MS)
  await push(IPHONE, { ...MISSED, ...stranger }, NOW_MS + 86_400_000)
  await push(PIXEL, { ...INVITATION, ...stranger }, RING_ENDS_MS)
  await push(PIXEL, { ...MISSED, ...stranger }, NOW_MS + 86_400_000)
  const [alert, voip, missed] = atApple().map(({ body }) => JSON.parse(body))
  t.same(alert.aps.alert, { 'loc-key': 'call_invitation_stranger', 'loc-args': ['Mum'] })
  t.same(missed.aps.alert, { 'loc-key': 'missed_call_stranger', 'loc-args': ['Mum'] })
  t.match(voip, { type: 'call_invitation', callerName: 'Mum', displayName: 'Mum', isContact: false })
  t.notOk('alias' in voip)
  const [ring, gone] = atGoogle() as { data: object; android: { notification: object } }[]
  t.match(ring?.data, { callerName: 'Mum', isContact: 'false' })
  t.match(gone?.android?.notification, { body_loc_key: 'missed_call_stranger', body_loc_args: ['Mum'] })
})

t.test('a request of a friend is an alert on the ordinary token, of a device with both', async t => {
  const { push, atApple, atGoogle } = await startProviders(t)
  const body: NoticeBody = {
    kind: 'friend_request',
    requestId: 77n as RequestId,
    userId: CALLER.callerId,
    displayName: 'Bob',
    createdAtMs: NOW_MS,
  }
  await push(IPHONE, body, NOW_MS + 86_400_000)
  await push(PIXEL, body, NOW_MS + 86_400_000)
  const members = { requestId: '77', userId: '5000000009', displayName: 'Bob', badge: 3 }
  const [{ token, headers, body: sent }] = atApple() as [ReturnType<typeof atApple>[number]]
  t.same([token, headers['apns-topic'], headers['apns-push-type']], [ALERT_TOKEN, BUNDLE.bundleId, 'alert'])
  t.notOk('apns-collapse-id' in headers)
  t.same(JSON.parse(sent), {
    aps: {
      alert: { 'loc-key': 'newFriendRequested', 'loc-args': ['Bob'] },
      sound: 'default',
      'thread-id': 'contacts',
      badge: 3,
    },
    type: 'newFriendRequested',
    ...members,
    eventId: EVENT_ID,
    sentAt: NOW_MS,
  })
  t.match(atGoogle()[0], {
    data: { type: 'newFriendRequested', badge: '3' },
    android: { notification: { channel_id: 'callsign_contacts', body_loc_key: 'newFriendRequested' } },
  })
})

t.test(
  'a phone with a VoIP token of Apple and one of Google rings by the first, the rest by the second',
  async t => {
    const { push, atApple, atGoogle } = await startProviders(t)
    const tokens = { ...BUNDLE, apnsVoipToken: VOIP_TOKEN, fcmToken: FCM_TOKEN }
    await push(tokens, INVITATION, RING_ENDS_MS)
    await push(tokens, MISSED, RING_ENDS_MS)
    t.same([atApple().map(({ token }) => token), atGoogle().length], [[VOIP_TOKEN], 1])
    t.match(atGoogle()[0], { data: { type: 'missed_call' } })
  },
)

t.test('a device without a token for it is not pushed to', async t => {
  const { push, atApple, atGoogle } = await startProviders(t)
  await push({ ...BUNDLE, apnsVoipToken: VOIP_TOKEN }, MISSED, RING_ENDS_MS)
  await push(
    { registeredAtMs: {}, apnsToken: ALERT_TOKEN, apnsVoipToken: VOIP_TOKEN },
    INVITATION,
    RING_ENDS_MS,
  )
  t.same([atApple(), atGoogle()], [[], []])
})

t.test('a key that makes the payload too large is left out, where it does', async t => {
  const contentWith = (keyChars: number) => {
    const notice = noticeOf({ ...INVITATION, encryptedAESKey: 'k'.repeat(keyChars) })
    return pushContentOf(notice, { deviceId: DEVICE, expiresAtMs: RING_ENDS_MS, badgeOf: () => 0 })!
  }
  const pushWith = (keyChars: number) =>
    ({ content: contentWith(keyChars), eventId: EVENT_ID, expiresAtMs: RING_ENDS_MS }) as const
  const bytesOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value))
  const forms: [name: string, bytesMax: number, payloadOf: (keyChars: number) => object][] = [
    ['VoIP', 5_120, keyChars => finishedApnsPush(apnsPushOf(phoneWith(IPHONE), pushWith(keyChars))!).payload],
    [
      'alert',
      4_096,
      keyChars => {
        const device = phoneWith({ ...BUNDLE, apnsToken: ALERT_TOKEN })
        return finishedApnsPush(apnsPushOf(device, pushWith(keyChars))!).payload
      },
    ],
    [
      'FCM',
      4_096,
      keyChars => finishedFcmPush(fcmPushOf(phoneWith(PIXEL), pushWith(keyChars), NOW_MS)!).data,
    ],
  ]
  for (const [name, bytesMax, payloadOf] of forms) {
    t.ok(bytesOf(payloadOf(LONGEST_KEY_CHARS)) < 3_500, `${name}: room is left beside the longest key`)
    const keyCharsMax = bytesMax - bytesOf(payloadOf(0))
    t.equal(bytesOf(payloadOf(keyCharsMax)), bytesMax, `${name}: the largest with its key`)
    const keyless = payloadOf(keyCharsMax + 1)
    for (const member of ['encryptedAESKey', 'keyFromUserId', 'keyFromDeviceId'])
      t.notOk(member in keyless, name)
    t.match(keyless, { callId: '8000000001', callerName: 'Đặng “Q”', deviceId: ENVELOPE.deviceId }, name)
  }
})

/** Base64 of 1,024 bytes. */
const LONGEST_KEY_CHARS = 1_368

const anyTokens = fc.subarray(['apnsToken', 'apnsVoipToken', 'fcmToken', 'bundleId'] as const).map(names => {
  const { apnsToken, apnsVoipToken, bundleId, fcmToken } = { ...IPHONE, ...PIXEL }
  const all = { apnsToken, apnsVoipToken, bundleId, fcmToken }
  return { registeredAtMs: {}, ...Object.fromEntries(names.map(each => [each, all[each]])) } as PushTokens
})

t.test(
  'nothing but an incoming call comes by the VoIP token or on its topic, and all pushes fit',
  async t => {
    checkProperty(
      t,
      [anyNotice({ eventId: EVENT_ID, sentAtMs: NOW_MS }), anyTokens],
      (notice, tokens) => {
        const content = pushContentOf(notice, { deviceId: DEVICE, expiresAtMs: NOW_MS, badgeOf: () => 1 })
        if (content === undefined) return true
        const push = { content, eventId: EVENT_ID, expiresAtMs: NOW_MS }
        const apns = apnsPushOf(phoneWith(tokens), push)
        const fcm = fcmPushOf(phoneWith(tokens), push, NOW_MS)
        const texts = fcm ? Object.values(finishedFcmPush(fcm).data) : []
        return isRightForApple(notice, apns && finishedApnsPush(apns)) && areTexts(texts)
      },
      2_000,
    )
  },
)

function isRightForApple({ kind }: Notice, push: ReturnType<typeof apnsPushOf>): boolean {
  if (push === undefined) return true
  const isVoip = push.pushType === 'voip'
  const isWholly = push.topic.endsWith('.voip') === isVoip && (push.token === VOIP_TOKEN) === isVoip
  const bytes = Buffer.byteLength(JSON.stringify(push.payload))
  return isWholly && (!isVoip || kind === 'call_invitation') && bytes <= (isVoip ? 5_120 : 4_096)
}

function areTexts(values: readonly unknown[]): boolean {
  return values.every(value => typeof value === 'string') && Buffer.byteLength(values.join('')) <= 4_096
}

t.test('the kinds that are pushed are those of the table', async t => {
  const types = new Map<string, string>()
  for (const [kind, arbitrary] of Object.entries(NOTICES)) {
    const [members] = fc.sample(arbitrary, { numRuns: 1, seed: 1 })
    const notice = noticeOf({ kind, ...members } as NoticeBody)
    const content = pushContentOf(notice, { deviceId: DEVICE, expiresAtMs: NOW_MS, badgeOf: () => 1 })
    if (content !== undefined) types.set(kind, content.members.type)
  }
  t.same(Object.fromEntries(types), {
    call_invitation: 'call_invitation',
    call_cancelled: 'call_cancel',
    call_answered_elsewhere: 'call_cancel',
    call_ended: 'call_cancel',
    call_missed: 'missed_call',
    friend_request: 'newFriendRequested',
    contact_added: 'acceptFriendRequested',
    device_added: 'device_added',
    device_list_reset: 'device_list_reset',
    device_push_lost: 'device_push_lost',
    session_started: 'session_started',
    session_ending: 'session_ending',
    session_revoked: 'session_revoked',
    sign_in_waiting: 'sign_in_waiting',
    login_method_lost: 'login_method_lost',
  })
})
