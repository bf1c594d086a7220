/** A call in words: what happened to whom, and why it ended as it did. */

import type { ReplyOf } from './page.ts'

export type CallView = ReplyOf<'GET calls/{callId}'>
export type Moment = CallView['timeLine'][number]

/** Why the call ended as it did, for a person who does not know the protocol; undefined while it goes on. */
export function whyOf(call: CallView): string | undefined {
  const { endReason, participants, initiatorId, endedBy } = call
  if (endReason === undefined) return undefined
  const nameOf = (userId: string | undefined) =>
    participants.find(person => person.userId === userId)?.displayName ?? 'somebody'
  const callees = participants.filter(({ userId }) => userId !== initiatorId)
  const caller = nameOf(initiatorId)
  switch (endReason) {
    case 'hangup':
      return call.startedAt === undefined
        ? `${nameOf(endedBy)} hung up before anyone answered.`
        : `${nameOf(endedBy)} ended it.`
    case 'cancelled':
      return `${caller} gave up before anyone answered. ${reachOf(call, callees)}`.trim()
    case 'declined':
      return callees.length === 1
        ? `${nameOf(callees[0]!.userId)} declined.`
        : 'No one took it; at least one declined.'
    case 'unanswered':
      return `No one answered in time. ${reachOf(call, callees)}`.trim()
    case 'caller_lost':
      return `${caller}’s device fell silent while it rang: it lost its connection, or the app was closed.`
    case 'empty':
      return 'Everyone had left.'
    case 'alone':
      return 'One person was left alone in it for too long.'
    case 'limit':
      return 'It had lasted as long as a call may.'
    case 'removed':
      return 'Removing people from it left one alone.'
    case 'operator':
      return 'A moderator or the backend ended it.'
    case 'suspended':
      return 'It ended because one of its people was suspended.'
    case 'internal':
      return 'The server could not go on with it. The fault is on the server’s side: see its log.'
  }
}

/** How far the ring came with those who did not answer. */
function reachOf({ timeLine }: CallView, callees: CallView['participants']): string {
  const had = (userId: string, event: Moment['event']) =>
    timeLine.some(moment => moment.event === event && moment.userIds.includes(userId))
  const words = callees
    .filter(({ joinedAt }) => joinedAt === undefined)
    .map(({ userId, displayName, state, isWithheld }) => {
      if (isWithheld) return `${displayName} was never rung: they had blocked the caller, or were suspended.`
      if (state === 'busy') return `${displayName} was in another call.`
      if (had(userId, 'ringing')) return `${displayName}’s device rang.`
      if (had(userId, 'push_taken'))
        return `${displayName}’s push service took the ring, but no device said that it rings: it was off, or without a network.`
      if (had(userId, 'unreachable'))
        return `No device of ${displayName} could be reached: none was connected, and none took a push.`
      return ''
    })
  return words.filter(each => each !== '').join(' ')
}

/** A moment, behind the names of those whom it is about. */
export const MOMENT_WORDS: Readonly<Record<Moment['event'], string>> = {
  started: 'starts the call',
  invited: 'is invited',
  push_taken: 'has a push service that took the ring',
  ringing: 'has a device that rings',
  unreachable: 'has no device that could be reached',
  joined: 'joins',
  moved: 'goes on at another device',
  left: 'leaves',
  lost: 'falls silent',
  declined: 'declines',
  busy: 'is in another call',
  missed: 'has not answered',
  removed: 'is removed',
  media_ready: 'can hear and see',
  media_lost: 'has lost sound and picture',
  ended: 'the call is over',
}

export const STATUS_WORDS: Readonly<Record<CallView['status'], string>> = {
  ringing: 'rings',
  active: 'goes on',
  ended: 'ended',
  cancelled: 'given up',
  declined: 'declined',
  missed: 'missed',
  failed: 'failed',
}
