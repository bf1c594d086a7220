/** Events of a call, from its start to its end. */

import t from 'tap'
import type { CallAccepted } from '../../../src/domain/calls/call-command.ts'
import type { WebhookEvent } from '../../../src/domain/operators/webhook-event.ts'
import { CALL_ID, CallDriver, deviceOf } from '../../support/call-driver.ts'

const BY = { callId: CALL_ID, callerId: 1n }

function told({ effects }: CallAccepted): WebhookEvent[] {
  return effects.flatMap(effect => (effect.kind === 'webhook' ? [effect.event] : []))
}

function ended(events: readonly WebhookEvent[]) {
  return events.find(event => event.kind === 'call.ended')
}

t.test('a call that is answered, and ends', async t => {
  const calls = new CallDriver()
  t.same(told(calls.start([2, 3])), [{ kind: 'call.started', ...BY, calleeIds: [2n, 3n], isVideo: true }])
  t.same(told(calls.run({ kind: 'ringing', by: deviceOf(2) })), [])
  calls.nowMs += 4_000
  t.same(told(calls.join(2)), [{ kind: 'call.answered', ...BY, userId: 2n, deviceId: 201n, rangMs: 4_000 }])
  t.same(told(calls.run({ kind: 'decline', by: deviceOf(3), reason: 'declined' })), [
    { kind: 'call.declined', ...BY, userId: 3n },
  ])
  calls.nowMs += 60_000
  t.same(told(calls.run({ kind: 'end', by: deviceOf(1) })), [
    {
      ...{ kind: 'call.ended', ...BY, status: 'ended', reason: 'hangup', endedBy: 1n, isVideo: true },
      talkedMs: 60_000,
      participants: [
        { userId: 1n, state: 'left', talkedMs: 60_000 },
        { userId: 2n, state: 'left', talkedMs: 60_000 },
        { userId: 3n, state: 'declined', talkedMs: 0 },
      ],
    },
  ])
})

t.test('one who leaves and comes back has answered once', async t => {
  const calls = new CallDriver()
  calls.start([2, 3])
  calls.join(2)
  calls.join(3)
  t.same(told(calls.run({ kind: 'leave', by: deviceOf(2) })), [])
  calls.run({ kind: 'request-rejoin', by: deviceOf(2) })
  t.same(told(calls.run({ kind: 'rejoin', by: deviceOf(2) })), [])
})

t.test('an unanswered call is missed by each who was called, and then over', async t => {
  const calls = new CallDriver()
  calls.start([2, 3])
  const events = told(calls.wait(70_000))
  t.match(events, [
    { kind: 'call.missed', ...BY, userId: 2n, reason: 'unanswered' },
    { kind: 'call.missed', ...BY, userId: 3n, reason: 'unanswered' },
    { kind: 'call.ended', status: 'missed', reason: 'unanswered', talkedMs: 0, endedBy: undefined },
  ])
})

t.test('a call that its caller gives up is missed, too', async t => {
  const calls = new CallDriver()
  calls.start([2])
  const events = told(calls.run({ kind: 'end', by: deviceOf(1) }))
  t.match(events, [{ kind: 'call.missed', ...BY, userId: 2n, reason: 'cancelled' }, { kind: 'call.ended' }])
  t.match(ended(events), { status: 'cancelled', reason: 'cancelled', endedBy: 1n })
})

t.test('who is busy, or whose invitation the host takes back, has missed it', async t => {
  const calls = new CallDriver()
  calls.start([2, 3, 4])
  calls.join(2)
  t.same(told(calls.run({ kind: 'decline', by: deviceOf(3), reason: 'busy' })), [
    { kind: 'call.missed', ...BY, userId: 3n, reason: 'busy' },
  ])
  t.same(told(calls.run({ kind: 'remove', by: deviceOf(1), userId: deviceOf(4).userId })), [
    { kind: 'call.missed', ...BY, userId: 4n, reason: 'removed' },
  ])
  t.same(told(calls.run({ kind: 'remove', by: deviceOf(1), userId: deviceOf(2).userId })), [])
})

t.test('one who has blocked the caller has missed no call', async t => {
  const calls = new CallDriver()
  const facts = calls.facts([2])
  const callees = facts.callees.map(callee => ({ ...callee, isWithheld: true }))
  calls.run(calls.startCommand([2]), { ...facts, callees })
  const events = told(calls.wait(70_000))
  t.same(
    events.map(({ kind }) => kind),
    ['call.ended'],
  )
})
