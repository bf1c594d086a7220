/**
 * A call as each of its people remembers it (contract 4.6). A row appears with the first thing that a user did or
 * missed, and is written again when its status changes; nothing of a key is ever in it.
 */

import type { CallId } from '../ids.ts'
import { CALL_SIZE_MAX, type Call, isTwoPerson, type Participant } from './call.ts'
import type { PersonName } from './call-notice.ts'

export interface CallHistoryRow {
  readonly callId: CallId
  readonly direction: 'outgoing' | 'incoming'
  readonly status: 'active' | 'ended' | 'missed' | 'declined' | 'cancelled' | 'failed'
  readonly isVideo: boolean
  readonly isGroup: boolean
  /** The other participants, those who joined the call first. */
  readonly peers: readonly PersonName[]
  readonly createdAtMs: number
  readonly startedAtMs: number | undefined
  /** When it was over for this user. */
  readonly endedAtMs: number | undefined
  /** Milliseconds that this user spent in it, once they have left it for good. */
  readonly talkedMs: number | undefined
  /** False for a call that they missed, until they have looked. */
  readonly seen: boolean
}

/** Whether the row counts in the badge. */
export function isUnseenMissed({ status, seen }: CallHistoryRow): boolean {
  return status === 'missed' && !seen
}

/** The participant's history row at present; undefined before they answer. */
export function historyRowOf(call: Call, participant: Participant): CallHistoryRow | undefined {
  const status = statusFor(call, participant)
  if (status === undefined) return undefined
  const isOutgoing = participant.userId === call.initiatorId
  const { callId, isVideo, createdAtMs, startedAtMs } = call
  const wasIn = hasJoined(participant) && startedAtMs !== undefined
  return {
    callId,
    direction: isOutgoing ? 'outgoing' : 'incoming',
    status,
    isVideo,
    isGroup: !isTwoPerson(call),
    peers: peersOf(call, participant),
    createdAtMs,
    startedAtMs: wasIn ? startedAtMs : undefined,
    endedAtMs: status === 'active' ? undefined : endFor(call, participant),
    talkedMs: wasIn && status !== 'active' ? participant.talkedMs : undefined,
    seen: isOutgoing || status !== 'missed',
  }
}

/** Whether a row differs visibly from an earlier one, apart from participants who had joined. */
export function isNews(row: CallHistoryRow, before: CallHistoryRow | undefined): boolean {
  return row.status !== before?.status || row.startedAtMs !== before.startedAtMs
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

function peersOf(call: Call, { userId }: Participant): PersonName[] {
  const others = call.participants.filter(other => other.userId !== userId)
  const [were, werent] = [others.filter(hasJoined), others.filter(other => !hasJoined(other))]
  return [...were, ...werent]
    .slice(0, CALL_SIZE_MAX - 1)
    .map(({ userId, displayName }) => ({ userId, displayName }))
}

function hasJoined({ joinedAtMs }: Participant): boolean {
  return joinedAtMs !== undefined
}
