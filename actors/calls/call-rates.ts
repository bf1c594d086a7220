/** How often people may be rung, and keys be sent. */

import { type Call, isJoined, participantOf } from '../../src/domain/calls/call.ts'
import {
  type CallAccepted,
  type CallRefused,
  type CallRequest,
  type DeviceCommand,
  refused,
} from '../../src/domain/calls/call-command.ts'
import { rungBy } from '../../src/domain/calls/call-effect.ts'
import type { RingRates } from '../../src/domain/calls/unanswered-rings.ts'
import type { RateBuckets } from '../../src/domain/token-bucket.ts'

export interface CallRates {
  /** Left out where rates are not limited. */
  readonly rings?: RingRates
  /** By user and device; left out likewise. */
  readonly keyRates?: Pick<RateBuckets, 'take'>
  readonly monotonicMs: () => number
}

/** Counts what hands out keys, over HTTP and STOMP alike; refuses it when it comes too often. */
export function countKeys(
  { keyRates, monotonicMs }: CallRates,
  { kind, by }: CallRequest,
): CallRefused | undefined {
  if (keyRates === undefined || (kind !== 'keys' && kind !== 'invite')) return undefined
  const missingMs = keyRates.take(`${by.userId} ${by.deviceId}`, monotonicMs())
  return missingMs > 0 ? tooOften(missingMs, 'device', 'the device sent keys too often') : undefined
}

/** Refuses to ring a user who has not answered lately; else counts the rings, and forgets answered ones. */
export function countRings(
  { rings }: CallRates,
  before: Call | undefined,
  decision: CallAccepted,
  { by, nowMs }: DeviceCommand,
): CallRefused | undefined {
  if (rings === undefined) return undefined
  const rung = [...rungBy(before, decision)]
  const missingMs = Math.max(0, ...rung.map(userId => rings.missingMs(by.userId, userId, nowMs)))
  if (missingMs > 0) return tooOften(missingMs, 'callee', 'a callee did not answer your last calls')
  for (const userId of rung) rings.note(by.userId, userId, nowMs)
  const was = before && participantOf(before, by.userId)
  const is = participantOf(decision.call, by.userId)
  const hasAnswered = was !== undefined && is !== undefined && !isJoined(was) && isJoined(is)
  if (hasAnswered) rings.forget(was.invitedBy, by.userId)
  return undefined
}

function tooOften(missingMs: number, scope: 'callee' | 'device', why: string): CallRefused {
  const retryIn = Math.ceil(missingMs / 1000)
  return refused('RATE_LIMITED', `${why}, wait ${retryIn} s`, { members: { retryIn, scope } })
}
