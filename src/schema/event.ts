/**
 * Messages to devices over STOMP (contract 7.3): each body's form by its `type`, and the writing of a notice or a
 * live call's event in it. The same schemas make the AsyncAPI document.
 */

import Type, { type TObject, type TProperties } from 'typebox'
import type { CallTopicEvent, PersonName } from '../domain/calls/call-notice.ts'
import type { DeviceId, UserId } from '../domain/ids.ts'
import type { BadgeEvent, Badge as BadgeFigures, Notice } from '../domain/messages/notice.ts'
import { lastOf } from '../last-of.ts'
import { Badge, UserView } from './account.ts'
import {
  type Admit,
  CallMediaView,
  CallParticipant,
  CallStatusText,
  CallVersion,
  EncryptedKey,
  EndReasonText,
  KeysReasonText,
  mediaBody,
  participantBody,
  RoomId,
} from './call.ts'
import { SharedJson } from './json.ts'
import { oneOf } from './one-of.ts'
import { Time, timeText } from './time.ts'
import { Uint64Text } from './uint64.ts'

/** An event of a live call, on its way to those who watch. */
export type TopicEvent = CallTopicEvent & {
  /** 22 base64url characters. */
  readonly eventId: string
  readonly sentAtMs: number
}

export type EventType = (Notice | BadgeEvent | CallTopicEvent)['kind']

/** Facts in a body that depend on its receiver. */
export interface EventReader {
  readonly userId?: UserId
  readonly deviceId?: DeviceId
  /** See `Admit`, for `media_ready`. */
  readonly admit?: Admit | undefined
  /** The user as `GET user` has them, for `profile_changed`. */
  readonly user?: () => object
  /** The user's badge as it is now, for events that carry it. */
  readonly badge?: BadgeFigures | undefined
}

/** A message's body, for `formatJson`: flat, ids as bigints. Only members written here are sent. */
export function eventBody(event: Notice | BadgeEvent | TopicEvent, reader: EventReader = {}): object {
  const { deviceId, user, badge } = reader
  const { kind: type, eventId, sentAtMs: sentAt } = event
  // Named each time: to spread what all have in common takes longer than all the rest (`invitations` in `bench/`).
  switch (event.kind) {
    case 'call_invitation':
      return invitationBody(event, deviceId)
    case 'call_cancelled':
    case 'call_missed': {
      const { callId, version, callerId, callerName, isVideo, atMs } = event
      return {
        v,
        type,
        eventId,
        sentAt,
        callId,
        version,
        callerId,
        callerName,
        isVideo,
        at: timeText(atMs),
        badge,
      }
    }
    case 'call_moved': {
      const { callId, version, callerId, callerName, isVideo, atMs } = event
      return { v, type, eventId, sentAt, callId, version, callerId, callerName, isVideo, at: timeText(atMs) }
    }
    case 'call_answered_elsewhere': {
      const { callId, version, callerId, callerName, isVideo, atMs, reason } = event
      return {
        v,
        type,
        eventId,
        sentAt,
        callId,
        version,
        callerId,
        callerName,
        isVideo,
        at: timeText(atMs),
        reason,
      }
    }
    case 'call_ended': {
      const { callId, version, status, endReason, endedBy, endedAtMs } = event
      return {
        v,
        type,
        eventId,
        sentAt,
        callId,
        version,
        status,
        endReason,
        endedBy,
        endedAt: timeText(endedAtMs),
      }
    }
    case 'participant_request_rejoin': {
      const { callId, version, userId, deviceId, displayName, publicKeyHash, expiresAtMs, nonce } = event
      const expiresAt = timeText(expiresAtMs)
      return {
        v,
        type,
        eventId,
        sentAt,
        callId,
        version,
        userId,
        deviceId,
        displayName,
        publicKeyHash,
        expiresAt,
        nonce,
      }
    }
    case 'participant_accept_rejoin': {
      const { callId, version, encryptedAESKey, keyEpoch, fromUserId, fromDeviceId } = event
      return {
        v,
        type,
        eventId,
        sentAt,
        callId,
        version,
        encryptedAESKey,
        keyEpoch,
        fromUserId,
        fromDeviceId,
      }
    }
    case 'key_update': {
      const { callId, version, epoch, reason, encryptedAESKey, fromUserId, fromDeviceId } = event
      const { setHash, added, removed } = event
      return {
        v,
        type,
        eventId,
        sentAt,
        callId,
        version,
        epoch,
        reason,
        encryptedAESKey,
        fromUserId,
        fromDeviceId,
        setHash,
        added,
        removed,
      }
    }
    case 'key_missing':
      return { v, type, eventId, sentAt, callId: event.callId, version: event.version, epoch: event.epoch }
    case 'media_ready': {
      const { callId, version, roomId } = event
      return { v, type, eventId, sentAt, callId, version, roomId, media: readyMedia(event, reader) }
    }
    case 'participant_invited':
    case 'participant_ringing':
    case 'participant_joined':
    case 'participant_left':
    case 'participant_declined':
    case 'media_changed':
      return {
        v,
        type,
        eventId,
        sentAt,
        callId: event.callId,
        version: event.version,
        participant: participantBody(event.participant),
      }
    case 'host_changed':
      return {
        v,
        type,
        eventId,
        sentAt,
        callId: event.callId,
        version: event.version,
        hostUserId: event.hostUserId,
      }
    case 'call_status':
      return { v, type, eventId, sentAt, callId: event.callId, version: event.version, status: event.status }
    case 'friend_request': {
      const { requestId, userId, displayName, message, createdAtMs } = event
      return {
        v,
        type,
        eventId,
        sentAt,
        requestId,
        userId,
        displayName,
        message,
        createdAt: timeText(createdAtMs),
      }
    }
    case 'friend_request_cancelled':
      return { v, type, eventId, sentAt, requestId: event.requestId, userId: event.userId }
    case 'contact_added':
    case 'contact_removed':
      return { v, type, eventId, sentAt, userId: event.userId, displayName: event.displayName }
    case 'device_added':
    case 'device_removed':
    case 'device_list_changed':
    case 'device_list_reset': {
      const { deviceId, name, platform, publicKeyHash } = event
      return { v, type, eventId, sentAt, deviceId, name, platform, publicKeyHash }
    }
    case 'device_push_lost': {
      const { deviceId, name, platform, tokens } = event
      return { v, type, eventId, sentAt, deviceId, name, platform, tokens }
    }
    case 'session_revoked':
      return { v, type, eventId, sentAt, reason: event.reason }
    case 'profile_changed':
      return { v, type, eventId, sentAt, ...user?.() }
    case 'badge': {
      const { total, friendRequests, missedCalls } = event.badge
      return { v, type, eventId, sentAt, total, friendRequests, missedCalls }
    }
  }
}

function readyMedia(
  { roomId }: Extract<Notice, { kind: 'media_ready' }>,
  { userId, deviceId, admit }: EventReader,
): object {
  const isKnown = userId !== undefined && deviceId !== undefined
  const entry = isKnown ? { roomId, device: { userId, deviceId } } : undefined
  return mediaBody({ isReady: true, entry }, admit)
}

function invitationBody(
  invitation: Extract<Notice, { kind: 'call_invitation' }>,
  deviceId: DeviceId | undefined,
): object {
  const { kind: type, eventId, sentAtMs: sentAt } = invitation
  const { callId, version, callerId, callerName, encryptedAESKey, roomId, isVideo, isOnGoing, keyEpoch } =
    invitation
  const { keyFromUserId, keyFromDeviceId } = invitation
  return {
    v,
    type,
    eventId,
    sentAt,
    callId,
    version,
    callerId,
    callerName,
    encryptedAESKey,
    roomId,
    isVideo,
    isOnGoing,
    deviceId,
    expiresAt: timeText(invitation.expiresAtMs),
    participants: participantsBody(invitation.participants),
    keyEpoch,
    keyFromUserId,
    keyFromDeviceId,
  }
}

/** A call that rings on many devices has the same one for all, and it is the longest part. */
const participantsBody = lastOf(
  (participants: readonly PersonName[]) =>
    new SharedJson(participants.map(({ userId, displayName }) => ({ userId, displayName }))),
)

/** Says that it is beyond 32 bits, as which generators take an integer otherwise. */
export const SentAt = Type.Integer({ format: 'int64', description: 'Milliseconds since 1970' })

/** The version of bodies. */
const v = 1

/** The form of each body by its `type`. */
export const EVENT_SCHEMAS: Readonly<Record<EventType, TObject>> = {
  call_invitation: eventSchema('call_invitation', {
    callId: Uint64Text,
    version: CallVersion,
    callerId: Uint64Text,
    callerName: Type.String(),
    encryptedAESKey: EncryptedKey,
    roomId: RoomId,
    isVideo: Type.Boolean(),
    isOnGoing: Type.Boolean({ description: 'Whether it is an invitation into an active call' }),
    deviceId: Type.Optional({ ...Uint64Text, description: 'The device that is invited' }),
    expiresAt: Time,
    participants: Type.Array(Type.Object({ userId: Uint64Text, displayName: Type.String() })),
    keyEpoch: Type.Integer(),
    keyFromUserId: { ...Uint64Text, description: 'Who sealed the key' },
    keyFromDeviceId: { ...Uint64Text, description: 'The device that sealed it' },
  }),
  call_cancelled: overEvent('call_cancelled', { badge: Badge }),
  call_missed: overEvent('call_missed', { badge: Badge }),
  call_answered_elsewhere: overEvent('call_answered_elsewhere', {
    reason: oneOf(['answered', 'declined', 'busy'], 'How the other device answered'),
  }),
  call_moved: overEvent('call_moved'),
  call_ended: eventSchema('call_ended', {
    callId: Uint64Text,
    version: CallVersion,
    status: CallStatusText,
    endReason: EndReasonText,
    endedBy: Type.Optional({ ...Uint64Text, description: 'Left out when nobody ended it' }),
    endedAt: Time,
  }),
  participant_request_rejoin: eventSchema('participant_request_rejoin', {
    callId: Uint64Text,
    version: CallVersion,
    userId: Uint64Text,
    deviceId: Uint64Text,
    displayName: Type.String(),
    publicKeyHash: Type.String({ description: "The log's hash of the key to encrypt for" }),
    expiresAt: Time,
    nonce: Type.Optional(Type.String({ description: 'As the device sent it' })),
  }),
  participant_accept_rejoin: eventSchema('participant_accept_rejoin', {
    callId: Uint64Text,
    version: CallVersion,
    encryptedAESKey: EncryptedKey,
    keyEpoch: Type.Integer(),
    fromUserId: Uint64Text,
    fromDeviceId: Uint64Text,
  }),
  key_update: eventSchema('key_update', {
    callId: Uint64Text,
    version: CallVersion,
    epoch: Type.Integer(),
    reason: KeysReasonText,
    encryptedAESKey: EncryptedKey,
    fromUserId: Uint64Text,
    fromDeviceId: Uint64Text,
    setHash: Type.Optional(
      Type.String({
        description:
          'Base64 of SHA-256 of `callsign call members v1`, a line feed and the octets of the `keyMembers`; where the epoch has some',
      }),
    ),
    added: Type.Optional(
      Type.String({
        description:
          'Base64 of the entries that the set of the epoch before lacks, 48 octets each; with a new epoch after one with a set',
      }),
    ),
    removed: Type.Optional(
      Type.Array(Type.String(), {
        description: 'Devices whose entries only the set before has, as `<userId>_<deviceId>`; likewise',
      }),
    ),
  }),
  key_missing: eventSchema('key_missing', {
    callId: Uint64Text,
    version: CallVersion,
    epoch: Type.Integer({ description: 'Whose key this device does not get' }),
  }),
  media_ready: eventSchema('media_ready', {
    callId: Uint64Text,
    version: CallVersion,
    roomId: { ...RoomId, description: "The call's room from this version on" },
    media: CallMediaView,
  }),
  participant_invited: participantEvent('participant_invited'),
  participant_ringing: participantEvent('participant_ringing'),
  participant_joined: participantEvent('participant_joined'),
  participant_left: participantEvent('participant_left'),
  participant_declined: participantEvent('participant_declined'),
  media_changed: participantEvent('media_changed'),
  host_changed: eventSchema('host_changed', {
    callId: Uint64Text,
    version: CallVersion,
    hostUserId: Uint64Text,
  }),
  call_status: eventSchema('call_status', {
    callId: Uint64Text,
    version: CallVersion,
    status: CallStatusText,
  }),
  friend_request: eventSchema('friend_request', {
    requestId: Uint64Text,
    userId: Uint64Text,
    displayName: Type.String(),
    message: Type.Optional(Type.String()),
    createdAt: Time,
  }),
  friend_request_cancelled: eventSchema('friend_request_cancelled', {
    requestId: Uint64Text,
    userId: Uint64Text,
  }),
  contact_added: eventSchema('contact_added', { userId: Uint64Text, displayName: Type.String() }),
  contact_removed: eventSchema('contact_removed', { userId: Uint64Text, displayName: Type.String() }),
  device_added: deviceEvent('device_added'),
  device_removed: deviceEvent('device_removed'),
  device_list_changed: deviceEvent('device_list_changed'),
  device_list_reset: deviceEvent('device_list_reset'),
  device_push_lost: eventSchema('device_push_lost', {
    deviceId: { ...Uint64Text, description: 'The device that is pushed to no more' },
    name: Type.String(),
    platform: Type.String(),
    tokens: Type.Array(oneOf(['apnsToken', 'apnsVoipToken', 'fcmToken']), {
      description: 'What another device has sent as its own',
    }),
  }),
  session_revoked: eventSchema('session_revoked', { reason: Type.String() }),
  profile_changed: eventSchema('profile_changed', UserView.properties),
  badge: eventSchema('badge', Badge.properties),
}

function eventSchema(type: EventType, members: TProperties): TObject {
  return Type.Object({
    v: Type.Literal(1),
    type: Type.Literal(type),
    eventId: Type.String({ description: 'Names the event; the same in its push' }),
    sentAt: SentAt,
    ...members,
  })
}

/** The body for an invitation that has ended, or a call that moved to another device. */
function overEvent(type: EventType, more: TProperties = {}): TObject {
  return eventSchema(type, {
    callId: Uint64Text,
    version: CallVersion,
    callerId: Uint64Text,
    callerName: Type.String(),
    isVideo: Type.Boolean(),
    at: Time,
    ...more,
  })
}

function participantEvent(type: EventType): TObject {
  return eventSchema(type, { callId: Uint64Text, version: CallVersion, participant: CallParticipant })
}

function deviceEvent(type: EventType): TObject {
  return eventSchema(type, {
    deviceId: Uint64Text,
    name: Type.String(),
    platform: Type.String(),
    publicKeyHash: Type.String(),
  })
}
