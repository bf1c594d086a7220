/** One example of every webhook: Ann's and Bob's call, and what came before it. Bob is a user of the operator's backend. */

import type { WebhookEventKind } from '../../domain/operators/webhook-event.ts'

/** The body by the name of its message; undefined for a name that is no webhook's. */
export function webhookExampleOf(name: string): object | undefined {
  if (!(name in DATA)) return undefined
  const { subject, ...data } = DATA[name as keyof typeof DATA]
  return { type: name, timestamp: '2026-11-20T10:08:41.983Z', data: { seq: 4711, subject, ...data } }
}

const ANN = { userId: '8905371541254727' }
const BOB = { userId: '1305603940818917', externalId: 'b-204' }
const BOBS_PHONE = '7745239016452210'
const OF_BOB = `user:${BOB.userId}`
const CALL = { callId: '6117204471893025', subject: 'call:6117204471893025' }
const ABOUT_BOB = { subject: OF_BOB, user: BOB }
const BOB_CALLED = { ...CALL, caller: ANN, user: BOB }
const PAIR = { subject: OF_BOB, users: [BOB, ANN] }

const DATA: Readonly<Record<WebhookEventKind | 'webhook.test', { readonly subject: string }>> = {
  'user.created': ABOUT_BOB,
  'user.changed': { ...ABOUT_BOB, ...{ changed: ['displayName', 'settings'] } },
  'user.ended': ABOUT_BOB,
  'user.suspended': { ...ABOUT_BOB, ...{ reason: 'abuse', until: '2026-11-27T10:08:41.983Z' } },
  'user.unsuspended': ABOUT_BOB,
  'session.started': { ...ABOUT_BOB, ...{ sessionId: 'q5xPYmBtR0aS2wJ7cVd3Lg' } },
  'device.added': { ...ABOUT_BOB, ...{ deviceId: BOBS_PHONE, platform: 'android' } },
  'call.started': { ...CALL, ...{ caller: ANN, callees: [BOB], isVideo: true } },
  'call.answered': { ...BOB_CALLED, ...{ deviceId: BOBS_PHONE, rangMs: 11_869 } },
  'call.missed': { ...BOB_CALLED, ...{ reason: 'unanswered' } },
  'call.declined': BOB_CALLED,
  'call.ended': {
    ...CALL,
    ...{ caller: ANN, status: 'ended', reason: 'hangup', endedBy: BOB, isVideo: true, talkedMs: 184_210 },
    ...{
      participants: [
        { ...ANN, state: 'left', talkedMs: 184_210 },
        { ...BOB, state: 'left', talkedMs: 184_210 },
      ],
    },
  },
  'report.created': {
    ...ABOUT_BOB,
    ...{ reportId: '4294967341', callId: CALL.callId, reason: 'harassment' },
  },
  'contact.added': PAIR,
  'contact.removed': PAIR,
  'webhook.test': { subject: 'test' },
}
