/**
 * A call as each of its people remembers it (contract 4.6). While a user is in it, their list has it from the call itself, as
 * active; a memory is kept from when they are out of it. Keys are never part of it.
 */

import { lastOf } from '../../last-of.ts'
import type { CallId, UserId } from '../ids.ts'
import { CALL_SIZE_MAX, type Call, isTwoPerson, memberOf, type Participant } from './call.ts'

/** The part of a call's history that all its people share. */
export interface RememberedCall {
  readonly callId: CallId
  readonly isVideo: boolean
  readonly isGroup: boolean
  /** Every participant: the caller first, then everybody else who joined. */
  readonly people: readonly UserId[]
  readonly createdAtMs: number
  readonly startedAtMs: number | undefined
}

/** One participant's own part. */
export interface CallMemory {
  readonly userId: UserId
  readonly status: PastStatus
  /** Whether they were in it. */
  readonly hadJoined: boolean
  /** When they left for good, or else the call's end; undefined where an invitation came to nothing before that. */
  readonly endedAtMs: number | undefined
  /** Milliseconds that they spent in it. */
  readonly talkedMs: number
}

/** The changes in histories that follow from a change of a call. */
export interface HistoryEffect {
  readonly kind: 'history'
  readonly call: RememberedCall
  /** New memories, in place of earlier ones. */
  readonly memories: readonly CallMemory[]
  /** Users who are in the call now: an earlier memory goes. */
  readonly back: readonly UserId[]
}

/** A user's entry in the list of their calls. */
export interface CallHistoryRow extends RememberedCall {
  readonly direction: 'outgoing' | 'incoming'
  readonly status: PastStatus | 'active'
  /** When it was over for this user. */
  readonly endedAtMs: number | undefined
  /** Milliseconds that this user spent in it, once they have left it for good. */
  readonly talkedMs: number | undefined
  /** False for a call that they missed, until they have looked: it counts in the badge. */
  readonly seen: boolean
}

export type PastStatus = 'ended' | 'missed' | 'declined' | 'cancelled' | 'failed'

/** Undefined where the change leaves all histories alone. */
export function historyEffectOf(before: Call | undefined, after: Call): HistoryEffect | undefined {
  const memories: CallMemory[] = []
  const back: UserId[] = []
  for (const [at, participant] of after.participants.entries()) {
    if (participant.isWithheld) continue
    const status = statusFor(after, participant)
    // Participants are never taken off the list.
    const was = before?.participants[at]
    if (status === undefined || (was !== undefined && status === statusFor(before!, was))) continue
    if (status !== 'active') memories.push(memoryOf(after, participant, status))
    else if (was !== undefined) back.push(participant.userId)
  }
  const isNothing = memories.length === 0 && back.length === 0
  return isNothing ? undefined : { kind: 'history', call: rememberedOf(after), memories, back }
}

/** The user's entry while they are in the call, or may come back. */
export function activeRowOf(call: Call, userId: UserId): CallHistoryRow | undefined {
  const participant = memberOf(call, userId)
  if (participant === undefined || statusFor(call, participant) !== 'active') return undefined
  return {
    ...rememberedOf(call),
    direction: userId === call.initiatorId ? 'outgoing' : 'incoming',
    status: 'active',
    endedAtMs: undefined,
    talkedMs: undefined,
    seen: true,
  }
}

/** The entry made of a memory. */
export function pastRowOf(
  call: RememberedCall,
  { userId, status, hadJoined, endedAtMs, talkedMs }: CallMemory,
  seen: boolean,
): CallHistoryRow {
  const startedAtMs = hadJoined ? call.startedAtMs : undefined
  return {
    ...call,
    startedAtMs,
    direction: isCallerOf(call, userId) ? 'outgoing' : 'incoming',
    status,
    endedAtMs,
    talkedMs: startedAtMs === undefined ? undefined : talkedMs,
    seen,
  }
}

/** Whether it counts in the badge until they have looked. Callers do not miss their own calls. */
export function isMissedBy(call: RememberedCall, { userId, status }: CallMemory): boolean {
  return status === 'missed' && !isCallerOf(call, userId)
}

/** All participants of a call but the user, as the user's list shows them. */
export function peersIn({ people }: CallHistoryRow, userId: UserId): UserId[] {
  return people.filter(person => person !== userId).slice(0, CALL_SIZE_MAX - 1)
}

function isCallerOf({ people }: RememberedCall, userId: UserId): boolean {
  return people[0] === userId
}

function rememberedOf(call: Call): RememberedCall {
  const { callId, isVideo, createdAtMs, startedAtMs } = call
  return { callId, isVideo, isGroup: !isTwoPerson(call), people: peopleOf(call), createdAtMs, startedAtMs }
}

function memoryOf(call: Call, participant: Participant, status: PastStatus): CallMemory {
  const { userId, leftAtMs, talkedMs } = participant
  const endedAtMs = leftAtMs ?? call.endedAtMs
  return { userId, status, hadJoined: hasJoined(participant), endedAtMs, talkedMs }
}

/**
 * Who was in the call sees its status; who never was sees what they did. Choice: a call that its caller gave up, or
 * that came while the callee was busy, is one that the callee missed, as on every telephone.
 */
function statusFor(call: Call, participant: Participant): CallHistoryRow['status'] | undefined {
  if (hasJoined(participant)) {
    if (participant.state === 'removed') return 'ended'
    return call.status === 'ringing' ? 'active' : call.status
  }
  switch (participant.state) {
    case 'declined':
      return 'declined'
    case 'busy':
    case 'missed':
    case 'removed':
      return 'missed'
    default:
      return undefined
  }
}

/** The caller is the first participant, and has joined from the start. */
const peopleOf = lastOf(({ participants }: Call): readonly UserId[] => {
  const [were, werent] = [participants.filter(hasJoined), participants.filter(one => !hasJoined(one))]
  return [...were, ...werent].map(({ userId }) => userId)
})

function hasJoined({ joinedAtMs }: Participant): boolean {
  return joinedAtMs !== undefined
}
