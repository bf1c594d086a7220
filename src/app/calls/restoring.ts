/** After each connection: the leaves to repeat, ringing calls, and the call that this device was in. */

import type { Failure } from '../callsign-error.ts'
import type { CallRecord } from '../wire.ts'
import { isAsking, isPresent, type Kept } from './device.ts'
import { forget, sendLeave } from './ending.ts'
import type { Input } from './input.ts'
import { onQueue } from './messages.ts'
import { isOver, refresh } from './record.ts'
import * as rejoining from './rejoining.ts'
import * as ringing from './ringing.ts'
import * as starting from './starting.ts'
import type { Turn } from './turn.ts'

export function onConnected(
  turn: Turn,
  { command, connection, kept }: Extract<Input, { on: 'connected' }>,
): void {
  turn.device = { ...turn.device, connection, kept }
  leaveKept(turn, { command, kept }, kept.leaving ?? [])
}

/** The server hears of a leave after the other: the answer to each goes on with the next. */
export function leaveKept(
  turn: Turn,
  { command, kept }: { command: number; kept: Kept },
  leaving: readonly string[],
): void {
  // A device does not leave a call that its user is on the way back into.
  const [callId] = leaving.filter(one => {
    const left = turn.call(one)
    return left === undefined || !isPresent(left)
  })
  if (callId === undefined) return readPending(turn, { command, kept })
  turn.request('POST call/{callId}/leave', { for: 'kept leave', callId, command, kept })
}

/** Asks for the calls that ring. */
function readPending(turn: Turn, { command, kept }: { command: number; kept: Kept }): void {
  turn.request('GET call/pending', { for: 'pending', command, kept })
}

export function onPending(
  turn: Turn,
  items: readonly CallRecord[],
  { command, kept }: { command: number; kept: Kept },
): void {
  for (const record of items) {
    const rings = ringing.ringingIn(turn, record)
    if (rings === undefined) continue
    const own = record.participants.find(({ userId }) => userId === turn.device.userId)
    // One that a push has woken could not say it before.
    if (own?.state === 'invited') ringing.tellRinging(turn, record.callId)
    if (!starting.holds(turn, rings)) ringing.ring(turn, rings)
  }
  for (const call of turn.device.calls) {
    refresh(turn, call.callId, command)
    if (isAsking(call)) rejoining.askAgain(turn, call.callId)
  }
  const { callId } = kept
  const phase = callId === undefined ? undefined : turn.call(callId)?.phase
  // It was answered before the restart, and the server may hear of that yet.
  if (callId !== undefined && phase?.kind === 'ringing in')
    turn.change(callId, { phase: { ...phase, mayBeIn: true } })
  if (callId === undefined || turn.call(callId) !== undefined) return restored(turn)
  turn.request('GET call/{callId}', { for: 'restore', callId, command })
}

/** The app was in a call when it ended. */
export function onRestored(
  turn: Turn,
  keptId: string,
  record: CallRecord | undefined,
  command: number | undefined,
): void {
  const { userId, deviceId } = turn.device
  const own = record?.participants.find(one => one.userId === userId)
  const isIn = own?.deviceId === deviceId && (own.state === 'joined' || own.state === 'lost')
  if (record === undefined || isOver(record.status) || !isIn) {
    forget(turn, keptId)
  } else if (turn.call(keptId) === undefined && turn.device.kept.callId !== keptId) {
    // The device has left it for another call, or it has ended here.
    sendLeave(turn, keptId)
  } else if (turn.call(record.callId) === undefined) {
    const isActive = record.status === 'active'
    const facts = { ...record, caller: ringing.personIn(record, own.invitedBy) }
    ringing.add(turn, facts, { kind: 'ringing out' }, record)
    turn.emit(record.callId, 'resumed')
    if (isActive) rejoining.ask(turn, record)
    // The key that was sent is gone with the app, and no other device has it.
    else
      turn.request('POST call/{callId}/end', {
        for: 'give up',
        callId: record.callId,
        ...(command !== undefined && { command }),
      })
  }
  restored(turn)
}

/** The next try restores it: messages of unknown calls need not wait for that. */
export function notRestored(turn: Turn, command: number | undefined, failure: Failure): void {
  restored(turn)
  failConnected(turn, command, failure)
}

/** Its other acts go on without it. */
export function failConnected(turn: Turn, command: number | undefined, failure: Failure): void {
  const waiting = turn.device.waiting.map(one => {
    if (one.for !== 'refresh' && one.for !== 'restore' && one.for !== 'give up') return one
    const { command: own, ...rest } = one
    return own === command ? rest : one
  })
  turn.device = { ...turn.device, waiting }
  turn.settle(command, failure)
}

/** Settles a command that waits for several acts. */
export function settleWhenDone(turn: Turn, command: number | undefined): void {
  if (command === undefined || turn.device.waiting.some(one => 'command' in one && one.command === command))
    return
  turn.settle(command)
}

function restored(turn: Turn): void {
  const { restoring } = turn.device
  turn.device = { ...turn.device, restoring: { kind: 'restored' } }
  if (restoring.kind === 'waiting')
    for (const { event, command } of restoring.early) onQueue(turn, event, command)
}
