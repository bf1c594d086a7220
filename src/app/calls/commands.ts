/** Commands of the app for a call that is there. */

import type { CallRecord } from '../wire.ts'
import { type Invite, type KeySet, newestKey } from './device.ts'
import { close, HAS_ENDED, sendLeave, withoutLeaving } from './ending.ts'
import { answer } from './entering.ts'
import { hold, use } from './held-keys.ts'
import type { Command, Input } from './input.ts'
import { acceptDevice, forgetRemoved, noteOpened, receiversIn } from './key-rules.ts'
import * as rejoining from './rejoining.ts'
import * as ringing from './ringing.ts'
import * as rotation from './rotation.ts'
import { showIfNewer } from './topic.ts'
import type { Turn } from './turn.ts'

export function onCommand(turn: Turn, input: Extract<Input, Command & { readonly on: string }>): void {
  const { callId, command } = input
  const call = turn.call(callId)
  if (call === undefined) return turn.settle(command, HAS_ENDED)
  switch (input.on) {
    case 'answer':
      return answer(turn, callId, command, input.evenIfOld)
    case 'accept-device':
      acceptDevice(turn, input.name)
      return turn.settle(command)
    case 'decline':
      return ringing.decline(turn, callId, input.reason, command)
    case 'end':
      return void turn.request('POST call/{callId}/end', { for: 'end', callId, command })
    case 'leave':
      sendLeave(turn, callId, command)
      return close(turn, callId, 'left')
    case 'remove': {
      const { userId } = input
      const isKnown = call.removed.includes(userId)
      // The server refuses it to all but the host.
      const isHost = call.record?.hostUserId === turn.device.userId
      if (isHost && !isKnown) setRemoved(turn, callId, [...call.removed, userId])
      const purpose = { for: 'remove', callId, command, userId, isKnown } as const
      return void turn.request('POST call/{callId}/remove', purpose, { userId })
    }
    case 'invite': {
      const { userIds } = input
      setRemoved(turn, callId, without(call.removed, userIds))
      return invite(turn, { callId, command, userIds, triesLeft: rotation.TRIES })
    }
    case 'renew':
      return rotation.renew(turn, callId, { command })
    case 'resend':
      return rotation.resend(turn, callId, command)
    case 'use':
      use(turn, callId, input.epoch)
      return turn.settle(command)
    case 'ask':
      return rejoining.askBeside(turn, callId, command, input.userId)
    case 'grant':
      return rejoining.grant(turn, callId, input.ask, command)
  }
}

export function onLeft(turn: Turn, callId: string): void {
  turn.keep(withoutLeaving(turn.device.kept, callId))
}

/** While the connection lasts; else the next one does it. */
export function leaveAgain(turn: Turn, callId: string): void {
  const { connection, kept } = turn.device
  if (connection !== undefined && kept.leaving?.includes(callId)) sendLeave(turn, callId)
}

/** The app hears of it. Where the server has carried it out all the same, the record says so. */
export function onNotRemoved(turn: Turn, callId: string, userId: string): void {
  const call = turn.call(callId)
  if (call !== undefined) setRemoved(turn, callId, without(call.removed, [userId]))
  else forgetRemoved(turn, callId, userId)
}

function without(all: readonly string[], some: readonly string[]): readonly string[] {
  return all.filter(one => !some.includes(one))
}

/** Also after a restart, before there is another key. */
function setRemoved(turn: Turn, callId: string, removed: readonly string[]): void {
  const call = turn.call(callId)
  if (call === undefined || call.removed.length === removed.length) return
  turn.change(callId, { removed })
  const held = newestKey(call)
  if (held !== undefined) noteOpened(turn, callId, held.epoch)
}

/** Those who come have the key of a new epoch, as all in the call: it opens nothing of before. */
export function invite(turn: Turn, asked: Invite): void {
  const call = turn.call(asked.callId)
  if (call === undefined || newestKey(call) === undefined)
    return turn.settle(asked.command, rotation.KEY_MISSING)
  const { key: _, ...first } = asked
  turn.request('GET call/{callId}', { ...first, for: 'invite: read' })
}

export function onInviteRead(turn: Turn, asked: Invite, record: CallRecord): void {
  const { callId, userIds } = asked
  if (turn.call(callId) === undefined) return turn.settle(asked.command, HAS_ENDED)
  const [key, epoch] = [turn.makeKey(), record.keyEpoch + 1]
  const to = { participants: receiversIn(turn, callId, record), userIds }
  turn.seal(key, to, { callId, epoch }, { ...asked, for: 'invite: seal', key, epoch, record })
}

export function onInviteSealed(
  turn: Turn,
  asked: Invite,
  texts: Readonly<Record<string, string>>,
  set: KeySet,
): void {
  const { userIds, epoch } = asked
  const body = { calleeIds: userIds, epoch, keyMembers: set.keyMembers, encryptedAESKeys: texts }
  turn.request('POST call/{callId}/invite', { ...asked, for: 'invite', set }, body)
}

/** The members may have the new key. This device can't know: it makes a newer key, or asks for theirs. */
export function onUnheard(turn: Turn, callId: string): void {
  const call = turn.call(callId)
  if (call?.record?.hostUserId === turn.device.userId) rotation.planAgain(turn, callId)
  else rejoining.askBeside(turn, callId, undefined)
}

export function onInvited(turn: Turn, asked: Invite, record: CallRecord): void {
  const { callId, key, epoch, set, command } = asked
  const { userId: fromUserId } = turn.device
  hold(turn, callId, { epoch: epoch!, key: key!, fromUserId, ...set! })
  showIfNewer(turn, callId, record)
  turn.settle(command)
}
