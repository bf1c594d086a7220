/** Sealed pushes: Apple and Google learn that a device gets one, and the device reads what an open one says. */

import { createHash } from 'node:crypto'
import t, { type Test } from 'tap'
import { openPush } from '../../src/app/calls/sealed-push.ts'
import { ApnsSender } from '../../src/delivery/apns.ts'
import type { ApnsPush } from '../../src/delivery/apns-link.ts'
import { type FcmPush, FcmSender, finishedFcmPush } from '../../src/delivery/fcm.ts'
import { finishedApnsPush } from '../../src/delivery/finished-push.ts'
import { apnsPushOf, fcmPushOf, type Push } from '../../src/delivery/push.ts'
import { type PushMembers, pushContentOf } from '../../src/delivery/push-content.ts'
import { sealedCallId, sealPush } from '../../src/delivery/sealed-push.ts'
import type { Device, PushTokens } from '../../src/domain/devices/device.ts'
import type { DeviceId } from '../../src/domain/ids.ts'
import type { Notice } from '../../src/domain/messages/notice.ts'
import { startApnsStandIn } from '../support/apns-stand-in.ts'
import { startFcmStandIn } from '../support/fcm-stand-in.ts'
import { deviceWith } from '../support/push-samples.ts'
import { readVectors } from '../support/vectors.ts'

interface Vectors {
  readonly opens: readonly {
    readonly name: string
    readonly pushKey: string
    readonly deviceId: string
    readonly sealed: string
    readonly members: PushMembers
  }[]
  readonly collapseIds: readonly {
    readonly pushKey: string
    readonly callId: string
    readonly collapseId: string
  }[]
}

const { opens, collapseIds } = readVectors<Vectors>('sealed-push')
const NOW_MS = Date.UTC(2026, 10, 20, 3, 48, 41, 983)
const PUSHES = 1_000
const BUNDLE = { bundleId: 'org.example.callsign', registeredAtMs: {} }
const [ALERT_TOKEN, VOIP_TOKEN, FCM_TOKEN] = ['a1'.repeat(32), 'b2'.repeat(32), 'fcm:token']
const TOKENS: Record<'iPhone' | 'iPhoneWithoutVoip' | 'pixel', PushTokens> = {
  iPhone: { ...BUNDLE, apnsToken: ALERT_TOKEN, apnsVoipToken: VOIP_TOKEN },
  iPhoneWithoutVoip: { ...BUNDLE, apnsToken: ALERT_TOKEN },
  pixel: { fcmToken: FCM_TOKEN, registeredAtMs: {} },
}

function sealedDevice(tokens: PushTokens, deviceId: bigint, pushKey: string): Device {
  return deviceWith({ deviceId: deviceId as DeviceId, push: { ...tokens, pushKey } })
}

/** As they are sent: a push that is finished is not sealed again. */
function applePushOf(device: Device, push: Push): ApnsPush | undefined {
  const unfinished = apnsPushOf(device, push)
  return unfinished && finishedApnsPush(unfinished)
}

function googlePushOf(device: Device, push: Push): FcmPush | undefined {
  const unfinished = fcmPushOf(device, push, NOW_MS)
  return unfinished && finishedFcmPush(unfinished)
}

t.test('the server seals in the form of the vectors', async t => {
  for (const { name, pushKey, deviceId, sealed, members } of opens) {
    const sealing = { pushKey, deviceId }
    const [one, other] = [sealPush(sealing, members), sealPush(sealing, members)]
    t.equal(one.length, sealed.length, `${name}: the length`)
    t.same(await openPush(pushKey, deviceId, one), members, name)
    t.not(one.slice(0, 16), other.slice(0, 16), 'each has a nonce of its own')
  }
  for (const { pushKey, callId, collapseId } of collapseIds) {
    t.equal(sealedCallId({ pushKey, deviceId: '1' }, callId), collapseId)
  }
})

t.test('the key of a call is left out where the push would be too long with it', async t => {
  const [{ pushKey, deviceId, members } = opens[0]!] = opens
  const sealing = { pushKey, deviceId }
  const opened = async (keyChars: number) => {
    const sealed = sealPush(sealing, { ...members, encryptedAESKey: 'k'.repeat(keyChars) })
    return { octets: Buffer.from(sealed, 'base64').length, ...(await openPush(pushKey, deviceId, sealed)) }
  }
  const room = 2_048 - Buffer.byteLength(JSON.stringify({ ...members, encryptedAESKey: '' }))
  t.match(await opened(room), { octets: 2_048 + 28, encryptedAESKey: 'k'.repeat(room) })
  const keyless = await opened(room + 1)
  t.match(keyless, { octets: 1_024 + 28, callId: members.callId, callerName: members.callerName })
  t.notOk('encryptedAESKey' in keyless)
})

/** A text, an id or a large number that is in no other notice, and so tells which push it was in. */
function mark(at: number, name: string): { text: string; id: bigint; number: number } {
  const octets = createHash('sha256').update(`${at} ${name}`).digest()
  return {
    text: octets.subarray(0, 16).toString('base64url'),
    id: octets.readBigUInt64BE(16),
    number: octets.readUIntBE(24, 6),
  }
}

/** A notice of each kind that is pushed, in turn, and all in it that says whom or what it is about. */
function markedNotice(at: number): { notice: Notice; marks: string[] } {
  const marks: string[] = []
  const kept = (text: string) => {
    marks.push(text)
    return text
  }
  const text = (name: string) => kept(mark(at, name).text)
  const id = (name: string) => {
    const { id } = mark(at, name)
    kept(`${id}`)
    return id
  }
  const number = (name: string) => {
    const { number } = mark(at, name)
    kept(`${number}`)
    return number
  }
  const caller = () => ({
    callId: id('call'),
    version: 2,
    callerId: id('caller'),
    callerName: text('alias'),
    displayName: text('name'),
    alias: text('alias'),
    isContact: at % 2 === 0,
    isVideo: at % 3 === 0,
    atMs: number('at'),
  })
  const person = () => ({ requestId: id('request'), userId: id('user'), displayName: text('name') })
  const device = () => ({ deviceId: id('device'), name: text('name'), platform: text('platform') })
  const place = () => ({ userAgent: text('agent'), network: text('network') })
  const forms: (() => object)[] = [
    () => ({
      kind: 'call_invitation',
      ...caller(),
      encryptedAESKey: text('key').repeat(at % 4 === 0 ? 60 : 5),
      roomId: number('room'),
      isOnGoing: false,
      expiresAtMs: NOW_MS,
      participants: [{ userId: id('other'), displayName: text('other') }],
      keyEpoch: 1,
      keyFromUserId: id('sealer'),
      keyFromDeviceId: id('sealing'),
    }),
    () => ({ kind: 'call_cancelled', ...caller() }),
    () => ({ kind: 'call_answered_elsewhere', ...caller(), reason: 'answered' }),
    () => ({ kind: 'call_ended', callId: id('call'), version: 2, status: 'ended', endReason: text('end') }),
    () => ({ kind: 'call_missed', ...caller() }),
    () => ({ kind: 'friend_request', ...person(), createdAtMs: number('at') }),
    () => ({ kind: 'contact_added', ...person(), isPushed: true }),
    () => ({ kind: 'device_added', ...device(), publicKeyHash: text('hash') }),
    () => ({ kind: 'device_list_reset', ...device(), publicKeyHash: text('hash') }),
    () => ({ kind: 'device_push_lost', ...device(), tokens: ['fcmToken'], isPushed: true }),
    () => ({ kind: 'session_started', sessionId: text('session'), ...place(), proof: text('proof') }),
    () => ({ kind: 'session_ending', sessionId: text('session'), endsAtMs: NOW_MS }),
    () => ({ kind: 'session_revoked', reason: text('reason') }),
    () => ({
      kind: 'sign_in_waiting',
      id: text('id'),
      signInCode: text('code'),
      method: 'phone',
      ...place(),
      endsAtMs: NOW_MS,
    }),
    () => ({ kind: 'login_method_lost', method: 'phone', value: text('address') }),
  ]
  const eventId = kept(Buffer.from(mark(at, 'event').text, 'base64url').toString('base64url'))
  // APNs has an event's id as a UUID, where it is not sealed.
  kept(Buffer.from(eventId, 'base64url').toString('hex'))
  const event = { eventId, sentAtMs: number('sent') }
  return { notice: { ...forms[at % forms.length]!(), ...event } as Notice, marks }
}

/** All that came out at Apple's end and at Google's, as texts. */
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
  return { apple, google, apns, fcm }
}

t.test('in a thousand pushes no provider sees a name, an id or a key', async t => {
  const { apple, google, apns, fcm } = await startProviders(t)
  const types = new Set<string>()
  const told: string[] = []
  const sendOne = async (at: number) => {
    const { notice, marks } = markedNotice(at)
    const pushKey = createHash('sha256')
      .update(`key ${at % 50}`)
      .digest('base64')
    const tokens = Object.values(TOKENS)[Math.floor(at / 15) % 3]!
    const device = sealedDevice(tokens, mark(at % 50, 'own').id, pushKey)
    const { deviceId } = device
    const expiresAtMs = NOW_MS + 60_000
    const content = pushContentOf(notice, { deviceId, expiresAtMs, badgeOf: () => 987_654_321 })!
    const { members } = content
    const push: Push = { content, eventId: notice.eventId, expiresAtMs }
    const [byApple, byGoogle] = [applePushOf(device, push), googlePushOf(device, push)]
    const outcome = byApple ? await apns.send(byApple) : await fcm.send(byGoogle!)
    if (outcome.kind !== 'sent') t.fail(outcome.kind)
    types.add(members.type)
    told.push(...marks, `${deviceId}`, pushKey, pushKey.slice(0, -1), '987654321', members.type)
    const sealed = `${byApple?.payload.sealed ?? byGoogle?.data.sealed}`
    const opened = await openPush(pushKey, `${deviceId}`, sealed)
    if (JSON.stringify(opened) !== JSON.stringify(members)) t.fail(`${members.type} does not open`)
    return sealed
  }
  const sent: string[] = []
  while (sent.length < PUSHES) {
    sent.push(...(await Promise.all(Array.from({ length: 100 }, (_, at) => sendOne(sent.length + at)))))
  }
  t.equal(types.size, 13, 'of every type')
  const received = [
    ...apple.pushes.map(({ headers, body, payload }) => ({ all: [headers, body], sealed: payload.sealed })),
    ...google.messages.map(({ headers, message }) => {
      return { all: [headers, message], sealed: (message.data as { sealed: string }).sealed }
    }),
  ]
  t.same(received.map(({ sealed }) => sealed).sort(), sent.sort(), 'each came, as it was sealed')
  t.ok(google.messages.length > 300)
  const seen = received.map(({ all }) => JSON.stringify(all).replaceAll('-', '')).join('\n')
  const found = [...new Set(told)].filter(each => seen.includes(each.replaceAll('-', '')))
  t.same(found, [], 'and nothing of what it says')
  const lengths = new Set(sent.map(sealed => Buffer.from(sealed, 'base64').length))
  t.same([...lengths].sort(), [1_024 + 28, 2_048 + 28], 'lengths tell of a long key at the most')
  t.equal(new Set(apple.pushes.map(({ headers }) => headers['apns-id'])).size, apple.pushes.length)
})

t.test('what Apple gets of a sealed push', async t => {
  const pushKey = Buffer.alloc(32, 7).toString('base64')
  const pushOf = (tokens: PushTokens, at: number): ApnsPush => {
    const device = sealedDevice(tokens, 5n, pushKey)
    const { notice } = markedNotice(at)
    const { deviceId } = device
    const content = pushContentOf(notice, { deviceId, expiresAtMs: NOW_MS, badgeOf: () => 3 })!
    return applePushOf(device, { content, eventId: notice.eventId, expiresAtMs: NOW_MS })!
  }
  const apsOf = ({ payload: { aps, sealed, ...others } }: ApnsPush) => {
    t.match(sealed, /^[A-Za-z0-9+/]+=*$/)
    t.same(others, {})
    return aps
  }
  const [ring, cancel, missed, request] = [0, 1, 4, 5] as const
  const voip = pushOf(TOKENS.iPhone, ring)
  t.match(voip, { pushType: 'voip', token: VOIP_TOKEN })
  t.same(apsOf(voip), {})
  t.same(apsOf(pushOf(TOKENS.iPhoneWithoutVoip, ring)), {
    alert: { 'loc-key': 'sealed_call' },
    sound: 'default',
    'mutable-content': 1,
    'interruption-level': 'time-sensitive',
    'content-available': 1,
  })
  const stop = pushOf(TOKENS.iPhone, cancel)
  t.same(apsOf(stop), { 'content-available': 1 })
  t.match(stop, { pushType: 'background', priority: 5 })
  const shown = pushOf(TOKENS.iPhone, missed)
  t.same(apsOf(shown), { alert: { 'loc-key': 'sealed_notice' }, sound: 'default', 'mutable-content': 1 })
  t.equal(shown.collapseId, sealedCallId({ pushKey, deviceId: '5' }, `${mark(missed, 'call').id}`))
  t.equal(pushOf(TOKENS.iPhone, request).collapseId, undefined)
})

t.test('Google gets a sealed push as data that the app shows, at once', async t => {
  const device = sealedDevice(TOKENS.pixel, 5n, Buffer.alloc(32, 7).toString('base64'))
  const { notice } = markedNotice(4)
  const { deviceId } = device
  const content = pushContentOf(notice, { deviceId, expiresAtMs: NOW_MS + 9_000, badgeOf: () => 3 })!
  const push = googlePushOf(device, { content, eventId: notice.eventId, expiresAtMs: NOW_MS + 9_000 })
  const { data, ...others } = push!
  t.same(others, { token: FCM_TOKEN, priority: 'high', isUrgent: false, ttlSeconds: 9 })
  t.same(Object.keys(data), ['sealed'])
})
