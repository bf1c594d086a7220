/** Bodies of webhooks, each checked against the schema that documents it. */

import t from 'tap'
import { Compile } from 'typebox/schema'
import type { CallId, DeviceId, UserId } from '../../src/domain/ids.ts'
import {
  contactEvent,
  subjectOf,
  subjectText,
  usersIn,
  type WebhookEvent,
  type WebhookEventKind,
} from '../../src/domain/operators/webhook-event.ts'
import { unknownMembers } from '../../src/schema/shape.ts'
import { testWebhookBody, WEBHOOK_KINDS, WEBHOOKS, webhookBody } from '../../src/schema/webhook.ts'

const [ANN, BOB] = [2n ** 64n - 1n, 12n] as [UserId, UserId]
const [DEVICE, CALL] = [34n as DeviceId, 56n as CallId]
const AT_MS = Date.UTC(2026, 10, 20)
const AT = '2026-11-20T00:00:00.000Z'
const CALLED = { callId: CALL, callerId: ANN, userId: BOB }
const [AS_ANN, AS_BOB] = [{ userId: `${ANN}` }, { userId: '12', externalId: 'b/204 é' }]
const CALLED_BODY = { subject: 'call:56', callId: '56', caller: AS_ANN, user: AS_BOB }
const OF_BOB = { subject: 'user:12', user: AS_BOB }

const EVENTS: { readonly [Kind in WebhookEventKind]: readonly [WebhookEvent & { kind: Kind }, object] } = {
  'user.created': [{ kind: 'user.created', userId: BOB }, OF_BOB],
  'user.changed': [
    { kind: 'user.changed', userId: BOB, changed: ['displayName', 'erasesAt'], erasesAtMs: AT_MS },
    { ...OF_BOB, changed: ['displayName', 'erasesAt'], erasesAt: AT },
  ],
  'user.ended': [{ kind: 'user.ended', userId: BOB }, OF_BOB],
  'user.suspended': [
    { kind: 'user.suspended', userId: BOB, reason: 'abuse', untilMs: AT_MS },
    { ...OF_BOB, reason: 'abuse', until: AT },
  ],
  'user.unsuspended': [{ kind: 'user.unsuspended', userId: BOB }, OF_BOB],
  'session.started': [
    { kind: 'session.started', userId: BOB, sessionId: Uint8Array.of(1, 2, 3), deviceId: DEVICE },
    { ...OF_BOB, sessionId: 'AQID', deviceId: '34' },
  ],
  'device.added': [
    { kind: 'device.added', userId: BOB, deviceId: DEVICE, platform: 'ios' },
    { ...OF_BOB, deviceId: '34', platform: 'ios' },
  ],
  'call.started': [
    { kind: 'call.started', callId: CALL, callerId: ANN, calleeIds: [BOB], isVideo: true },
    { subject: 'call:56', callId: '56', caller: AS_ANN, callees: [AS_BOB], isVideo: true },
  ],
  'call.answered': [
    { kind: 'call.answered', ...CALLED, deviceId: DEVICE, rangMs: 1_500 },
    { ...CALLED_BODY, deviceId: '34', rangMs: 1_500 },
  ],
  'call.missed': [
    { kind: 'call.missed', ...CALLED, reason: 'busy' },
    { ...CALLED_BODY, reason: 'busy' },
  ],
  'call.declined': [{ kind: 'call.declined', ...CALLED }, CALLED_BODY],
  'call.ended': [
    {
      ...{ kind: 'call.ended', callId: CALL, callerId: ANN, status: 'ended', reason: 'hangup' },
      ...{ endedBy: BOB, isVideo: false, talkedMs: 7 },
      participants: [{ userId: BOB, state: 'left', talkedMs: 7 }],
    },
    {
      ...{ subject: 'call:56', callId: '56', caller: AS_ANN, status: 'ended', reason: 'hangup' },
      ...{ endedBy: AS_BOB, isVideo: false, talkedMs: 7 },
      participants: [{ ...AS_BOB, state: 'left', talkedMs: 7 }],
    },
  ],
  'report.created': [
    { kind: 'report.created', reportId: '99', userId: BOB, callId: CALL, reason: 'threat' },
    { ...OF_BOB, reportId: '99', callId: '56', reason: 'threat' },
  ],
  'contact.added': [
    { kind: 'contact.added', userIds: [BOB, ANN] },
    { subject: 'user:12', users: [AS_BOB, AS_ANN] },
  ],
  'contact.removed': [
    { kind: 'contact.removed', userIds: [BOB, ANN] },
    { subject: 'user:12', users: [AS_BOB, AS_ANN] },
  ],
}

t.test('every event is written as its schema says, with ids as texts', async t => {
  t.same(Object.keys(EVENTS).sort(), [...WEBHOOK_KINDS].sort())
  for (const [kind, [event, data]] of Object.entries(EVENTS)) {
    const subject = subjectText(subjectOf(event))
    const body = JSON.parse(
      webhookBody({ seq: 7, subject, atMs: AT_MS, event, externalIds: [[BOB, 'b/204 é']] }),
    )
    t.same(body, { type: kind, timestamp: AT, data: { seq: 7, ...data } }, kind)
    const { schema } = WEBHOOKS[kind as WebhookEventKind]
    t.same(Compile(schema).Errors(body)[1], [], kind)
    t.same(unknownMembers(schema, body), [], kind)
  }
  const test = JSON.parse(testWebhookBody(AT_MS))
  t.same(Compile(WEBHOOKS['webhook.test'].schema).Errors(test)[1], [])
})

t.test(
  'the users of an event are all that its body names; a pair has one subject in either order',
  async t => {
    for (const [event, data] of Object.values(EVENTS)) {
      const named = new Set(JSON.stringify(data).match(/(?<="userId":")\d+/g))
      t.same([...usersIn(event)].map(String).sort(), [...named].sort(), event.kind)
    }
    t.same(contactEvent('contact.added', ANN, BOB), contactEvent('contact.added', BOB, ANN))
  },
)
