/** Commands of the app for a call that is there. */

import { type Invite, newestKey } from './device.ts'
import { close, HAS_ENDED, sendLeave, withoutLeaving } from './ending.ts'
import { answer } from './entering.ts'
import type { Command, Input } from './input.ts'
import * as rejoining from './rejoining.ts'
import * as ringing from './ringing.ts'
import * as rotation from './rotation.ts'
import type { Turn } from './turn.ts'

export function onCommand(turn: Turn, input: Extract<Input, Command & { readonly on: string }>): void {
  const { callId, command } = input
  const call = turn.call(callId)
  if (call === undefined) return turn.settle(command, HAS_ENDED)
  switch (input.on) {
    case 'answer':
      return answer(turn, callId, command)
    case 'decline':
      return ringing.decline(turn, callId, input.reason, command)
    case 'end':
      return void turn.request('POST call/{callId}/end', { for: 'end', callId, command })
    case 'leave':
      sendLeave(turn, callId, command)
      return close(turn, callId, 'left')
    case 'remove':
      return void turn.request(
        'POST call/{callId}/remove',
        { for: 'command', callId, command },
        { userId: input.userId },
      )
    case 'invite':
      return invite(turn, { callId, command, userIds: input.userIds, triesLeft: rotation.TRIES })
    case 'renew':
      return rotation.renew(turn, callId, { command })
    case 'resend':
      return rotation.resend(turn, callId, command)
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

export function invite(turn: Turn, asked: Invite): void {
  const call = turn.call(asked.callId)
  const held = call && newestKey(call)
  if (held === undefined) return turn.settle(asked.command, rotation.KEY_MISSING)
  const { key, epoch } = held
  turn.seal(
    key,
    { userIds: asked.userIds },
    { callId: asked.callId, epoch },
    { ...asked, for: 'invite: seal', epoch },
  )
}
