/** Wire shapes of calls as the operator sees them: people, states, times and reasons, and never a key. */

import Type, { type Static } from 'typebox'
import type { Call, CallMoment, Participant } from '../domain/calls/call.ts'
import type { UserId } from '../domain/ids.ts'
import { CallStatusText, EndReasonText, ParticipantStateText } from './call.ts'
import type { Written } from './json.ts'
import { oneOf } from './one-of.ts'
import { PAGE_MEMBERS, page } from './page.ts'
import { UserRefText } from './server-contact.ts'
import { optionalTimeText, Time, timeText } from './time.ts'
import { Uint64Text } from './uint64.ts'

export const CallsQuery = Type.Object({
  live: Type.Optional(
    Type.Boolean({
      description: 'False: calls that ended in the last 24 hours, the latest end first. Left out: true',
    }),
  ),
  ...PAGE_MEMBERS,
})

const ServerCallPerson = Type.Object({
  userId: Uint64Text,
  externalId: Type.Optional(Type.String()),
  displayName: Type.String({ description: 'As it was when they were invited' }),
  state: ParticipantStateText,
  isHost: Type.Boolean(),
  invitedBy: Uint64Text,
  invitedAt: Time,
  joinedAt: Type.Optional(Time),
  leftAt: Type.Optional(Time),
  deviceId: Type.Optional({ ...Uint64Text, description: 'The device that is in the call, or was last' }),
  talkedIn: Type.Integer({ minimum: 0, description: 'Seconds in the call, up to when they last left' }),
  isWithheld: Type.Boolean({
    description: 'The invitation was kept from them: they had blocked the inviter',
  }),
})

const SERVER_CALL = {
  callId: Uint64Text,
  status: CallStatusText,
  isVideo: Type.Boolean(),
  initiatorId: Uint64Text,
  hostUserId: Uint64Text,
  createdAt: Time,
  startedAt: Type.Optional({ ...Time, description: 'When the first callee joined' }),
  endedAt: Type.Optional(Time),
  endReason: Type.Optional(EndReasonText),
  endedBy: Type.Optional(Uint64Text),
  participants: Type.Array(ServerCallPerson),
}

const TimeLineMoment = Type.Object({
  at: Time,
  event: oneOf(
    [
      'started',
      'invited',
      'push_taken',
      'ringing',
      'unreachable',
      'joined',
      'moved',
      'left',
      'lost',
      'declined',
      'busy',
      'missed',
      'removed',
      'media_ready',
      'media_lost',
      'ended',
    ],
    'Push taken: a push provider took the ring. Ringing: a device shows it. Unreachable: after 5 s no device has a socket or took a ' +
      'push. Moved: to another device of the user. Lost: no sign of life for 90 s. Media: the gateway’s room',
  ),
  userIds: Type.Array(Uint64Text),
  byUserId: Type.Optional({
    ...Uint64Text,
    description: 'Of `invited`, `removed` and `ended`; without one, the operator or the server',
  }),
})

export const ServerCallPage = page(Type.Object(SERVER_CALL))

export const ServerCallView = Type.Object({
  ...SERVER_CALL,
  timeLine: Type.Array(TimeLineMoment, {
    maxItems: 200,
    description: 'What happened, oldest first; of a long call the latest',
  }),
})

export const RemoveFromCallRequest = Type.Object({ ref: UserRefText })

/** A call as `ServerCallPage` has it. */
export function serverCallBody(call: Call, externalIdOf: (userId: UserId) => string | undefined) {
  return {
    callId: call.callId,
    status: call.status,
    isVideo: call.isVideo,
    initiatorId: call.initiatorId,
    hostUserId: call.hostUserId,
    createdAt: timeText(call.createdAtMs),
    startedAt: optionalTimeText(call.startedAtMs),
    endedAt: optionalTimeText(call.endedAtMs),
    endReason: call.endReason,
    endedBy: call.endedBy,
    participants: call.participants.map(one => personBody(call, one, externalIdOf(one.userId))),
  }
}

function personBody(
  { hostUserId }: Call,
  participant: Participant,
  externalId: string | undefined,
): Written<Static<typeof ServerCallPerson>> {
  const { userId, displayName, state, invitedBy, attendance, talkedMs } = participant
  return {
    userId,
    externalId,
    displayName,
    state,
    isHost: userId === hostUserId,
    invitedBy,
    invitedAt: timeText(participant.invitedAtMs),
    joinedAt: optionalTimeText(participant.joinedAtMs),
    leftAt: optionalTimeText(participant.leftAtMs),
    deviceId: attendance?.deviceId,
    talkedIn: Math.floor(talkedMs / 1000),
    isWithheld: participant.isWithheld ?? false,
  }
}

/** A moment as `ServerCallView` has it. */
export function momentBody({
  atMs,
  kind,
  userIds,
  byUserId,
}: CallMoment): Written<Static<typeof TimeLineMoment>> {
  return { at: timeText(atMs), event: kind, userIds: [...userIds], byUserId }
}
