/** Outcomes of acts. */

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
import { GONE, type HeldKey, isCode, UNHEARD, type Waiting } from './device.ts'
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
  if (input.on === 'done') onDone(turn, waiting, input)
  else onFailed(turn, waiting, input.failure)
}

function onDone(turn: Turn, waiting: Waiting, outcome: Outcome): void {
  const { body, key = 0, from, texts = {}, text, keyMembers = '', members = [], without = [] } = outcome
  const { unlisted, sealedAgoMs = 0 } = outcome
  const record = body as CallRecord
  const set = { keyMembers, members }
  const opened = (epoch: number): HeldKey => ({
    ...{ epoch, key, fromUserId: from?.userId ?? '', ...set },
    ...(unlisted !== undefined && unlisted.length > 0 && { unlisted }),
  })
  switch (waiting.for) {
    case 'start: seal':
      return starting.onStartSealed(turn, waiting.command, texts, set)
    case 'start':
      return starting.onStarted(turn, waiting.command, record)
    case 'crossed: pending': {
      const { items } = body as { readonly items: readonly CallRecord[] }
      return starting.onCrossed(turn, waiting.command, waiting.callId, items, waiting.failure)
    }
    case 'crossed: open': {
      const { command, ringing, record } = waiting
      return starting.onCrossedOpened(turn, command, ringing, record, opened(ringing.epoch))
    }
    case 'command':
      return turn.settle(waiting.command)
    case 'leave':
      onLeft(turn, waiting.callId)
      return turn.settle(waiting.command)
    case 'end':
      close(turn, waiting.callId, record.endReason ?? 'hangup')
      return turn.settle(waiting.command)
    case 'join: find':
      return onFound(turn, record, waiting.command)
    case 'invited: read':
      return refuseInvited(turn, waiting, ringing.onInvitedRead(turn, record, waiting.text))
    case 'invited: open': {
      const refusal =
        refusalOfSet(turn, waiting.callId, opened(0), waiting.record) ??
        refusalOfAge(turn, waiting.callId, sealedAgoMs)
      if (refusal !== undefined) return refuseInvited(turn, waiting, refusal)
      if (ringing.onInvitedOpened(turn, waiting.callId, waiting.text, opened(0)))
        onInvitedKey(turn, waiting.callId)
      return
    }
    case 'clear':
      return onCleared(turn, waiting.callId, waiting.other, record)
    case 'join':
    case 'join: read':
      return onJoined(turn, record)
    case 'joined: open':
      return onJoinedOpened(turn, waiting.record, opened(waiting.record.keyEpoch))
    case 'kept leave':
      onLeft(turn, waiting.callId)
      return leaveKept(turn, waiting, leftAfter(waiting))
    case 'pending':
      onPending(turn, (body as { readonly items: readonly CallRecord[] }).items, waiting)
      return settleWhenDone(turn, waiting.command)
    case 'restore':
      onRestored(turn, waiting.callId, record, waiting.command)
      return settleWhenDone(turn, waiting.command)
    case 'give up':
      close(turn, waiting.callId, 'key_lost')
      return settleWhenDone(turn, waiting.command)
    case 'refresh':
      onRefreshed(turn, waiting.callId, record, waiting.again)
      return settleWhenDone(turn, waiting.command)
    case 'watch':
      return onWatched(turn, waiting.callId)
    case 'key update: read':
      showIfNewer(turn, waiting.callId, record)
      return openUpdate(turn, waiting.event, waiting.command, record)
    case 'key update':
      return onUpdateOpened(turn, waiting, opened(waiting.epoch))
    case 'keyless: read':
      if (rejoining.isIn(turn.call(waiting.callId))) rejoining.ask(turn, record)
      return turn.settle(waiting.command)
    case 'ask':
      return rejoining.onAskSent(turn, waiting.callId, body as { readonly expiresIn: number })
    case 'return':
      return rejoining.onReturned(turn, record)
    case 'ask beside':
      return turn.settle(waiting.command)
    case 'granted: open':
      return rejoining.onGrantOpened(turn, waiting.callId, opened(waiting.epoch), waiting.command)
    case 'come back':
      return rejoining.onCameBack(turn, record, waiting.key, waiting.command)
    case 'asked: read':
      return rejoining.onAskerRead(turn, record, waiting.ask, waiting.command)
    case 'grant: seal':
      return rejoining.onGrantSealed(turn, waiting, text)
    case 'keys: read':
      return rotation.onRead(turn, waiting, record)
    case 'keys: seal':
      return rotation.onSealed(turn, waiting, texts, waiting.set ?? set, without)
    case 'keys': {
      const returning = rotation.onSent(turn, waiting)
      if (returning !== undefined) begin(turn, returning, { kind: 'active' })
      return
    }
    case 'remove':
      if (waiting.command !== undefined) renewWithout(turn, waiting.callId)
      return turn.settle(waiting.command)
    case 'invite: read':
      return onInviteRead(turn, waiting, record)
    case 'invite: seal':
      return onInviteSealed(turn, waiting, texts, set)
    case 'invite':
      return onInvited(turn, waiting, record)
  }
}

function onFailed(turn: Turn, waiting: Waiting, failure: Failure): void {
  switch (waiting.for) {
    case 'start: seal':
    case 'start':
      return starting.onNotStarted(turn, waiting.command, failure)
    case 'crossed: pending':
      return starting.onCrossed(turn, waiting.command, waiting.callId, [], waiting.failure)
    case 'crossed: open':
      return starting.onCrossedRefused(turn, waiting.command, waiting.ringing, waiting.failure)
    case 'leave':
      // It has ended here in any case; where the server knows of no such call any more, it need not be told again.
      if (isCode(failure, ...GONE)) onLeft(turn, waiting.callId)
      else if (isCode(failure, 'NO_ANSWER')) leaveAgain(turn, waiting.callId)
      return turn.settle(waiting.command)
    case 'invited: read':
    case 'invited: open':
      return refuseInvited(turn, waiting, failure)
    case 'clear':
      return onNotCleared(turn, waiting.callId, waiting.other, failure)
    case 'join':
    case 'join: read':
      if (isCode(failure, 'CALL_ENDED', 'CALL_NOT_ACTIVE') && starting.startsAgain(turn, waiting.callId))
        return
      return onNotJoined(turn, waiting.callId, failure)
    case 'joined: open':
      return onJoinedRefused(turn, waiting.record, failure)
    case 'kept leave':
      if (isCode(failure, ...UNHEARD)) return notRestored(turn, waiting.command, failure)
      onLeft(turn, waiting.callId)
      return leaveKept(turn, waiting, leftAfter(waiting))
    case 'pending':
      return notRestored(turn, waiting.command, failure)
    case 'restore':
      if (!isCode(failure, ...GONE)) return notRestored(turn, waiting.command, failure)
      onRestored(turn, waiting.callId, undefined, waiting.command)
      return settleWhenDone(turn, waiting.command)
    case 'give up':
      // A callee may have answered.
      if (isCode(failure, ...UNHEARD)) sendLeave(turn, waiting.callId)
      close(turn, waiting.callId, 'key_lost')
      return failConnected(turn, waiting.command, failure)
    case 'refresh':
      onNotRefreshed(turn, waiting.callId, failure, waiting.command)
      // The shell connects once more.
      if (waiting.command !== undefined && isCode(failure, ...UNHEARD))
        return failConnected(turn, waiting.command, failure)
      return settleWhenDone(turn, waiting.command)
    case 'watch':
      return onNotWatched(turn, waiting.callId, failure)
    case 'key update: read':
    case 'key update':
      return onUpdateRefused(turn, waiting, failure)
    case 'command':
      if (failure.code === waiting.unless) return turn.settle(waiting.command)
      return onRefused(turn, waiting, failure)
    case 'keyless: read':
      rejoining.onNotRead(turn, waiting.callId, failure)
      return turn.settle(waiting.command, failure)
    case 'ask':
    case 'return':
      rejoining.onNotBack(turn, waiting.callId, failure)
      if (waiting.for === 'return') leaveUnheard(turn, waiting.callId, failure)
      return
    case 'come back':
      rejoining.onNotBack(turn, waiting.callId, failure)
      leaveUnheard(turn, waiting.callId, failure)
      // The server may have it in, and messages of before that are next in the queue.
      if (isCode(failure, 'NO_ANSWER') && rejoining.isIn(turn.call(waiting.callId)))
        return void turn.request('GET call/{callId}', {
          for: 'keyless: read',
          callId: waiting.callId,
          ...(waiting.command !== undefined && { command: waiting.command }),
        })
      return turn.settle(waiting.command)
    case 'keys: read':
    case 'keys: seal':
    case 'keys':
      if (rotation.onNotSent(turn, waiting, failure)) rejoining.onNotBack(turn, waiting.callId, failure)
      if (waiting.for === 'keys' && isCode(failure, ...UNHEARD)) onUnheard(turn, waiting.callId)
      return
    case 'remove':
      if (!waiting.isKnown) onNotRemoved(turn, waiting.callId, waiting.userId)
      return onRefused(turn, waiting, failure)
    case 'invite: read':
    case 'invite: seal':
    case 'invite':
      if (isCode(failure, ...rotation.CHANGED) && waiting.triesLeft > 1)
        return invite(turn, { ...waiting, triesLeft: waiting.triesLeft - 1 })
      if (waiting.for === 'invite' && isCode(failure, ...UNHEARD)) onUnheard(turn, waiting.callId)
      return turn.settle(waiting.command, failure)
    default:
      return onRefused(turn, waiting, failure)
  }
}

function onRefused(
  turn: Turn,
  { callId, command }: { readonly callId: string; readonly command?: number },
  failure: Failure,
): void {
  if (isCode(failure, 'CALL_ENDED')) closeSoon(turn, callId)
  turn.settle(command, failure)
}

function refuseInvited(
  turn: Turn,
  { callId, text }: Extract<Waiting, { for: 'invited: read' | 'invited: open' }>,
  failure: Failure | undefined,
): void {
  if (failure !== undefined && ringing.onInvitedRefused(turn, callId, text, failure))
    onInvitedKey(turn, callId, failure)
}

/** Those that were to be left after this one. */
function leftAfter({ callId, kept }: Extract<Waiting, { for: 'kept leave' }>): readonly string[] {
  const { leaving = [] } = kept
  return leaving.slice(leaving.indexOf(callId) + 1)
}

/** It has ended here meanwhile, and the server may have let this device in. */
function leaveUnheard(turn: Turn, callId: string, failure: Failure): void {
  if (turn.call(callId) === undefined && isCode(failure, ...UNHEARD)) leaveUnknown(turn, callId)
}
