/** The effect by which one person of a call remembers it, in the form of the domain. */

import { type CallHistoryRow, type HistoryEffect, isMissedBy } from '../../src/domain/calls/call-history.ts'
import type { CallId, UserId } from '../../src/domain/ids.ts'
import { CALL_HISTORY, REMEMBERED_CALLS } from '../../src/store/calls/call-tables.ts'
import { memoryKey, packCall, packMemory, placeKey } from '../../src/store/calls/history-rows.ts'
import type { Change } from '../../src/store/engine/store.ts'

export interface Remembered {
  readonly callId: CallId
  readonly createdAtMs: number
  readonly status: CallHistoryRow['status']
  /** All of the call, the caller first; the user comes last where they are not among them. */
  readonly people?: readonly UserId[]
  readonly startedAtMs?: number
  readonly endedAtMs?: number
  readonly talkedMs?: number
}

export function historyEffect(userId: UserId, remembered: Remembered): HistoryEffect {
  const { callId, createdAtMs, status, people = [CALLER], startedAtMs, endedAtMs, talkedMs = 0 } = remembered
  const all = people.includes(userId) ? people : [...people, userId]
  const call = { callId, createdAtMs, startedAtMs, isVideo: false, isGroup: all.length > 2, people: all }
  const memory = { userId, hadJoined: status === 'ended', endedAtMs, talkedMs }
  return {
    kind: 'history',
    call,
    memories: status === 'active' ? [] : [{ ...memory, status }],
    back: status === 'active' ? [userId] : [],
  }
}

/** Puts it into the store as it is, beyond any bound. */
export function plantHistory(change: Change, userId: UserId, remembered: Remembered): void {
  const { call, memories } = historyEffect(userId, remembered)
  const place = placeKey({ atMs: call.createdAtMs, id: call.callId })
  for (const memory of memories)
    change.put(CALL_HISTORY, memoryKey(userId, place), packMemory(memory, !isMissedBy(call, memory)))
  change.put(REMEMBERED_CALLS, place, packCall(call))
}

/** For calls that do not name the caller. */
const CALLER = 9_999_999_999n as UserId
