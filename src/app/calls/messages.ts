/** Messages of the queue, and invitations by push. */

import type { MediaReadyEvent, QueueEvent } from '../wire.ts'
import { type DeviceCall, isPresent } from './device.ts'
import { close, noteEnd } from './ending.ts'
import { onUpdate } from './entering.ts'
import { isElsewhere, refresh } from './record.ts'
import * as rejoining from './rejoining.ts'
import * as ringing from './ringing.ts'
import * as starting from './starting.ts'
import type { Turn } from './turn.ts'

export function onInvitation(turn: Turn, invitation: ringing.Invitation): void {
  const rings = ringing.ringingOf(turn, invitation)
  if (!starting.holds(turn, rings)) ringing.ring(turn, rings)
}

export function onQueue(turn: Turn, event: QueueEvent, command: number): void {
  if (event.type === 'call_invitation') onInvitation(turn, event)
  if (event.type === 'call_invitation' || !('callId' in event)) return turn.settle(command)
  const isRungOut = RUNG_OUT.includes(event.type)
  if (isRungOut) starting.dropHeld(turn, event.callId)
  const call = turn.call(event.callId)
  const { restoring } = turn.device
  // Such as another device that asks for the key, after a restart of both.
  if (restoring.kind === 'waiting' && (call === undefined || (!isPresent(call) && !isRungOut))) {
    const early = [...restoring.early, { command, event }]
    turn.device = { ...turn.device, restoring: { kind: 'waiting', early } }
    return
  }
  if (call === undefined) {
    // The answer to its start may come later.
    if (event.type === 'call_ended' && turn.device.starts.length > 0)
      noteEnd(turn, { callId: event.callId, invitedAtMs: 0 })
    return turn.settle(command)
  }
  onMessage(turn, call, event, command)
}

function onMessage(turn: Turn, call: DeviceCall, event: CallMessage, command: number): void {
  const { callId } = call
  switch (event.type) {
    case 'participant_request_rejoin':
      return rejoining.onAsked(turn, event, command)
    case 'participant_accept_rejoin':
      return rejoining.onGranted(turn, event, command)
    case 'key_update':
      if (call.phase.kind !== 'ringing in') return onUpdate(turn, event, command)
      ringing.onRenewedKey(turn, event, call.phase)
      break
    case 'call_cancelled':
      if (!starting.startsAgain(turn, callId)) close(turn, callId, 'cancelled')
      break
    case 'call_missed':
      ringing.onRungOut(turn, callId, 'missed')
      break
    case 'call_answered_elsewhere':
      ringing.onRungOut(turn, callId, `${event.reason}_elsewhere`)
      break
    case 'call_moved':
      onMoved(turn, call, event.version)
      break
    case 'call_ended':
      if (!starting.startsAgain(turn, callId)) close(turn, callId, event.endReason)
      break
    case 'key_missing':
      rejoining.onKeyMissing(turn, call, event.epoch)
      break
    case 'media_ready':
      onMedia(turn, callId, event)
  }
  turn.settle(command)
}

/** An older one is of before this device came back: its queue was slower than its request. */
function onMoved(turn: Turn, { callId, phase, record }: DeviceCall, version: number): void {
  if (phase.kind === 'entering') turn.change(callId, { movedVersion: version })
  else if (record === undefined || version >= record.version || isElsewhere(turn, record))
    close(turn, callId, 'moved')
}

function onMedia(turn: Turn, callId: string, { version, roomId, media }: MediaReadyEvent): void {
  const record = turn.call(callId)?.record
  // Either the call has left that room since, or the topic was faster: the record says which.
  if (record !== undefined && roomId !== record.roomId && version < record.version)
    return refresh(turn, callId)
  const ready = { roomId, gateway: media }
  turn.change(callId, { media: ready, ...(record && { record: { ...record, roomId, media } }) })
  turn.act({ do: 'emit', callId, name: 'media', value: media })
}

/** A call rings no more after these. */
const RUNG_OUT: readonly string[] = [
  'call_cancelled',
  'call_missed',
  'call_answered_elsewhere',
  'call_moved',
  'call_ended',
]

type CallMessage = Exclude<
  Extract<QueueEvent, { readonly callId: string }>,
  { readonly type: 'call_invitation' }
>
