/**
 * What happened in a call and when, read off the call before and after each change. It is kept with the call for the operator, who
 * reads from it why a call failed. Nothing of a key is in it.
 */

import type { UserId } from '../ids.ts'
import {
  type Call,
  type CallMoment,
  changedParticipants,
  isJoined,
  isOver,
  isPending,
  type MomentKind,
  type Participant,
  participantOf,
} from './call.ts'

/** The call with what happened to it; `by` is the user who did it. */
export function timed(before: Call | undefined, after: Call, nowMs: number, by?: UserId): Call {
  return before === after ? after : withMoments(after, momentsOf(before, after, nowMs, by))
}

/** The call with what no command tells. */
export function withMoment(
  call: Call,
  kind: 'push_taken' | 'unreachable',
  userIds: readonly UserId[],
  nowMs: number,
): Call {
  // Each device's push is taken: the first of an invitation says it for its user.
  const isNew = (userId: UserId) => {
    const sinceMs = participantOf(call, userId)?.invitedAtMs ?? 0
    return !call.timeLine.some(
      moment => moment.kind === kind && moment.atMs >= sinceMs && moment.userIds.includes(userId),
    )
  }
  const added = userIds.filter(isNew)
  return added.length === 0 ? call : withMoments(call, [{ atMs: nowMs, kind, userIds: added }])
}

function withMoments(call: Call, moments: readonly CallMoment[]): Call {
  if (moments.length === 0) return call
  return { ...call, timeLine: [...call.timeLine, ...moments].slice(-MOMENTS_MAX) }
}

function momentsOf(
  before: Call | undefined,
  after: Call,
  nowMs: number,
  by: UserId | undefined,
): CallMoment[] {
  const moments = new Moments(nowMs)
  if (before === undefined) moments.add('started', after.initiatorId)
  for (const { was, is } of changedParticipants(before, after)) {
    if (before !== undefined || is.userId !== after.initiatorId) addOf(moments, was, is, by)
  }
  if (before !== undefined && !isOver(before) && isOver(after)) moments.add('ended', undefined, after.endedBy)
  return moments.all
}

function addOf(
  moments: Moments,
  was: Participant | undefined,
  is: Participant,
  by: UserId | undefined,
): void {
  const { userId, state, attendance } = is
  const wasPending = was !== undefined && isPending(was)
  if (isPending(is) && !(wasPending && was.invitedAtMs === is.invitedAtMs))
    moments.add('invited', userId, is.invitedBy)
  if (was === undefined) return
  if (was.state !== state && state !== 'invited')
    moments.add(state, userId, state === 'removed' ? by : undefined)
  if (!isJoined(is)) return
  const before = isJoined(was) ? was.attendance : undefined
  if (before !== undefined && before.deviceId !== attendance?.deviceId) moments.add('moved', userId)
  const wasReady = before?.admittedAtMs !== undefined && before.deviceId === attendance?.deviceId
  const isReady = attendance?.admittedAtMs !== undefined
  if (wasReady !== isReady) moments.add(isReady ? 'media_ready' : 'media_lost', userId)
}

/** People to whom the same happened at once share a moment. */
class Moments {
  readonly all: (CallMoment & { readonly userIds: UserId[] })[] = []
  readonly #nowMs: number

  constructor(nowMs: number) {
    this.#nowMs = nowMs
  }

  add(kind: MomentKind, userId: UserId | undefined, byUserId?: UserId): void {
    const known = this.all.find(moment => moment.kind === kind && moment.byUserId === byUserId)
    if (known === undefined) {
      const userIds = userId === undefined ? [] : [userId]
      const moment = { atMs: this.#nowMs, kind, userIds }
      this.all.push(byUserId === undefined ? moment : { ...moment, byUserId })
    } else if (userId !== undefined) known.userIds.push(userId)
  }
}

/** The latest ones: a row stays small however often people come and go. */
const MOMENTS_MAX = 200
