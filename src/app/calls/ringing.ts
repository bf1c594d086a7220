/** A call that rings here: its invitation, the key that came with it, and its end without an answer. */

import type { Failure } from '../callsign-error.ts'
import type { Named } from '../names.ts'
import type { CallInvitationEvent, CallParticipant, CallRecord, KeyUpdateEvent } from '../wire.ts'
import type { CallEnding } from './call.ts'
import {
  type Clock,
  type DeviceCall,
  type HeldKey,
  type Invited,
  type InvitedKey,
  invitedOf,
  isCode,
  type Phase,
  type Ringing,
  type Rings,
  type Sender,
} from './device.ts'
import { close, hasEnded, report, sendLeave } from './ending.ts'
import {
  CALLER_NOT_SEALER,
  changeIn,
  isFromMember,
  notFromMember,
  refusalOfEpoch,
  setsIn,
} from './key-rules.ts'
import type { Turn } from './turn.ts'

/** An invitation, by socket or by push. */
export type Invitation = Pick<
  CallInvitationEvent,
  | 'callId'
  | 'callerId'
  | 'callerName'
  | 'isVideo'
  | 'isOnGoing'
  | 'encryptedAESKey'
  | 'keyEpoch'
  | 'expiresAt'
  | 'sentAt'
> &
  Partial<
    Pick<CallInvitationEvent, 'keyFromUserId' | 'keyFromDeviceId' | 'displayName' | 'alias' | 'isContact'>
  >

export function ringingOf(turn: Turn, invitation: Invitation): Ringing {
  const { callId, isVideo, isOnGoing, encryptedAESKey, keyEpoch, sentAt } = invitation
  const caller = callerIn(invitation)
  const untilMs = turn.nowMs + ringsForMs(invitation, turn.device.clock, turn.nowMs)
  const { keyFromUserId: userId, keyFromDeviceId: deviceId } = invitation
  return {
    callId,
    isVideo,
    isOnGoing,
    caller,
    text: encryptedAESKey,
    epoch: keyEpoch,
    invitedAtMs: sentAt,
    untilMs,
    ...senderOf(userId, deviceId),
  }
}

/** From an item of `call/pending`; undefined where it does not ring for this device. */
export function ringingIn(turn: Turn, record: CallRecord): Ringing | undefined {
  const { callId, isVideo, isOnGoing, encryptedAESKey, keyEpoch, ringTimeoutIn } = record
  const own = record.participants.find(({ userId }) => userId === turn.device.userId)
  if (own === undefined || encryptedAESKey === undefined) return undefined
  const { invitation } = record
  const caller = invitation === undefined ? personIn(record, own.invitedBy) : callerIn(invitation)
  const invitedAtMs = Date.parse(own.invitedAt)
  const untilMs = turn.nowMs + ringTimeoutIn * 1000
  const from = senderOf(record.keyFromUserId, record.keyFromDeviceId)
  const ringing = { callId, isVideo, isOnGoing, caller, text: encryptedAESKey, epoch: keyEpoch, invitedAtMs }
  return { ...ringing, untilMs, ...from }
}

function callerIn({
  callerId: userId,
  callerName,
  displayName = callerName,
  alias,
  isContact,
}: Pick<Invitation, 'callerId' | 'callerName' | 'displayName' | 'alias' | 'isContact'>): Named {
  const known = isContact === undefined ? {} : { isContact }
  return { userId, displayName, ...(alias !== undefined && { alias }), ...known }
}

/** The device that has sealed a key, where the server names it. */
export function senderOf(userId?: string, deviceId?: string): { readonly from?: Sender } {
  return userId === undefined || deviceId === undefined ? {} : { from: { userId, deviceId } }
}

/** Rings, unless it is known, has ended here, or has rung out. */
export function ring(turn: Turn, ringing: Ringing): void {
  const { callId, text, epoch, invitedAtMs, untilMs, from } = ringing
  if (turn.call(callId) !== undefined || !(untilMs > turn.nowMs) || hasEnded(turn, callId, invitedAtMs))
    return
  const invited: Invited = { epoch, text, state: 'opening', ...(from && { from }) }
  add(turn, ringing, { kind: 'ringing in', invited, untilMs })
  turn.emit(callId, 'ringing')
  openInvitation(turn, callId, ringing)
  tellRinging(turn, callId)
}

/** The caller's screen can say so; that it rings does not hang on it. */
export function tellRinging(turn: Turn, callId: string): void {
  if (turn.call(callId)?.phase.kind === 'ringing in')
    turn.act({ do: 'send', destination: `/app/call/${callId}/ringing` })
}

export function onRingDue(turn: Turn, callId: string): void {
  decline(turn, callId, 'timeout')
}

export function decline(
  turn: Turn,
  callId: string,
  reason: 'declined' | 'busy' | 'timeout',
  command?: number,
): void {
  const phase = turn.call(callId)?.phase
  if (phase?.kind !== 'ringing in') return turn.settle(command, NOT_RINGING)
  if (phase.mayBeIn) sendLeave(turn, callId, command)
  close(turn, callId, reason === 'timeout' ? 'missed' : 'declined', false)
  if (phase.mayBeIn) return
  const purpose = { for: 'command', callId, ...(command !== undefined && { command }) } as const
  turn.request('POST call/{callId}/decline', purpose, { reason })
}

/** Another device of the user has answered, or none has. Where this one asks to join, the answer says whether the call is here. */
export function onRungOut(turn: Turn, callId: string, reason: CallEnding): void {
  const call = turn.call(callId)
  const phase = call?.phase
  if (phase?.kind === 'ringing in') {
    if (phase.mayBeIn) sendLeave(turn, callId)
    return close(turn, callId, reason)
  }
  if (phase?.kind !== 'entering') return
  // The answer has failed already where the end is waited for.
  const isAsked = phase.step === 'joining' || phase.step === 'opening'
  if (!isAsked || call?.end.kind !== 'none') return close(turn, callId, reason)
  turn.change(callId, { phase: { ...phase, rungOut: reason } })
}

/** It still rings: the invitation's key is not good any more. The new one has to come from a device that has the old one. */
export function onRenewedKey(turn: Turn, event: KeyUpdateEvent, rings: Rings): void {
  const { callId, epoch, encryptedAESKey: text, fromUserId, fromDeviceId } = event
  const from = { userId: fromUserId, deviceId: fromDeviceId }
  const { epoch: before, state, key } = rings.invited
  // Any member can send the present key again, or what they say is it.
  if (epoch < before || (epoch === before && state !== 'refused')) return
  const after = key ?? rings.invited.after
  const invited: Invited = {
    epoch,
    text,
    from,
    ...(after && { after }),
    ...changeIn(event),
    state: 'opening',
  }
  turn.change(callId, { phase: { ...rings, kind: 'ringing in', invited } })
  openInvitation(turn, callId, invited)
}

/** The record says whom the call has, and for which devices its keys are. */
export function openInvitation(turn: Turn, callId: string, { text, epoch }: InvitedKey): void {
  turn.request('GET call/{callId}', { for: 'invited: read', callId, text, epoch })
}

/** Gives why the key is not taken, unless it may be. */
export function onInvitedRead(turn: Turn, record: CallRecord, read: InvitedKey): Failure | undefined {
  const call = turn.call(record.callId)
  const invited = call && invitedOf(call)
  if (call === undefined || invited === undefined || !isSameKey(invited, read)) return undefined
  const { callId, caller } = call
  const { text, epoch, from, after, change } = invited
  const old = refusalOfEpoch(turn, callId, epoch)
  if (old !== undefined) return old
  const senders = from === undefined ? sendersIn(turn, record, caller.userId) : [from]
  const isAllowed = (one: Sender) =>
    after === undefined ? one.userId === caller.userId : isFromMember(after, one)
  const allowed = senders.filter(isAllowed)
  if (allowed.length === 0) return after === undefined ? CALLER_NOT_SEALER : notFromMember(from!)
  const opening = { callId, epoch, sets: setsIn(call, record), ...(change && { change }) }
  turn.open(text, allowed, opening, { for: 'invited: open', callId, text, epoch, record })
  return undefined
}

/** Notes the outcome for the invitation's key; false where a newer key has replaced it. */
export function onInvitedOpened(
  turn: Turn,
  callId: string,
  opened: InvitedKey,
  key: Omit<HeldKey, 'epoch'>,
): boolean {
  const invited = currentOf(turn, callId, opened)
  if (invited === undefined) return false
  setInvited(turn, callId, { ...invited, state: 'opened', key: { ...key, epoch: invited.epoch } })
  turn.change(callId, { isVerified: true })
  return true
}

export function onInvitedRefused(turn: Turn, callId: string, refused: InvitedKey, failure: Failure): boolean {
  const invited = currentOf(turn, callId, refused)
  if (invited === undefined) return false
  setInvited(turn, callId, { ...invited, state: 'refused' })
  if (!isCode(failure, 'CALL_ENDED')) turn.change(callId, { isVerified: false })
  report(turn, callId, failure)
  return true
}

export function setInvited(turn: Turn, callId: string, invited: Invited): void {
  const phase = turn.call(callId)?.phase
  if (phase?.kind === 'ringing in') turn.change(callId, { phase: { ...phase, invited } })
  else if (phase?.kind === 'entering' && phase.from !== undefined)
    turn.change(callId, { phase: { ...phase, from: { ...phase.from, invited } } })
}

/** A call that was not there. */
export function add(
  turn: Turn,
  facts: Pick<DeviceCall, 'callId' | 'isVideo' | 'isOnGoing' | 'caller'> & { readonly invitedAtMs?: number },
  phase: Phase,
  record?: CallRecord,
): void {
  const { callId, isVideo, isOnGoing, caller, invitedAtMs = 0 } = facts
  // Also where it was left, and is come back to.
  const { removed = [] } = turn.device.kept.opened?.find(one => one.callId === callId) ?? {}
  const call: DeviceCall = {
    ...{ callId, isVideo, isOnGoing, caller, invitedAtMs, phase, record },
    isIncoming: caller.userId !== turn.device.userId,
    media: undefined,
    isVerified: undefined,
    key: { kind: 'held', held: [] },
    sending: { epoch: 0, uses: [], drops: [] },
    heldAtMs: 0,
    unopened: [],
    unreachable: [],
    removed,
    without: [],
    admitted: [],
    nonce: undefined,
    offer: undefined,
    topic: { kind: 'off' },
    rotation: { kind: 'none' },
    end: { kind: 'none' },
    movedVersion: 0,
    askers: [],
  }
  turn.device = { ...turn.device, calls: [...turn.device.calls, call] }
}

/** Devices in the call that may have sealed its key, the likeliest first. */
export function sendersIn(
  turn: Turn,
  { participants, hostUserId }: Pick<CallRecord, 'participants' | 'hostUserId'>,
  callerId?: string,
): Sender[] {
  const isLikely = ({ userId }: Sender) => Number(userId === callerId || userId === hostUserId)
  return participants
    .filter((one): one is CallParticipant & Sender => one.deviceId !== undefined)
    .filter(({ userId }) => userId !== turn.device.userId)
    .map(({ userId, deviceId }) => ({ userId, deviceId }))
    .sort((a, b) => isLikely(b) - isLikely(a))
}

export function personIn({ participants }: CallRecord, userId: string): Named {
  const displayName = participants.find(one => one.userId === userId)?.displayName ?? ''
  return { userId, displayName }
}

/** How much longer an invitation rings, by the server's clock; as long as it was meant to while that is not known. */
export function ringsForMs(
  { expiresAt, sentAt }: Pick<CallInvitationEvent, 'expiresAt' | 'sentAt'>,
  { aheadMs, isKnown }: Clock,
  nowMs: number,
): number {
  const expiresAtMs = Date.parse(expiresAt)
  const ringMs = expiresAtMs - sentAt
  return isKnown ? Math.min(ringMs, expiresAtMs - nowMs - aheadMs) : ringMs
}

function currentOf(turn: Turn, callId: string, outcomeOf: InvitedKey): Invited | undefined {
  const call = turn.call(callId)
  const invited = call && invitedOf(call)
  return invited?.state === 'opening' && isSameKey(invited, outcomeOf) ? invited : undefined
}

/** A server may name the same text for another epoch: what was opened for one counts for no other. */
function isSameKey(invited: InvitedKey, { text, epoch }: InvitedKey): boolean {
  return invited.text === text && invited.epoch === epoch
}

export const NOT_RINGING: Failure = { code: 'CALL_NOT_ACTIVE', message: 'The call does not ring here.' }
