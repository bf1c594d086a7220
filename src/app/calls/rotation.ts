/** The keys that this device makes in one call: when their time has run out, after a participant has left, and when asked. */

import type { Failure } from '../callsign-error.ts'
import type { CallRecord } from '../wire.ts'
import { isAsking, isCode, type NewKey, newestKey, type Rotation, type RotationReason } from './device.ts'
import { HAS_ENDED, report } from './ending.ts'
import { hold } from './held-keys.ts'
import type { Turn } from './turn.ts'

/** The time of the present key begins. */
export function plan(turn: Turn, callId: string, { keyRotationIn }: Pick<CallRecord, 'keyRotationIn'>): void {
  planAfter(turn, callId, keyRotationIn > 0 ? keyRotationIn * 1000 : AGAIN_MS, 'rotation')
}

/** A little later, for several who leave at once. */
export function planAfterLeaving(turn: Turn, callId: string): void {
  planAfter(turn, callId, AFTER_LEAVING_MS, 'leave')
}

/** Makes a key for all now: for the app that asks, or to return with it into a call whose key is gone. */
export function renew(turn: Turn, callId: string, more: { command?: number; returning?: CallRecord }): void {
  const call = turn.call(callId)
  if (call === undefined) return
  const { command, returning } = more
  if (call.rotation.kind === 'renewing') {
    const commands = [...call.rotation.commands, ...(command === undefined ? [] : [command])]
    return turn.change(callId, { rotation: { ...call.rotation, commands, ...(returning && { returning }) } })
  }
  const commands = command === undefined ? [] : [command]
  startRenewing(turn, callId, {
    reason: 'rotation',
    afterMs: undefined,
    commands,
    ...(returning && { returning }),
  })
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
  const { userId } = turn.device
  const hasOthers = call.record?.participants.some(one => one.state === 'joined' && one.userId !== userId)
  if (call.record?.hostUserId === userId && call.phase.kind === 'active' && hasOthers)
    startRenewing(turn, callId, { reason, afterMs, commands: [] })
  else planAfter(turn, callId, later(afterMs), reason)
}

/** The call was read: its devices and its epoch. */
export function onRead(turn: Turn, sending: NewKey, record: CallRecord): void {
  const call = turn.call(sending.callId)
  if (call === undefined) return turn.settle(sending.command, HAS_ENDED)
  const held = newestKey(call)
  if (sending.reason === 'emergency' && held === undefined) return turn.settle(sending.command, KEY_MISSING)
  const key = sending.reason === 'emergency' ? held!.key : turn.makeKey()
  const epoch = sending.reason === 'emergency' ? held!.epoch : record.keyEpoch + 1
  const binding = { callId: sending.callId, epoch }
  turn.seal(key, { participants: record.participants }, binding, {
    ...sending,
    for: 'keys: seal',
    key,
    epoch,
    record,
  })
}

export function onSealed(turn: Turn, sending: NewKey, texts: Readonly<Record<string, string>>): void {
  const { callId, reason, epoch } = sending
  if (turn.call(callId) === undefined) return turn.settle(sending.command, HAS_ENDED)
  const body = { epoch, reason, encryptedAESKeys: texts }
  turn.request('POST call/{callId}/keys', { ...sending, for: 'keys' }, body)
}

/** Gives the record with which this device returns into the call by the key, if it does: also where it still asks for one. */
export function onSent(turn: Turn, sending: NewKey): CallRecord | undefined {
  const { callId, reason, command, key, record } = sending
  if (reason === 'emergency') turn.settle(command)
  const call = turn.call(callId)
  const rotation = call?.rotation
  if (reason === 'emergency') return undefined
  // The app may have been closed and opened meanwhile: all members have it.
  hold(turn, callId, { epoch: record!.keyEpoch + 1, key: key!, fromUserId: turn.device.userId })
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
  const rotation = turn.call(callId)?.rotation
  if (rotation !== undefined && isCode(failure, ...CHANGED) && triesLeft > 1) {
    readForKeys(turn, { callId, reason, ...(command !== undefined && { command }), triesLeft: triesLeft - 1 })
    return false
  }
  if (reason === 'emergency') turn.settle(command, failure)
  if (reason === 'emergency' || rotation?.kind !== 'renewing') return false
  const { afterMs, commands, returning } = rotation
  turn.change(callId, { rotation: { kind: 'none' } })
  // It may have arrived; then this device needs another one with them.
  if (afterMs === undefined) planAfter(turn, callId, AFTER_LEAVING_MS, 'rotation')
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

function later(afterMs: number): number {
  return Math.min(2 * afterMs, AGAIN_MS)
}

/** A user's devices, or the epoch of the call, have changed meanwhile. */
export const CHANGED: readonly string[] = ['DEVICE_LIST_MISMATCH', 'EPOCH_CONFLICT']
export const KEY_MISSING: Failure = {
  code: 'KEY_MISSING',
  message: 'This device does not have the call’s key yet.',
}
export const TRIES = 3
const AFTER_LEAVING_MS = 5_000
const AGAIN_MS = 60_000
