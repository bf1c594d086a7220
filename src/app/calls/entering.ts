/** The way into a call: its key is opened, the call that this device is in is left for it, and the server is asked. */

import type { Failure } from '../callsign-error.ts'
import type { CallRecord, KeyUpdateEvent } from '../wire.ts'
import {
  type DeviceCall,
  type Entering,
  GONE,
  type HeldKey,
  isAsking,
  isCode,
  isPresent,
  newestKey,
  type SealedFrom,
  type Sender,
  UNHEARD,
} from './device.ts'
import { close, closeSoon, forget, leaveUnknown, noteEnd, report, sendLeave } from './ending.ts'
import { hold } from './held-keys.ts'
import {
  CALLER_NOT_SEALER,
  changeIn,
  isFromMember,
  latestKey,
  notFromMember,
  refusalOfEpoch,
  refusalOfSet,
  setsIn,
} from './key-rules.ts'
import { enter } from './record.ts'
import { ask, takeGiven } from './rejoining.ts'
import { add, NOT_RINGING, openInvitation, personIn, senderOf, sendersIn, setInvited } from './ringing.ts'
import type { Turn } from './turn.ts'

/** Answers a call that rings here. */
export function answer(turn: Turn, callId: string, command: number, evenIfOld = false): void {
  const phase = turn.call(callId)?.phase
  if (phase?.kind !== 'ringing in') return turn.settle(command, NOT_RINGING)
  const { kind: _, ...from } = phase
  const { invited } = from
  const accepted = evenIfOld && { evenIfOld }
  turn.enterPhase(callId, { kind: 'entering', from, step: 'key', commands: [command], ...accepted })
  // The log may not have been reachable when it began to ring.
  if (invited.state === 'refused') {
    setInvited(turn, callId, { ...invited, state: 'opening' })
    openInvitation(turn, callId, invited)
  } else onInvitedKey(turn, callId)
}

/** The invitation's key was opened, or not. */
export function onInvitedKey(turn: Turn, callId: string, failure?: Failure): void {
  const phase = turn.call(callId)?.phase
  if (phase?.kind !== 'entering' || phase.step !== 'key') return
  if (failure !== undefined) return fail(turn, callId, failure)
  if (phase.from?.invited.state === 'opened') clear(turn, callId)
}

/** Comes in without ringing: from another device of the user, or back. */
export function join(turn: Turn, callId: string, command: number): void {
  const call = turn.call(callId)
  if (call === undefined)
    return void turn.request('GET call/{callId}', { for: 'join: find', callId, command })
  const { phase } = call
  if (phase.kind === 'ringing in') return answer(turn, callId, command)
  if (phase.kind !== 'entering') return turn.settle(command, undefined, callId)
  turn.change(callId, { phase: { ...phase, commands: [...phase.commands, command] } })
}

export function onFound(turn: Turn, record: CallRecord, command: number): void {
  const { callId, participants, initiatorId } = record
  if (turn.call(callId) !== undefined) return join(turn, callId, command)
  const invitedBy = participants.find(({ userId }) => userId === turn.device.userId)?.invitedBy ?? initiatorId
  const facts = { ...record, caller: personIn(record, invitedBy) }
  add(turn, facts, { kind: 'entering', from: undefined, step: 'clearing', commands: [command] })
  clear(turn, callId)
}

/** Leaves the call that this device is in for it, then asks to join. */
export function clear(turn: Turn, callId: string): void {
  setStep(turn, callId, 'clearing')
  giveUpEntering(turn, callId)
  const other = otherThan(turn, callId)
  if (other !== undefined) return leaveFor(turn, callId, other.callId, other)
  setStep(turn, callId, 'joining')
  // The one of before the app was closed is still to be restored.
  const { callId: before } = turn.device.kept
  if (before !== undefined && before !== callId && turn.call(before) === undefined) sendLeave(turn, before)
  // Without it, an app that ends before the answer would never know that it is in.
  turn.keep({ ...turn.device.kept, callId })
  turn.request('POST call/{callId}/join', { for: 'join', callId })
}

export function onCleared(turn: Turn, callId: string, other: string, record: CallRecord | undefined): void {
  // Its start may be answered yet.
  if (turn.call(other) === undefined) noteEnd(turn, { callId: other, invitedAtMs: 0 })
  close(turn, other, record?.endReason ?? 'left')
  if (isClearing(turn, callId)) clear(turn, callId)
}

export function onNotCleared(turn: Turn, callId: string, other: string, failure: Failure): void {
  if (isCode(failure, ...GONE)) return onCleared(turn, callId, other, undefined)
  if (isClearing(turn, callId)) fail(turn, callId, failure)
}

export function onJoined(turn: Turn, record: CallRecord): void {
  const { callId, keyEpoch, encryptedAESKey } = record
  const call = turn.call(callId)
  // Else it would be shown as a participant.
  if (call === undefined) return leaveUnknown(turn, callId)
  if (call.phase.kind !== 'entering') return
  if (record.version <= call.movedVersion) return close(turn, callId, 'moved')
  const invited = call.phase.from?.invited.key
  // It has to come back by a key, whatever it has: they had left, or declined with another device.
  const own = record.participants.find(({ userId }) => userId === turn.device.userId)
  // A newer call has begun: the server would not let this device come back.
  if (own?.state !== 'joined' && otherThan(turn, callId) !== undefined) return clear(turn, callId)
  if (own?.state !== 'joined') return done(turn, callId, () => ask(turn, record))
  const key = [...call.key.held, ...(invited ? [invited] : [])].find(({ epoch }) => epoch === keyEpoch)
  if (key !== undefined) return done(turn, callId, () => enter(turn, record, key))
  if (encryptedAESKey === undefined) return done(turn, callId, () => ask(turn, record))
  setStep(turn, callId, 'opening')
  const { from } = senderOf(record.keyFromUserId, record.keyFromDeviceId)
  const senders = from === undefined ? sendersIn(turn, record) : [from]
  const isAllowed = (one: Sender) =>
    invited === undefined ? one.userId === own.invitedBy : isFromMember(invited, one)
  const allowed = senders.filter(isAllowed)
  const old = refusalOfEpoch(turn, callId, keyEpoch)
  if (old !== undefined || allowed.length === 0)
    return onJoinedRefused(
      turn,
      record,
      old ?? (from === undefined ? CALLER_NOT_SEALER : notFromMember(from)),
    )
  const opening = { callId, epoch: keyEpoch, sets: setsIn(call, record) }
  turn.open(encryptedAESKey, allowed, opening, { for: 'joined: open', callId, record })
}

export function onNotJoined(turn: Turn, callId: string, failure: Failure): void {
  if (turn.call(callId) === undefined) {
    if (isCode(failure, ...UNHEARD)) leaveUnknown(turn, callId)
    return
  }
  // One that the app knows nothing of.
  if (isCode(failure, 'ALREADY_IN_CALL')) return leaveFor(turn, callId, String(failure.members?.callId))
  if (isCode(failure, 'REJOIN_REQUIRED'))
    return void turn.request('GET call/{callId}', { for: 'join: read', callId })
  fail(turn, callId, failure)
}

/** The key that the answer to `join` had. */
export function onJoinedOpened(turn: Turn, record: CallRecord, key: HeldKey): void {
  const refusal = refusalOfSet(turn, record.callId, key, record)
  if (refusal !== undefined) return onJoinedRefused(turn, record, refusal)
  done(turn, record.callId, () => enter(turn, record, key))
}

/** Another device may give the key in a way that can be verified. */
export function onJoinedRefused(turn: Turn, record: CallRecord, failure: Failure): void {
  report(turn, record.callId, failure)
  done(turn, record.callId, () => ask(turn, record))
}

/** A key that came while this device was on its way in, or in. */
export function onUpdate(turn: Turn, event: KeyUpdateEvent, command: number): void {
  const { callId, epoch, fromUserId, fromDeviceId } = event
  const from = { userId: fromUserId, deviceId: fromDeviceId }
  const call = turn.call(callId)
  const latest = latestKey(call)
  const isEntering = call?.phase.kind === 'entering'
  // Any member can send the present key again, or what they say is it.
  if (isEntering && latest !== undefined && epoch <= latest.epoch) return turn.settle(command)
  const sealed = { callId, command, epoch, reason: event.reason }
  const isStranger = latest !== undefined && !isFromMember(latest, from)
  // On the way in without one, as the invitation's.
  const isOthers = latest === undefined && isEntering && fromUserId !== call?.caller.userId
  const stranger = isStranger || isOthers ? notFromMember(from) : undefined
  const refusal = refusalOfEpoch(turn, callId, epoch) ?? stranger
  if (refusal !== undefined) return onUpdateRefused(turn, sealed, refusal)
  // A person has come whom the record may not have yet.
  if (event.added || call?.record === undefined)
    return void turn.request('GET call/{callId}', { ...sealed, for: 'key update: read', event })
  openUpdate(turn, event, command, call.record)
}

export function openUpdate(
  turn: Turn,
  event: KeyUpdateEvent,
  command: number,
  record: CallRecord | undefined,
): void {
  const { callId, epoch, reason, encryptedAESKey, fromUserId, fromDeviceId } = event
  const from = { userId: fromUserId, deviceId: fromDeviceId }
  const opening = { callId, epoch, sets: setsIn(turn.call(callId), record), ...changeIn(event) }
  const purpose = { for: 'key update', callId, command, epoch, reason, ...(record && { record }) } as const
  turn.open(encryptedAESKey, [from], opening, purpose)
}

export function onUpdateRefused(turn: Turn, sealed: SealedFrom, failure: Failure): void {
  const { callId, command, epoch } = sealed
  report(turn, callId, failure)
  const call = turn.call(callId)
  if (call === undefined || call.phase.kind === 'entering') return turn.settle(command)
  // Any member can send frames that don't open: a device with the key needs no other.
  const held = newestKey(call)
  const hasIt = held !== undefined && held.isProvisional === undefined && epoch <= held.epoch
  if (hasIt && call.phase.kind === 'active') return turn.settle(command)
  turn.request('GET call/{callId}', { for: 'keyless: read', callId, command })
}

export function onUpdateOpened(turn: Turn, sealed: SealedFrom, key: HeldKey): void {
  const { callId, command, reason, record } = sealed
  const refusal = refusalOfSet(turn, callId, key, record)
  if (refusal !== undefined) return onUpdateRefused(turn, sealed, refusal)
  const call = turn.call(callId)
  if (call !== undefined && isAsking(call)) return takeGiven(turn, callId, key, command)
  hold(turn, callId, key, { reason })
  turn.settle(command)
}

/** Two were answered at once: the server may let this device into the one that is not to go on. */
function giveUpEntering(turn: Turn, callId: string): void {
  for (const one of turn.device.calls) {
    const { phase } = one
    if (one.callId === callId || phase.kind !== 'entering') continue
    if (phase.step !== 'joining' && phase.step !== 'opening') continue
    sendLeave(turn, one.callId)
    close(turn, one.callId, 'left')
  }
}

/** Another call that this device is in. */
function otherThan(turn: Turn, callId: string): DeviceCall | undefined {
  return turn.device.calls.find(
    one => one.callId !== callId && isPresent(one) && one.phase.kind !== 'entering',
  )
}

/** Else it has ended, and may ring again. */
function isClearing(turn: Turn, callId: string): boolean {
  const phase = turn.call(callId)?.phase
  return phase?.kind === 'entering' && phase.step === 'clearing'
}

function leaveFor(turn: Turn, callId: string, other: string, known?: DeviceCall): void {
  const operation =
    known?.phase.kind === 'ringing out' ? 'POST call/{callId}/end' : 'POST call/{callId}/leave'
  setStep(turn, callId, 'clearing')
  turn.request(operation, { for: 'clear', callId, other }, undefined, { callId: other })
}

/** Settles the commands that wait for the call. */
function done(turn: Turn, callId: string, goOn: () => void): void {
  const phase = turn.call(callId)?.phase
  if (phase?.kind !== 'entering') return
  goOn()
  turn.settle(phase.commands, undefined, callId)
}

function fail(turn: Turn, callId: string, failure: Failure): void {
  const phase = turn.call(callId)?.phase
  if (phase?.kind !== 'entering') return
  const { from, rungOut, commands, step } = phase
  const mayBeIn = from?.mayBeIn || (step === 'joining' && isCode(failure, ...UNHEARD))
  const isOver = isCode(failure, 'CALL_ENDED', 'CALL_NOT_ACTIVE')
  turn.change(callId, { phase: { ...phase, commands: [] } })
  if (from === undefined || rungOut !== undefined) {
    if (mayBeIn) sendLeave(turn, callId)
    close(turn, callId, rungOut ?? 'unknown')
  } else if (isOver) {
    // The phone does not begin to ring once more until the reason comes.
    forget(turn, callId)
    closeSoon(turn, callId)
  } else {
    turn.enterPhase(callId, { kind: 'ringing in', ...from, ...(mayBeIn && { mayBeIn }) })
    if (!mayBeIn) forget(turn, callId)
  }
  turn.settle(commands, failure)
}

function setStep(turn: Turn, callId: string, step: Entering['step']): void {
  const phase = turn.call(callId)?.phase
  if (phase?.kind === 'entering') turn.change(callId, { phase: { ...phase, step } })
}
