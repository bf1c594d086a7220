/** Calling people: the start of a call and invitations to one that there is (contract 4.3, 4.4). */

import type { FieldError } from '../../errors.ts'
import type { UserId } from '../ids.ts'
import {
  attendeesOf,
  CALL_SIZE_MAX,
  type Call,
  type CallDevice,
  type CallDeviceRef,
  isJoined,
  isPending,
  isSameDevice,
  joinedDevices,
  joinedOn,
  type KnownInviter,
  newAttendance,
  PARTICIPANTS_MAX,
  type Participant,
  participantOf,
} from './call.ts'
import {
  alreadyInCall,
  type CallActor,
  type CallChange,
  type CallCommand,
  type CalleeFacts,
  type CallFacts,
  type CallOutcome,
  type CallRefused,
  refused,
  type SentKeyMap,
  type StartCommand,
} from './call-command.ts'
import { crossingOf } from './call-crossing.ts'
import {
  type CheckedKeys,
  isRepeated,
  refusalOfSaidEpoch,
  ringingDevices,
  withSentKeys,
} from './call-keys.ts'
import type { KeySlice } from './call-notice.ts'
import { digestOfKeys, type KeyMap, keyMapName, readKeyMap, refusalOfDevices } from './key-map.ts'
import { readKeyMembers } from './key-members.ts'

export type InviteCommand = Extract<CallCommand, { kind: 'invite' }>

/** The call that a start makes, its initiator in it and everybody else invited. */
export function startedCall(command: StartCommand, facts: CallFacts, actor: CallActor): CallOutcome {
  const { by, nowMs, callId, isVideo, roomId } = command
  const { displayName } = facts
  const refusal = refusalOfCallees(command, facts)
  if (refusal !== undefined) return refusal
  if (facts.otherCallId !== undefined) return alreadyInCall(facts.otherCallId)
  const crossing = crossingOf(command, facts)
  if (crossing?.kind === 'refused') return crossing
  const called = calledPeople(command, facts)
  if (called.kind === 'refused') return called
  if (roomId !== undefined && facts.isRoomInUse) {
    return refused('ROOM_IN_USE', `room ${roomId} belongs to another call`)
  }
  const { deviceId } = by
  const attendance = newAttendance(actor, nowMs)
  const invitation = { invitedBy: by.userId, invitedAtMs: nowMs, isVideo, isOnGoing: false }
  const initiator: Participant = {
    ...newParticipant(
      { userId: by.userId, displayName, inviter: undefined, isWithheld: false },
      invitation,
      called.ownDevices,
    ),
    state: 'joined',
    attendance,
    joinedAtMs: nowMs,
  }
  const invited = called.callees.map(callee => newParticipant(callee, invitation, callee.devices))
  const call: Call = {
    callId,
    version: 1,
    isVideo,
    startedWith: { deviceId, digest: digestOf(command) },
    initiatorId: by.userId,
    hostUserId: by.userId,
    createdAtMs: nowMs,
    keyEpoch: 1,
    roomId: roomId ?? facts.freeRoomId,
    isRoomNamed: roomId !== undefined,
    gateway: undefined,
    status: 'ringing',
    participants: [initiator, ...invited],
    rejoinAsks: [],
    startedAtMs: undefined,
    endedAtMs: undefined,
    endReason: undefined,
    endedBy: undefined,
    lastKeys: undefined,
    epochKeys: undefined,
    keySets: called.members === undefined ? [] : [{ epoch: 1, members: called.members }],
    timeLine: [],
    quiet: undefined,
  }
  return { kind: 'changed', call, ended: crossing?.ended }
}

/** Whether it is the start of this call, by the same device and with the same body. */
export function isMadeBy({ initiatorId, startedWith }: Call, start: StartCommand): boolean {
  const { userId, deviceId } = start.by
  const isByDevice = initiatorId === userId && startedWith.deviceId === deviceId
  return isByDevice && Buffer.compare(startedWith.digest, digestOf(start)) === 0
}

/**
 * The call with more people invited to it. Joined participants stay as they are; for invited ones, only new devices
 * ring. An invitation with a set of devices makes a new epoch, whose key also goes to those that are in the call.
 */
export function withInvited(
  call: Call,
  command: InviteCommand,
  facts: CallFacts,
  endsAtMs: number,
): CallOutcome {
  const { by, nowMs, keyMembers } = command
  const newEpoch = keyMembers === undefined ? undefined : newEpochOf(command, keyMembers)
  if (newEpoch?.kind === 'refused') return newEpoch
  if (newEpoch !== undefined && isRepeated(call, newEpoch, newEpoch.digest)) return { kind: 'changed', call }
  const refusal =
    refusalOfInviter(call, command) ?? refusalOfSaidEpoch(call, command) ?? refusalOfCallees(command, facts)
  if (refusal !== undefined) return refusal
  const called = calledPeople(command, facts, newEpoch && call)
  if (called.kind === 'refused') return called
  const barred = refusalOfInvited(call, by.userId, called.callees)
  if (barred !== undefined) return barred
  const keyed: CallChange =
    newEpoch === undefined
      ? { kind: 'changed', call }
      : withSentKeys(call, {
          ...newEpoch,
          slices: called.slices,
          told: slicesInCall(call, called.slices),
          members: called.members,
          endsAtMs,
        })
  const invitation: Invitation = {
    invitedBy: by.userId,
    invitedAtMs: nowMs,
    isVideo: command.isVideo ?? call.isVideo,
    isOnGoing: call.status === 'active',
  }
  const invited = called.callees.reduce((next, callee) => withCallee(next, callee, invitation), keyed.call)
  return { kind: 'changed', call: withOwnDevices(invited, by.userId, called.ownDevices), told: keyed.told }
}

/** An invitation that makes an epoch, as it is known when it comes again. */
interface NewEpoch extends Pick<CheckedKeys, 'by' | 'epoch' | 'reason' | 'digest'> {
  readonly kind: 'new-epoch'
}

function newEpochOf(command: InviteCommand, keyMembers: string): NewEpoch | CallRefused {
  const { by, epoch, calleeIds, encryptedAESKeys, isVideo = '', roomId = '' } = command
  if (epoch === undefined) {
    return invalid([{ pointer: '/epoch', code: 'REQUIRED', detail: 'is missing, with key members' }])
  }
  const saidWith = ['invite', calleeIds.join(), isVideo, roomId, keyMembers]
  return { kind: 'new-epoch', by, epoch, reason: 'invite', digest: digestOfKeys(encryptedAESKeys, saidWith) }
}

function refusalOfInviter(call: Call, { by, roomId }: InviteCommand): CallRefused | undefined {
  if (joinedOn(call, by) === undefined) {
    return refused('NOT_PARTICIPANT', 'only a device that is in the call invites')
  }
  if (roomId === undefined || roomId === call.roomId) return undefined
  return invalid([{ pointer: '/roomId', code: 'MISMATCH', detail: 'not the room of the call' }])
}

/** Slices for devices that are in the call, or rang before the invitation. */
function slicesInCall(call: Call, slices: readonly KeySlice[]): KeySlice[] {
  const devices = new Set([...joinedDevices(call), ...ringingDevices(call)].map(keyMapName))
  return slices.filter(slice => devices.has(keyMapName(slice)))
}

interface Called {
  readonly kind: 'called'
  readonly callees: readonly Callee[]
  /** The caller's other devices, which may take the call over. */
  readonly ownDevices: readonly CallDevice[]
  readonly slices: readonly KeySlice[]
  /** The set of devices, if one was sent. */
  readonly members: Uint8Array | undefined
}

interface Callee {
  readonly userId: UserId
  readonly displayName: string
  readonly inviter: KnownInviter | undefined
  readonly isWithheld: boolean
  readonly devices: readonly CallDevice[]
}

type Invitation = Pick<Participant, 'invitedBy' | 'invitedAtMs' | 'isVideo' | 'isOnGoing'>

/** Whom the caller may not call: contract 4.4, all or nothing. */
function refusalOfCallees(
  { by, calleeIds }: StartCommand | InviteCommand,
  facts: CallFacts,
): CallRefused | undefined {
  const faults = faultsOfCallees(by.userId, calleeIds)
  if (faults.length > 0) return invalid(faults)
  const strangers = calleeIds.filter((userId, at) => !calleeOf(facts, userId, at)?.mayBeCalled)
  if (strangers.length === 0) return undefined
  const members = { calleeIds: strangers.map(String) }
  const detail = `${strangers.length} callees are no contacts of yours and take no calls from others`
  return refused('CALLEE_NOT_CONTACT', detail, { members })
}

/**
 * The callees, who may all be called, with the keys of their devices: contract 4.4, all or nothing. `call` is there if
 * the keys are also for who is in it.
 */
function calledPeople(
  command: StartCommand | InviteCommand,
  facts: CallFacts,
  call?: Call,
): Called | CallRefused {
  const { by, calleeIds, encryptedAESKeys, keyMembers } = command
  const read =
    call === undefined ? slicesFor(by.userId, calleeIds, encryptedAESKeys) : readKeyMap(encryptedAESKeys)
  if (read.kind === 'refused') return read
  const { slices, slicesOf } = read
  const declared = keyMembers === undefined ? undefined : readKeyMembers(keyMembers, encryptedAESKeys, by)
  if (declared?.kind === 'refused') return declared
  const known = calleeIds.map((userId, at) => calleeOf(facts, userId, at)!)
  const required = known.flatMap(({ userId, deviceIds }) => deviceIds.map(deviceId => ({ userId, deviceId })))
  const own = facts.ownDevices
    .filter(deviceId => call === undefined || deviceId !== by.deviceId)
    .map(deviceId => ({ userId: by.userId, deviceId }))
  // A caller seals for all that a device list names, and can't know which of them were removed since.
  const listed = known.flatMap(({ userId, deviceList }) =>
    (deviceList?.deviceIds ?? []).map(deviceId => ({ userId, deviceId })),
  )
  const inCall = call === undefined ? [] : joinedDevices(call).filter(device => !isSameDevice(device, by))
  const ringing = call === undefined ? [] : ringingDevices(call)
  const mismatch = refusalOfDevices(
    read,
    [...required, ...inCall],
    [...own, ...listed, ...ringing],
    seqsOf(known),
  )
  if (mismatch !== undefined) return mismatch
  const sealedBy = { userId: by.userId, deviceId: by.deviceId }
  const devicesOf = (userId: UserId) => (slicesOf.get(userId) ?? []).map(slice => callDevice(slice, sealedBy))
  return {
    kind: 'called',
    callees: known.map(({ userId, displayName, caller, isWithheld, isSuspended, deviceIds }) => ({
      userId,
      displayName,
      inviter: caller,
      isWithheld,
      devices: isSuspended ? [] : devicesOf(userId).filter(({ deviceId }) => deviceIds.includes(deviceId)),
    })),
    ownDevices: devicesOf(by.userId).filter(({ deviceId }) => deviceId !== by.deviceId),
    slices,
    members: declared?.octets,
  }
}

/** The facts stand in the order of the ids, but for people who are none. */
function calleeOf({ callees }: CallFacts, userId: UserId, at: number): CalleeFacts | undefined {
  const inPlace = callees[at]
  return inPlace?.userId === userId ? inPlace : callees.find(callee => callee.userId === userId)
}

function seqsOf(callees: readonly CalleeFacts[]): ReadonlyMap<UserId, number> {
  return new Map(callees.flatMap(({ userId, deviceList }) => (deviceList ? [[userId, deviceList.seq]] : [])))
}

/** The slices of a map that is for callees and the caller alone. */
function slicesFor(callerId: UserId, calleeIds: readonly UserId[], map: SentKeyMap): KeyMap | CallRefused {
  const read = readKeyMap(map)
  if (read.kind === 'refused') return read
  const meant = new Set([callerId, ...calleeIds])
  const astray = read.slices.filter(({ userId }) => !meant.has(userId))
  if (astray.length === 0) return read
  return invalid(
    astray.map(slice => ({
      pointer: `/encryptedAESKeys/${keyMapName(slice)}`,
      code: 'NOT_CALLED',
      detail: 'this call does not ring the user of this device',
    })),
  )
}

function faultsOfCallees(callerId: UserId, calleeIds: readonly UserId[]): FieldError[] {
  const most = CALL_SIZE_MAX - 1
  if (calleeIds.length === 0 || calleeIds.length > most) {
    return [{ pointer: '/calleeIds', code: 'LENGTH', detail: `1 to ${most} callees` }]
  }
  return calleeIds.flatMap((id, at) => {
    const pointer = `/calleeIds/${at}`
    if (id === callerId) return [{ pointer, code: 'SELF', detail: 'nobody calls themselves' }]
    if (calleeIds.indexOf(id) === at) return []
    return [{ pointer, code: 'DUPLICATE', detail: 'the same as another callee' }]
  })
}

function refusalOfInvited(
  call: Call,
  inviterId: UserId,
  callees: readonly Callee[],
): CallRefused | undefined {
  const before = callees.map(({ userId }) => participantOf(call, userId))
  const isBarred = before.some(participant => participant?.state === 'removed')
  // Else any participant could bring a removed user back.
  if (isBarred && inviterId !== call.hostUserId) {
    return refused('NOT_HOST', 'only the host invites whom a host has removed')
  }
  const coming = before.filter(known => known === undefined || !(isJoined(known) || isPending(known))).length
  const added = before.filter(known => known === undefined).length
  const isFull = attendeesOf(call) + coming > CALL_SIZE_MAX
  if (!isFull && call.participants.length + added <= PARTICIPANTS_MAX) return undefined
  return refused('CALL_FULL', `the call has ${attendeesOf(call)} people`)
}

function withCallee(call: Call, callee: Callee, invitation: Invitation): Call {
  const before = participantOf(call, callee.userId)
  if (before === undefined) {
    const participant = newParticipant(callee, invitation, callee.devices)
    return { ...call, participants: [...call.participants, participant] }
  }
  // A member who has blocked the inviter since stays what they are.
  if (isJoined(before) || (callee.isWithheld && !before.isWithheld)) return call
  const isRepeated = isPending(before) && callee.isWithheld === (before.isWithheld ?? false)
  const after = isRepeated ? withMoreDevices(before, callee.devices) : invitedAgain(before)
  return replaced(call, before, after)

  function invitedAgain({ isWithheld: _, ...participant }: Participant): Participant {
    const { inviter, devices } = callee
    const invited = { ...participant, ...invitation, inviter, devices, declinedOn: undefined }
    return { ...invited, state: 'invited', ...(callee.isWithheld ? WITHHELD : {}) }
  }
}

/** Those of the caller's own devices that got a key now, in place of what waited for them. */
function withOwnDevices(call: Call, userId: UserId, devices: readonly CallDevice[]): Call {
  const before = participantOf(call, userId)
  if (before === undefined || devices.length === 0) return call
  return replaced(call, before, withMoreDevices(before, devices))
}

/** The participant with devices that were not rung before, and keys for those that had none. */
function withMoreDevices(participant: Participant, devices: readonly CallDevice[]): Participant {
  const sent = new Map(devices.map(device => [device.deviceId, device]))
  const isAwaited = ({ deviceId, encryptedAESKey }: CallDevice) =>
    encryptedAESKey === undefined && sent.has(deviceId)
  const isKnown = ({ deviceId }: CallDevice) => participant.devices.some(known => known.deviceId === deviceId)
  const added = devices.filter(device => !isKnown(device))
  if (added.length === 0 && !participant.devices.some(isAwaited)) return participant
  const renewed = participant.devices.map(known => (isAwaited(known) ? sent.get(known.deviceId)! : known))
  return { ...participant, devices: [...renewed, ...added] }
}

function replaced(call: Call, before: Participant, after: Participant): Call {
  if (before === after) return call
  return { ...call, participants: call.participants.map(one => (one === before ? after : one)) }
}

function newParticipant(
  { userId, displayName, inviter, isWithheld }: Omit<Callee, 'devices'>,
  invitation: Invitation,
  devices: readonly CallDevice[],
): Participant {
  return {
    userId,
    displayName,
    state: 'invited',
    invitedBy: invitation.invitedBy,
    invitedAtMs: invitation.invitedAtMs,
    inviter,
    isVideo: invitation.isVideo,
    isOnGoing: invitation.isOnGoing,
    devices,
    attendance: undefined,
    joinedAtMs: undefined,
    leftAtMs: undefined,
    talkedMs: 0,
    declinedOn: undefined,
    ...(isWithheld ? WITHHELD : {}),
  }
}

function callDevice({ deviceId, encryptedAESKey }: KeySlice, sealedBy: CallDeviceRef): CallDevice {
  return { deviceId, encryptedAESKey, sealedBy }
}

function digestOf(start: StartCommand): Uint8Array {
  const { roomId, calleeIds, isVideo, encryptedAESKeys, keyMembers } = start
  return digestOfKeys(encryptedAESKeys, [roomId ?? '', calleeIds.join(), isVideo, keyMembers ?? ''])
}

function invalid(errors: readonly FieldError[]): CallRefused {
  return refused('VALIDATION_FAILED', 'the invitation breaks a rule', { errors })
}

const WITHHELD = { isWithheld: true } as const
