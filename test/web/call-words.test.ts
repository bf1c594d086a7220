/** Why a call ended as it did, in words for people who do not know the protocol. */

import t from 'tap'
import { type CallView, type Moment, whyOf } from '../../web/operator/call-words.ts'

type Participant = CallView['participants'][number]

/** A call of Ann to Bob. */
function callOf(
  endReason: CallView['endReason'],
  bob: Partial<Participant> = {},
  events: readonly Moment['event'][] = [],
  more: Partial<CallView> = {},
): CallView {
  const participant = (userId: string, displayName: string): Participant => ({
    ...{ userId, displayName, state: 'missed', isHost: userId === '1', invitedBy: '1' },
    ...{ invitedAt: AT, talkedIn: 0, isWithheld: false },
  })
  return {
    ...{ callId: '9', status: 'missed', isVideo: false, initiatorId: '1', hostUserId: '1', createdAt: AT },
    participants: [participant('1', 'Ann'), { ...participant('2', 'Bob'), ...bob }],
    timeLine: events.map(event => ({ at: AT, event, userIds: ['2'] })),
    ...(endReason && { endReason }),
    ...more,
  }
}
const AT = '2026-01-01T00:00:00.000Z'

t.test('an unanswered call says how far its ring came', async t => {
  const why = (...given: [Partial<Participant>?, (readonly Moment['event'][])?]) =>
    whyOf(callOf('unanswered', ...given))
  t.match(why({}, ['invited', 'push_taken', 'ringing']), /^No one answered in time\. Bob’s device rang\.$/)
  t.match(why({}, ['invited', 'push_taken']), /push service took the ring, but no device said that it rings/)
  t.match(why({}, ['invited', 'unreachable']), /No device of Bob could be reached/)
  t.match(why({ isWithheld: true }), /never rung/)
  t.match(why({ state: 'busy' }), /in another call/)
  t.equal(why(), 'No one answered in time.')
})

t.test('who did it is named', async t => {
  t.equal(whyOf(callOf('declined')), 'Bob declined.')
  t.match(whyOf(callOf('cancelled', {}, ['ringing'])), /^Ann gave up.*Bob’s device rang\.$/)
  t.equal(whyOf(callOf('hangup', {}, [], { startedAt: AT, endedBy: '2' })), 'Bob ended it.')
  t.match(whyOf(callOf('hangup', {}, [], { endedBy: '1' })), /^Ann hung up before/)
  t.match(whyOf(callOf('caller_lost')), /^Ann’s device fell silent/)
})

t.test('each reason has words, and a call that goes on has none', async t => {
  t.equal(whyOf(callOf(undefined)), undefined)
  const reasons = ['empty', 'alone', 'limit', 'removed', 'operator', 'suspended', 'internal'] as const
  for (const reason of reasons) t.match(whyOf(callOf(reason)), /^[A-Z].*\.$/, reason)
})
