/** Outcomes of acts: one table has the next step after each, done or failed. */

import type { Failure } from '../callsign-error.ts'
import type { CallRecord } from '../wire.ts'
import {
  invite,
  leaveAgain,
  onInvited,
  onInviteRead,
  onInviteSealed,
  onLeft,
  onNotRemoved,
  onUnheard,
} from './commands.ts'
import {
  GONE,
  type HeldKey,
  isCode,
  type KeySet,
  type NewKey,
  type Purpose,
  UNHEARD,
  type Waiting,
} from './device.ts'
import { close, closeSoon, leaveUnknown, sendLeave } from './ending.ts'
import {
  onCleared,
  onFound,
  onInvitedKey,
  onJoined,
  onJoinedOpened,
  onJoinedRefused,
  onNotCleared,
  onNotJoined,
  onUpdateOpened,
  onUpdateRefused,
  openUpdate,
} from './entering.ts'
import type { Input, Outcome } from './input.ts'
import { refusalOfAge, refusalOfSet } from './key-rules.ts'
import { begin, onNotRefreshed, onNotWatched, onWatched } from './record.ts'
import * as rejoining from './rejoining.ts'
import { failConnected, leaveKept, notRestored, onPending, onRestored, settleWhenDone } from './restoring.ts'
import * as ringing from './ringing.ts'
import * as rotation from './rotation.ts'
import { renewWithout } from './rotation.ts'
import * as starting from './starting.ts'
import { onRefreshed, showIfNewer } from './topic.ts'
import type { Turn } from './turn.ts'

export function onOutcome(turn: Turn, input: Extract<Input, { readonly on: 'done' | 'failed' }>): void {
  const waiting = turn.device.waiting.find(({ act }) => act === input.act)
  if (waiting === undefined) return
  turn.device = { ...turn.device, waiting: turn.device.waiting.filter(one => one !== waiting) }
  const next: Next = NEXT[waiting.for]
  if (input.on === 'done') next.done(turn, waiting, resultOf(input))
  else next.failed(turn, waiting, input.failure)
}

/** Steps after an act. Methods, since their parameters are narrower in the entry of one purpose: `onOutcome` takes the act's own. */
interface Next<Own = Waiting> {
  done(turn: Turn, waiting: Own, result: Result): void
  failed(turn: Turn, waiting: Own, failure: Failure): void
}

type WaitingFor<For, Any = Waiting> = Any extends { readonly for: infer Fors }
  ? For extends Fors
    ? Any
    : never
  : never

/** An outcome, read as each purpose needs it. */
interface Result {
  readonly record: CallRecord
  /** The answer to a request for several calls. */
  readonly items: readonly CallRecord[]
  readonly expiresIn: number
  readonly texts: Readonly<Record<string, string>>
  readonly text: string | undefined
  readonly set: KeySet
  readonly without: readonly string[]
  readonly sealedAgoMs: number
  readonly opened: (epoch: number) => HeldKey
}

function resultOf(outcome: Outcome): Result {
  const { body, key = 0, from, texts = {}, text, keyMembers = '', members = [], without = [] } = outcome
  const { unlisted, sealedAgoMs = 0 } = outcome
  const set = { keyMembers, members }
  const opened = (epoch: number): HeldKey => ({
    ...{ epoch, key, fromUserId: from?.userId ?? '', ...set },
    ...(unlisted !== undefined && unlisted.length > 0 && { unlisted }),
  })
  const { items, expiresIn } = (body ?? {}) as Pick<Result, 'items' | 'expiresIn'>
  return { record: body as CallRecord, items, expiresIn, texts, text, set, without, sealedAgoMs, opened }
}

const notStarted: Next<WaitingFor<'start'>>['failed'] = (turn, { command }, failure) =>
  starting.onNotStarted(turn, command, failure)

const join: Next<WaitingFor<'join'>> = {
  done: (turn, _waiting, { record }) => onJoined(turn, record),
  failed: (turn, { callId }, failure) => {
    const isGone = isCode(failure, 'CALL_ENDED', 'CALL_NOT_ACTIVE')
    if (!isGone || !starting.startsAgain(turn, callId)) onNotJoined(turn, callId, failure)
  },
}

/** Each act's outcome by the act's purpose, in the order in which a call goes. */
const NEXT: { readonly [For in Purpose['for']]: Next<WaitingFor<For>> } = {
  'start: seal': {
    done: (turn, { command }, { texts, set }) => starting.onStartSealed(turn, command, texts, set),
    failed: notStarted,
  },
  start: {
    done: (turn, { command }, { record }) => starting.onStarted(turn, command, record),
    failed: notStarted,
  },
  'crossed: pending': {
    done: (turn, waiting, { items }) => starting.onCrossed(turn, waiting, items),
    failed: (turn, waiting) => starting.onCrossed(turn, waiting, []),
  },
  'crossed: open': {
    done: (turn, waiting, { opened }) =>
      starting.onCrossedOpened(turn, waiting, opened(waiting.ringing.epoch)),
    failed: (turn, { command, ringing, failure }) =>
      starting.onCrossedRefused(turn, command, ringing, failure),
  },
  command: {
    done: settle,
    failed: (turn, waiting, failure) => {
      if (failure.code === waiting.unless) settle(turn, waiting)
      else refuse(turn, waiting, failure)
    },
  },
  leave: {
    done: (turn, waiting) => {
      onLeft(turn, waiting.callId)
      settle(turn, waiting)
    },
    failed: (turn, waiting, failure) => {
      // It has ended here in any case; where the server knows of no such call any more, it need not be told again.
      if (isCode(failure, ...GONE)) onLeft(turn, waiting.callId)
      else if (isCode(failure, 'NO_ANSWER')) leaveAgain(turn, waiting.callId)
      settle(turn, waiting)
    },
  },
  end: {
    done: (turn, waiting, { record }) => {
      close(turn, waiting.callId, record.endReason ?? 'hangup')
      settle(turn, waiting)
    },
    failed: refuse,
  },
  'join: find': {
    done: (turn, { command }, { record }) => onFound(turn, record, command),
    failed: refuse,
  },
  'invited: read': {
    done: (turn, waiting, { record }) =>
      refuseInvited(turn, waiting, ringing.onInvitedRead(turn, record, waiting)),
    failed: refuseInvited,
  },
  'invited: open': {
    done: (turn, waiting, { opened, sealedAgoMs }) => {
      const { callId, record } = waiting
      const refusal = refusalOfSet(turn, callId, opened(0), record) ?? refusalOfAge(turn, callId, sealedAgoMs)
      if (refusal !== undefined) return refuseInvited(turn, waiting, refusal)
      if (ringing.onInvitedOpened(turn, callId, waiting, opened(0))) onInvitedKey(turn, callId)
    },
    failed: refuseInvited,
  },
  clear: {
    done: (turn, { callId, other }, { record }) => onCleared(turn, callId, other, record),
    failed: (turn, { callId, other }, failure) => onNotCleared(turn, callId, other, failure),
  },
  join,
  'join: read': join,
  'joined: open': {
    done: (turn, { record }, { opened }) => onJoinedOpened(turn, record, opened(record.keyEpoch)),
    failed: (turn, { record }, failure) => onJoinedRefused(turn, record, failure),
  },
  'kept leave': {
    done: goOnLeaving,
    failed: (turn, waiting, failure) => {
      if (isCode(failure, ...UNHEARD)) notRestored(turn, waiting.command, failure)
      else goOnLeaving(turn, waiting)
    },
  },
  pending: {
    done: (turn, waiting, { items }) => {
      onPending(turn, items, waiting)
      settleWhenDone(turn, waiting.command)
    },
    failed: (turn, { command }, failure) => notRestored(turn, command, failure),
  },
  restore: {
    done: (turn, { callId, command }, { record }) => {
      onRestored(turn, callId, record, command)
      settleWhenDone(turn, command)
    },
    failed: (turn, { callId, command }, failure) => {
      if (!isCode(failure, ...GONE)) return notRestored(turn, command, failure)
      onRestored(turn, callId, undefined, command)
      settleWhenDone(turn, command)
    },
  },
  'give up': {
    done: (turn, { callId, command }) => {
      close(turn, callId, 'key_lost')
      settleWhenDone(turn, command)
    },
    failed: (turn, { callId, command }, failure) => {
      // A callee may have answered.
      if (isCode(failure, ...UNHEARD)) sendLeave(turn, callId)
      close(turn, callId, 'key_lost')
      failConnected(turn, command, failure)
    },
  },
  refresh: {
    done: (turn, { callId, command, again }, { record }) => {
      onRefreshed(turn, callId, record, again)
      settleWhenDone(turn, command)
    },
    failed: (turn, { callId, command }, failure) => {
      onNotRefreshed(turn, callId, failure, command)
      // The shell connects once more.
      if (command !== undefined && isCode(failure, ...UNHEARD)) failConnected(turn, command, failure)
      else settleWhenDone(turn, command)
    },
  },
  watch: {
    done: (turn, { callId }) => onWatched(turn, callId),
    failed: (turn, { callId }, failure) => onNotWatched(turn, callId, failure),
  },
  'key update: read': {
    done: (turn, { callId, event, command }, { record }) => {
      showIfNewer(turn, callId, record)
      openUpdate(turn, event, command, record)
    },
    failed: onUpdateRefused,
  },
  'key update': {
    done: (turn, waiting, { opened }) => onUpdateOpened(turn, waiting, opened(waiting.epoch)),
    failed: onUpdateRefused,
  },
  'keyless: read': {
    done: (turn, waiting, { record }) => {
      if (rejoining.isIn(turn.call(waiting.callId))) rejoining.ask(turn, record)
      settle(turn, waiting)
    },
    failed: (turn, { callId, command }, failure) => {
      rejoining.onNotRead(turn, callId, failure)
      turn.settle(command, failure)
    },
  },
  ask: {
    done: (turn, { callId }, { expiresIn }) => rejoining.onAskSent(turn, callId, { expiresIn }),
    failed: (turn, { callId }, failure) => rejoining.onNotBack(turn, callId, failure),
  },
  return: {
    done: (turn, _waiting, { record }) => rejoining.onReturned(turn, record),
    failed: notReturned,
  },
  'ask beside': { done: settle, failed: refuse },
  'granted: open': {
    done: (turn, { callId, epoch, command }, { opened }) =>
      rejoining.onGrantOpened(turn, callId, opened(epoch), command),
    failed: refuse,
  },
  'come back': {
    done: (turn, { key, command }, { record }) => rejoining.onCameBack(turn, record, key, command),
    failed: (turn, waiting, failure) => {
      notReturned(turn, waiting, failure)
      const { callId, command } = waiting
      // The server may have it in, and messages of before that are next in the queue.
      if (isCode(failure, 'NO_ANSWER') && rejoining.isIn(turn.call(callId))) {
        const settles = command !== undefined && { command }
        turn.request('GET call/{callId}', { for: 'keyless: read', callId, ...settles })
      } else settle(turn, waiting)
    },
  },
  'asked: read': {
    done: (turn, { ask, command }, { record }) => rejoining.onAskerRead(turn, record, ask, command),
    failed: refuse,
  },
  'grant: seal': {
    done: (turn, waiting, { text }) => rejoining.onGrantSealed(turn, waiting, text),
    failed: refuse,
  },
  'keys: read': {
    done: (turn, waiting, { record }) => rotation.onRead(turn, waiting, record),
    failed: notSent,
  },
  'keys: seal': {
    done: (turn, waiting, { texts, set, without }) =>
      rotation.onSealed(turn, { set, ...waiting }, texts, without),
    failed: notSent,
  },
  keys: {
    done: (turn, waiting) => {
      const returning = rotation.onSent(turn, waiting)
      if (returning !== undefined) begin(turn, returning, { kind: 'active' })
    },
    failed: (turn, waiting, failure) => {
      notSent(turn, waiting, failure)
      if (isCode(failure, ...UNHEARD)) onUnheard(turn, waiting.callId)
    },
  },
  remove: {
    done: (turn, waiting) => {
      if (waiting.command !== undefined) renewWithout(turn, waiting.callId)
      settle(turn, waiting)
    },
    failed: (turn, waiting, failure) => {
      if (!waiting.isKnown) onNotRemoved(turn, waiting.callId, waiting.userId)
      refuse(turn, waiting, failure)
    },
  },
  'invite: read': {
    done: (turn, waiting, { record }) => onInviteRead(turn, waiting, record),
    failed: notInvited,
  },
  'invite: seal': {
    done: (turn, waiting, { texts, set }) => onInviteSealed(turn, waiting, texts, set),
    failed: notInvited,
  },
  invite: {
    done: (turn, waiting, { record }) => onInvited(turn, waiting, record),
    failed: notInvited,
  },
}

function settle(turn: Turn, { command }: { readonly command?: number }): void {
  turn.settle(command)
}

function refuse(
  turn: Turn,
  { callId, command }: { readonly callId: string; readonly command?: number },
  failure: Failure,
): void {
  if (isCode(failure, 'CALL_ENDED')) closeSoon(turn, callId)
  turn.settle(command, failure)
}

function refuseInvited(
  turn: Turn,
  waiting: WaitingFor<'invited: read' | 'invited: open'>,
  failure: Failure | undefined,
): void {
  const { callId } = waiting
  if (failure !== undefined && ringing.onInvitedRefused(turn, callId, waiting, failure))
    onInvitedKey(turn, callId, failure)
}

/** On with those that were to be left after this one. */
function goOnLeaving(turn: Turn, waiting: WaitingFor<'kept leave'>): void {
  const { callId, kept } = waiting
  const { leaving = [] } = kept
  onLeft(turn, callId)
  leaveKept(turn, waiting, leaving.slice(leaving.indexOf(callId) + 1))
}

/** The call may have ended here although the server has let this device in. */
function notReturned(turn: Turn, { callId }: { readonly callId: string }, failure: Failure): void {
  rejoining.onNotBack(turn, callId, failure)
  if (turn.call(callId) === undefined && isCode(failure, ...UNHEARD)) leaveUnknown(turn, callId)
}

function notSent(turn: Turn, sending: NewKey, failure: Failure): void {
  if (rotation.onNotSent(turn, sending, failure)) rejoining.onNotBack(turn, sending.callId, failure)
}

function notInvited(turn: Turn, waiting: WaitingFor<'invite'>, failure: Failure): void {
  if (isCode(failure, ...rotation.CHANGED) && waiting.triesLeft > 1)
    return invite(turn, { ...waiting, triesLeft: waiting.triesLeft - 1 })
  if (waiting.for === 'invite' && isCode(failure, ...UNHEARD)) onUnheard(turn, waiting.callId)
  turn.settle(waiting.command, failure)
}
