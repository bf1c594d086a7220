/** A call's record and the events of its topic; the greater version wins. */

import type { CallRecord, CallTopicEvent, ParticipantUnreachableEvent } from '../wire.ts'
import type { Reach } from './call.ts'
import { isAsking, newestKey, reachOf } from './device.ts'
import { close, closeSoon } from './ending.ts'
import { isElsewhere, isOver, refresh } from './record.ts'
import { ask, onBehind, onHostChanged } from './rejoining.ts'
import { fit, planAfterLeaving } from './rotation.ts'
import type { Turn } from './turn.ts'

/** Takes the record of an answer, unless it is older than the one here. Gives whether it did. */
export function showIfNewer(turn: Turn, callId: string, record: CallRecord): boolean {
  const shown = turn.call(callId)?.record
  if (shown === undefined || !isNewer(record, shown)) return false
  show(turn, record)
  return true
}

export function onRefreshed(turn: Turn, callId: string, record: CallRecord, again = 0): void {
  // Events of the topic that came after it may stand on one that the topic had not told. A server may lag behind it for long.
  if (!showIfNewer(turn, callId, record) && again < AGAIN_MAX) refresh(turn, callId, undefined, again + 1)
  onBehind(turn, callId)
}

function show(turn: Turn, record: CallRecord): void {
  const { callId, status } = record
  if (isOver(status)) return close(turn, callId, record.endReason ?? 'unknown')
  turn.change(callId, { record })
  const call = turn.call(callId)
  const own = record.participants.find(({ userId }) => userId === turn.device.userId)
  if (call === undefined) return
  if (own?.state === 'removed') return close(turn, callId, 'removed')
  if (own?.state === 'left' && !isAsking(call)) return close(turn, callId, 'left')
  if (isElsewhere(turn, record) && !isAsking(call)) return close(turn, callId, 'moved')
  // The network was away for longer than the server waits; they may have been invited again since.
  if (own !== undefined && own.state !== 'joined' && !isAsking(call)) ask(turn, record)
  else if (call.phase.kind === 'ringing out' && status === 'active') onAnswered(turn, record)
  fit(turn, callId)
}

export function onTopic(turn: Turn, callId: string, event: CallTopicEvent): void {
  if (event.type === 'participant_unreachable') return onUnreachable(turn, callId, event)
  const record = turn.call(callId)?.record
  if (record === undefined || event.version < record.version) return
  turn.change(callId, { record: withEvent(record, event) })
  if (event.type === 'host_changed') onHostChanged(turn, callId)
  if (event.type === 'call_status' && isOver(event.status)) closeSoon(turn, callId)
  if (!('participant' in event) || event.type === 'media_changed') return
  const { participant } = event
  turn.act({ do: 'emit', callId, name: 'participant', value: participant })
  const isOwn = participant.userId === turn.device.userId
  if (turn.call(callId)?.phase.kind === 'ringing out' && participant.state === 'joined') {
    const startedAt = new Date(turn.serverMs).toISOString()
    onAnswered(turn, { ...withEvent(record, event), startedAt })
  }
  const shown = turn.call(callId)?.record
  // A leave of before this device came back may be carried out late.
  if (isOwn && shown !== undefined && ['left', 'lost', 'removed'].includes(participant.state))
    return show(turn, shown)
  if (!isOwn && ['left', 'lost', 'removed'].includes(participant.state)) planAfterLeaving(turn, callId)
  fit(turn, callId)
}

/** A hint, whatever its version: it changes nothing of the record, and holds as long as the person is to answer. */
function onUnreachable(
  turn: Turn,
  callId: string,
  { userId, hasUnapprovedDevice }: ParticipantUnreachableEvent,
): void {
  const call = turn.call(callId)
  const participant = call?.record?.participants.find(one => one.userId === userId)
  if (call === undefined || participant?.state !== 'invited' || reachOf(call, participant).isUnreachable)
    return
  const others = call.unreachable.filter(one => one.userId !== userId)
  const reach: Reach = { isUnreachable: true, ...(hasUnapprovedDevice && { hasUnapprovedDevice }) }
  turn.change(callId, { unreachable: [...others, { userId, invitedAt: participant.invitedAt, reach }] })
  turn.act({ do: 'emit', callId, name: 'participant', value: { ...participant, ...reach } })
}

/** A callee is in. A caller that has restarted since asks them for the key. */
function onAnswered(turn: Turn, record: CallRecord): void {
  const { callId } = record
  const call = turn.call(callId)
  if (call === undefined || newestKey(call) === undefined) return ask(turn, record)
  turn.change(callId, { record })
  turn.enterPhase(callId, { kind: 'active' })
}

function withEvent(record: CallRecord, event: CallTopicEvent): CallRecord {
  const { version } = event
  if (event.type === 'host_changed') return { ...record, version, hostUserId: event.hostUserId }
  if (!('participant' in event)) return { ...record, version }
  const { participant } = event
  const others = record.participants.filter(({ userId }) => userId !== participant.userId)
  return { ...record, version, participants: [...others, participant] }
}

/** Whether it is not older. */
function isNewer(one: CallRecord, other: CallRecord): boolean {
  return one.version >= other.version
}

const AGAIN_MAX = 3
