/** Pushes as a browser reads them, by way of its push service. */

import { createHash, randomBytes } from 'node:crypto'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { Delivery, type Rendered } from '../../src/delivery/delivery.ts'
import { pushContentOf } from '../../src/delivery/push-content.ts'
import { generateVapidKey } from '../../src/delivery/vapid-key.ts'
import { WEB_PUSH_BYTES_MAX, WebPushSender } from '../../src/delivery/web-push.ts'
import { webPushOf } from '../../src/delivery/web-push-content.ts'
import type { TokenVerdict } from '../../src/domain/devices/device.ts'
import type { CallId, RequestId, UserId } from '../../src/domain/ids.ts'
import type { NoticeBody } from '../../src/domain/messages/notice.ts'
import { anyNotice } from '../support/any-notice.ts'
import { checkProperty } from '../support/property.ts'
import { deviceWith, invitationWith } from '../support/push-samples.ts'
import { SINK_HOST, WebPushSink } from '../support/web-push-sink.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 3, 48, 41, 983)
const EVENT_ID = 'A'.repeat(22)
const USER = 5_000_000_001n as UserId
const CALL = 8_000_000_001n as CallId
const CALLER = {
  callerId: 5_000_000_009n as UserId,
  callerName: 'Đặng “Q”',
  displayName: 'Đặng',
  alias: 'Đặng “Q”',
  isContact: true,
  isVideo: true,
}
const INVITATION = invitationWith({
  ...CALLER,
  callId: CALL,
  encryptedAESKey: 'the-key',
  roomId: 123_456_789,
  expiresAtMs: NOW_MS + 60_000,
})
const OVER = { callId: CALL, version: 2, ...CALLER, atMs: NOW_MS }
const DEVICE = deviceWith({ info: { platform: 'web' } })

/** A browser with a subscription, and what it reads. */
async function open(t: Test, locale?: string) {
  const sink = await WebPushSink.start()
  const webPush = new WebPushSender({
    privateKey: generateVapidKey(randomBytes),
    contact: 'mailto:push@example.org',
    hosts: [SINK_HOST],
    sockets: sink.sockets,
  })
  t.teardown(() => {
    webPush.close()
    return sink.close()
  })
  const subscription = sink.subscription()
  const judged: TokenVerdict[] = []
  const rendered: Rendered[] = []
  const taken: unknown[] = []
  const delivery = new Delivery({
    senders: { webPush },
    letters: { appName: 'Callsign', domain: 'call.example', language: 'en' },
    nowMs: () => NOW_MS,
    deviceOf: () => ({
      ...DEVICE,
      info: locale === undefined ? DEVICE.info : { ...DEVICE.info, locale },
      push: { webPush: subscription, registeredAtMs: { webPush: 1 } },
    }),
    badgeOf: () => 3,
    isRinging: () => true,
    judgeToken: async (_user, _device, verdict) => void judged.push(verdict),
    setApnsEnvironment: async () => {},
    onRingTaken: (...who) => taken.push(who),
    onTryFailed: () => {},
    wait: () => new Promise(() => undefined),
    onRendered: each => rendered.push(each),
  })
  async function tell(body: NoticeBody, lastsMs = 60_000) {
    const outcome = await delivery.send({
      channel: 'push',
      userId: USER,
      deviceId: DEVICE.deviceId,
      notice: { ...body, eventId: EVENT_ID, sentAtMs: NOW_MS },
      expiresAtMs: NOW_MS + lastsMs,
      provider: 'webpush',
    })
    const { text = '{}', headers = {} } = sink.received.at(-1) ?? {}
    return { outcome, payload: JSON.parse(text), headers, text }
  }
  return { tell, sink, subscription, judged, rendered, taken }
}

t.test('a ring comes at once, until it ends, with its words and without its key', async t => {
  const { tell, taken } = await open(t, 'vi-VN')
  const { outcome, payload, headers, text } = await tell(INVITATION, 59_600)
  t.same(outcome, { kind: 'sent' })
  t.match(headers, { urgency: 'high', ttl: '60' })
  t.same(payload, {
    type: 'call_invitation',
    callId: '8000000001',
    callerId: '5000000009',
    callerName: 'Đặng “Q”',
    displayName: 'Đặng',
    alias: 'Đặng “Q”',
    isContact: true,
    roomId: 123_456_789,
    isVideo: true,
    isOnGoing: false,
    eventId: EVENT_ID,
    sentAt: NOW_MS,
    deviceId: '9000000001',
    expiresAt: '2026-11-20T03:49:41.583Z',
    title: 'Callsign',
    body: 'Đặng “Q” đang gọi',
    tag: '8000000001',
    answer: 'Trả lời',
    decline: 'Từ chối',
  })
  t.notMatch(text, /the-key/)
  t.same(taken, [[CALL, USER]])
})

t.test('each end of a ring takes its place, with words of its own', async t => {
  const { tell } = await open(t)
  const topic = createHash('sha256').update('8000000001').digest('base64url').slice(0, 22)
  t.match(await tell(INVITATION), { headers: { topic } })
  const bodies = [
    [{ ...OVER, kind: 'call_cancelled' }, 'high', 'Missed call from Đặng “Q”'],
    [
      { ...OVER, kind: 'call_cancelled', isContact: false },
      'high',
      'Missed call from Đặng “Q”, not a contact',
    ],
    [{ ...OVER, kind: 'call_answered_elsewhere', reason: 'answered' }, 'high', 'Answered on another device'],
    [{ ...OVER, kind: 'call_answered_elsewhere', reason: 'declined' }, 'high', 'Declined on another device'],
    [
      {
        kind: 'call_ended',
        callId: CALL,
        version: 3,
        status: 'ended',
        endReason: 'completed',
        endedAtMs: NOW_MS,
      },
      'high',
      'The call has ended',
    ],
    [{ ...OVER, kind: 'call_missed' }, 'normal', 'Missed call from Đặng “Q”'],
  ] as const
  for (const [body, urgency, words] of bodies) {
    const { payload, headers } = await tell(body as NoticeBody)
    t.match(payload, { title: 'Callsign', body: words, tag: '8000000001' })
    t.match(headers, { urgency, topic })
    t.equal(payload.answer, undefined)
  }
})

t.test(
  'an event beside calls has a tag of its own, and nothing that a push service could join it by',
  async t => {
    const { tell } = await open(t, 'de')
    const { payload, headers } = await tell(
      {
        kind: 'friend_request',
        requestId: 7n as RequestId,
        userId: CALLER.callerId,
        displayName: 'Đặng',
        createdAtMs: NOW_MS,
      },
      86_400_000,
    )
    t.match(payload, {
      type: 'newFriendRequested',
      tag: EVENT_ID,
      body: 'Đặng möchte dein Kontakt werden',
      badge: 3,
    })
    t.match(headers, { urgency: 'normal', ttl: '86400' })
    t.equal(headers.topic, undefined)
  },
)

t.test('a subscription that is gone is dropped by its endpoint', async t => {
  const { tell, sink, subscription, judged } = await open(t)
  sink.answerNext({ status: 410 })
  t.match(await tell(INVITATION), { outcome: { kind: 'token-gone', reason: 'http-410' } })
  t.same(judged, [{ name: 'webPush', token: subscription.endpoint, verdict: 'gone', atMs: NOW_MS }])
})

t.test('a push to a browser is shown with its headers, and without where it goes', async t => {
  const { tell, rendered, subscription } = await open(t)
  await tell(INVITATION)
  t.match(rendered, [
    { kind: 'call_invitation', provider: 'webpush', headers: { urgency: 'high', ttl: '60' } },
  ])
  const text = JSON.stringify(rendered, (_, value) => (typeof value === 'bigint' ? `${value}` : value))
  t.notOk(text.includes(subscription.endpoint))
})

t.test('any notice that is pushed fits, with words in each language, and has no key', async t => {
  const event = { eventId: EVENT_ID, sentAtMs: NOW_MS }
  const addressee = { deviceId: DEVICE.deviceId, expiresAtMs: NOW_MS, badgeOf: () => 3 }
  const subscription = { endpoint: 'https://push.example/x', keys: { p256dh: '', auth: '' } }
  const push = { webPush: subscription, registeredAtMs: {} }
  const letters = { appName: 'Callsign', language: 'en' } as const
  const languages = fc.constantFrom('en', 'vi', 'de', 'fr', '')
  checkProperty(t, [anyNotice(event), languages], (notice, locale) => {
    const content = pushContentOf(notice, addressee)
    if (content === undefined) return true
    const device = { ...DEVICE, info: { platform: 'web', locale }, push }
    const sent = webPushOf(device, { content, eventId: EVENT_ID, expiresAtMs: NOW_MS }, letters, NOW_MS)
    const text = JSON.stringify(sent?.payload)
    const { body, title, tag } = JSON.parse(text)
    const isWhole = [body, title, tag].every(each => typeof each === 'string' && each !== '')
    const hasKey = /encryptedAESKey|keyFrom|keyEpoch/.test(text)
    return isWhole && !hasKey && Buffer.byteLength(text) <= WEB_PUSH_BYTES_MAX
  })
})
