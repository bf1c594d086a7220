/** A push's outcome: when it is not sent at all, which token it costs, how often it is tried. */

import t from 'tap'
import type { ApnsPush } from '../../src/delivery/apns-link.ts'
import { Delivery, type DeliveryDeps, type Rendered } from '../../src/delivery/delivery.ts'
import type { FcmPush } from '../../src/delivery/fcm.ts'
import type { DeliveryOutcome } from '../../src/delivery/outcome.ts'
import {
  type PushTokenName,
  type PushTokens,
  pushTokensJudged,
  type TokenVerdict,
} from '../../src/domain/devices/device.ts'
import type { CallId, UserId } from '../../src/domain/ids.ts'
import type { Notice, NoticeBody } from '../../src/domain/messages/notice.ts'
import type { OutboxMessage } from '../../src/domain/messages/outbox-message.ts'
import { deviceWith, invitationWith } from '../support/push-samples.ts'

const NOW_MS = 1_795_146_521_983
const USER = 5_000_000_001n as UserId
const CALL = 8_000_000_001n as CallId
const CALLER = {
  callerId: 5_000_000_009n as UserId,
  callerName: 'Bob',
  displayName: 'Bob',
  alias: undefined,
  isContact: true,
  isVideo: false,
}

const IPHONE: PushTokens = {
  bundleId: 'org.example.callsign',
  apnsToken: 'a1',
  apnsVoipToken: 'b2',
  apnsEnvironment: 'production',
  registeredAtMs: { apnsToken: 1, apnsVoipToken: 1 },
}
const PIXEL: PushTokens = { fcmToken: 'c3', registeredAtMs: { fcmToken: 1 } }

const INVITATION = invitationWith({ callId: CALL, expiresAtMs: NOW_MS + 60_000 })
const MISSED: NoticeBody = { kind: 'call_missed', callId: CALL, version: 2, ...CALLER, atMs: NOW_MS }

interface Fakes {
  readonly push?: PushTokens
  /** The senders' outcomes in the order of their pushes; then `sent`. */
  readonly outcomes?: DeliveryOutcome[]
  readonly parts?: Partial<DeliveryDeps>
}

/** A device whose tokens go when they are dropped, senders that answer as told, and all that they were handed. */
function open({ push: tokens = IPHONE, outcomes = [], parts = {} }: Fakes = {}) {
  let push: PushTokens | undefined = tokens
  const pushed: string[] = []
  const judged: (readonly [PushTokenName, TokenVerdict['verdict'], number])[] = []
  const rendered: Rendered[] = []
  const failed: string[] = []
  const environments: string[] = []
  const taken: unknown[] = []
  const send = async ({ token }: ApnsPush | FcmPush): Promise<DeliveryOutcome> => {
    pushed.push(token)
    return outcomes.shift() ?? { kind: 'sent' }
  }
  const delivery = new Delivery({
    senders: { apns: { send }, fcm: { send } },
    letters: { appName: 'Callsign', domain: 'call.example', language: 'en' },
    nowMs: () => NOW_MS,
    deviceOf: () => ({ ...DEVICE, ...(push === undefined ? {} : { push }) }),
    badgeOf: () => 1,
    isRinging: () => true,
    onRingTaken: (callId, userId) => void taken.push([callId, userId]),
    judgeToken: async (_user, _device, verdict) => {
      judged.push([verdict.name, verdict.verdict, verdict.atMs])
      push = push && pushTokensJudged(push, verdict)
    },
    wait: () => new Promise(() => undefined),
    onTryFailed: (outcome, next) => failed.push(`${outcome.kind} ${next}`),
    setApnsEnvironment: async (_user, _device, environment) => void environments.push(environment),
    onRendered: each => rendered.push(each),
    ...parts,
  })
  const messageOf = (body: NoticeBody, expiresAtMs = NOW_MS + 60_000, lastTokens?: PushTokens) => {
    const notice: Notice = { ...body, eventId: 'A'.repeat(22), sentAtMs: NOW_MS }
    const device = { userId: USER, deviceId: DEVICE.deviceId }
    const message = { channel: 'push', ...device, notice, expiresAtMs, provider: 'apns' } as const
    return lastTokens === undefined ? message : { ...message, lastTokens }
  }
  const tell = (...asked: Parameters<typeof messageOf>) => delivery.send(messageOf(...asked))
  const resend = (message: OutboxMessage) => delivery.send(message)
  return { tell, messageOf, send: resend, pushed, judged, failed, rendered, environments, taken }
}

const DEVICE = deviceWith()

t.test('a device with both tokens of Apple rings by one and gets the rest by the other', async t => {
  const { tell, pushed } = open()
  for (const body of [INVITATION, MISSED]) await tell(body)
  t.same(pushed, ['b2', 'a1'])
})

t.test(
  "a device that has not said its app's bundle id is pushed to by the usual one, if there is one",
  async t => {
    const { bundleId, ...push } = IPHONE
    const topicsOf = async (parts: Partial<DeliveryDeps>) => {
      const { tell, rendered } = open({ push, parts })
      for (const body of [INVITATION, MISSED]) await tell(body)
      return rendered.map(each => (each.channel === 'push' ? each.headers['apns-topic'] : ''))
    }
    t.same(await topicsOf({}), [])
    t.same(await topicsOf({ bundleId }), [`${bundleId}.voip`, bundleId])
  },
)

t.test('a device that is signed out hears so by the tokens that it had, or by newer ones', async t => {
  const signedOut: NoticeBody = { kind: 'session_revoked', reason: 'logged_out_everywhere' }
  const forgotten = open({ parts: { deviceOf: () => DEVICE } })
  await forgotten.tell(signedOut, NOW_MS + 60_000, PIXEL)
  t.same(forgotten.pushed, ['c3'])
  const back = open({ push: { ...PIXEL, fcmToken: 'c4' } })
  await back.tell(signedOut, NOW_MS + 60_000, PIXEL)
  t.same(back.pushed, ['c4'])
  const removed = open({ parts: { deviceOf: () => undefined } })
  await removed.tell(signedOut, NOW_MS + 60_000, PIXEL)
  t.same(removed.pushed, [])
})

t.test('a call that rings no more is not pushed, whatever ended it', async t => {
  const asked: unknown[] = []
  const isRinging = (...who: unknown[]) => {
    asked.push(who)
    return false
  }
  const answered = open({ parts: { isRinging } })
  t.same(await answered.tell(INVITATION), { kind: 'skipped' })
  t.same([answered.pushed, answered.rendered, asked], [[], [], [[CALL, USER]]])
  const late = open()
  await late.tell(INVITATION, NOW_MS)
  t.same([late.pushed, late.rendered], [[], []])
  const missed = open({ parts: { isRinging } })
  await missed.tell(MISSED)
  t.same(missed.pushed, ['a1'], 'that it was missed is told after it')
})

t.test('only a ring that was taken is reported, and no other news of the call', async t => {
  const refused = { kind: 'refused', reason: 'BadTopic' } as const
  const retry = { kind: 'retry', reason: 'InvalidProviderToken', isOfAccount: true } as const
  const { tell, taken } = open({ outcomes: [refused, refused, retry, retry] })
  for (let each = 0; each < 2; each++) await tell(INVITATION)
  await tell(MISSED)
  t.same(taken, [])
  await tell(INVITATION)
  t.same(taken, [[CALL, USER]])
  const android = open({ push: PIXEL })
  await android.tell(INVITATION)
  t.same(android.taken, [[CALL, USER]])
  const withoutVoip = open({ outcomes: [{ kind: 'token-gone', reason: '410' }] })
  await withoutVoip.tell(INVITATION)
  t.same([withoutVoip.pushed, withoutVoip.taken], [['b2', 'a1'], [[CALL, USER]]], 'also as an alert')
})

t.test('a removed or unknown device is not pushed to', async t => {
  const { tell, pushed } = open({ parts: { deviceOf: () => undefined } })
  t.same([await tell(INVITATION), pushed], [{ kind: 'skipped' }, []])
})

t.test('a VoIP token that is gone is dropped, not the other one, and the alert goes out instead', async t => {
  const gone = { kind: 'token-gone', reason: 'Unregistered', sinceMs: 77 } as const
  const { tell, pushed, judged } = open({ outcomes: [gone] })
  t.same(await tell(INVITATION), { kind: 'sent' })
  t.same([pushed, judged], [['b2', 'a1'], [['apnsVoipToken', 'gone', 77]]])
  await tell(INVITATION)
  t.same(pushed, ['b2', 'a1', 'a1'])
})

t.test('with no other token the outcome is that the token is gone', async t => {
  const gone = { kind: 'token-gone', reason: 'BadDeviceToken' } as const
  const { apnsToken: _, ...push } = IPHONE
  const { tell, pushed, judged } = open({ push, outcomes: [gone] })
  t.same(await tell(INVITATION), gone)
  t.same([pushed, judged], [['b2'], [['apnsVoipToken', 'gone', NOW_MS]]])
})

t.test('a VoIP token that was registered after Apple saw the old one go stays', async t => {
  const gone = { kind: 'token-gone', reason: 'Unregistered', sinceMs: 77 } as const
  const push = { ...IPHONE, registeredAtMs: { apnsToken: 1, apnsVoipToken: 78 } }
  const { tell, pushed, judged } = open({ push, outcomes: [gone] })
  t.same(await tell(INVITATION), { kind: 'sent' })
  await tell(INVITATION)
  t.same([pushed, judged], [['b2', 'a1', 'b2'], [['apnsVoipToken', 'gone', 77]]])
})

t.test('a call that was answered while Apple said that the token is gone is not told of again', async t => {
  const gone = { kind: 'token-gone', reason: 'Unregistered' } as const
  let asked = 0
  const { tell, pushed } = open({ outcomes: [gone], parts: { isRinging: () => asked++ === 0 } })
  t.same(await tell(INVITATION), gone)
  t.same(pushed, ['b2'])
})

/** Waits that the test ends, the shortest first. */
function heldWaits() {
  const waits: { readonly ms: number; readonly resolve: () => void }[] = []
  const wait = (ms: number) => new Promise<void>(resolve => waits.push({ ms, resolve }))
  const passTo = async (untilMs: number) => {
    await new Promise(setImmediate)
    for (const { ms, resolve } of waits) if (ms <= untilMs) resolve()
    await new Promise(setImmediate)
  }
  return { wait, passTo }
}

const BUSY = { kind: 'retry', reason: 'ServiceUnavailable' } as const

t.test('a ring that went out as an alert stays one, in the later tries of the outbox too', async t => {
  const { wait, passTo } = heldWaits()
  const { messageOf, send, pushed, failed } = open({ outcomes: [BUSY, BUSY, BUSY, BUSY], parts: { wait } })
  const message = messageOf(INVITATION)
  for (const expected of [['b2', 'b2', 'a1', 'a1'], ['a1']]) {
    const outcome = send(message)
    for (const untilMs of [1_000, 1_000]) await passTo(untilMs)
    await outcome
    t.same(pushed.splice(0), expected)
  }
  t.same(failed, ['retry again', 'retry alert', 'retry again'])
  await send(messageOf(INVITATION))
  t.same(pushed, ['b2'], 'another ring begins with VoIP')
})

t.test('a ring without a good alert token stays with VoIP', async t => {
  const { wait, passTo } = heldWaits()
  const gone = { kind: 'token-gone', reason: 'Unregistered' } as const
  const { messageOf, send, pushed } = open({ outcomes: [BUSY, BUSY, gone], parts: { wait } })
  const message = messageOf(INVITATION)
  const outcome = send(message)
  await passTo(1_000)
  t.same(await outcome, BUSY)
  await send(message)
  t.same(pushed, ['b2', 'b2', 'a1', 'b2'])
})

t.test('a call that is answered within a second is not rung for again', async t => {
  const { wait, passTo } = heldWaits()
  let isRinging = true
  const { tell, pushed } = open({ outcomes: [BUSY], parts: { wait, isRinging: () => isRinging } })
  const outcome = tell(INVITATION)
  await passTo(0)
  isRinging = false
  await passTo(2_500)
  t.same([await outcome, pushed], [{ kind: 'skipped' }, ['b2']])
})

t.test('a doubted token that takes a push is not doubted any more', async t => {
  const push = { ...IPHONE, doubtedAtMs: { apnsVoipToken: NOW_MS - 1 } }
  const { tell, judged } = open({ push })
  for (const body of [INVITATION, MISSED, INVITATION]) await tell(body)
  t.same(judged, [['apnsVoipToken', 'good', NOW_MS]])
})

t.test('a store that takes no writes changes no outcome, and keeps no ring from its alert', async t => {
  const refuse = async () => {
    throw new Error('the disk is full')
  }
  const parts = { judgeToken: refuse, setApnsEnvironment: refuse }
  const gone = open({ outcomes: [{ kind: 'token-gone', reason: 'Unregistered' }], parts })
  t.same(await gone.tell(INVITATION), { kind: 'sent' })
  t.same(gone.pushed, ['b2', 'a1'])
  const moved = { kind: 'sent', environment: 'development' } as const
  const doubtful = { ...IPHONE, doubtedAtMs: { apnsVoipToken: 1 } }
  for (const push of [IPHONE, doubtful]) {
    t.same(await open({ push, outcomes: [moved], parts }).tell(INVITATION), moved)
  }
})

t.test('an alert token, or one of Google, is dropped by its name', async t => {
  for (const [push, name] of [
    [IPHONE, 'apnsToken'],
    [PIXEL, 'fcmToken'],
  ] as const) {
    const gone = { kind: 'token-gone', reason: 'UNREGISTERED' } as const
    const { tell, judged, pushed } = open({ push, outcomes: [gone] })
    t.same(await tell(MISSED), gone)
    t.same([judged, pushed.length], [[[name, 'gone', NOW_MS]], 1])
  }
})

t.test('the environment of Apple that knew the token is remembered when it is another', async t => {
  const { tell, environments } = open({
    outcomes: [
      { kind: 'sent', environment: 'development' },
      { kind: 'sent', environment: 'production' },
    ],
  })
  for (const body of [INVITATION, MISSED]) await tell(body)
  t.same(environments, ['development'])
})

t.test('a shown push has the kind of its payload, and the headers as they are sent', async t => {
  const apple = open()
  await apple.tell(
    { kind: 'call_cancelled', callId: CALL, version: 2, ...CALLER, atMs: NOW_MS },
    NOW_MS + 30_000,
  )
  t.match(apple.rendered, [
    {
      kind: 'call_cancel',
      provider: 'apns',
      userId: USER,
      deviceId: DEVICE.deviceId,
      headers: {
        'apns-topic': 'org.example.callsign',
        'apns-push-type': 'background',
        'apns-priority': '5',
        'apns-expiration': '1795146551',
        'apns-collapse-id': String(CALL),
        'apns-id': '00000000-0000-0000-0000-000000000000',
      },
      payload: { aps: { 'content-available': 1 }, type: 'call_cancel', reason: 'cancelled' },
    },
  ])
  const google = open({ push: PIXEL })
  await google.tell(MISSED)
  t.match(google.rendered, [
    {
      kind: 'missed_call',
      provider: 'fcm',
      headers: { priority: 'high', ttl: '60s' },
      payload: { data: { type: 'missed_call', badge: '1' }, channelId: 'calls' },
    },
  ])
  t.notMatch(JSON.stringify([apple.rendered, google.rendered], textOf), /"(a1|b2|c3)"/, 'no token')
})

function textOf(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value
}

t.test('without a sender a push is shown and counts as sent', async t => {
  const { tell, rendered, pushed } = open({ parts: { senders: {} } })
  t.same([await tell(INVITATION), rendered.length, pushed], [{ kind: 'sent' }, 1, []])
})
