/** Wire shapes of calls and call history (contract 4), and how a record is written in them. */

import Type, { type Static } from 'typebox'
import type { KeySet, RoomEntry } from '../domain/calls/call.ts'
import type { CallHistoryRow } from '../domain/calls/call-history.ts'

import type { ParticipantView, PersonName, ShownCaller } from '../domain/calls/call-notice.ts'
import type { CallMedia, CallRecord } from '../domain/calls/call-view.ts'
import type { CallId } from '../domain/ids.ts'
import { Alias } from './contact.ts'
import type { Written } from './json.ts'

import { oneOf } from './one-of.ts'
import { page } from './page.ts'
import { optionalTimeText, Time, timeText } from './time.ts'
import { Uint64Text } from './uint64.ts'

/** A call's key for one device, as that device alone gets it. */
export const EncryptedKey = Type.String({
  maxLength: 2_048,
  description: 'The session key encrypted for one device: base64 of 64 to 1024 bytes',
})

export const RoomId = Type.Integer({
  minimum: 1,
  maximum: Number.MAX_SAFE_INTEGER,
  description: "The media gateway's room",
})

/** A publisher of a Janus VideoRoom. */
const FeedId = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })

export const KeyMembersText = Type.String({
  description:
    'The devices that a key is sealed for, its sealer among them: base64 of `n u16 ‖ n x (userId u64 ‖ deviceId u64 ‖ ' +
    'SHA-256 of the public key)`, big-endian, ascending by userId, then deviceId, at most 321',
})

export const KeysReasonText = oneOf(
  ['rotation', 'leave', 'emergency', 'invite'],
  'The period is over; a participant left, can not decrypt, or invited more people',
)

/** Its twin without `invite`, which only an invitation has. */
export const SentKeysReasonText = oneOf(
  ['rotation', 'leave', 'emergency'],
  'The period is over; a participant left, or can not decrypt',
)

export const CallStatusText = oneOf([
  'ringing',
  'active',
  'ended',
  'cancelled',
  'declined',
  'missed',
  'failed',
])

export const EndReasonText = oneOf([
  'hangup',
  'cancelled',
  'declined',
  'unanswered',
  'caller_lost',
  'empty',
  'alone',
  'limit',
  'removed',
  'operator',
  'suspended',
  'internal',
])

export const ParticipantStateText = oneOf([
  'invited',
  'ringing',
  'joined',
  'left',
  'lost',
  'declined',
  'busy',
  'missed',
  'removed',
])

export const CallParticipant = Type.Object({
  userId: Uint64Text,
  displayName: Type.String(),
  state: ParticipantStateText,
  isHost: Type.Boolean(),
  invitedBy: Uint64Text,
  invitedAt: Time,
  joinedAt: Type.Optional(Time),
  leftAt: Type.Optional(Time),
  deviceId: Type.Optional({ ...Uint64Text, description: 'The device that is in the call, or was last' }),
  publicKeyHash: Type.Optional(Type.String({ description: "The log's hash of that device's key" })),
  mediaName: Type.String({ description: '`<userId>:<displayName>`; SDKs enter the media room without it' }),
  feedIds: Type.Optional(
    Type.Array(FeedId, {
      maxItems: 4,
      description:
        'What that device sends at the media gateway, the newest first: any other feed belongs to an unknown sender',
    }),
  ),
  identity: Type.Optional(
    Type.String({
      maxLength: 22,
      description: 'That device at LiveKit, while it is in the call: any other identity is an unknown sender',
    }),
  ),
})

/** Where media goes: the room is the clients' business, or one at a gateway that the server makes. */
export const CallMediaView = Type.Object({
  kind: oneOf(
    ['client', 'janus', 'livekit'],
    'The room is the clients’ business; the server makes it at a Janus or a LiveKit',
  ),
  state: Type.Optional(
    oneOf(['ready', 'pending'], 'Not of `client`: the room lets this device in; `media_ready` follows'),
  ),
  url: Type.Optional(
    Type.String({ description: 'WebSocket of the gateway; only for a device in the call, when ready' }),
  ),
  roomToken: Type.Optional(
    Type.String({ description: 'For `join`: good for this device and room, up to an hour; likewise' }),
  ),
  pluginToken: Type.Optional(
    Type.String({ description: 'For every request to the gateway: the newest; likewise' }),
  ),
  token: Type.Optional(
    Type.String({
      description:
        'Of `livekit` alone: for `connect`, good for this device and room, up to an hour; likewise',
    }),
  ),
  keySize: Type.Optional(
    Type.Integer({
      enum: [128, 256],
      description: 'Of `livekit` alone: bits of the keys of frames, alike for all devices',
    }),
  ),
})

/** Of a call, in its record and in each of its events. */
export const CallVersion = Type.Integer({
  minimum: 1,
  description: 'Grows by one with each change of the call: the greater is newer, the same is a repeat',
})

/** The person who invites, as the invited user is to see them. */
export const CALLER_MEMBERS = {
  callerId: Uint64Text,
  callerName: Type.String({ description: 'What to show: the alias, else the display name' }),
  displayName: Type.String({ description: 'As the caller calls themselves' }),
  alias: Type.Optional(Alias),
  isContact: Type.Boolean({
    description:
      'A contact, or a member of a circle of yours. False for a stranger, who may have any name: say so on the screen',
  }),
}

/** The devices that the key of one epoch is sealed for. */
export const KeySetView = Type.Object({ epoch: Type.Integer(), keyMembers: KeyMembersText })

const CallRecordView = Type.Object({
  callId: Uint64Text,
  version: CallVersion,
  roomId: RoomId,
  status: CallStatusText,
  isVideo: Type.Boolean(),
  initiatorId: Uint64Text,
  hostUserId: Uint64Text,
  createdAt: Time,
  startedAt: Type.Optional({ ...Time, description: 'When the first callee joined' }),
  endedAt: Type.Optional(Time),
  endReason: Type.Optional(EndReasonText),
  ringTimeoutIn: Type.Integer({ description: 'Seconds that an invitation rings' }),
  keyEpoch: Type.Integer(),
  keyRotationIn: Type.Integer({ description: 'Seconds after which the host makes a new key' }),
  maxParticipants: Type.Integer(),
  participants: Type.Array(CallParticipant),
  media: CallMediaView,
  isOnGoing: Type.Boolean({ description: 'Whether you were invited into an active call' }),
  invitation: Type.Optional(Type.Object(CALLER_MEMBERS, { description: 'Who invites you; in pending' })),
  encryptedAESKey: Type.Optional({ ...EncryptedKey, description: "This device's own; in join and pending" }),
  keyFromUserId: Type.Optional({ ...Uint64Text, description: 'Who sealed `encryptedAESKey`; only with it' }),
  keyFromDeviceId: Type.Optional({ ...Uint64Text, description: 'On which device; likewise' }),
  keySets: Type.Optional(
    Type.Array(KeySetView, {
      description:
        'Of the newest two keys that came with `keyMembers`, newest first; in reads, join, rejoin and pending',
    }),
  ),
})

/** The record of a call. */
export const CallRecordReply = CallRecordView

export const PendingReply = Type.Object({ items: Type.Array(CallRecordView) })

export const ParticipantsReply = Type.Object({
  callId: Uint64Text,
  version: CallVersion,
  keyEpoch: Type.Integer(),
  participants: Type.Array(CallParticipant),
})

/** As `KeySetView`, with its call. */
export const KeyMembersReply = Type.Object({ callId: Uint64Text, ...KeySetView.properties })

export const RequestRejoinReply = Type.Object({
  expiresIn: Type.Integer({ description: 'Seconds in which answers are passed on' }),
  asked: Type.Integer({ description: 'How many devices were asked' }),
})

/** The reply to a command that was passed on. */
export const AcceptedReply = Type.Object({})

export const HistoryPage = page(
  Type.Object({
    callId: Uint64Text,
    direction: oneOf(['outgoing', 'incoming']),
    status: oneOf(['active', 'ended', 'missed', 'declined', 'cancelled', 'failed']),
    isVideo: Type.Boolean(),
    isGroup: Type.Boolean(),
    peers: Type.Array(
      Type.Object({ userId: Uint64Text, displayName: Type.String(), alias: Type.Optional(Alias) }),
    ),
    createdAt: Time,
    startedAt: Type.Optional(Time),
    endedAt: Type.Optional(Time),
    durationIn: Type.Integer({ description: 'Seconds that you spent in it; 0 while it goes on' }),
    seen: Type.Boolean({ description: 'False for a missed call that you have not looked at' }),
  }),
)

/** Makes the proofs of an entry to a room; left out where there is no gateway. */
export interface Admit {
  readonly kind: 'janus' | 'livekit'
  /** Undefined where the gateway is not in the settings any more. */
  readonly admissionOf: (entry: RoomEntry) => RoomAdmission | undefined
  /** Bits of the keys of frames, where the operator chooses. */
  readonly keySize?: 128 | 256
  /** The device's name at a gateway where the server gives names. */
  readonly identityOf?: (entry: Pick<RoomEntry, 'callId' | 'device'>) => string
}

export type RoomAdmission = JanusAdmission | LiveKitAdmission

interface JanusAdmission {
  /** Where the device connects. */
  readonly url: string
  readonly roomToken: string
  readonly pluginToken: string
}

interface LiveKitAdmission {
  readonly url: string
  readonly token: string
}

/** As `CallMediaView` has it. */
export function mediaBody(
  { isReady, entry }: CallMedia,
  admit: Admit | undefined,
): Written<Static<typeof CallMediaView>> {
  if (admit === undefined) return CLIENT_MEDIA
  const { kind, keySize } = admit
  if (!isReady) return { kind, state: 'pending', keySize }
  if (entry === undefined) return { kind, state: 'ready', keySize }
  const admission = admit.admissionOf(entry)
  if (admission === undefined) return { kind, state: 'pending', keySize }
  return { kind, state: 'ready', keySize, ...admission }
}

/**
 * A record as `CallRecordReply` has it. Written out, as are the next ones: V8 turns several spreads into a hash table,
 * ten times as slow to make and as large.
 */
export function recordBody(record: CallRecord, admit: Admit | undefined) {
  return {
    callId: record.callId,
    version: record.version,
    roomId: record.roomId,
    status: record.status,
    isVideo: record.isVideo,
    initiatorId: record.initiatorId,
    hostUserId: record.hostUserId,
    createdAt: timeText(record.createdAtMs),
    startedAt: optionalTimeText(record.startedAtMs),
    endedAt: optionalTimeText(record.endedAtMs),
    endReason: record.endReason,
    ringTimeoutIn: record.ringTimeoutIn,
    keyEpoch: record.keyEpoch,
    keyRotationIn: record.keyRotationIn,
    maxParticipants: record.maxParticipants,
    participants: record.participants.map(each => participantBody(each, record.callId, admit)),
    media: mediaBody(record.media, admit),
    isOnGoing: record.isOnGoing,
    invitation: record.invitation && invitationBody(record.invitation),
    encryptedAESKey: record.encryptedAESKey,
    keyFromUserId: record.keyFromUserId,
    keyFromDeviceId: record.keyFromDeviceId,
    keySets: record.keySets?.length ? record.keySets.map(keySetBody) : undefined,
  }
}

function invitationBody({ callerId, callerName, displayName, alias, isContact }: ShownCaller) {
  return { callerId, callerName, displayName, alias, isContact }
}

/** A set as `KeySetView` has it. */
export function keySetBody({ epoch, members }: KeySet) {
  return { epoch, keyMembers: Buffer.from(members).toString('base64') }
}

/** A participant as `CallParticipant` has it. */
export function participantBody(
  view: ParticipantView,
  callId: CallId,
  admit: Admit | undefined,
): Written<Static<typeof CallParticipant>> {
  return {
    userId: view.userId,
    displayName: view.displayName,
    state: view.state,
    isHost: view.isHost,
    invitedBy: view.invitedBy,
    invitedAt: timeText(view.invitedAtMs),
    joinedAt: optionalTimeText(view.joinedAtMs),
    leftAt: optionalTimeText(view.leftAtMs),
    deviceId: view.deviceId,
    publicKeyHash: view.publicKeyHash,
    mediaName: view.mediaName,
    feedIds: view.feedIds,
    identity: identityOf(view, callId, admit),
  }
}

function identityOf(
  { state, userId, deviceId }: ParticipantView,
  callId: CallId,
  admit: Admit | undefined,
): string | undefined {
  if (admit?.identityOf === undefined || state !== 'joined' || deviceId === undefined) return undefined
  return admit.identityOf({ callId, device: { userId, deviceId } })
}

/** A row as `HistoryPage` has it, with the peers as its user sees them. */
export function historyBody(
  row: CallHistoryRow,
  peers: readonly (PersonName & { readonly alias: string | undefined })[],
): object {
  return {
    callId: row.callId,
    direction: row.direction,
    status: row.status,
    isVideo: row.isVideo,
    isGroup: row.isGroup,
    peers: peers.map(({ userId, displayName, alias }) => ({ userId, displayName, alias })),
    createdAt: timeText(row.createdAtMs),
    startedAt: optionalTimeText(row.startedAtMs),
    endedAt: optionalTimeText(row.endedAtMs),
    durationIn: Math.floor((row.talkedMs ?? 0) / 1000),
    seen: row.seen,
  }
}

const CLIENT_MEDIA = { kind: 'client' } as const
