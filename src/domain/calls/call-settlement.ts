/**
 * What follows from who is in a call: when it becomes active, who is its host, since when it is quiet, and how it
 * ends. Every command changes participants first and is settled after.
 */

import type { UserId } from '../ids.ts'
import {
  type Call,
  type CallEndReason,
  type CallStatus,
  isJoined,
  isOver,
  isPending,
  type Participant,
  type Quiet,
} from './call.ts'

/** The call as it stands after its participants changed. */
export function settled(call: Call, nowMs: number): Call {
  if (isOver(call)) return call
  if (call.status === 'ringing') {
    const callees = call.participants.filter(({ userId }) => userId !== call.initiatorId)
    if (callees.some(isJoined)) return attended({ ...call, status: 'active', startedAtMs: nowMs }, nowMs)
    return callees.some(isPending) ? call : unanswered(call, callees, nowMs)
  }
  return attended(call, nowMs)
}

export interface Ending {
  readonly status: Exclude<CallStatus, 'ringing' | 'active'>
  readonly endReason: CallEndReason
  readonly endedBy?: UserId
}

/** The call over for everybody: who is in it has left, who was invited has missed it, and no key is left. */
export function ended(call: Call, { status, endReason, endedBy }: Ending, nowMs: number): Call {
  const participants = call.participants.map(participant => {
    if (isJoined(participant)) return departed(call, participant, 'left', nowMs)
    return { ...participant, state: isPending(participant) ? 'missed' : participant.state, devices: [] }
  })
  return {
    ...call,
    status,
    endReason,
    endedBy,
    participants,
    endedAtMs: nowMs,
    lastKeys: undefined,
    epochKeys: undefined,
    keySets: [],
    rejoinAsks: [],
    quiet: undefined,
  }
}

/** The participant out of the call, their time in it counted, and without the keys that waited for them. */
export function departed(
  call: Call,
  participant: Participant,
  state: 'left' | 'lost' | 'removed',
  nowMs: number,
): Participant {
  if (!isJoined(participant)) return { ...participant, state, devices: [] }
  const sinceMs = Math.max(participant.joinedAtMs ?? nowMs, call.startedAtMs ?? nowMs)
  const talkedMs = participant.talkedMs + Math.max(0, nowMs - sinceMs)
  return { ...participant, state, devices: [], leftAtMs: nowMs, talkedMs }
}

/** No callee is left who could answer. One unanswered invitation outweighs declined ones. */
function unanswered(call: Call, callees: readonly Participant[], nowMs: number): Call {
  const has = (...states: Participant['state'][]) => callees.some(({ state }) => states.includes(state))
  if (has('missed')) return ended(call, { status: 'missed', endReason: 'unanswered' }, nowMs)
  if (has('declined', 'busy')) return ended(call, { status: 'declined', endReason: 'declined' }, nowMs)
  return ended(call, { status: 'cancelled', endReason: 'cancelled' }, nowMs)
}

/** An active call with a host chosen among those present, and with its quiet updated. */
function attended(call: Call, nowMs: number): Call {
  const joined = call.participants.filter(isJoined)
  const able = joined.filter(participant => makesKeys(call, participant))
  const present = able.length > 0 ? able : joined
  const hostUserId = present.some(({ userId }) => userId === call.hostUserId)
    ? call.hostUserId
    : (earliestOf(present)?.userId ?? call.hostUserId)
  const quietKind = quietKindOf(joined.length, call.participants.some(isPending))
  const quiet = quietKind === call.quiet?.kind ? call.quiet : quietOf(quietKind, nowMs)
  const isSame = hostUserId === call.hostUserId && quiet === call.quiet
  return isSame ? call : { ...call, hostUserId, quiet }
}

/**
 * The host makes the call's keys. A device with an RSA key receives them only, unless it has started the call: then it has made
 * one in a form of its own.
 */
function makesKeys({ initiatorId, startedWith }: Call, { userId, attendance }: Participant): boolean {
  if (attendance?.keyAlgorithm !== 'RSA-2048') return true
  return userId === initiatorId && attendance.deviceId === startedWith.deviceId
}

/** The participant longest in the call; of two who joined at once, the one invited first. */
function earliestOf(joined: readonly Participant[]): Participant | undefined {
  const [first, ...others] = joined
  return others.reduce(
    (earliest, other) => ((other.joinedAtMs ?? 0) < (earliest?.joinedAtMs ?? 0) ? other : earliest),
    first,
  )
}

function quietKindOf(joined: number, hasPending: boolean): Quiet['kind'] | undefined {
  if (joined === 0) return 'empty'
  return joined === 1 && !hasPending ? 'alone' : undefined
}

function quietOf(kind: Quiet['kind'] | undefined, sinceMs: number): Quiet | undefined {
  return kind === undefined ? undefined : { kind, sinceMs }
}
