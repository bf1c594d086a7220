/** Events of calls: those that a device gets for itself, and those of a live call's topic. */

import Type from 'typebox'
import type {
  CallNoticeBody,
  CallTopicEvent,
  MediaReadyNotice,
  PersonName,
} from '../domain/calls/call-notice.ts'
import type { NoticeItem } from '../domain/messages/inbox.ts'
import { lastOf } from '../last-of.ts'
import { Badge } from './account.ts'
import {
  CALLER_MEMBERS,
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
import { type EventForm, type EventReader, eventForm, VERSION as v } from './event-form.ts'
import { SharedJson } from './json.ts'
import { oneOf } from './one-of.ts'
import { Time, timeText } from './time.ts'
import { Uint64Text } from './uint64.ts'

/** An invitation that has ended, or a call that moved to another device. */
const OVER = {
  callId: Uint64Text,
  version: CallVersion,
  ...CALLER_MEMBERS,
  isVideo: Type.Boolean(),
  at: Time,
}

/** The device's slice of the call's key. */
const OWN_KEY = { encryptedAESKey: ({ encryptedAESKey }: NoticeItem) => encryptedAESKey }

function unansweredForm(kind: 'call_cancelled' | 'call_missed', summary: string): EventForm {
  return eventForm(
    kind,
    summary,
    { ...OVER, badge: Badge },
    (event, { badge }) => {
      const { kind: type, eventId, sentAtMs: sentAt } = event
      const { callId, version, callerId, callerName, displayName, alias, isContact, isVideo, atMs } = event
      return {
        v,
        type,
        eventId,
        sentAt,
        callId,
        version,
        callerId,
        callerName,
        displayName,
        alias,
        isContact,
        isVideo,
        at: timeText(atMs),
        badge,
      }
    },
    { badge: (_, { badge }) => badge },
  )
}

export const CALL_NOTICES = {
  call_invitation: eventForm(
    'call_invitation',
    'A user calls: ring until `expiresAt`. It has the key of the call for this device alone',
    {
      callId: Uint64Text,
      version: CallVersion,
      ...CALLER_MEMBERS,
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
    },
    (event, { deviceId }) => {
      const { kind: type, eventId, sentAtMs: sentAt, callId, version } = event
      const { callerId, callerName, displayName, alias, isContact } = event
      const { encryptedAESKey, roomId, isVideo, isOnGoing, keyEpoch, keyFromUserId, keyFromDeviceId } = event
      return {
        v,
        type,
        eventId,
        sentAt,
        callId,
        version,
        callerId,
        callerName,
        displayName,
        alias,
        isContact,
        encryptedAESKey,
        roomId,
        isVideo,
        isOnGoing,
        deviceId,
        expiresAt: timeText(event.expiresAtMs),
        participants: participantsBody(event.participants),
        keyEpoch,
        keyFromUserId,
        keyFromDeviceId,
      }
    },
    { ...OWN_KEY, deviceId: (_, { deviceId }) => deviceId },
  ),
  call_cancelled: unansweredForm(
    'call_cancelled',
    'The invitation was withdrawn, or the call has ended: stop ringing',
  ),
  call_missed: unansweredForm('call_missed', 'No device of this user answered in time: stop ringing'),
  call_answered_elsewhere: eventForm(
    'call_answered_elsewhere',
    'Another device of the user answered or declined, as `reason` says: stop ringing',
    { ...OVER, reason: oneOf(['answered', 'declined', 'busy'], 'How the other device answered') },
    event => {
      const { kind: type, eventId, sentAtMs: sentAt } = event
      const { callId, version, callerId, callerName, displayName, alias, isContact, isVideo, atMs, reason } =
        event
      return {
        v,
        type,
        eventId,
        sentAt,
        callId,
        version,
        callerId,
        callerName,
        displayName,
        alias,
        isContact,
        isVideo,
        at: timeText(atMs),
        reason,
      }
    },
  ),
  call_moved: eventForm(
    'call_moved',
    'Another device of the user took the call over: close media and keep quiet',
    OVER,
    event => {
      const { kind: type, eventId, sentAtMs: sentAt } = event
      const { callId, version, callerId, callerName, displayName, alias, isContact, isVideo, atMs } = event
      return {
        v,
        type,
        eventId,
        sentAt,
        callId,
        version,
        callerId,
        callerName,
        displayName,
        alias,
        isContact,
        isVideo,
        at: timeText(atMs),
      }
    },
  ),
  call_ended: eventForm(
    'call_ended',
    'The call has ended: close media, wipe the key',
    {
      callId: Uint64Text,
      version: CallVersion,
      status: CallStatusText,
      endReason: EndReasonText,
      endedBy: Type.Optional({ ...Uint64Text, description: 'Left out when nobody ended it' }),
      endedAt: Time,
    },
    event => {
      const { kind: type, eventId, sentAtMs: sentAt } = event
      const { callId, version, status, endReason, endedBy, endedAtMs } = event
      const endedAt = timeText(endedAtMs)
      return { v, type, eventId, sentAt, callId, version, status, endReason, endedBy, endedAt }
    },
  ),
  participant_request_rejoin: eventForm(
    'participant_request_rejoin',
    'A device that lost the key asks for it: verify it, seal the key for it',
    {
      callId: Uint64Text,
      version: CallVersion,
      userId: Uint64Text,
      deviceId: Uint64Text,
      displayName: Type.String(),
      publicKeyHash: Type.String({ description: "The log's hash of the key to encrypt for" }),
      expiresAt: Time,
      nonce: Type.Optional(Type.String({ description: 'As the device sent it' })),
    },
    event => {
      const { kind: type, eventId, sentAtMs: sentAt } = event
      const { callId, version, userId, deviceId, displayName, publicKeyHash, expiresAtMs, nonce } = event
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
        expiresAt: timeText(expiresAtMs),
        nonce,
      }
    },
  ),
  participant_accept_rejoin: eventForm(
    'participant_accept_rejoin',
    'The key that this device asked for: open it, then `rejoin`',
    {
      callId: Uint64Text,
      version: CallVersion,
      encryptedAESKey: EncryptedKey,
      keyEpoch: Type.Integer(),
      fromUserId: Uint64Text,
      fromDeviceId: Uint64Text,
    },
    event => {
      const { kind: type, eventId, sentAtMs: sentAt } = event
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
    },
    OWN_KEY,
  ),
  key_update: eventForm(
    'key_update',
    'A new key of the call, or the present one again',
    {
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
    },
    event => {
      const { kind: type, eventId, sentAtMs: sentAt, callId, version, epoch, reason } = event
      const { encryptedAESKey, fromUserId, fromDeviceId, setHash, added, removed } = event
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
    },
    OWN_KEY,
  ),
  key_missing: eventForm(
    'key_missing',
    'This device gets no key of the epoch: ask for it with `request-rejoin`',
    {
      callId: Uint64Text,
      version: CallVersion,
      epoch: Type.Integer({ description: 'Whose key this device does not get' }),
    },
    ({ kind: type, eventId, sentAtMs: sentAt, callId, version, epoch }) => ({
      v,
      type,
      eventId,
      sentAt,
      callId,
      version,
      epoch,
    }),
  ),
  media_ready: eventForm(
    'media_ready',
    'The room at the media gateway lets this device in, or does so again: join it. After a removal it may be another room',
    {
      callId: Uint64Text,
      version: CallVersion,
      roomId: { ...RoomId, description: "The call's room from this version on" },
      media: CallMediaView,
    },
    (event, reader) => {
      const { kind: type, eventId, sentAtMs: sentAt, callId, version, roomId } = event
      return { v, type, eventId, sentAt, callId, version, roomId, media: readyMedia(event, reader) }
    },
    { media: ({ body }, reader) => (body.kind === 'media_ready' ? readyMedia(body, reader) : undefined) },
  ),
} satisfies Record<CallNoticeBody['kind'], EventForm>

/** Events of a call's topic, live only. */
export const TOPIC_EVENTS = {
  participant_invited: participantForm('participant_invited', 'A user was asked into the call'),
  participant_ringing: participantForm('participant_ringing', 'A device of theirs rings'),
  participant_joined: participantForm('participant_joined', 'A user came in, or came back'),
  participant_left: participantForm('participant_left', 'A user left, was lost, or was removed'),
  participant_declined: participantForm(
    'participant_declined',
    'A user declined, is busy, or did not answer in time',
  ),
  participant_unreachable: eventForm(
    'participant_unreachable',
    'A hint: for 5 s no device of theirs had a socket or took a push. It may ring yet',
    {
      callId: Uint64Text,
      version: CallVersion,
      userId: Uint64Text,
      hasUnapprovedDevice: Type.Boolean({
        description: 'A device of theirs is connected and waits for their approval: no call rings there',
      }),
    },
    ({ kind: type, eventId, sentAtMs: sentAt, callId, version, userId, hasUnapprovedDevice }) => ({
      v,
      type,
      eventId,
      sentAt,
      callId,
      version,
      userId,
      hasUnapprovedDevice,
    }),
  ),
  media_changed: participantForm('media_changed', 'A user’s feeds at the media gateway have changed'),
  host_changed: eventForm(
    'host_changed',
    'Another is host, and makes the next key',
    { callId: Uint64Text, version: CallVersion, hostUserId: Uint64Text },
    ({ kind: type, eventId, sentAtMs: sentAt, callId, version, hostUserId }) => ({
      v,
      type,
      eventId,
      sentAt,
      callId,
      version,
      hostUserId,
    }),
  ),
  call_status: eventForm(
    'call_status',
    'The call as a whole changed its status',
    { callId: Uint64Text, version: CallVersion, status: CallStatusText },
    ({ kind: type, eventId, sentAtMs: sentAt, callId, version, status }) => ({
      v,
      type,
      eventId,
      sentAt,
      callId,
      version,
      status,
    }),
  ),
} satisfies Record<CallTopicEvent['kind'], EventForm>

function participantForm(
  kind: Extract<CallTopicEvent, { readonly participant: object }>['kind'],
  summary: string,
): EventForm {
  return eventForm(
    kind,
    summary,
    { callId: Uint64Text, version: CallVersion, participant: CallParticipant },
    ({ kind: type, eventId, sentAtMs: sentAt, callId, version, participant }, { admit }) => ({
      v,
      type,
      eventId,
      sentAt,
      callId,
      version,
      participant: participantBody(participant, callId, admit),
    }),
  )
}

function readyMedia({ callId, roomId, gateway }: MediaReadyNotice, { userId, deviceId, admit }: EventReader) {
  const isKnown = userId !== undefined && deviceId !== undefined
  const entry = isKnown ? { callId, roomId, gateway, device: { userId, deviceId } } : undefined
  return mediaBody({ isReady: true, entry }, admit)
}

/** Callees who know the caller by other names are sent the same one, and it is the longest part. */
const participantsBody = lastOf(
  (participants: readonly PersonName[]) =>
    new SharedJson(participants.map(({ userId, displayName }) => ({ userId, displayName }))),
)
