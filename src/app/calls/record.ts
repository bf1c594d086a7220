/** A call that this device is in: its record, its topic and its keys. */

import type { Failure } from '../callsign-error.ts'
import type { CallRecord, CallStatus } from '../wire.ts'
import { GONE, type HeldKey, isAsking, isCode, isPresent, type Phase } from './device.ts'
import { closeSoon, report, withoutLeaving } from './ending.ts'
import { hold } from './held-keys.ts'
import { plan } from './rotation.ts'
import type { Turn } from './turn.ts'

/** Goes on with a call that this device is in. */
export function begin(turn: Turn, record: CallRecord, phase: Phase): void {
  const { callId } = record
  if (turn.call(callId) === undefined) return
  // Without it the next start does not know of the call; this one does.
  turn.keep({ ...withoutLeaving(turn.device.kept, callId), callId })
  // An end that a request told before is not this one's: the server has let this device in since.
  turn.change(callId, { record, end: { kind: 'none' } })
  turn.enterPhase(callId, phase)
  plan(turn, callId, record)
  // The topic may have told of changes since the record was made.
  if (turn.call(callId)?.topic.kind === 'on') refresh(turn, callId)
  else watch(turn, callId)
}

/** With its key, the call goes on here. */
export function enter(turn: Turn, record: CallRecord, key: HeldKey): void {
  const call = turn.call(record.callId)
  begin(turn, record, { kind: record.status === 'ringing' ? 'ringing out' : 'active' })
  hold(turn, record.callId, key, { wasAway: call !== undefined && isAsking(call) })
}

/** Events of the topic that this device has missed are in the record. */
export function refresh(turn: Turn, callId: string, command?: number, again = 0): void {
  const call = turn.call(callId)
  // While it joins, the server may not have this device in the call yet.
  if (call === undefined || !isPresent(call) || call.record === undefined) return
  watch(turn, callId)
  turn.request('GET call/{callId}', {
    for: 'refresh',
    callId,
    ...(command !== undefined && { command }),
    ...(again > 0 && { again }),
  })
}

export function onNotRefreshed(turn: Turn, callId: string, failure: Failure, command?: number): void {
  if (isCode(failure, ...GONE)) return closeSoon(turn, callId)
  // The topic may never tell again of events that this would have shown.
  const isDue = command === undefined && turn.device.connection !== undefined && isCode(failure, 'NO_ANSWER')
  if (isDue) refresh(turn, callId)
  else report(turn, callId, failure)
}

export function onWatched(turn: Turn, callId: string): void {
  if (turn.call(callId) === undefined) return turn.act({ do: 'unwatch', callId })
  turn.change(callId, { topic: { kind: 'on' } })
  refresh(turn, callId)
}

export function onNotWatched(turn: Turn, callId: string, failure: Failure): void {
  turn.change(callId, { topic: { kind: 'off' } })
  report(turn, callId, failure)
}

/** Whether the user is in it with another device. */
export function isElsewhere({ device }: Turn, { participants }: CallRecord): boolean {
  const own = participants.find(({ userId }) => userId === device.userId)
  return own?.state === 'joined' && own.deviceId !== device.deviceId
}

export function isOver(status: CallStatus): boolean {
  return status !== 'ringing' && status !== 'active'
}

function watch(turn: Turn, callId: string): void {
  if (turn.call(callId)?.topic.kind !== 'off') return
  turn.change(callId, { topic: { kind: 'coming' } })
  turn.act({ do: 'watch', act: turn.wait({ for: 'watch', callId }), callId })
}
