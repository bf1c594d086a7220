/**
 * What has to be told of a change, read off the call before and after it: invitations and how they end, the call's
 * end, what watchers see, and history. A command that changes nothing therefore tells nothing.
 */

import type { UserId } from '../ids.ts'
import {
  type Call,
  type CallDeviceRef,
  type CallEndReason,
  type ChangedParticipant,
  changedParticipants,
  isJoined,
  isOver,
  isPending,
  isSameDevice,
  type Participant,
  participantOf,
  RING_S,
  type RoomEntry,
} from './call.ts'
import type { CallEffect, ChangedCall } from './call-command.ts'
import { historyEffectOf } from './call-history.ts'
import type {
  CallTopicEvent,
  DeviceEffect,
  ElsewhereReason,
  KeyedNotice,
  KeySlice,
  PersonName,
  PlainCallNotice,
} from './call-notice.ts'
import { callerOf, participantView, shownEndReason } from './call-view.ts'
import { webhookEventsOf } from './call-webhooks.ts'
import { keyMapName } from './key-map.ts'

/** Everything that follows from the change; `by` is the device that made it, which is not told what it did itself. */
export function effectsOf(
  before: Call | undefined,
  after: Call,
  by: CallDeviceRef | undefined,
  nowMs: number,
): readonly CallEffect[] {
  if (before === after) return NO_EFFECTS
  const effects: CallEffect[] = []
  const change: Change = { before, after, by, nowMs, invitations: [], overNotices: [] }
  const changed = changedParticipants(before, after)
  const members = changed.filter(({ is }) => !is.isWithheld)
  for (const member of members) tellOfInvitation(effects, change, member)
  for (const member of members) tellOfInvitationsEnd(effects, change, member)
  for (const member of members) tellOfAttendancesEnd(effects, change, member)
  effects.push(...endings(change))
  for (const event of topicEvents(change, changed)) effects.push({ kind: 'topic', event })
  const history = historyEffectOf(before, after)
  if (history !== undefined) effects.push(history)
  for (const event of webhookEventsOf(before, after)) effects.push({ kind: 'webhook', event })
  return effects
}

/**
 * Users whom the change rings, those whom it invites without a message among them: else a caller would notice a block or a
 * suspension by the rate.
 */
export function rungBy(before: Call | undefined, { call, effects }: ChangedCall): ReadonlySet<UserId> {
  const rung = effects.flatMap(effect => {
    return effect.kind === 'device' && effect.notice.kind === 'call_invitation' ? [effect.userId] : []
  })
  return new Set([...rung, ...invitedSilently(before, call)])
}

function invitedSilently(before: Call | undefined, after: Call): UserId[] {
  return after.participants
    .filter(one => isPending(one) && (one.isWithheld || one.devices.length === 0))
    .filter(one => {
      const was = before && participantOf(before, one.userId)
      return was === undefined || !isPending(was) || was.invitedAtMs !== one.invitedAtMs
    })
    .map(({ userId }) => userId)
}

interface Change {
  readonly before: Call | undefined
  readonly after: Call
  readonly by: CallDeviceRef | undefined
  readonly nowMs: number
  /** Devices that get the same message share one body: it is packed, sealed and written as JSON once. */
  readonly invitations: Invitation[]
  readonly overNotices: OverBody[]
}

type Invitation = Extract<KeyedNotice, { readonly kind: 'call_invitation' }>

/** An invitation to each device that rings now and did not before. */
function tellOfInvitation(effects: CallEffect[], change: Change, { was, is }: ChangedParticipant): void {
  if (!isPending(is)) return
  const { userId } = is
  const rang = was !== undefined && !was.isWithheld && isPending(was) ? was.devices : []
  for (const { deviceId, encryptedAESKey, sealedBy } of is.devices) {
    if (encryptedAESKey === undefined || sealedBy === undefined) continue
    if (rang.some(device => device.deviceId === deviceId)) continue
    const invitation = invitationOf(change, is, sealedBy)
    effects.push(keyedNotice({ userId, deviceId, encryptedAESKey }, invitation, invitation.expiresAtMs))
  }
}

function invitationOf(
  { after, invitations }: Change,
  participant: Participant,
  sealedBy: CallDeviceRef,
): Invitation {
  const { invitedAtMs, isVideo, isOnGoing } = participant
  const { callerId, callerName, displayName, alias, isContact } = callerOf(after, participant)
  const expiresAtMs = invitedAtMs + RING_S * 1000
  // All other members are the call's, or the caller's.
  const known = invitations.find(
    each =>
      each.callerId === callerId &&
      each.alias === alias &&
      each.isContact === isContact &&
      each.isVideo === isVideo &&
      each.isOnGoing === isOnGoing &&
      each.expiresAtMs === expiresAtMs &&
      each.keyFromUserId === sealedBy.userId &&
      each.keyFromDeviceId === sealedBy.deviceId,
  )
  if (known !== undefined) return known
  const invitation: Invitation = {
    kind: 'call_invitation',
    callId: after.callId,
    version: after.version,
    callerId,
    callerName,
    displayName,
    alias,
    isContact,
    roomId: after.roomId,
    isVideo,
    isOnGoing,
    expiresAtMs,
    participants: invitations[0]?.participants ?? peopleAround(after),
    keyEpoch: after.keyEpoch,
    keyFromUserId: sealedBy.userId,
    keyFromDeviceId: sealedBy.deviceId,
  }
  invitations.push(invitation)
  return invitation
}

/** Those who are in the call or invited to it. */
function peopleAround({ participants }: Call): PersonName[] {
  return participants
    .filter(one => isJoined(one) || isPending(one))
    .map(({ userId, displayName }) => ({ userId, displayName }))
}

/** The ringing devices stop: one of them answered, or the time ran out. */
function tellOfInvitationsEnd(effects: CallEffect[], change: Change, { was, is }: ChangedParticipant): void {
  const { by } = change
  if (was === undefined || !isPending(was) || isPending(is)) return
  const { userId, state } = is
  const end = endOfInvitation(change, is)
  const isMissed = end.kind === 'call_cancelled' && state === 'missed' ? true : undefined
  const notice = overNotice(change, was, end)
  for (const { deviceId } of was.devices) {
    const isOwn = by !== undefined && by.userId === userId && by.deviceId === deviceId
    if (isOwn) effects.push({ kind: 'withdraw', userId, deviceId })
    else
      effects.push({
        kind: 'device',
        userId,
        deviceId,
        notice,
        encryptedAESKey: undefined,
        expiresAtMs: undefined,
        replaces: 'invitation',
        isMissed,
      })
  }
}

type OverBody = Extract<PlainCallNotice, { readonly atMs: number }>

/** The part of an ending notice besides the call and its caller. */
type End =
  | { readonly kind: 'call_cancelled' | 'call_missed' | 'call_moved'; readonly reason?: undefined }
  | { readonly kind: 'call_answered_elsewhere'; readonly reason: ElsewhereReason }

function endOfInvitation({ after }: Change, { state }: Participant): End {
  switch (state) {
    case 'missed':
      return { kind: isOver(after) && after.status !== 'missed' ? 'call_cancelled' : 'call_missed' }
    case 'removed':
      return { kind: 'call_cancelled' }
    case 'declined':
    case 'busy':
      return { kind: 'call_answered_elsewhere', reason: state }
    default:
      return { kind: 'call_answered_elsewhere', reason: 'answered' }
  }
}

/** The device that was in the call is not any more: the call moved, or its user was removed. */
function tellOfAttendancesEnd(effects: CallEffect[], change: Change, { was, is }: ChangedParticipant): void {
  const { after, by, nowMs } = change
  const { userId, attendance, state } = is
  const deviceId = was?.attendance?.deviceId
  if (was === undefined || deviceId === undefined || isOver(after)) return
  const device = { userId, deviceId }
  if (isJoined(was) && isJoined(is) && attendance?.deviceId !== deviceId) {
    effects.push(plainNotice(device, overNotice(change, was, { kind: 'call_moved' })))
    return
  }
  const wasThere = isJoined(was) || was.state === 'lost'
  if (!wasThere || state !== 'removed') return
  const { callId, version } = after
  const ending = {
    callId,
    version,
    status: 'ended' as const,
    endReason: 'removed' as const,
    endedAtMs: nowMs,
  }
  const endedBy = by === undefined ? {} : { endedBy: by.userId }
  effects.push(plainNotice(device, { kind: 'call_ended', ...ending, ...endedBy }))
}

/** The end of the call, to the devices that are in it, or believe that they are, or ask to be; not to who ended it. */
function endings({ before, after, by }: Change): DeviceEffect[] {
  if (before === undefined || isOver(before) || !isOver(after)) return []
  const { callId, version, status, endReason, endedBy, endedAtMs } = after
  const noticeOf = (endReason: CallEndReason) => ({
    kind: 'call_ended' as const,
    callId,
    version,
    status,
    endReason,
    endedAtMs: endedAtMs!,
    ...(endedBy === undefined ? {} : { endedBy }),
  })
  const [notice, noticeToEnder] = [noticeOf(shownEndReason(after)), noticeOf(endReason!)]
  const inside = before.participants
    .filter(one => isJoined(one) || one.state === 'lost')
    .map(({ userId, attendance }) => ({ userId, deviceId: attendance!.deviceId }))
  const told = new Map<string, CallDeviceRef>()
  for (const device of [...inside, ...askersOf(before)]) {
    const isOwn = by !== undefined && isSameDevice(by, device)
    if (!isOwn) told.set(keyMapName(device), { userId: device.userId, deviceId: device.deviceId })
  }
  return [...told.values()].map(device =>
    plainNotice(device, device.userId === endedBy ? noticeToEnder : notice),
  )
}

/** Devices that asked for the key, without ringing ones: those hear that their invitation has ended. */
function askersOf({ rejoinAsks, participants }: Call): CallDeviceRef[] {
  const ringing = participants.filter(isPending)
  const rings = ({ userId, deviceId }: CallDeviceRef) =>
    ringing.some(one => one.userId === userId && one.devices.some(device => device.deviceId === deviceId))
  return rejoinAsks.filter(ask => !rings(ask))
}

function topicEvents({ before, after }: Change, changed: readonly ChangedParticipant[]): CallTopicEvent[] {
  const events: CallTopicEvent[] = []
  if (before === undefined) return events
  const { callId, version, status, hostUserId } = after
  if (!isOver(after)) {
    for (const each of changed) {
      const kind = eventOf(each)
      if (kind !== undefined)
        events.push({ kind, callId, version, participant: participantView(after, each.is) })
    }
  }
  if (status !== before.status) events.push({ kind: 'call_status', callId, version, status })
  if (hostUserId !== before.hostUserId) events.push({ kind: 'host_changed', callId, version, hostUserId })
  return events
}

function eventOf({ was, is }: ChangedParticipant): ParticipantEventKind | undefined {
  const isSameState = was?.state === is.state
  const isOnSameDevice = was?.attendance?.deviceId === is.attendance?.deviceId
  const isSilent = isSameState && (isOnSameDevice || !isJoined(is))
  if (!isSilent) return EVENTS[is.state]
  return isJoined(is) && !isSameFeeds(was?.attendance?.feedIds, is.attendance?.feedIds)
    ? 'media_changed'
    : undefined
}

function isSameFeeds(one: readonly number[] = [], other: readonly number[] = []): boolean {
  return one === other || (one.length === other.length && one.every((feedId, at) => feedId === other[at]))
}

function overNotice({ after, nowMs, overNotices }: Change, participant: Participant, end: End): OverBody {
  const { isVideo } = participant
  const { callerId, callerName, displayName, alias, isContact } = callerOf(after, participant)
  // The rest belongs to the call, or to the caller.
  const known = overNotices.find(
    each =>
      each.kind === end.kind &&
      reasonOf(each) === end.reason &&
      each.callerId === callerId &&
      each.alias === alias &&
      each.isContact === isContact &&
      each.isVideo === isVideo,
  )
  if (known !== undefined) return known
  const { callId, version } = after
  const over = { callId, version, callerId, callerName, displayName, alias, isContact, isVideo, atMs: nowMs }
  // In this order: V8 takes ten times as long to add members after a spread.
  const notice: OverBody =
    end.kind === 'call_answered_elsewhere'
      ? { kind: end.kind, reason: end.reason, ...over }
      : { kind: end.kind, ...over }
  overNotices.push(notice)
  return notice
}

function reasonOf(notice: OverBody): ElsewhereReason | undefined {
  return notice.kind === 'call_answered_elsewhere' ? notice.reason : undefined
}

/** To the device that the entry is for. */
export function mediaReadyNotice(
  { callId, version }: Call,
  { roomId, gateway, device }: RoomEntry,
  nowMs: number,
): DeviceEffect {
  const notice = { kind: 'media_ready' as const, callId, version, roomId, gateway }
  return plainNotice(device, notice, nowMs + READY_MS)
}

/** Without an end the inbox's own time applies. */
export function plainNotice(
  { userId, deviceId }: CallDeviceRef,
  notice: PlainCallNotice,
  expiresAtMs?: number,
): DeviceEffect {
  return {
    kind: 'device',
    userId,
    deviceId,
    notice,
    encryptedAESKey: undefined,
    expiresAtMs,
    replaces: undefined,
  }
}

/**
 * The notice with a slice, to the device whose slice it is. A key leaves the domain here alone: a notice with another
 * device's key can't be written.
 */
export function keyedNotice(slice: KeySlice, notice: KeyedNotice, expiresAtMs: number): DeviceEffect {
  const { userId, deviceId, encryptedAESKey } = slice
  return { kind: 'device', userId, deviceId, notice, encryptedAESKey, expiresAtMs, replaces: undefined }
}

/** A device that was away for longer reads the call's record. */
const READY_MS = 3_600_000

type ParticipantEventKind = Extract<CallTopicEvent, { readonly participant: unknown }>['kind']

const NO_EFFECTS: readonly CallEffect[] = []
const EVENTS = {
  invited: 'participant_invited',
  ringing: 'participant_ringing',
  joined: 'participant_joined',
  left: 'participant_left',
  lost: 'participant_left',
  removed: 'participant_left',
  declined: 'participant_declined',
  busy: 'participant_declined',
  missed: 'participant_declined',
} as const satisfies Record<Participant['state'], CallTopicEvent['kind']>
