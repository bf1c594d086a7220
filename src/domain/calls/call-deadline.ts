/**
 * A call's deadlines (contract 4.2): the end of rings, lost participants, lasting quiet, and the end after one day.
 * Deadlines follow from the snapshot alone, so that a room that is rebuilt has the same.
 */

import type { UserId } from '../ids.ts'
import {
  type Call,
  isJoined,
  isOver,
  isPending,
  type Participant,
  participantOf,
  RING_GRACE_S,
  RING_S,
  withParticipant,
} from './call.ts'
import { askEndsAtMs, withoutOldAsks } from './call-keys.ts'
import { departed, ended, settled } from './call-settlement.ts'

/** The call's next deadline, wall-clock milliseconds; undefined once it has ended. */
export function nextDeadlineMs(call: Call): number | undefined {
  return earliestOf(deadlinesOf(call))?.atMs
}

/** The call after all deadlines up to `nowMs`, in their order. */
export function withDeadlinesPassed(call: Call, nowMs: number): Call {
  let next = call
  // Each round settles what it looked at for good: whatever starts in it is due later than now.
  for (;;) {
    const due = earliestOf(deadlinesOf(next))
    if (due === undefined || due.atMs > nowMs) return next
    next = settled(passed(next, due, nowMs), nowMs)
  }
}

/** When the server ends the participant's last invitation. */
export function ringEndsAtMs({ invitedAtMs }: Participant): number {
  return invitedAtMs + (RING_S + RING_GRACE_S) * 1000
}

/** The call's latest possible end. */
export function limitAtMs({ startedAtMs, createdAtMs }: Call): number {
  return (startedAtMs ?? createdAtMs) + CALL_MS_MAX
}

/**
 * The call as a restarted server finds it. No device has a socket, and none could reach the server for `downForMs`:
 * absence excludes it, and starts now for devices present until the end. A ring goes on ringing on its device whether
 * we are up or not, so its end stays where it was. A time ahead of now comes from a clock that was set back since: it
 * counts from now, or a ring would last until then.
 */
export function recover(call: Call, { nowMs, downForMs }: { nowMs: number; downForMs: number }): Call {
  if (isOver(call)) return call
  const shifted = (atMs: number) => Math.min(nowMs, atMs + downForMs)
  const participants = call.participants.map(known => {
    const participant = known.invitedAtMs > nowMs ? { ...known, invitedAtMs: nowMs } : known
    const { attendance } = participant
    if (!isJoined(participant) || attendance === undefined) return participant
    const seenAtMs = attendance.isOnline ? nowMs : shifted(attendance.seenAtMs)
    return { ...participant, attendance: { ...attendance, isOnline: false, seenAtMs } }
  })
  const quiet = call.quiet === undefined ? undefined : { ...call.quiet, sinceMs: shifted(call.quiet.sinceMs) }
  const rejoinAsks = call.rejoinAsks.map(ask => ({ ...ask, askedAtMs: Math.min(nowMs, ask.askedAtMs) }))
  return { ...call, participants, quiet, rejoinAsks }
}

interface Deadline {
  readonly atMs: number
  readonly kind: 'limit' | 'ring' | 'caller' | 'lost' | 'empty' | 'alone' | 'ask'
  readonly userId?: UserId
}

function deadlinesOf(call: Call): Deadline[] {
  if (isOver(call)) return []
  const deadlines: Deadline[] = [{ kind: 'limit', atMs: limitAtMs(call) }]
  const { quiet } = call
  if (quiet !== undefined) deadlines.push({ kind: quiet.kind, atMs: quiet.sinceMs + QUIET_MS[quiet.kind] })
  for (const ask of call.rejoinAsks) deadlines.push({ kind: 'ask', atMs: askEndsAtMs(ask) })
  for (const participant of call.participants) {
    const deadline = deadlineOf(call, participant)
    if (deadline !== undefined) deadlines.push(deadline)
  }
  return deadlines
}

function deadlineOf(call: Call, participant: Participant): Deadline | undefined {
  const { userId, attendance } = participant
  if (isPending(participant)) return { kind: 'ring', userId, atMs: ringEndsAtMs(participant) }
  if (!isJoined(participant) || attendance === undefined || attendance.isOnline) return undefined
  if (call.status === 'active') return { kind: 'lost', userId, atMs: attendance.seenAtMs + LOST_MS }
  // A caller that never opened a socket shows no sign of life by having none.
  return attendance.hadSocket ? { kind: 'caller', userId, atMs: attendance.seenAtMs + CALLER_MS } : undefined
}

function passed(call: Call, { kind, userId }: Deadline, nowMs: number): Call {
  switch (kind) {
    case 'ring':
      return withParticipant(call, userId!, { state: 'missed', devices: [] })
    case 'lost':
      return withParticipant(call, userId!, departed(call, participantOf(call, userId!)!, 'lost', nowMs))
    case 'caller':
      return ended(call, { status: 'cancelled', endReason: 'caller_lost' }, nowMs)
    case 'empty':
    case 'alone':
      return ended(call, { status: 'ended', endReason: kind }, nowMs)
    case 'limit':
      return ended(call, { status: call.status === 'active' ? 'ended' : 'missed', endReason: 'limit' }, nowMs)
    case 'ask':
      return withoutOldAsks(call, nowMs)
  }
}

function earliestOf(deadlines: readonly Deadline[]): Deadline | undefined {
  const [first, ...others] = deadlines
  return others.reduce((earliest, other) => (other.atMs < (earliest?.atMs ?? 0) ? other : earliest), first)
}

/** A caller without a socket and without a request while the call rings. */
const CALLER_MS = 30_000
/** A participant without either in an active call. */
const LOST_MS = 90_000
/** An empty call: time to dial again. One alone in it: time for a return. */
const QUIET_MS = { empty: 30_000, alone: 300_000 }
const CALL_MS_MAX = 24 * 3_600_000
