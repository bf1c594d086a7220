/** The end of a call for this device, and reports of failures. */

import type { Failure } from '../callsign-error.ts'
import type { CallEnding } from './call.ts'
import { type DeviceCall, isCode, isPresent, type Kept } from './device.ts'
import { latestKey, noteOpened } from './key-rules.ts'
import type { Turn } from './turn.ts'

/** Ends it for this device, also where an earlier message invites it once more. */
export function close(turn: Turn, callId: string, reason: CallEnding, isOver = OVER.includes(reason)): void {
  const call = turn.call(callId)
  if (call === undefined) return
  const key = latestKey(call)
  endHere(turn, call, reason)
  noteEnd(turn, call)
  if (key !== undefined && isOver) noteOpened(turn, callId, key.epoch, true)
  // Should it fail, the next start finds that the call has ended.
  forget(turn, callId)
}

/** An invitation from before then does not ring any more. */
export function noteEnd(turn: Turn, call: Pick<DeviceCall, 'callId' | 'invitedAtMs'>): void {
  const { callId, invitedAtMs } = call
  // By this clock the invitation may not have been made yet.
  const atMs = Math.max(invitedAtMs, turn.serverMs)
  const ended = turn.device.ended.filter(one => one.callId !== callId)
  turn.device = { ...turn.device, ended: [...ended, { callId, atMs }].slice(-ENDED_MAX) }
}

/** The server may have let it in after it ended here. One that the next start asks for is left as it is. */
export function leaveUnknown(turn: Turn, callId: string): void {
  if (turn.device.kept.callId !== callId) sendLeave(turn, callId)
}

/** Leaves it, whatever becomes of the request: the server hears of it at the latest with the next connection. */
export function sendLeave(turn: Turn, callId: string, command?: number): void {
  const { kept } = turn.device
  const leaving = [...(kept.leaving ?? []).filter(one => one !== callId), callId].slice(-LEAVING_MAX)
  turn.keep({ ...(kept.callId === callId ? withoutCall(kept) : kept), leaving })
  turn.request('POST call/{callId}/leave', {
    for: 'leave',
    callId,
    ...(command !== undefined && { command }),
  })
}

/** Rejects commands that wait for it. It may ring again, or be resumed. */
export function endHere(turn: Turn, call: DeviceCall, reason: CallEnding): void {
  const { callId } = call
  turn.enterPhase(callId, { kind: 'ended', reason })
  if (call.topic.kind !== 'off') turn.act({ do: 'unwatch', callId })
  turn.settle(commandsOf(call), HAS_ENDED)
}

/**
 * The queue says why it has ended, if it reaches this device; a moment later the call ends without a reason. A
 * connection that comes back in that time has as long.
 */
export function closeSoon(turn: Turn, callId: string): void {
  const { connection } = turn.device
  turn.change(callId, { end: { kind: 'reason', atMs: turn.nowMs + REASON_WAIT_MS, connection } })
}

/** No reason came in time. */
export function onReasonDue(turn: Turn, { callId, end }: DeviceCall): void {
  const { connection } = turn.device
  const isSame = end.kind === 'reason' && end.connection !== undefined && end.connection === connection
  if (isSame || end.kind === 'reconnection') return close(turn, callId, 'unknown')
  turn.change(callId, { end: { kind: 'reconnection', atMs: turn.nowMs + RECONNECTION_WAIT_MS } })
}

/** Tells the app of what a call does by itself and could not do. */
export function report(turn: Turn, callId: string, failure: Failure): void {
  if (turn.call(callId) === undefined) return
  // The answer was faster than the message that says why.
  if (isCode(failure, 'CALL_ENDED')) return closeSoon(turn, callId)
  turn.act({ do: 'emit', callId, name: 'error', value: failure })
}

/** Whether it ended here after this time of an invitation; the server may not know yet. */
export function hasEnded(turn: Turn, callId: string, invitedAtMs: number): boolean {
  return turn.device.ended.some(one => one.callId === callId && invitedAtMs <= one.atMs)
}

function commandsOf({ phase, rotation }: DeviceCall): readonly number[] {
  const entering = phase.kind === 'entering' ? phase.commands : []
  return rotation.kind === 'renewing' ? [...entering, ...rotation.commands] : entering
}

/** The next start does not ask for this call, but for any other that the device is in. */
export function forget(turn: Turn, callId: string): void {
  const { kept, calls } = turn.device
  if (kept.callId !== callId) return
  const other = calls.find(one => one.callId !== callId && isPresent(one) && one.phase.kind !== 'entering')
  turn.keep({ ...withoutCall(kept), ...(other && { callId: other.callId }) })
}

/** The server knows that this device has left it. */
export function withoutLeaving({ leaving = [], ...kept }: Kept, callId: string): Kept {
  const others = leaving.filter(one => one !== callId)
  return others.length === 0 ? kept : { ...kept, leaving: others }
}

function withoutCall({ callId: _, ...kept }: Kept): Kept {
  return kept
}

/** The call has ended for all. After any other reason this device may come back with the key that the call has. */
const OVER: readonly CallEnding[] = [
  'hangup',
  'cancelled',
  'declined',
  'unanswered',
  'caller_lost',
  'empty',
  'alone',
  'limit',
]

export const HAS_ENDED: Failure = { code: 'CALL_NOT_ACTIVE', message: 'The call has ended here.' }
const ENDED_MAX = 100
const LEAVING_MAX = 10
const REASON_WAIT_MS = 2_000
const RECONNECTION_WAIT_MS = 30_000
