/** Wire shapes of calls and call history (contract 4), and how a record is written in them. */

import Type, { type Static } from 'typebox'
import type { KeySet, RoomEntry } from '../domain/calls/call.ts'
import type { DeclineReason, SentKeyMap } from '../domain/calls/call-command.ts'
import type { CallHistoryRow } from '../domain/calls/call-history.ts'
import type { ParticipantView, PersonName, SentKeysReason } from '../domain/calls/call-notice.ts'
import type { CallMedia, CallRecord } from '../domain/calls/call-view.ts'
import type { DeviceId, UserId } from '../domain/ids.ts'
import { OWN_ID_END, OWN_ID_MIN } from '../limits.ts'
import { BodyReader } from './json.ts'
import { oneOf } from './one-of.ts'
import { page } from './page.ts'
import { optionalTimeText, Time, timeText } from './time.ts'
import { chosenId, Uint64, Uint64Text } from './uint64.ts'

/** A call's key for one device, as that device alone gets it. */
export const EncryptedKey = Type.String({
  maxLength: 2_048,
  description: 'The session key encrypted for one device: base64 of 64 to 1024 bytes',
})

const KeyMap = Type.Record(Type.String(), EncryptedKey, {
  description: 'By `<userId>_<deviceId>`; at most 320',
})

export const RoomId = Type.Integer({
  minimum: 1,
  maximum: Number.MAX_SAFE_INTEGER,
  description: "The media gateway's room",
})

/** A publisher of a Janus VideoRoom. */
const FeedId = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })

const CalleeIds = Type.Array(Uint64, {
  minItems: 1,
  maxItems: 31,
  description: '1 to 31 contacts, each once, without oneself',
})

const KeyMembersText = Type.String({
  description:
    'The devices that a key is sealed for, its sealer among them: base64 of `n u16 ‖ n x (userId u64 ‖ deviceId u64 ‖ ' +
    'SHA-256 of the public key)`, big-endian, ascending by userId, then deviceId, at most 321',
})

/** Bound: 321 entries. */
const KeyMembers = { ...KeyMembersText, maxLength: 20_548 }

const EPOCH_MAX = 65_535

/** The key's epoch, as its sealer says it. */
const SealedEpoch = Type.Integer({
  minimum: 1,
  maximum: EPOCH_MAX,
  description: "The epoch of the key that is sealed: the call's `keyEpoch`. Left out: not compared",
})

export const StartCallRequest = Type.Object({
  callId: Type.Optional(chosenId(OWN_ID_MIN, OWN_ID_END)),
  roomId: Type.Optional({ ...RoomId, description: 'Left out: the server assigns one' }),
  calleeIds: CalleeIds,
  encryptedAESKeys: KeyMap,
  keyMembers: Type.Optional({
    ...KeyMembers,
    description: 'The devices of `encryptedAESKeys` and this one, as the epoch 1 has them',
  }),
  isVideo: Type.Boolean(),
})

export const InviteRequest = Type.Object({
  calleeIds: CalleeIds,
  encryptedAESKeys: KeyMap,
  isVideo: Type.Optional({ ...Type.Boolean(), description: "Left out: as the call's" }),
  roomId: Type.Optional({ ...RoomId, description: "If given, the call's own" }),
  epoch: Type.Optional({
    ...SealedEpoch,
    description: "The call's `keyEpoch`, with `keyMembers` and one. Left out without these: not compared",
  }),
  keyMembers: Type.Optional({
    ...KeyMembers,
    description:
      'Makes the key a new epoch: `encryptedAESKeys` is then for every other device in the call too, and these are its ' +
      'devices and this one',
  }),
})

export const DeclineRequest = Type.Object({
  reason: Type.Optional(oneOf(['declined', 'busy', 'timeout'], 'Left out: declined')),
})

export const EndCallRequest = Type.Object({ callId: Uint64 })

export const RemoveRequest = Type.Object({ userId: Uint64 })

export const AcceptRejoinRequest = Type.Object({
  requesterUserId: Uint64,
  requesterDeviceId: Uint64,
  encryptedAESKey: EncryptedKey,
  epoch: Type.Optional(SealedEpoch),
})

/** 16 bytes, so that the last of 22 characters has four bits and no more. */
const Nonce = Type.String({
  pattern: '^[A-Za-z0-9+/]{21}[AQgw]==$',
  description: 'Base64 of 16 random bytes',
})

export const RequestRejoinRequest = Type.Object({
  nonce: Type.Optional({
    ...Nonce,
    description: 'Names the ask: with another one it is put again',
  }),
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

export const KeysRequest = Type.Object({
  epoch: Type.Integer({
    minimum: 1,
    maximum: EPOCH_MAX,
    description: "The call's `keyEpoch` and one; for `emergency` also the present one",
  }),
  reason: SentKeysReasonText,
  encryptedAESKeys: KeyMap,
  keyMembers: Type.Optional({
    ...KeyMembers,
    description: 'The devices of `encryptedAESKeys` and this one; for the present epoch its own set',
  }),
  without: Type.Optional(
    Type.Array(Type.String({ maxLength: 41 }), {
      maxItems: 320,
      description:
        'Devices in the call that get no key, as `<userId>_<deviceId>`; of a new epoch they hear by `key_missing`',
    }),
  ),
})

/** The device rings; sent over STOMP only. */
export const RingingRequest = Type.Object({
  eventId: Type.Optional(Type.String({ maxLength: 64, description: "The invitation's" })),
})

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
})

/** Where media goes: the room is the clients' business, or one at a gateway that the server makes. */
export const CallMediaView = Type.Object({
  kind: oneOf(['client', 'janus'], 'The room is the clients’ business; the server makes it at a Janus'),
  state: Type.Optional(
    oneOf(['ready', 'pending'], 'Of `janus`: the room lets this device in; `media_ready` follows'),
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
})

/** Of a call, in its record and in each of its events. */
export const CallVersion = Type.Integer({
  minimum: 1,
  description: 'Grows by one with each change of the call: the greater is newer, the same is a repeat',
})

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

export const KeyMembersQuery = Type.Object({
  epoch: Type.Integer({ minimum: 1, maximum: EPOCH_MAX }),
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
    peers: Type.Array(Type.Object({ userId: Uint64Text, displayName: Type.String() })),
    createdAt: Time,
    startedAt: Type.Optional(Time),
    endedAt: Type.Optional(Time),
    durationIn: Type.Integer({ description: 'Seconds that you spent in it; 0 while it goes on' }),
    seen: Type.Boolean({ description: 'False for a missed call that you have not looked at' }),
  }),
)

/** A device's command to `/app/call/{callId}/...`; the destination names the call and the command. */
export type SaidCallCommand =
  | { readonly kind: 'ringing' | 'leave' }
  | { readonly kind: 'decline'; readonly reason?: DeclineReason | undefined }
  | {
      readonly kind: 'accept-rejoin'
      readonly requesterUserId: UserId
      readonly requesterDeviceId: DeviceId
      readonly encryptedAESKey: string
      readonly epoch?: number | undefined
    }
  | {
      readonly kind: 'keys'
      readonly epoch: number
      readonly reason: SentKeysReason
      readonly encryptedAESKeys: SentKeyMap
      readonly keyMembers?: string | undefined
      readonly without?: readonly string[] | undefined
    }

/**
 * The command that a body stands for; an empty one has no members. Throws `MALFORMED_JSON` or `VALIDATION_FAILED`, as
 * its HTTP twin is answered.
 */
export function parseCallCommand(kind: SaidCallCommand['kind'], body: Uint8Array): SaidCallCommand {
  const bytes = body.length === 0 ? EMPTY_OBJECT : body
  switch (kind) {
    case 'accept-rejoin':
      return { kind, ...saidAcceptance(ACCEPT_REJOIN.read(bytes, JSON_TYPE)) }
    case 'keys':
      return { kind, ...saidKeys(KEYS.read(bytes, JSON_TYPE)) }
    case 'decline':
      return { kind, reason: DECLINE.read(bytes, JSON_TYPE).reason }
    case 'ringing':
    case 'leave':
      RINGING.read(bytes, JSON_TYPE)
      return { kind }
  }
}

/** The members of `accept-rejoin`. */
export function saidAcceptance(body: Static<typeof AcceptRejoinRequest>) {
  const requesterUserId = body.requesterUserId as UserId
  const requesterDeviceId = body.requesterDeviceId as DeviceId
  const { encryptedAESKey, epoch } = body
  return { requesterUserId, requesterDeviceId, encryptedAESKey, epoch }
}

/** The members of `keys`. */
export function saidKeys(body: Static<typeof KeysRequest>) {
  const { epoch, reason, encryptedAESKeys, keyMembers, without } = body
  return { epoch, reason, encryptedAESKeys, keyMembers, without }
}

/** Makes the proofs of an entry to a room; left out where there is no gateway. */
export type Admit = (entry: RoomEntry) => RoomAdmission

export interface RoomAdmission {
  /** Where the device connects. */
  readonly url: string
  readonly roomToken: string
  readonly pluginToken: string
}

/** As `CallMediaView` has it. */
export function mediaBody({ isReady, entry }: CallMedia, admit: Admit | undefined): object {
  if (admit === undefined) return CLIENT_MEDIA
  const state = isReady ? 'ready' : 'pending'
  return entry === undefined ? { kind: 'janus', state } : { kind: 'janus', state, ...admit(entry) }
}

/**
 * A record as `CallRecordReply` has it. Written out, as what follows: what V8 makes of several spreads is a hash table, ten
 * times as slow to make and as large.
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
    participants: record.participants.map(participantBody),
    media: mediaBody(record.media, admit),
    isOnGoing: record.isOnGoing,
    encryptedAESKey: record.encryptedAESKey,
    keyFromUserId: record.keyFromUserId,
    keyFromDeviceId: record.keyFromDeviceId,
    keySets: record.keySets?.length ? record.keySets.map(keySetBody) : undefined,
  }
}

/** A set as `KeySetView` has it. */
export function keySetBody({ epoch, members }: KeySet) {
  return { epoch, keyMembers: Buffer.from(members).toString('base64') }
}

/** A participant as `CallParticipant` has it. */
export function participantBody(view: ParticipantView): object {
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
  }
}

/** A row as `HistoryPage` has it, for a user whose peers these are. */
export function historyBody(row: CallHistoryRow, peers: readonly PersonName[]): object {
  return {
    callId: row.callId,
    direction: row.direction,
    status: row.status,
    isVideo: row.isVideo,
    isGroup: row.isGroup,
    peers: peers.map(({ userId, displayName }) => ({ userId, displayName })),
    createdAt: timeText(row.createdAtMs),
    startedAt: optionalTimeText(row.startedAtMs),
    endedAt: optionalTimeText(row.endedAtMs),
    durationIn: Math.floor((row.talkedMs ?? 0) / 1000),
    seen: row.seen,
  }
}

const CLIENT_MEDIA = { kind: 'client' }
const ACCEPT_REJOIN = new BodyReader(AcceptRejoinRequest)
const KEYS = new BodyReader(KeysRequest)
const DECLINE = new BodyReader(DeclineRequest)
/** Also of `leave`, which says nothing. */
const RINGING = new BodyReader(RingingRequest)
const EMPTY_OBJECT = Buffer.from('{}')
const JSON_TYPE = 'application/json'
