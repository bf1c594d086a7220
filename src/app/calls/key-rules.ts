/** Which keys a device takes: from whom, and for which devices (docs/check/crypto.md). */

import type { Failure } from '../callsign-error.ts'
import type { SetChange } from '../devices/key-members.ts'
import type { CallParticipant, CallRecord, KeyUpdateEvent } from '../wire.ts'
import {
  type DeviceCall,
  type HeldKey,
  invitedOf,
  type KeySet,
  newestKey,
  type Opened,
  type Sender,
} from './device.ts'
import type { Turn } from './turn.ts'

/** The newest key of the call that was opened here, also one that an invitation brought. */
export function latestKey(call: DeviceCall | undefined): HeldKey | undefined {
  return call && (newestKey(call) ?? invitedOf(call)?.key)
}

/** The next epoch comes from a person who has the one before: on another device of theirs, where they have moved the call. */
export function isFromMember({ members }: KeySet, { userId }: Pick<Sender, 'userId'>): boolean {
  return members.some(name => name.split('_')[0] === userId)
}

/** Whether the key is for this device. */
export function isMember(
  key: KeySet,
  device: { readonly userId: string; readonly deviceId?: string },
): boolean {
  return key.members.includes(nameOf(device))
}

/** Sets that may be the one: those in the record, and of the keys that are here. */
export function setsIn(call: DeviceCall | undefined, record = call?.record): readonly string[] {
  const held = [...(call?.key.held ?? []), ...(call === undefined ? [] : [invitedOf(call)?.key])]
  const own = held.flatMap(key => (key === undefined ? [] : [key.keyMembers]))
  return [...new Set([...(record?.keySets ?? []).map(({ keyMembers }) => keyMembers), ...own])]
}

export function changeIn({ added, removed }: KeyUpdateEvent): { readonly change?: SetChange } {
  return added === undefined || removed === undefined ? {} : { change: { added, removed } }
}

/**
 * Why a key is not taken that is sealed for these devices: `unlisted` are some of the user's own. Without a record it is not known
 * who has a part in the call.
 */
export function refusalOfSet(
  turn: Turn,
  callId: string,
  { members, unlisted = [] }: Pick<HeldKey, 'members' | 'unlisted'>,
  record: CallRecord | undefined,
): Failure | undefined {
  const unknown = unlisted.find(name => !turn.device.kept.accepted?.includes(name))
  if (unknown !== undefined) return ownDeviceInSet(unknown)
  const removed = turn.call(callId)?.removed ?? []
  const userIds = [...new Set(members.map(name => name.split('_')[0]!))]
  const ignored = userIds.find(userId => removed.includes(userId))
  if (ignored !== undefined) return removalIgnored(ignored)
  if (record === undefined) return undefined
  // People who have left since, or declined, were in the call when the key was made.
  const hasPart = (id: string) =>
    record.participants.some(one => one.userId === id && one.state !== 'removed')
  const stranger = userIds.find(userId => !hasPart(userId))
  if (stranger === undefined) return undefined
  const message = 'The call’s key is not taken: it is sealed for a person who is not in the call.'
  return { code: 'KEY_MEMBERS_REFUSED', message, members: { userId: stranger } }
}

function ownDeviceInSet(name: string): Failure {
  const message = 'The call’s key is sealed for a device of your own that is on no device list: is it yours?'
  return { code: 'OWN_DEVICE_IN_SET', message, members: { name } }
}

/** The user says that it is theirs. */
export function acceptDevice(turn: Turn, name: string): void {
  const { accepted = [] } = turn.device.kept
  const others = accepted.filter(one => one !== name)
  turn.keep({ ...turn.device.kept, accepted: [...others, name].slice(-ACCEPTED_MAX) })
}

/** Why the call's key is not taken from the device that is said to have made it. */
export function notFromMember(from: Sender): Failure {
  const message = 'The call’s key is not taken: it comes from a person who did not have the one before.'
  return { code: 'KEY_MEMBERS_REFUSED', message, members: { name: nameOf(from) } }
}

export function removalIgnored(userId: string): Failure {
  const message = 'The call’s key was to be sealed for a person whom this device has removed.'
  return { code: 'REMOVAL_IGNORED', message, members: { userId } }
}

/** Why a key of this epoch is not taken: what the call had before does not come again. */
export function refusalOfEpoch(turn: Turn, callId: string, epoch: number): Failure | undefined {
  const before = turn.device.kept.opened?.find(one => one.callId === callId)
  // Keys that come out of their order are taken, but none from before those that are here.
  const oldest = turn.call(callId)?.key.held.at(-1)?.epoch
  const isOld =
    before !== undefined && (before.isOver ? epoch <= before.epoch : epoch < (oldest ?? before.epoch))
  if (!isOld) return undefined
  const message = 'The call’s key is not taken: it is of an epoch that this device has left behind.'
  return { code: 'CALL_KEY_OLD', message, members: { epoch } }
}

/** Notes the newest epoch of a call, for as long as this device is the user's. */
export function noteOpened(turn: Turn, callId: string, epoch: number, isOver = false): void {
  const { opened = [], ...kept } = turn.device.kept
  const before = opened.find(one => one.callId === callId)
  const { removed = before?.removed ?? [] } = turn.call(callId) ?? {}
  const noted: Opened = {
    ...{ callId, epoch: Math.max(epoch, before?.epoch ?? 0) },
    ...(isOver && { isOver }),
    ...(removed.length > 0 && !isOver && { removed }),
  }
  const others = opened.filter(one => one !== before)
  turn.keep({ ...kept, opened: [...others, noted].slice(-OPENED_MAX) })
}

/** The device has left the call. */
export function forgetRemoved(turn: Turn, callId: string, userId: string): void {
  const { opened = [] } = turn.device.kept
  const changed = opened.map(({ removed = [], ...one }) => {
    const left = one.callId === callId ? removed.filter(id => id !== userId) : removed
    return { ...one, ...(left.length > 0 && { removed: left }) }
  })
  turn.keep({ ...turn.device.kept, opened: changed })
}

/**
 * Whether this device may make the next epoch. The host's may; if the host's device does not have the present key, the member with
 * the lowest id may instead.
 */
export function mayRenew(turn: Turn, callId: string, record: CallRecord): boolean {
  const { userId, deviceId } = turn.device
  if (record.hostUserId === userId) return true
  const call = turn.call(callId)
  const held = call && newestKey(call)
  if (held === undefined || !isMember(held, { userId, deviceId })) return false
  const able = record.participants.filter(one => one.state === 'joined' && isMember(held, one))
  if (able.some(one => one.userId === record.hostUserId)) return false
  const [lowest] = able.map(one => BigInt(one.userId)).sort((a, b) => (a < b ? -1 : 1))
  return `${lowest}` === userId
}

/** The next key's receivers, without those whom this device has removed. */
export function receiversIn(
  turn: Turn,
  callId: string,
  { participants }: CallRecord,
): readonly CallParticipant[] {
  const { removed = [], admitted = [] } = turn.call(callId) ?? {}
  return participants
    .filter(({ userId }) => !removed.includes(userId))
    .flatMap(one => {
      const device = admitted.find(each => each.userId === one.userId && each.deviceId !== one.deviceId)
      const known = admitted.some(each => each.userId === one.userId && each.deviceId === one.deviceId)
      const own: CallParticipant = known ? { ...one, state: 'joined' } : one
      return device === undefined ? [own] : [own, { ...one, deviceId: device.deviceId, state: 'joined' }]
    })
}

/** Devices in the call that it is not for. */
export function withoutIn(
  { participants }: CallRecord,
  receivers: readonly CallParticipant[],
  without: readonly string[],
): readonly string[] {
  const joined = participants.filter(({ state }) => state === 'joined')
  const isLeftOut = (one: CallParticipant) =>
    without.includes(nameOf(one)) || !receivers.some(({ userId }) => userId === one.userId)
  return joined.filter(isLeftOut).map(nameOf)
}

export function nameOf({
  userId,
  deviceId,
}: {
  readonly userId: string
  readonly deviceId?: string
}): string {
  return `${userId}_${deviceId}`
}

/** A server may hand out once more what it has kept. */
export function refusalOfAge(turn: Turn, callId: string, sealedAgoMs: number): Failure | undefined {
  const phase = turn.call(callId)?.phase
  if (sealedAgoMs <= OLD_MS || (phase?.kind === 'entering' && phase.evenIfOld)) return undefined
  const minutes = Math.floor(sealedAgoMs / 60_000)
  const message = `The invitation was sealed ${minutes} minutes ago: take it only if you expect it.`
  return { code: 'INVITATION_OLD', message, members: { sealedAgoMs } }
}

export const CALLER_NOT_SEALER: Failure = {
  code: 'CALLER_NOT_SEALER',
  message: 'The call’s key does not come from the person who is said to call.',
}
/** Some tens of octets each. */
const OPENED_MAX = 500
const ACCEPTED_MAX = 100
/** An invitation rings for a minute, and clocks differ. */
const OLD_MS = 300_000
