/** A call as it is shown to one of its people (contract 4.1); a key is in it only where a device gets its own. */

import type { CallId, DeviceId, UserId } from '../ids.ts'
import {
  CALL_SIZE_MAX,
  type Call,
  type CallDeviceRef,
  type CallEndReason,
  type CallStatus,
  entryOf,
  isJoined,
  isOver,
  isPending,
  joinedOn,
  KEY_ROTATION_S,
  type KeySet,
  memberOf,
  type Participant,
  participantOf,
  RING_S,
  type RoomEntry,
} from './call.ts'
import type { ParticipantView, ShownCaller } from './call-notice.ts'

export interface CallRecord {
  readonly callId: CallId
  readonly version: number
  readonly roomId: number
  readonly status: CallStatus
  readonly isVideo: boolean
  readonly initiatorId: UserId
  readonly hostUserId: UserId
  readonly createdAtMs: number
  readonly startedAtMs: number | undefined
  readonly endedAtMs: number | undefined
  readonly endReason: CallEndReason | undefined
  readonly ringTimeoutIn: number
  readonly keyEpoch: number
  readonly keyRotationIn: number
  readonly maxParticipants: number
  readonly participants: readonly ParticipantView[]
  readonly media: CallMedia
  /** Whether the reader was invited to an active call. */
  readonly isOnGoing: boolean
  /** The reader's inviter, in the reply of pending. */
  readonly invitation: ShownCaller | undefined
  /** The caller's own, in the replies of join and pending. */
  readonly encryptedAESKey: string | undefined
  /** The device that sealed that key. */
  readonly keyFromUserId: UserId | undefined
  readonly keyFromDeviceId: DeviceId | undefined
  /** The kept sets, for a device that reads the call or comes into it; undefined in other replies. */
  readonly keySets: readonly KeySet[] | undefined
}

/** The call's room at the media gateway as one reader of the call may see it. */
export interface CallMedia {
  readonly isReady: boolean
  /** Set when the reader's device is in the call and the room lets it in. */
  readonly entry: RoomEntry | undefined
}

/** The call as a user's device sees it, without a key. */
export function recordOf(call: Call, device: CallDeviceRef): CallRecord {
  return {
    callId: call.callId,
    version: call.version,
    roomId: call.roomId,
    status: call.status,
    isVideo: call.isVideo,
    initiatorId: call.initiatorId,
    hostUserId: call.hostUserId,
    createdAtMs: call.createdAtMs,
    startedAtMs: call.startedAtMs,
    endedAtMs: call.endedAtMs,
    endReason: isOver(call) && call.endedBy !== device.userId ? shownEndReason(call) : call.endReason,
    ringTimeoutIn: RING_S,
    keyEpoch: call.keyEpoch,
    keyRotationIn: KEY_ROTATION_S,
    maxParticipants: CALL_SIZE_MAX,
    participants: call.participants.map(participant => participantView(call, participant)),
    media: mediaOf(call, device),
    isOnGoing: participantOf(call, device.userId)?.isOnGoing ?? false,
    invitation: undefined,
    encryptedAESKey: undefined,
    keyFromUserId: undefined,
    keyFromDeviceId: undefined,
    keySets: undefined,
  }
}

/** Why an ended call ended, as its people read it: a suspension is between the operator and the suspended user. */
export function shownEndReason({ endReason, status }: Pick<Call, 'endReason' | 'status'>): CallEndReason {
  if (endReason !== 'suspended') return endReason!
  return status === 'cancelled' ? 'cancelled' : 'hangup'
}

/** The same with the sets of devices that the newest keys were sealed for. */
export function recordWithKeySets(call: Call, device: CallDeviceRef): CallRecord {
  return { ...recordOf(call, device), keySets: call.keySets }
}

/**
 * The same with the key that waits for this device, if one does. A device that joins gets the key that
 * waited in the call as it was before.
 */
export function recordWithOwnKey(call: Call, device: CallDeviceRef, before = call): CallRecord {
  const { userId, deviceId } = device
  const devices = participantOf(before, userId)?.devices ?? []
  const own = devices.find(device => device.deviceId === deviceId)
  return {
    ...recordWithKeySets(call, device),
    encryptedAESKey: own?.encryptedAESKey,
    keyFromUserId: own?.sealedBy?.userId,
    keyFromDeviceId: own?.sealedBy?.deviceId,
  }
}

/** The call's record for a device in `call/pending`: undefined unless its user is invited and has not answered. */
export function pendingRecord(call: Call, device: CallDeviceRef): CallRecord | undefined {
  const participant = memberOf(call, device.userId)
  if (participant === undefined || isOver(call) || !isPending(participant)) return undefined
  return { ...recordWithOwnKey(call, device), invitation: callerOf(call, participant) }
}

/** The participant's inviter, by the names that the participant is to see. */
export function callerOf(call: Call, { invitedBy, inviter }: Participant): ShownCaller {
  const displayName = participantOf(call, invitedBy)?.displayName ?? ''
  const alias = inviter?.alias
  const isContact = inviter?.isContact ?? false
  return { callerId: invitedBy, callerName: alias ?? displayName, displayName, alias, isContact }
}

/**
 * The gateway is driven outside and may be slow or away; the call only notes which of its devices the room lets in.
 */
export function mediaOf(call: Call, device: CallDeviceRef): CallMedia {
  const own = joinedOn(call, device)
  if (own === undefined) return { isReady: call.participants.some(isAdmitted), entry: undefined }
  return isAdmitted(own)
    ? { isReady: true, entry: entryOf(call, device) }
    : { isReady: false, entry: undefined }
}

function isAdmitted(participant: Participant): boolean {
  return isJoined(participant) && participant.attendance?.admittedAtMs !== undefined
}

export function participantView(call: Call, participant: Participant): ParticipantView {
  const { userId, displayName, attendance } = participant
  return {
    userId,
    displayName,
    state: participant.state,
    isHost: userId === call.hostUserId,
    invitedBy: participant.invitedBy,
    invitedAtMs: participant.invitedAtMs,
    joinedAtMs: participant.joinedAtMs,
    leftAtMs: participant.leftAtMs,
    deviceId: attendance?.deviceId,
    publicKeyHash: attendance?.publicKeyHash,
    mediaName: `${userId}:${displayName}`,
    feedIds: isJoined(participant) ? attendance?.feedIds : undefined,
  }
}
