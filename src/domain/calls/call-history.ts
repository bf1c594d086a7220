/**
 * A call as each of its people remembers it (contract 4.6). A row appears with the first thing that a user did or
 * missed, and is written again when its status changes; nothing of a key is ever in it.
 */

import { lastOf } from '../../last-of.ts'
import type { CallId, UserId } from '../ids.ts'
import { CALL_SIZE_MAX, type Call, isTwoPerson, type Participant, participantOf } from './call.ts'

export interface CallHistoryRow {
  readonly callId: CallId
  readonly direction: 'outgoing' | 'incoming'
  readonly status: 'active' | 'ended' | 'missed' | 'declined' | 'cancelled' | 'failed'
  readonly isVideo: boolean
  readonly isGroup: boolean
  /** All participants, also this user; those who joined come first. The same for all rows of a call. */
  readonly people: readonly UserId[]
  readonly createdAtMs: number
  readonly startedAtMs: number | undefined
  /** When it was over for this user. */
  readonly endedAtMs: number | undefined
  /** Milliseconds that this user spent in it, once they have left it for good. */
  readonly talkedMs: number | undefined
  /** False for a call that they missed, until they have looked: it counts in the badge. */
  readonly seen: boolean
}

/** The participant's history row at present; undefined before they answer. */
export function historyRowOf(call: Call, participant: Participant): CallHistoryRow | undefined {
  const status = statusFor(call, participant)
  if (status === undefined) return undefined
  const isOutgoing = participant.userId === call.initiatorId
  const { callId, isVideo, createdAtMs } = call
  const startedAtMs = startFor(call, participant)
  return {
    callId,
    direction: isOutgoing ? 'outgoing' : 'incoming',
    status,
    isVideo,
    isGroup: !isTwoPerson(call),
    people: peopleOf(call),
    createdAtMs,
    startedAtMs,
    endedAtMs: status === 'active' ? undefined : endFor(call, participant),
    talkedMs: startedAtMs !== undefined && status !== 'active' ? participant.talkedMs : undefined,
    seen: isOutgoing || status !== 'missed',
  }
}

/** The participant's row, where it differs from that before in more than who joined. */
export function changedHistoryRow(
  before: Call | undefined,
  after: Call,
  participant: Participant,
): CallHistoryRow | undefined {
  const row = historyRowOf(after, participant)
  const was = before && participantOf(before, participant.userId)
  if (row === undefined || before === undefined || was === undefined) return row
  const isSame = row.status === statusFor(before, was) && row.startedAtMs === startFor(before, was)
  return isSame ? undefined : row
}

/** All participants of a call but the user, as the user's list shows them. */
export function peersIn({ people }: CallHistoryRow, userId: UserId): UserId[] {
  return people.filter(person => person !== userId).slice(0, CALL_SIZE_MAX - 1)
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

/** When it was over for them: when they left for the last time, or never came. */
function endFor(call: Call, { leftAtMs }: Participant): number | undefined {
  return leftAtMs ?? call.endedAtMs
}

/** When the call started, for who was in it. */
function startFor({ startedAtMs }: Call, participant: Participant): number | undefined {
  return hasJoined(participant) ? startedAtMs : undefined
}

/** Asked for each row of a change. */
const peopleOf = lastOf(({ participants }: Call): readonly UserId[] => {
  const [were, werent] = [participants.filter(hasJoined), participants.filter(one => !hasJoined(one))]
  return [...were, ...werent].map(({ userId }) => userId)
})

function hasJoined({ joinedAtMs }: Participant): boolean {
  return joinedAtMs !== undefined
}
