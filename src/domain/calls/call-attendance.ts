/**
 * How people come into a call and go (contract 4.2, 4.3): joining, also from a second device, which moves the call
 * there; declining, leaving, ending, removing; and whether their devices are there.
 */

import type { UserId } from '../ids.ts'
import {
  attendeesOf,
  CALL_SIZE_MAX,
  type Call,
  type CallDeviceRef,
  isJoined,
  isOver,
  isPending,
  isTwoPerson,
  joinedOn,
  newAttendance,
  type Participant,
  type ParticipantState,
  participantOf,
  withParticipant,
} from './call.ts'
import { withOtherRoom } from './call-admission.ts'
import {
  type CallActor,
  type CallCommand,
  type CallOutcome,
  type DeclineReason,
  type OperatorCommand,
  refused,
} from './call-command.ts'
import { departed, ended } from './call-settlement.ts'

/** The answer to an invitation, even a late one. Users who were in the call, or declined, rejoin with a key instead. */
export function joinedCall(call: Call, participant: Participant, by: CallActor, nowMs: number): CallOutcome {
  if (isJoined(participant) || isPending(participant)) return attendedCall(call, participant, by, nowMs)
  if (call.status !== 'active')
    return refused('CALL_NOT_ACTIVE', 'the invitation is over and nobody has answered')
  if (participant.state === 'missed') return attendedCall(call, participant, by, nowMs)
  return refused('REJOIN_REQUIRED', `who ${participant.state} asks for the key and rejoins`)
}

/** The participant in the call on this device, wherever they were before. */
export function attendedCall(
  call: Call,
  participant: Participant,
  by: CallActor,
  nowMs: number,
): CallOutcome {
  const { userId, deviceId } = by
  const isIn = isJoined(participant)
  if (isIn && participant.attendance?.deviceId === deviceId) return { kind: 'changed', call }
  const isCounted = isIn || isPending(participant)
  if (!isCounted && attendeesOf(call) >= CALL_SIZE_MAX) {
    return refused('CALL_FULL', `the call has ${CALL_SIZE_MAX} people`)
  }
  const attended = withParticipant(call, userId, {
    state: 'joined',
    attendance: newAttendance(by, nowMs),
    devices: participant.devices.filter(device => device.deviceId !== deviceId),
    ...(isIn ? {} : { joinedAtMs: nowMs, leftAtMs: undefined }),
  })
  return { kind: 'changed', call: attended }
}

/** The device rings, and the caller may see that it does. */
export function rungCall(call: Call, { state, userId }: Participant): Call {
  return state === 'invited' ? withParticipant(call, userId, { state: 'ringing' }) : call
}

/** Declines an invitation; no effect once the user has answered, since another device of theirs was faster. */
export function declinedCall(
  call: Call,
  participant: Participant,
  by: CallDeviceRef,
  reason: DeclineReason,
): Call {
  if (!isPending(participant)) return call
  const state = STATES_OF_DECLINE[reason]
  return withParticipant(call, participant.userId, { state, devices: [], declinedOn: by.deviceId })
}

/** An invitation by this inviter, or by whomever, turned down on whichever device. */
export function withoutInvitation(call: Call, userId: UserId, inviterId: UserId | undefined): Call {
  const participant = participantOf(call, userId)
  if (participant === undefined || !isPending(participant)) return call
  if (inviterId !== undefined && participant.invitedBy !== inviterId) return call
  return withParticipant(call, userId, { state: 'declined', devices: [], declinedOn: undefined })
}

/**
 * A suspended user out of the call, at once. A call of two ends, and so does a ring that they began. A ring at them counts as
 * unanswered, as for a user who can't be reached.
 */
export function withoutSuspended(call: Call, userId: UserId, nowMs: number): Call {
  const participant = participantOf(call, userId)
  // They were not to know of a withheld invitation.
  if (participant === undefined || participant.isWithheld || isOver(call)) return call
  const rejoinAsks = call.rejoinAsks.filter(ask => ask.userId !== userId)
  const asked = rejoinAsks.length === call.rejoinAsks.length ? call : { ...call, rejoinAsks }
  if (isPending(participant)) return withParticipant(asked, userId, { state: 'missed', devices: [] })
  if (!isJoined(participant))
    return participant.devices.length === 0 ? asked : withParticipant(asked, userId, { devices: [] })
  const isRinging = call.status === 'ringing'
  if (isRinging || isTwoPerson(call)) {
    const status = isRinging ? 'cancelled' : 'ended'
    return ended(call, { status, endReason: 'suspended', endedBy: userId }, nowMs)
  }
  return withParticipant(asked, userId, departed(call, participant, 'left', nowMs))
}

/** A device leaves. One that is not in the call leaves nothing, so that a moved call stays where it was moved to. */
export function leftCall(call: Call, participant: Participant, by: CallDeviceRef, nowMs: number): Call {
  if (isPending(participant)) return declinedCall(call, participant, by, 'declined')
  if (joinedOn(call, by) === undefined) return call
  if (call.status === 'ringing') return cancelled(call, by.userId, nowMs)
  return withParticipant(call, by.userId, departed(call, participant, 'left', nowMs))
}

/**
 * Ends the call for all: allowed to the initiator while it rings, to the host, or to either of two. Choice: the
 * callee in a call of two ends it while it rings by declining.
 */
export function endedCall(
  call: Call,
  participant: Participant,
  by: CallDeviceRef,
  nowMs: number,
): CallOutcome {
  if (isOver(call)) return { kind: 'changed', call }
  const { userId } = participant
  if (call.status === 'ringing' && userId === call.initiatorId)
    return { kind: 'changed', call: cancelled(call, userId, nowMs) }
  if (userId !== call.hostUserId && !isTwoPerson(call)) {
    return refused('NOT_HOST', 'only the host ends a call of more than two')
  }
  if (call.status === 'ringing')
    return { kind: 'changed', call: declinedCall(call, participant, by, 'declined') }
  return {
    kind: 'changed',
    call: ended(call, { status: 'ended', endReason: 'hangup', endedBy: userId }, nowMs),
  }
}

type RemoveCommand = Extract<CallCommand, { kind: 'remove' }>

/** Removes a participant at the host's request; only the host may invite them back. */
export function withRemoved(
  call: Call,
  { by, userId, nowMs }: RemoveCommand,
  freeRoomId: number,
): CallOutcome {
  if (by.userId !== call.hostUserId) return refused('NOT_HOST', 'only the host removes people')
  if (userId === by.userId) {
    const errors = [{ pointer: '/userId', code: 'SELF', detail: 'the host leaves instead' }]
    return refused('VALIDATION_FAILED', 'nobody removes themselves', { errors })
  }
  const participant = participantOf(call, userId)
  if (participant === undefined) return refused('USER_NOT_FOUND', 'nobody of that id has a part in the call')
  if (participant.state === 'removed') return { kind: 'changed', call }
  return { kind: 'changed', call: withoutParticipant(call, participant, nowMs, freeRoomId) }
}

function withoutParticipant(call: Call, participant: Participant, nowMs: number, freeRoomId: number): Call {
  const { userId, attendance } = participant
  const rejoinAsks = call.rejoinAsks.filter(ask => ask.userId !== userId)
  const removed = departed(call, participant, 'removed', nowMs)
  const without = withParticipant({ ...call, rejoinAsks }, userId, removed)
  return attendance === undefined ? without : withOtherRoom(without, freeRoomId)
}

/** Ends the call for all at the operator's request. */
export function endedByOperator(call: Call, nowMs: number): Call {
  if (isOver(call)) return call
  const status = call.status === 'ringing' ? 'cancelled' : 'ended'
  return ended(call, { status, endReason: 'operator' }, nowMs)
}

/** Removes a participant at the operator's request. A call that leaves one person alone ends by it. */
export function removedByOperator(
  call: Call,
  { userId, nowMs }: Extract<OperatorCommand, { kind: 'operator-remove' }>,
  freeRoomId: number,
): CallOutcome {
  const participant = participantOf(call, userId)
  if (participant === undefined) return refused('USER_NOT_FOUND', 'nobody of that id has a part in the call')
  if (participant.state === 'removed') return { kind: 'changed', call }
  if (isOver(call)) return refused('CALL_ENDED', `the call is over: ${call.status}`)
  const without = withoutParticipant(call, participant, nowMs, freeRoomId)
  const hasOthers = without.participants.some(one => one.userId !== call.initiatorId && isPending(one))
  const goesOn = call.status === 'ringing' ? userId !== call.initiatorId && hasOthers : !isTwoPerson(call)
  return { kind: 'changed', call: goesOn ? without : endedByOperator(without, nowMs) }
}

/** A device that is no device of its user's any more: out of the call, and rung no more. */
export function withoutDevice(call: Call, participant: Participant, by: CallDeviceRef, nowMs: number): Call {
  const { userId, deviceId } = by
  const rejoinAsks = call.rejoinAsks.filter(ask => ask.userId !== userId || ask.deviceId !== deviceId)
  const asked = rejoinAsks.length === call.rejoinAsks.length ? call : { ...call, rejoinAsks }
  if (joinedOn(call, by) !== undefined) {
    // Its user did not hang up, but the caller is gone.
    if (call.status === 'ringing') {
      return ended(call, { status: 'cancelled', endReason: 'caller_lost' }, nowMs)
    }
    return withParticipant(asked, userId, departed(call, participant, 'left', nowMs))
  }
  const devices = participant.devices.filter(device => device.deviceId !== deviceId)
  if (devices.length === participant.devices.length) return asked
  const isUnreachable = isPending(participant) && devices.length === 0
  return withParticipant(asked, userId, isUnreachable ? { state: 'missed', devices } : { devices })
}

/** Updates the presence of the device that is in the call. The user's other devices do not matter. */
export function withPresence(call: Call, by: CallDeviceRef, isOnline: boolean, nowMs: number): Call {
  const attendance = joinedOn(call, by)?.attendance
  if (attendance === undefined || attendance.isOnline === isOnline) return call
  const hadSocket = attendance.hadSocket || isOnline
  return withParticipant(call, by.userId, {
    attendance: { ...attendance, isOnline, hadSocket, seenAtMs: nowMs },
  })
}

/** A request of a device that is in the call without a socket keeps it there. */
export function withRequest(call: Call, by: CallDeviceRef, nowMs: number): Call {
  const attendance = joinedOn(call, by)?.attendance
  if (attendance === undefined || attendance.isOnline || attendance.seenAtMs >= nowMs) return call
  return withParticipant(call, by.userId, { attendance: { ...attendance, seenAtMs: nowMs } })
}

function cancelled(call: Call, endedBy: UserId, nowMs: number): Call {
  return ended(call, { status: 'cancelled', endReason: 'cancelled', endedBy }, nowMs)
}

const STATES_OF_DECLINE: Record<DeclineReason, ParticipantState> = {
  declined: 'declined',
  busy: 'busy',
  timeout: 'missed',
}
