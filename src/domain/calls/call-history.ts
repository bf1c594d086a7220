/**
 * A call as each of its people remembers it (contract 4.6). While it goes on for a user they see it as active, by the call
 * itself; something is kept once it is over for them. Nothing of a key is ever in it.
 */

import { lastOf } from '../../last-of.ts'
import type { CallId, UserId } from '../ids.ts'
import { CALL_SIZE_MAX, type Call, isTwoPerson, memberOf, type Participant } from './call.ts'

/** What all people of a call remember alike. */
export interface RememberedCall {
  readonly callId: CallId
  readonly isVideo: boolean
  readonly isGroup: boolean
  /** All participants, the caller first, then the others who joined. */
  readonly people: readonly UserId[]
  readonly createdAtMs: number
  readonly startedAtMs: number | undefined
}

/** How it was over for one of them. */
export interface CallMemory {
  readonly userId: UserId
  readonly status: PastStatus
  /** Whether they were in it. */
  readonly hadJoined: boolean
  /** When it was over for them; undefined for who never came and for whom it was over before the call. */
  readonly endedAtMs: number | undefined
  /** Milliseconds that they spent in it. */
  readonly talkedMs: number
}

/** The history's part in a change of a call. */
export interface HistoryEffect {
  readonly kind: 'history'
  readonly call: RememberedCall
  /** Of those for whom the call is over by this change, in place of what they had. */
  readonly memories: readonly CallMemory[]
  /** Those for whom it goes on now: what they had is forgotten. */
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

/** What the change gives people to remember, or takes back; undefined where it does neither. */
export function historyEffectOf(before: Call | undefined, after: Call): HistoryEffect | undefined {
  const memories: CallMemory[] = []
  const back: UserId[] = []
  for (const [at, participant] of after.participants.entries()) {
    if (participant.isWithheld) continue
    const status = statusFor(after, participant)
    // Nobody is ever taken off the list of participants.
    const was = before?.participants[at]
    if (status === undefined || (was !== undefined && status === statusFor(before!, was))) continue
    if (status !== 'active') memories.push(memoryOf(after, participant, status))
    else if (was !== undefined) back.push(participant.userId)
  }
  const isNothing = memories.length === 0 && back.length === 0
  return isNothing ? undefined : { kind: 'history', call: rememberedOf(after), memories, back }
}

/** The user's entry of a call that goes on for them: they are in it, or may come back. */
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

/** The entry of one for whom the call is over. */
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

/** Whether they have missed the call, and it is to count until they look. Nobody misses a call of their own. */
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
