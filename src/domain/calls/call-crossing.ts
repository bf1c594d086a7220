/**
 * Two who call each other (contract 4.3): there is one call, the start that was decided first. The other start is
 * refused with its id, or takes its place when its caller is gone.
 */

import type { CallId } from '../ids.ts'
import { type Call, isOver, isTwoPerson, memberOf, nextVersionOf, participantOf } from './call.ts'
import {
  type CallFacts,
  type CallRefused,
  type ChangedCall,
  refused,
  type StartCommand,
} from './call-command.ts'
import { withDeadlinesPassed } from './call-deadline.ts'
import { effectsOf } from './call-effect.ts'
import { ended } from './call-settlement.ts'
import { timed } from './call-time-line.ts'

/** The callee's call, at its end: its caller is gone. */
interface Overtaken {
  readonly kind: 'overtaken'
  readonly ended: ChangedCall
}

/** What a start meets of its callee's own; undefined where nothing of that rings. */
export function crossingOf(command: StartCommand, facts: CallFacts): CallRefused | Overtaken | undefined {
  const { nowMs } = command
  const crossed = crossedCall(command, facts)
  if (crossed === undefined) return undefined
  // Its caller is there to be answered.
  if (hasCaller(crossed, nowMs)) return callCrossed(crossed.callId)
  return { kind: 'overtaken', ended: withoutCaller(crossed, nowMs) }
}

/** The one callee's own call to the starter alone, which still rings. */
function crossedCall({ by, calleeIds, nowMs }: StartCommand, { callsBetween }: CallFacts): Call | undefined {
  if (calleeIds.length !== 1) return undefined
  return callsBetween.find(call => {
    const isTheirs = call.initiatorId === calleeIds[0] && isTwoPerson(call)
    // As long as a call of two rings, the callee has not answered.
    const ringsStarter = call.status === 'ringing' && memberOf(call, by.userId) !== undefined
    return isTheirs && ringsStarter && !isOver(withDeadlinesPassed(call, nowMs))
  })
}

function withoutCaller(call: Call, nowMs: number): ChangedCall {
  const next = nextVersionOf(call)
  const over = ended(next, { status: 'cancelled', endReason: 'caller_lost' }, nowMs)
  return { call: timed(next, over, nowMs), effects: effectsOf(next, over, undefined, nowMs) }
}

function hasCaller(call: Call, nowMs: number): boolean {
  const attendance = participantOf(call, call.initiatorId)?.attendance
  return attendance !== undefined && (attendance.isOnline || nowMs - attendance.seenAtMs <= CALLER_SEEN_MS)
}

function callCrossed(callId: CallId): CallRefused {
  const members = { callId: String(callId) }
  const refusal = refused('CALL_CROSSED', `they are calling you in call ${callId}: join it`, { members })
  return { ...refusal, awaits: callId }
}

/** A caller without a socket makes a request more often. */
const CALLER_SEEN_MS = 10_000
