/**
 * What the operator's services hear of a call: read off the call before and after a change, like everything else that is
 * told of it.
 */

import type { MissedReason, WebhookEvent } from '../operators/webhook-event.ts'
import {
  type Call,
  type ChangedParticipant,
  changedParticipants,
  isJoined,
  isOver,
  isPending,
  type Participant,
} from './call.ts'

/** In the order in which they happened. */
export function webhookEventsOf(before: Call | undefined, after: Call): WebhookEvent[] {
  const events: WebhookEvent[] = []
  if (before === undefined) events.push(startOf(after))
  for (const changed of changedParticipants(before, after)) {
    const event = answerOf(after, changed)
    if (event !== undefined) events.push(event)
  }
  if (isOver(after) && (before === undefined || !isOver(before))) events.push(endOf(after))
  return events
}

function startOf({ callId, initiatorId, participants, isVideo }: Call): WebhookEvent {
  const calleeIds = participants.map(({ userId }) => userId).filter(userId => userId !== initiatorId)
  return { kind: 'call.started', callId, callerId: initiatorId, calleeIds, isVideo }
}

/** The answer to an invitation, or that none came. Where the inviter was blocked, no call was missed. */
function answerOf(after: Call, { was, is: participant }: ChangedParticipant): WebhookEvent | undefined {
  const { userId, state, invitedBy, isWithheld } = participant
  if (was?.state === state || userId === after.initiatorId || isWithheld) return undefined
  const named = { callId: after.callId, callerId: invitedBy, userId }
  if (isJoined(participant) && was?.joinedAtMs === undefined) return answered(named, participant)
  if (was !== undefined && !isPending(was)) return undefined
  if (state === 'declined') return { kind: 'call.declined', ...named }
  const reason = missedBecause(after, participant)
  return reason && { kind: 'call.missed', ...named, reason }
}

function answered(
  named: Pick<WebhookEvent & { readonly kind: 'call.answered' }, 'callId' | 'callerId' | 'userId'>,
  { attendance, joinedAtMs, invitedAtMs }: Participant,
): WebhookEvent {
  const rangMs = Math.max(0, (joinedAtMs ?? invitedAtMs) - invitedAtMs)
  return { kind: 'call.answered', ...named, deviceId: attendance!.deviceId, rangMs }
}

function missedBecause({ status }: Call, { state }: Participant): MissedReason | undefined {
  switch (state) {
    case 'missed':
      return status === 'cancelled' ? 'cancelled' : 'unanswered'
    case 'busy':
    case 'removed':
      return state
    default:
      return undefined
  }
}

function endOf(call: Call): WebhookEvent {
  const { callId, initiatorId, status, endReason, endedBy, isVideo, startedAtMs, endedAtMs } = call
  const talkedMs = startedAtMs === undefined ? 0 : Math.max(0, (endedAtMs ?? startedAtMs) - startedAtMs)
  return {
    kind: 'call.ended',
    callId,
    callerId: initiatorId,
    status,
    reason: endReason!,
    ...(endedBy === undefined ? {} : { endedBy }),
    isVideo,
    talkedMs,
    participants: call.participants.map(({ userId, state, talkedMs }) => ({ userId, state, talkedMs })),
  }
}
