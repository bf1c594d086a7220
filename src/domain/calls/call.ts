/**
 * A call as it is kept (contract 4.1, 4.2): its participants and their states, the key slices that wait for their
 * devices, and the start of each absence. Commands on it are decided in `call-decision.ts`.
 *
 *     none ─ start ─> ringing
 *     ringing ─ the first callee joins ─> active
 *     ringing ─ the initiator ends, leaves or vanishes ─> cancelled
 *     ringing ─ no callee is left who could answer ─> missed, if one did not answer; else declined
 *     active ─ end; nobody for 30 s; one alone for 300 s; 24 h ─> ended
 *
 *     invited ─ ring acknowledged ─> ringing
 *     invited | ringing ─> joined | declined | busy | missed
 *     missed ─ join while the call is active ─> joined
 *     joined ─> left | lost
 *     left | lost | declined | busy | missed ─ rejoin, or a new invitation and join ─> joined
 *     any ─ the host removes ─> removed
 */

import { assert } from '../../errors.ts'
import type { KeyAlgorithm } from '../devices/public-key.ts'
import type { CallId, DeviceId, UserId } from '../ids.ts'

export type CallStatus = 'ringing' | 'active' | 'ended' | 'cancelled' | 'declined' | 'missed' | 'failed'

/**
 * Why a call ended. A removed participant alone hears `removed`, a suspended user alone `suspended`. `operator` is an act of the
 * server API, and `internal` is our fault.
 */
export type CallEndReason =
  | 'hangup'
  | 'cancelled'
  | 'declined'
  | 'unanswered'
  | 'caller_lost'
  | 'empty'
  | 'alone'
  | 'limit'
  | 'removed'
  | 'operator'
  | 'suspended'
  | 'internal'

export type ParticipantState =
  | 'invited'
  | 'ringing'
  | 'joined'
  | 'left'
  | 'lost'
  | 'declined'
  | 'busy'
  | 'missed'
  | 'removed'

/** The snapshot of a call; everything in it is plain data for the store. Times are wall-clock milliseconds. */
export interface Call {
  readonly callId: CallId
  /** 1 at the start, and one more with each change. */
  readonly version: number
  readonly roomId: number
  /** Whether the start named the room, which the call then keeps. */
  readonly isRoomNamed: boolean
  /** The media gateway that has the room, by its name in the settings; undefined while none lets a device in. */
  readonly gateway: string | undefined
  readonly status: CallStatus
  readonly isVideo: boolean
  readonly initiatorId: UserId
  readonly hostUserId: UserId
  readonly createdAtMs: number
  /** When the first callee joined. */
  readonly startedAtMs: number | undefined
  readonly endedAtMs: number | undefined
  readonly endReason: CallEndReason | undefined
  readonly endedBy: UserId | undefined
  /** The start that made the call, so that it is known when it comes again. */
  readonly startedWith: SentStart
  /** Grows by one with each new key of the call; the key that it was started with has 1. */
  readonly keyEpoch: number
  /** The last map of keys that was sent, so that it is known when it comes again. */
  readonly lastKeys: SentKeys | undefined
  /** The one that made the present epoch, when it was not the start. */
  readonly epochKeys: SentKeys | undefined
  /** The newest two sets of devices that came with an epoch's key, newest first. */
  readonly keySets: readonly KeySet[]
  /** In the order of their first invitation, the initiator first; never removed from the list. */
  readonly participants: readonly Participant[]
  readonly rejoinAsks: readonly RejoinAsk[]
  /** For the operator; see `call-time-line.ts`. */
  readonly timeLine: readonly CallMoment[]
  /** When an active call became empty, or had one alone with no callee pending. */
  readonly quiet: Quiet | undefined
}

/** A state of a participant, as they come into it, or what else happened to people of the call. */
export type MomentKind =
  | ParticipantState
  | 'started'
  /** A push provider took a ring for them. */
  | 'push_taken'
  /** No device of theirs had a socket or took a push. */
  | 'unreachable'
  /** To another device of theirs. */
  | 'moved'
  /** The room at the media gateway lets them in, and is gone. */
  | 'media_ready'
  | 'media_lost'
  | 'ended'

export interface CallMoment {
  readonly atMs: number
  readonly kind: MomentKind
  readonly userIds: readonly UserId[]
  /** The inviter, the host who removed them, the user who ended the call. */
  readonly byUserId?: UserId
}

export interface Participant {
  readonly userId: UserId
  readonly displayName: string
  readonly state: ParticipantState
  /** The last inviter; the initiator invites themselves. */
  readonly invitedBy: UserId
  readonly invitedAtMs: number
  /** From the last invitation: how the participant knows the inviter; undefined for the initiator. */
  readonly inviter: KnownInviter | undefined
  /** From the last invitation: whether with video, and whether the call was active. */
  readonly isVideo: boolean
  readonly isOnGoing: boolean
  /** The invited devices; for the initiator, the other devices that may take over. */
  readonly devices: readonly CallDevice[]
  /** The one device that is in the call, or was last. */
  readonly attendance: Attendance | undefined
  readonly joinedAtMs: number | undefined
  readonly leftAtMs: number | undefined
  /** Time spent in the call before `joinedAtMs`, since the call was active. */
  readonly talkedMs: number
  /** The device that declined. */
  readonly declinedOn: DeviceId | undefined
  /**
   * Set when the participant had blocked the person who invited them. Other users see an unanswered invitation; the
   * participant and their devices never hear of it.
   */
  readonly isWithheld?: true
}

/** The inviter as the invited person knows them. */
export interface KnownInviter {
  /** A contact, or a member of a circle of theirs. False for a stranger. */
  readonly isContact: boolean
  /** The invited person's own name for them. */
  readonly alias?: string
}

export interface CallDevice {
  readonly deviceId: DeviceId
  /** The key of the current epoch, until the device has it or has no use for it (contract 4.4, 7). */
  readonly encryptedAESKey: string | undefined
  /** The device that sealed that key; undefined without one. */
  readonly sealedBy: CallDeviceRef | undefined
}

/** A device's presence in a call. */
export interface Attendance {
  readonly deviceId: DeviceId
  readonly publicKeyHash: string
  readonly keyAlgorithm: KeyAlgorithm
  readonly isOnline: boolean
  /** Whether it ever had a socket since it joined. */
  readonly hadSocket: boolean
  /** Its last request, or when its socket closed; of meaning only while it is not online. */
  readonly seenAtMs: number
  /** When it last heard that the call's room at the media gateway lets it in; never without a gateway. */
  readonly admittedAtMs?: number
  /** Its publishers in that room, by the gateway's names, the newest first. */
  readonly feedIds?: readonly number[]
}

/** The initiator's start. */
export interface SentStart {
  readonly deviceId: DeviceId
  /** SHA-256 of the body. */
  readonly digest: Uint8Array
}

export interface SentKeys {
  readonly epoch: number
  readonly deviceId: DeviceId
  readonly userId: UserId
  /** SHA-256 of the map and the members sent with it. */
  readonly digest: Uint8Array
}

/** The devices that an epoch's key was sealed for, as its sealer declared them. */
export interface KeySet {
  readonly epoch: number
  /** See `key-members.ts`. */
  readonly members: Uint8Array
}

/** A device that asked for the key. */
export interface RejoinAsk {
  readonly userId: UserId
  readonly deviceId: DeviceId
  /** As the device sent it; undefined without one. */
  readonly nonce: string | undefined
  readonly askedAtMs: number
  /** How many devices were asked. */
  readonly asked: number
  /** Those whose answers were passed on. */
  readonly answeredBy: readonly CallDeviceRef[]
}

export interface CallDeviceRef {
  readonly userId: UserId
  readonly deviceId: DeviceId
}

/** A device's entry to the call's room at the media gateway. Its tokens follow from these members and the time. */
export interface RoomEntry {
  readonly callId: CallId
  readonly roomId: number
  /** Undefined while no gateway lets devices in. */
  readonly gateway: string | undefined
  readonly device: CallDeviceRef
}

export interface Quiet {
  readonly kind: 'empty' | 'alone'
  readonly sinceMs: number
}

/** The epoch's set, if it came with one and is kept. */
export function keySetOf({ keySets }: Call, epoch: number): KeySet | undefined {
  return keySets.find(set => set.epoch === epoch)
}

/** A device that comes in. */
export function newAttendance(
  { deviceId, publicKeyHash, keyAlgorithm }: Pick<Attendance, 'deviceId' | 'publicKeyHash' | 'keyAlgorithm'>,
  nowMs: number,
): Attendance {
  return { deviceId, publicKeyHash, keyAlgorithm, isOnline: false, hadSocket: false, seenAtMs: nowMs }
}

export function isSameDevice(one: CallDeviceRef, other: CallDeviceRef): boolean {
  return one.userId === other.userId && one.deviceId === other.deviceId
}

/** Whether nothing can happen to the call any more. */
export function isOver({ status }: Call): boolean {
  return status !== 'ringing' && status !== 'active'
}

/** Whether an invitation of theirs waits for an answer. */
export function isPending({ state }: Participant): boolean {
  return state === 'invited' || state === 'ringing'
}

export function isJoined({ state }: Participant): boolean {
  return state === 'joined'
}

export function participantOf(call: Call, userId: UserId): Participant | undefined {
  return call.participants.find(participant => participant.userId === userId)
}

/** A participant whom a change touched, before and after it. */
export interface ChangedParticipant {
  readonly was: Participant | undefined
  readonly is: Participant
}

/** A change leaves all participants in their places, and shares those whom it does not touch. */
export function changedParticipants(before: Call | undefined, { participants }: Call): ChangedParticipant[] {
  const changed: ChangedParticipant[] = []
  for (let at = 0; at < participants.length; at++) {
    const [was, is] = [before?.participants[at], participants[at]!]
    if (was === is) continue
    assert(was === undefined || was.userId === is.userId, 'participants keep their places')
    changed.push({ was, is })
  }
  return changed
}

/** The participant if it is this device of theirs that is in the call. */
export function joinedOn(call: Call, { userId, deviceId }: CallDeviceRef): Participant | undefined {
  const participant = participantOf(call, userId)
  const isThere = participant?.state === 'joined' && participant.attendance?.deviceId === deviceId
  return isThere ? participant : undefined
}

/** The devices that are in the call: one of each joined participant. */
export function joinedDevices(call: Call): CallDeviceRef[] {
  return call.participants
    .filter(isJoined)
    .map(({ userId, attendance }) => ({ userId, deviceId: attendance!.deviceId }))
}

export function entryOf({ callId, roomId, gateway }: Call, { userId, deviceId }: CallDeviceRef): RoomEntry {
  return { callId, roomId, gateway, device: { userId, deviceId } }
}

/** The participant, unless they are not to know of the call. */
export function memberOf(call: Call, userId: UserId): Participant | undefined {
  const participant = participantOf(call, userId)
  return participant?.isWithheld ? undefined : participant
}

/** Whether a user may read the call and its events: everybody with a part in it who was not removed. */
export function hasPart(call: Call, userId: UserId): boolean {
  const member = memberOf(call, userId)
  return member !== undefined && member.state !== 'removed'
}

/** How many are in the call or may come in without a question. */
export function attendeesOf(call: Call): number {
  return call.participants.filter(participant => isJoined(participant) || isPending(participant)).length
}

/** Whether never more than two had a part in it, invited ones counted. */
export function isTwoPerson(call: Call): boolean {
  return call.participants.length <= 2
}

/** The call for a change to begin with, so that all it tells of the call has the version that it makes. */
export function nextVersionOf(call: Call): Call {
  return { ...call, version: call.version + 1 }
}

/** The call with one participant changed. */
export function withParticipant(call: Call, userId: UserId, changes: Partial<Participant>): Call {
  const participants = call.participants.map(participant =>
    participant.userId === userId ? { ...participant, ...changes } : participant,
  )
  return { ...call, participants }
}

/** How long an invitation rings (seed section 8). */
export const RING_S = 60
/** The server's extra wait, since the device's own rejection is on its way. */
export const RING_GRACE_S = 5
/** People in a call at once, those invited counted (contract 4.4). */
export const CALL_SIZE_MAX = 32
/** People that ever had a part in one call: keeps its record and its history rows small. */
export const PARTICIPANTS_MAX = 64
/** How often the host makes a new key; clients learn it, the server does not enforce it. */
export const KEY_ROTATION_S = 600
