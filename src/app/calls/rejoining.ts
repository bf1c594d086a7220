/**
 * A call whose key is gone, with a restart or a long loss of the network: this device asks those in the call, and comes
 * back with the first key that opens. The host makes a new key when no device has it. It also answers such asks.
 */

import type { Failure } from '../callsign-error.ts'
import type { CallRecord, ParticipantAcceptRejoinEvent, ParticipantRequestRejoinEvent } from '../wire.ts'
import type { KeyAsk } from './call.ts'
import {
  type Ask,
  type DeviceCall,
  GONE,
  type HeldKey,
  isAsking,
  isCode,
  isPresent,
  newestKey,
  type Purpose,
} from './device.ts'
import { closeSoon, leaveUnknown, report } from './ending.ts'
import { hold, isOutdated } from './held-keys.ts'
import {
  isFromMember,
  isMember,
  mayRenew,
  notFromMember,
  refusalOfEpoch,
  refusalOfSet,
  setsIn,
} from './key-rules.ts'
import { begin, enter } from './record.ts'
import { planAgain, renew } from './rotation.ts'
import type { Turn } from './turn.ts'

/** Shows the call as one that this device asks into. */
export function ask(turn: Turn, record: CallRecord): void {
  begin(turn, record, { kind: 'rejoining', ask: { kind: 'asking' } })
  askAgain(turn, record.callId)
}

/** The call could not be read for an ask: it is asked for with the record that is here. */
export function onNotRead(turn: Turn, callId: string, failure: Failure): void {
  const record = turn.call(callId)?.record
  if (isCode(failure, ...GONE)) closeSoon(turn, callId)
  else if (record !== undefined) ask(turn, record)
}

/** Without a key it is asked for again after the next connection, and after a while. */
export function askAgain(turn: Turn, callId: string): void {
  if (!setAsk(turn, callId, { kind: 'asking' })) return
  turn.request('POST call/{callId}/request-rejoin', { for: 'ask', callId }, undefined, noncedBy(turn, callId))
}

/** An ask that is repeated has the nonce that it had. */
function noncedBy(turn: Turn, callId: string): { readonly nonce: number } {
  const nonce = turn.call(callId)?.nonce ?? turn.number()
  turn.change(callId, { nonce })
  return { nonce }
}

export function onAskSent(turn: Turn, callId: string, { expiresIn }: { readonly expiresIn: number }): void {
  const phase = turn.call(callId)?.phase
  // It gave up, or has the key.
  if (phase === undefined || !('ask' in phase) || phase.ask.kind !== 'asking') return
  const forMs = expiresIn > 0 ? expiresIn * 1000 : AGAIN_MS
  setAsk(turn, callId, { kind: 'asked', untilMs: turn.nowMs + forMs })
  giveUpWhenAllAsk(turn, callId)
}

/** An ask, or a return, failed. */
export function onNotBack(turn: Turn, callId: string, failure: Failure): void {
  const call = turn.call(callId)
  if (call === undefined || !isAsking(call)) return
  if (isCode(failure, 'NO_ACTIVE_PARTICIPANT')) return returnWithNewKey(turn, callId)
  if (isCode(failure, ...GONE)) return closeSoon(turn, callId)
  setAsk(turn, callId, { kind: 'pausing', untilMs: turn.nowMs + AGAIN_MS })
  report(turn, callId, failure)
}

/** An ask was not answered in time, or a pause ends. */
export function onAskDue(turn: Turn, callId: string, ask: Ask): void {
  if (ask.kind === 'asked') onNobodyGrants(turn, callId)
  else askAgain(turn, callId)
}

/** Those who had the key may all be gone. */
export function onHostChanged(turn: Turn, callId: string): void {
  if (turn.call(callId)?.phase.kind === 'keyless') onNobodyGrants(turn, callId)
}

/**
 * A device of a participant has no key: it gets the key once it verifies. One that is not the device which they had
 * joined with waits until the person here says so: a server could have made it up.
 */
export function onAsked(turn: Turn, event: ParticipantRequestRejoinEvent, command: number): void {
  const { callId, userId, deviceId, displayName, publicKeyHash, nonce } = event
  const call = turn.call(callId)
  if (call === undefined || !isPresent(call)) return turn.settle(command)
  if (newestKey(call) !== undefined) {
    const ask = { userId, deviceId, displayName, publicKeyHash, ...(nonce !== undefined && { nonce }) }
    turn.request('GET call/{callId}', { for: 'asked: read', callId, ask, command })
    return
  }
  turn.change(callId, { askers: [...call.askers.filter(one => one !== userId), userId] })
  giveUpWhenAllAsk(turn, callId)
  turn.settle(command)
}

export function onAskerRead(turn: Turn, record: CallRecord, ask: KeyAsk, command: number): void {
  const { participants, callId, keyEpoch } = record
  const call = turn.call(callId)
  // The newest key is on its way here, or was this host's. The server would pass on the one before under the newest epoch.
  const epoch = (call && newestKey(call)?.epoch) ?? 0
  if (call !== undefined && (epoch < keyEpoch || isOutdated(turn, call, epoch))) {
    if (call.record?.hostUserId === turn.device.userId && !isAsking(call)) renew(turn, callId, {})
    return turn.settle(command)
  }
  const asker = participants.find(({ userId }) => userId === ask.userId)
  const held = call && newestKey(call)
  if (asker === undefined || asker.state === 'removed' || call?.removed.includes(ask.userId) || !held)
    return turn.settle(command)
  const hasJoined = asker.deviceId === ask.deviceId
  if (hasJoined && isMember(held, ask)) return grant(turn, callId, ask, command)
  if (!mayRenew(turn, callId, record)) return turn.settle(command)
  if (hasJoined) return grant(turn, callId, ask, command)
  turn.act({ do: 'emit', callId, name: 'key-asked', value: ask })
  turn.settle(command)
}

/** One that the key is for gets it once more. Any other gets the next one, so it opens nothing of before. */
export function grant(turn: Turn, callId: string, ask: KeyAsk, command: number): void {
  const call = turn.call(callId)
  const held = call && newestKey(call)
  if (held === undefined) return turn.settle(command)
  const { userId, deviceId, publicKeyHash, nonce } = ask
  const { key, epoch, keyMembers } = held
  if (!isMember(held, ask)) {
    const admitted = [...call!.admitted.filter(one => one.userId !== userId), { userId, deviceId }]
    turn.change(callId, { admitted })
    renew(turn, callId, {})
    return turn.settle(command)
  }
  const purpose = { for: 'grant: seal', callId, ask, command, epoch } as const
  const use = { callId, epoch, ...(nonce !== undefined && { nonce }) }
  turn.seal(key, { userId, deviceId, publicKeyHash, keyMembers }, use, purpose)
}

export function onGrantSealed(turn: Turn, sealed: GrantSealed, text: string | undefined): void {
  const { callId, command, epoch, ask } = sealed
  const { userId: requesterUserId, deviceId: requesterDeviceId } = ask
  const body = { requesterUserId, requesterDeviceId, epoch, encryptedAESKey: text }
  // A newer key is on its way to all, the asker among them.
  const purpose = { for: 'command', callId, command, unless: 'EPOCH_CONFLICT' } as const
  turn.request('POST call/{callId}/accept-rejoin', purpose, body)
}

/**
 * Asks while the call goes on: the key that this device has does not open what a member sends. Once for each member and
 * key: the key may not be at fault. The host's key is the right one.
 */
export function askBeside(turn: Turn, callId: string, command: number | undefined, userId?: string): void {
  const call = turn.call(callId)
  if (call?.phase.kind !== 'active' || call.record?.hostUserId === turn.device.userId)
    return turn.settle(command)
  const { unopened } = call
  if (userId !== undefined && (unopened.includes(userId) || unopened.length >= UNOPENED_MAX))
    return turn.settle(command)
  if (userId !== undefined) turn.change(callId, { unopened: [...unopened, userId] })
  turn.change(callId, { key: { ...call.key, kind: 'asked' } })
  const nonced = noncedBy(turn, callId)
  const purpose = { for: 'ask beside', callId, ...(command !== undefined && { command }) } as const
  turn.request('POST call/{callId}/request-rejoin', purpose, undefined, nonced)
}

/** The call goes on with a key that this device was not given. */
export function onKeyMissing(turn: Turn, call: DeviceCall, epoch: number): void {
  const isOld = epoch <= (newestKey(call)?.epoch ?? 0)
  if (!isOld && isIn(call) && call.record !== undefined) ask(turn, call.record)
}

/** No newer key came in time: nothing goes out sealed with a key that a removed person may have. */
export function onOutdated(turn: Turn, callId: string): void {
  const call = turn.call(callId)
  if (call?.record === undefined) return
  // Even if this device is alone: a server could say so for a moment.
  turn.change(callId, { sending: { epoch: 0, uses: [], drops: [] } })
  if (!isAsking(call)) ask(turn, call.record)
}

/** The call was read, and has a newer key than this device, which may have missed it. */
export function onBehind(turn: Turn, callId: string): void {
  const call = turn.call(callId)
  if (call?.record === undefined || call.phase.kind !== 'active' || call.key.kind === 'asked') return
  if (call.record.keyEpoch <= (newestKey(call)?.epoch ?? 0) || call.rotation.kind === 'renewing') return
  if (call.record.hostUserId === turn.device.userId) planAgain(turn, callId)
  else askBeside(turn, callId, undefined)
}

/** Takes the first answer that opens. A device that has a key takes a newer one, or the host's. */
export function onGranted(turn: Turn, event: ParticipantAcceptRejoinEvent, command: number): void {
  const { callId, encryptedAESKey, keyEpoch, fromUserId, fromDeviceId } = event
  const call = turn.call(callId)
  if (!isWanted(call, keyEpoch, fromUserId)) return turn.settle(command)
  const from = { userId: fromUserId, deviceId: fromDeviceId }
  const held = call && newestKey(call)
  const stranger = held !== undefined && !isFromMember(held, from) ? notFromMember(from) : undefined
  const refusal = refusalOfEpoch(turn, callId, keyEpoch) ?? stranger
  if (refusal !== undefined) report(turn, callId, refusal)
  if (refusal !== undefined) return turn.settle(command)
  const nonce = call?.nonce
  const opening = { callId, epoch: keyEpoch, sets: setsIn(call), ...(nonce !== undefined && { nonce }) }
  turn.open(encryptedAESKey, [from], opening, { for: 'granted: open', command, callId, epoch: keyEpoch })
}

export function onGrantOpened(turn: Turn, callId: string, key: HeldKey, command: number): void {
  const call = turn.call(callId)
  if (!isWanted(call, key.epoch, key.fromUserId)) return turn.settle(command)
  const refusal = refusalOfSet(turn, callId, key, call?.record)
  if (refusal !== undefined) report(turn, callId, refusal)
  if (refusal !== undefined) return turn.settle(command)
  takeGiven(turn, callId, key, command)
}

/** The host's key counts. Where another device was faster, the host has a moment to give one. */
export function takeGiven(turn: Turn, callId: string, key: HeldKey, command: number): void {
  const call = turn.call(callId)
  if (call !== undefined && isOutdated(turn, call, key.epoch)) return turn.settle(command)
  const { record, offer } = call ?? {}
  const { userId: own } = turn.device
  const isHosts = key.fromUserId === record?.hostUserId
  const host = record?.participants.find(({ userId }) => userId === record.hostUserId)
  const isAwaited = host?.state === 'joined' && host.userId !== own
  const isIn = call?.phase.kind === 'active' && call.key.kind !== 'asked'
  if (isHosts && isIn) {
    hold(turn, callId, key)
    return turn.settle(command)
  }
  if (isHosts || !isAwaited) return comeBack(turn, callId, key, command)
  const isBetter = offer === undefined || key.epoch > offer.key.epoch
  const atMs = offer?.atMs ?? turn.nowMs + HOST_WAIT_MS
  if (isBetter) turn.change(callId, { offer: { key: { ...key, isProvisional: true }, atMs } })
  turn.settle(command)
}

/** The host has given none. */
export function onOfferDue(turn: Turn, callId: string): void {
  const call = turn.call(callId)
  if (call?.offer === undefined) return
  const { key } = call.offer
  turn.change(callId, { offer: undefined })
  if (isWanted(call, key.epoch, key.fromUserId)) comeBack(turn, callId, key)
}

/** Into the call, with the key that this device was given. */
export function comeBack(turn: Turn, callId: string, key: HeldKey, command?: number): void {
  setAsk(turn, callId, { kind: 'returning' })
  const settles = command !== undefined && { command }
  turn.request('POST call/{callId}/rejoin', { for: 'come back', callId, key, ...settles })
}

export function onCameBack(turn: Turn, record: CallRecord, key: HeldKey, command: number | undefined): void {
  turn.settle(command)
  const call = turn.call(record.callId)
  if (call === undefined) return leaveUnknown(turn, record.callId)
  // This answer is of before.
  if (!isIn(call)) return
  // It has made a newer one since.
  const isWanting = isAsking(call) || call.key.kind === 'asked'
  if (!isWanting && (newestKey(call)?.epoch ?? 0) >= key.epoch) return turn.change(record.callId, { record })
  // It was sent before this device was lost, and there is a newer one since.
  if (key.epoch < record.keyEpoch || isOutdated(turn, call!, key.epoch)) return ask(turn, record)
  turn.change(record.callId, { askers: [] })
  enter(turn, record, key)
}

/** The host returns, to make the key. */
export function onReturned(turn: Turn, record: CallRecord): void {
  const { callId } = record
  const call = turn.call(callId)
  if (call === undefined) return leaveUnknown(turn, callId)
  if (!isAsking(call)) return
  // Messages from before it are older.
  turn.change(callId, { record })
  if (record.hostUserId === turn.device.userId) return renew(turn, callId, { returning: record })
  turn.enterPhase(callId, { kind: 'keyless', ask: { kind: 'pausing', untilMs: turn.nowMs + AGAIN_MS } })
}

/** Else it was left, and rings again or is joined again. */
export function isIn(call: DeviceCall | undefined): boolean {
  return call !== undefined && isPresent(call) && call.phase.kind !== 'entering'
}

function isWanted(call: DeviceCall | undefined, epoch: number, fromUserId: string): boolean {
  if (call === undefined) return false
  const held = newestKey(call)
  const isHosts = fromUserId === call.record?.hostUserId
  const isBetter = epoch > (held?.epoch ?? 0) || (epoch === held?.epoch && isHosts)
  const isOpen = call.key.kind === 'asked' || (isHosts && held?.isProvisional !== undefined)
  return isAsking(call) || (isOpen && call.phase.kind === 'active' && isBetter)
}

function onNobodyGrants(turn: Turn, callId: string): void {
  const call = turn.call(callId)
  if (call === undefined || !isAsking(call)) return
  const isHost = call.record?.hostUserId === turn.device.userId
  const pause: Ask = { kind: 'pausing', untilMs: turn.nowMs + AGAIN_MS }
  const ask: Ask = 'ask' in call.phase && call.phase.ask.kind === 'returning' ? call.phase.ask : pause
  turn.enterPhase(callId, { kind: 'keyless', ask })
  if (isHost) returnWithNewKey(turn, callId)
}

/** No device has the key any more: the host makes a new one, once for all such answers. */
function returnWithNewKey(turn: Turn, callId: string): void {
  const phase = turn.call(callId)?.phase
  if (phase === undefined || !('ask' in phase) || phase.ask.kind === 'returning') return
  setAsk(turn, callId, { kind: 'returning' })
  turn.request('POST call/{callId}/rejoin', { for: 'return', callId })
}

/** When all other devices ask too, none will answer: waiting is pointless. */
function giveUpWhenAllAsk(turn: Turn, callId: string): void {
  const call = turn.call(callId)
  if (call === undefined || !isAsking(call)) return
  const { userId: own } = turn.device
  const others = (call.record?.participants ?? []).filter(
    ({ state, userId }) => state === 'joined' && userId !== own,
  )
  if (others.every(({ userId }) => call.askers.includes(userId))) onNobodyGrants(turn, callId)
}

/** Whether this device asks at all. */
function setAsk(turn: Turn, callId: string, ask: Ask): boolean {
  const phase = turn.call(callId)?.phase
  if (phase?.kind !== 'rejoining' && phase?.kind !== 'keyless') return false
  turn.change(callId, { phase: { ...phase, ask } })
  return true
}

type GrantSealed = Extract<Purpose, { readonly for: 'grant: seal' }>

const AGAIN_MS = 30_000
const HOST_WAIT_MS = 5_000
/** The names of those who send are the gateway's word. */
const UNOPENED_MAX = 8
