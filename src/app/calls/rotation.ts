/** The keys that this device makes in one call: when their time has run out, after a participant has left, and when asked. */

import type { Failure } from '../callsign-error.ts'
import type { CallRecord } from '../wire.ts'
import {
  type DeviceCall,
  isAsking,
  isCode,
  type KeySet,
  type NewKey,
  newestKey,
  type Rotation,
  type RotationReason,
} from './device.ts'
import { HAS_ENDED, report } from './ending.ts'
import { hold, periodMsOf } from './held-keys.ts'
import { nameOf, receiversIn, removalIgnored, withoutIn } from './key-rules.ts'
import type { Turn } from './turn.ts'

/** The time of the present key begins. */
export function plan(turn: Turn, callId: string, record: Pick<CallRecord, 'keyRotationIn'>): void {
  planAfter(turn, callId, periodMsOf(record), 'rotation')
}

/** A little later, for several who leave at once. */
export function planAfterLeaving(turn: Turn, callId: string): void {
  planSooner(turn, callId, AFTER_LEAVING_MS, 'leave')
}

/** Makes a key for all now: the app asks, or the device returns with it into a call that lost its key. */
export function renew(
  turn: Turn,
  callId: string,
  more: { command?: number; returning?: CallRecord; reason?: RotationReason },
): void {
  const call = turn.call(callId)
  if (call === undefined) return
  const { command, returning, reason = 'rotation' } = more
  if (call.rotation.kind === 'renewing') {
    const commands = [...call.rotation.commands, ...(command === undefined ? [] : [command])]
    return turn.change(callId, { rotation: { ...call.rotation, commands, ...(returning && { returning }) } })
  }
  const commands = command === undefined ? [] : [command]
  startRenewing(turn, callId, {
    reason,
    afterMs: undefined,
    commands,
    ...(returning && { returning }),
  })
}

/** Soon, since members may have one that this device does not know. */
export function planAgain(turn: Turn, callId: string): void {
  planSooner(turn, callId, AFTER_LEAVING_MS, 'rotation')
}

/** A removed member must not have the following keys: the next one is made at once. */
export function renewWithout(turn: Turn, callId: string): void {
  const call = turn.call(callId)
  if (call === undefined || call.phase.kind !== 'active' || !hasOthers(turn, call)) return
  if (call.rotation.kind === 'renewing') planAfter(turn, callId, 0, 'leave')
  else startRenewing(turn, callId, { reason: 'leave', afterMs: 0, commands: [] })
}

/**
 * Once no invitation rings, the key is for those in the call alone, and for all of them. The host checks that after each change of
 * people.
 */
export function fit(turn: Turn, callId: string): void {
  const call = turn.call(callId)
  const held = call && newestKey(call)
  if (call?.record === undefined || held === undefined || call.phase.kind !== 'active') return
  const { record, rotation, without } = call
  if (record.hostUserId !== turn.device.userId || rotation.kind === 'renewing' || !hasOthers(turn, call))
    return
  const joined = record.participants.filter(({ state }) => state === 'joined').map(nameOf)
  if (joined.some(name => !held.members.includes(name) && !without.includes(name)))
    return planSooner(turn, callId, 0, 'rotation')
  const rings = record.participants.some(({ state }) => state === 'invited' || state === 'ringing')
  if (!rings && held.members.some(name => !joined.includes(name))) planAfterLeaving(turn, callId)
}

/** Sends the present key once more. */
export function resend(turn: Turn, callId: string, command: number): void {
  readForKeys(turn, { callId, reason: 'emergency', command, triesLeft: TRIES })
}

/** Only the host makes it. Where it can't be made now, it is later. */
export function onRotationDue(turn: Turn, callId: string): void {
  const call = turn.call(callId)
  if (call?.rotation.kind !== 'planned') return
  const { afterMs, reason } = call.rotation
  const isHost = call.record?.hostUserId === turn.device.userId
  if (isHost && call.phase.kind === 'active' && hasOthers(turn, call))
    startRenewing(turn, callId, { reason, afterMs, commands: [] })
  else planAfter(turn, callId, later(afterMs), reason)
}

/** The call was read: its devices and its epoch. */
export function onRead(turn: Turn, sending: NewKey, record: CallRecord): void {
  const { callId, reason, command } = sending
  const call = turn.call(callId)
  if (call === undefined) return turn.settle(command, HAS_ENDED)
  const held = newestKey(call)
  if (reason === 'emergency' && held === undefined) return turn.settle(command, KEY_MISSING)
  const participants = receiversIn(turn, callId, record)
  if (reason === 'emergency') {
    const { key, epoch, keyMembers, members } = held!
    const to = { participants, keyMembers }
    const again = { ...sending, key, epoch, record, set: { keyMembers, members } }
    return turn.seal(key, to, { callId, epoch }, { ...again, for: 'keys: seal' })
  }
  const ignored = record.participants.find(one => one.state === 'joined' && call.removed.includes(one.userId))
  if (ignored !== undefined) {
    const { userId } = ignored
    report(turn, callId, removalIgnored(userId))
    // The server may not have heard of it.
    turn.request('POST call/{callId}/remove', { for: 'remove', callId, userId, isKnown: true }, { userId })
  }
  const [key, epoch] = [turn.makeKey(), record.keyEpoch + 1]
  turn.seal(key, { participants }, { callId, epoch }, { ...sending, for: 'keys: seal', key, epoch, record })
}

export function onSealed(
  turn: Turn,
  sending: NewKey & { readonly set: KeySet },
  texts: Readonly<Record<string, string>>,
  unproved: readonly string[],
): void {
  const { callId, reason, epoch, record, set } = sending
  if (turn.call(callId) === undefined) return turn.settle(sending.command, HAS_ENDED)
  const without =
    reason === 'emergency' ? [] : withoutIn(record!, receiversIn(turn, callId, record!), unproved)
  const { keyMembers } = set
  const left = without.length > 0 && { without }
  const body = { epoch, reason, keyMembers, encryptedAESKeys: texts, ...left }
  turn.request('POST call/{callId}/keys', { ...sending, for: 'keys', without }, body)
}

/** Gives the record with which this device returns into the call by the key, if it does: also where it still asks for one. */
export function onSent(turn: Turn, sending: NewKey): CallRecord | undefined {
  const { callId, reason, command, key, epoch, record, set, without = [] } = sending
  if (reason === 'emergency') turn.settle(command)
  const call = turn.call(callId)
  const rotation = call?.rotation
  if (reason === 'emergency') return undefined
  const isTold = (name: string) => call?.without.includes(name) || call?.removed.includes(name.split('_')[0]!)
  for (const name of without) if (!isTold(name)) report(turn, callId, leftOut(name))
  turn.change(callId, { without, admitted: [] })
  // The app may have been closed and opened since: all members have the key.
  hold(turn, callId, { epoch: epoch!, key: key!, fromUserId: turn.device.userId, ...set! }, { reason })
  if (rotation?.kind !== 'renewing') return undefined
  const { next, returning, commands } = rotation
  turn.change(callId, { rotation: { kind: 'none' } })
  if (next === undefined) plan(turn, callId, record!)
  else planAfter(turn, callId, next.afterMs, next.reason)
  turn.settle(commands)
  return returning ?? (call !== undefined && isAsking(call) ? record : undefined)
}

/** Gives whether this device was to return into the call by the key. */
export function onNotSent(turn: Turn, sending: NewKey, failure: Failure): boolean {
  const { callId, reason, command, triesLeft } = sending
  const call = turn.call(callId)
  const rotation = call?.rotation
  const ignored = call?.removed.find(userId => namesUser(failure, userId))
  if (ignored !== undefined) report(turn, callId, removalIgnored(ignored))
  // The server may have forgotten what they have asked: they ask again.
  if (isCode(failure, 'DEVICE_LIST_MISMATCH')) turn.change(callId, { admitted: [] })
  if (rotation !== undefined && isCode(failure, ...CHANGED) && triesLeft > 1) {
    readForKeys(turn, { callId, reason, ...(command !== undefined && { command }), triesLeft: triesLeft - 1 })
    return false
  }
  if (reason === 'emergency') turn.settle(command, failure)
  if (reason === 'emergency' || rotation?.kind !== 'renewing') return false
  const { afterMs, commands, returning } = rotation
  turn.change(callId, { rotation: { kind: 'none' } })
  // It may have arrived; then this device needs a new key with them.
  if (afterMs === undefined) planAgain(turn, callId)
  else planAfter(turn, callId, later(afterMs), rotation.reason)
  turn.settle(commands, failure)
  if (afterMs !== undefined) report(turn, callId, failure)
  return returning !== undefined
}

function startRenewing(
  turn: Turn,
  callId: string,
  renewing: Omit<Extract<Rotation, { kind: 'renewing' }>, 'kind'>,
): void {
  turn.change(callId, { rotation: { kind: 'renewing', ...renewing } })
  readForKeys(turn, { callId, reason: renewing.reason, triesLeft: TRIES })
}

function readForKeys(turn: Turn, sending: NewKey): void {
  turn.request('GET call/{callId}', { ...sending, for: 'keys: read' })
}

function planAfter(turn: Turn, callId: string, afterMs: number, reason: RotationReason): void {
  const rotation = turn.call(callId)?.rotation
  if (rotation?.kind === 'renewing')
    return turn.change(callId, { rotation: { ...rotation, next: { afterMs, reason } } })
  turn.change(callId, { rotation: { kind: 'planned', atMs: turn.nowMs + afterMs, afterMs, reason } })
}

/** Unless one is planned that is to be earlier: it is for this too. */
function planSooner(turn: Turn, callId: string, afterMs: number, reason: RotationReason): void {
  const rotation = turn.call(callId)?.rotation
  if (rotation?.kind !== 'planned' || rotation.atMs > turn.nowMs + afterMs)
    return planAfter(turn, callId, afterMs, reason)
  if (reason === 'leave') turn.change(callId, { rotation: { ...rotation, reason } })
}

function hasOthers(turn: Turn, { record }: DeviceCall): boolean {
  return (record?.participants ?? []).some(one => one.state === 'joined' && one.userId !== turn.device.userId)
}

/** Whether it says that a device of theirs was to have the key. */
function namesUser({ members }: Failure, userId: string): boolean {
  const { missing } = members ?? {}
  return Array.isArray(missing) && missing.some(name => String(name).split('_')[0] === userId)
}

function leftOut(name: string): Failure {
  const message = 'A device in the call did not get the key, since the key log does not prove it.'
  return { code: 'KEY_LEFT_OUT', message, members: { name } }
}

function later(afterMs: number): number {
  return Math.min(Math.max(2 * afterMs, AFTER_LEAVING_MS), AGAIN_MS)
}

/** A user's devices, or the epoch of the call, have changed. */
export const CHANGED: readonly string[] = ['DEVICE_LIST_MISMATCH', 'EPOCH_CONFLICT']
export const KEY_MISSING: Failure = {
  code: 'KEY_MISSING',
  message: 'This device does not have the call’s key yet.',
}
export const TRIES = 3
const AFTER_LEAVING_MS = 5_000
const AGAIN_MS = 60_000
