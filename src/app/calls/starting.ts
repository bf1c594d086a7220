/** A call that this device starts, also one that the callee has started at the same instant. */

import type { Failure } from '../callsign-error.ts'
import type { CallRecord } from '../wire.ts'
import type { CallEnding } from './call.ts'
import {
  type Entering,
  type HeldKey,
  type Invited,
  isAsking,
  isCode,
  type KeySet,
  type Purpose,
  type Ringing,
  type Start,
  UNHEARD,
} from './device.ts'
import { close, HAS_ENDED, noteEnd, sendLeave } from './ending.ts'
import { clear, onFound } from './entering.ts'
import { refusalOfEpoch, refusalOfSet, setsIn } from './key-rules.ts'
import { enter } from './record.ts'
import { add, personIn, ring, ringingIn, sendersIn } from './ringing.ts'
import { CHANGED, TRIES } from './rotation.ts'
import type { Turn } from './turn.ts'

/** Nothing rings unless every device of every callee verifies. */
export function start(turn: Turn, { command, callId, userIds, options }: Begun): void {
  seal(turn, { command, callId, userIds, options, triesLeft: TRIES })
}

/** An invitation from the one person who is being called is held until it is known which of the two calls goes on. */
export function holds(turn: Turn, ringing: Ringing): boolean {
  const { userId } = ringing.caller
  const own = turn.device.starts.find(
    one => one.userIds.length === 1 && one.userIds[0] === userId && one.closed === undefined,
  )
  if (own === undefined || turn.call(ringing.callId) !== undefined) return false
  replace(turn, { ...own, held: ringing })
  return true
}

/** A held invitation rings no more: it was withdrawn, or another device of the user has answered. */
export function dropHeld(turn: Turn, callId: string): void {
  const own = turn.device.starts.find(({ held }) => held?.callId === callId)
  if (own?.held === undefined) return
  const { held, ...others } = own
  noteEnd(turn, held)
  replace(turn, others)
}

export function onStartSealed(
  turn: Turn,
  command: number,
  texts: Readonly<Record<string, string>>,
  set: KeySet,
): void {
  const own = find(turn, command)
  if (own === undefined) return
  if (own.closed !== undefined) {
    take(turn, command)
    return giveUp(turn, own, HAS_ENDED)
  }
  const { callId, userIds, options } = own
  replace(turn, { ...own, set })
  const { keyMembers } = set
  const body = { callId, calleeIds: userIds, keyMembers, encryptedAESKeys: texts, ...options }
  turn.request('POST call/start', { for: 'start', command }, body)
}

export function onStarted(turn: Turn, command: number, record: CallRecord): void {
  const own = take(turn, command)
  if (own === undefined) return
  const { callId } = record
  const { userId } = turn.device
  // Its key is bound to the id that this device has chosen.
  if (callId !== own.callId) return giveUp(turn, own, OTHER_CALL)
  // It was joined by its id, and left, before this answer came.
  const isOver = turn.device.ended.some(one => one.callId === callId)
  const known = turn.call(callId)
  if (isOver && known !== undefined) return giveUp(turn, own, HAS_ENDED)
  // The user is on the way back into it.
  const closed = known !== undefined ? undefined : (own.closed ?? (isOver ? 'left' : undefined))
  // The app has joined it already, by an id that it has from elsewhere.
  if (known?.phase.kind === 'entering') turn.settle(known.phase.commands, undefined, callId)
  if (known === undefined)
    add(turn, { ...record, caller: personIn(record, userId) }, { kind: 'ringing out' }, record)
  for (const other of turn.device.calls.filter(one => one.callId !== callId && isAsking(one))) {
    sendLeave(turn, other.callId)
    close(turn, other.callId, 'left')
  }
  if (closed === undefined) {
    enter(turn, record, { epoch: 1, key: own.key, fromUserId: userId, ...own.set! })
  } else {
    close(turn, callId, closed)
    turn.request('POST call/{callId}/end', { for: 'give up', callId })
  }
  turn.settle(command, undefined, callId)
  if (own.held !== undefined) ring(turn, own.held)
}

export function onNotStarted(turn: Turn, command: number, failure: Failure): void {
  const own = take(turn, command)
  if (own === undefined) return
  if (own.closed === undefined && isCode(failure, ...CHANGED) && own.triesLeft > 1)
    return seal(turn, { ...own, triesLeft: own.triesLeft - 1 })
  const [only, second] = own.userIds
  const callId = failure.members?.callId
  if (
    isCode(failure, 'CALL_CROSSED') &&
    only !== undefined &&
    second === undefined &&
    own.closed === undefined
  ) {
    turn.device = { ...turn.device, starts: [...turn.device.starts, own] }
    turn.request('GET call/pending', { for: 'crossed: pending', command, callId: String(callId), failure })
    return
  }
  giveUp(turn, own, failure)
}

/** The callee's call is the one call: it is joined unasked if its key comes from that very person, and it is of these two. */
export function onCrossed(
  turn: Turn,
  { command, callId, failure }: CrossedPending,
  items: readonly CallRecord[],
): void {
  const own = find(turn, command)
  if (own === undefined) return
  const record = items.find(one => one.callId === callId)
  if (record === undefined) return onCrossedCallOver(turn, own, failure)
  const ringing = ringingIn(turn, record)
  const senders = sendersIn(turn, record).filter(({ userId }) => userId === own.userIds[0])
  if (record.participants.length !== 2 || senders.length === 0 || own.closed !== undefined)
    return onNotTheirs(turn, own, ringing, failure)
  // This device was registered since it began to ring: it has no key of it, and asks for one.
  if (ringing === undefined) {
    take(turn, command)
    return onFound(turn, record, command)
  }
  const old = refusalOfEpoch(turn, callId, ringing.epoch)
  if (old !== undefined) return onNotTheirs(turn, own, ringing, old)
  const opening = { callId, epoch: ringing.epoch, sets: setsIn(undefined, record) }
  turn.open(ringing.text, senders, opening, { for: 'crossed: open', command, ringing, record, failure })
}

export function onCrossedOpened(turn: Turn, { command, ringing, record }: CrossedOpen, key: HeldKey): void {
  const { callId, text, epoch, untilMs } = ringing
  const refusal = refusalOfSet(turn, callId, key, record)
  if (refusal !== undefined) return onCrossedRefused(turn, command, ringing, refusal)
  const own = take(turn, command)
  if (own === undefined) return
  const invited: Invited = { text, epoch, state: 'opened', key }
  const from = { invited, untilMs }
  const { userIds, options, isSecond } = own
  const crossed = isSecond ? undefined : { command, callId: own.callId, userIds, options }
  const phase: Entering = {
    ...{ kind: 'entering', from, step: 'clearing', commands: [command] },
    ...(crossed && { crossed }),
  }
  const known = turn.call(callId)
  if (known === undefined) add(turn, ringing, phase)
  else if (known.phase.kind === 'ringing in') turn.enterPhase(callId, phase)
  else return turn.settle(command, undefined, callId)
  turn.change(callId, { isVerified: true })
  clear(turn, callId)
}

export function onCrossedRefused(turn: Turn, command: number, ringing: Ringing, failure: Failure): void {
  const own = find(turn, command)
  if (own !== undefined) onNotTheirs(turn, own, ringing, failure)
}

/** Whether the call that ended was to be joined in place of a start: that is made once more. */
export function startsAgain(turn: Turn, callId: string): boolean {
  const phase = turn.call(callId)?.phase
  if (phase?.kind !== 'entering' || phase.crossed === undefined) return false
  const { command, userIds, options } = phase.crossed
  const own = phase.crossed.callId
  turn.change(callId, { phase: { ...phase, commands: phase.commands.filter(one => one !== command) } })
  close(turn, callId, 'unknown')
  seal(turn, { command, callId: own, userIds, options, triesLeft: TRIES, isSecond: true })
  return true
}

/** The app is closed, or another tab goes on. */
export function closeStarts(turn: Turn, reason: CallEnding): void {
  const starts = turn.device.starts.map(one => ({ ...one, closed: reason }))
  turn.device = { ...turn.device, starts }
}

/** It was over by then: it is started once more, once. */
function onCrossedCallOver(turn: Turn, own: Start, failure: Failure): void {
  take(turn, own.command)
  if (own.isSecond || own.closed !== undefined) return giveUp(turn, own, failure)
  const { command, callId, userIds, options } = own
  seal(turn, { command, callId, userIds, options, triesLeft: TRIES, isSecond: true })
}

function onNotTheirs(turn: Turn, own: Start, held: Ringing | undefined, failure: Failure): void {
  take(turn, own.command)
  giveUp(turn, held === undefined ? own : { ...own, held }, failure)
}

function giveUp(turn: Turn, own: Start, failure: Failure): void {
  // The server may have begun it.
  if (isCode(failure, ...UNHEARD)) sendLeave(turn, own.callId)
  turn.settle(own.command, failure)
  if (own.held !== undefined && own.closed === undefined) ring(turn, own.held)
}

/** With a fresh key for each try. */
function seal(turn: Turn, start: Omit<Start, 'key'>): void {
  const key = turn.makeKey()
  turn.device = { ...turn.device, starts: [...turn.device.starts, { ...start, key }] }
  const { command, callId, userIds } = start
  turn.seal(key, { userIds }, { callId, epoch: 1 }, { for: 'start: seal', command })
}

function find(turn: Turn, command: number): Start | undefined {
  return turn.device.starts.find(one => one.command === command)
}

function take(turn: Turn, command: number): Start | undefined {
  const own = find(turn, command)
  turn.device = { ...turn.device, starts: turn.device.starts.filter(one => one !== own) }
  return own
}

function replace(turn: Turn, start: Start): void {
  const starts = turn.device.starts.map(one => (one.command === start.command ? start : one))
  turn.device = { ...turn.device, starts }
}

type CrossedPending = Extract<Purpose, { readonly for: 'crossed: pending' }>
type CrossedOpen = Extract<Purpose, { readonly for: 'crossed: open' }>
type Begun = Pick<Start, 'command' | 'callId' | 'userIds' | 'options'>

const OTHER_CALL: Failure = {
  code: 'ANSWER_INVALID',
  message: 'The server has begun another call than the one that was asked for.',
}
