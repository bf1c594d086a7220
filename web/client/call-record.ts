/** A call as the API answers, as far as this page uses it, and what is read from it. */

import type { Call, Participant } from './state.ts'

export interface CallRecord {
  readonly callId: string
  readonly status: 'ringing' | 'active' | 'ended' | 'cancelled' | 'declined' | 'missed' | 'failed'
  readonly endReason?: string
  readonly isVideo: boolean
  readonly initiatorId: string
  readonly hostUserId: string
  readonly startedAt?: string
  readonly ringTimeoutIn: number
  readonly keyEpoch: number
  readonly keyRotationIn: number
  readonly isOnGoing: boolean
  readonly participants: readonly Participant[]
  readonly encryptedAESKey?: string
}

export function isOver({ status }: CallRecord): boolean {
  return status !== 'ringing' && status !== 'active'
}

export function phaseOf({ status }: CallRecord): Call['phase'] {
  return status === 'ringing' ? 'ringing' : 'active'
}

export function startOf({ startedAt }: CallRecord): number | undefined {
  return startedAt === undefined ? undefined : Date.parse(startedAt)
}

/** How a call came to its end, for people. */
export function endingOf(status: string, endReason?: string): string {
  return ENDINGS[endReason ?? ''] ?? ENDINGS[status] ?? 'The call is over.'
}

const ENDINGS: Readonly<Record<string, string>> = {
  hangup: 'The call is over.',
  cancelled: 'The call was given up.',
  declined: 'The call was declined.',
  unanswered: 'Nobody has answered.',
  missed: 'Nobody has answered.',
  caller_lost: 'The caller’s connection was lost.',
  empty: 'Everybody had left: the call is over.',
  alone: 'Nobody else came back: the call is over.',
  limit: 'The call has lasted as long as a call may.',
  removed: 'The host has removed you from the call.',
}
