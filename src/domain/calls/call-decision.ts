/**
 * The rules of a call (contract 4.2 to 4.5): from the call and a command to the call after it and its effects, or a
 * refusal. A command that a device repeats is answered as before and has no effects.
 */

import type { UserId } from '../ids.ts'
import {
  type Call,
  type CallDeviceRef,
  type CallStatus,
  hasPart,
  isOver,
  joinedOn,
  memberOf,
  nextVersionOf,
  type Participant,
  participantOf,
} from './call.ts'
import { withAdmitted, withFeeds, withoutRoom } from './call-admission.ts'
import {
  declinedCall,
  endedByOperator,
  endedCall,
  joinedCall,
  leftCall,
  removedByOperator,
  rungCall,
  withoutDevice,
  withoutInvitation,
  withoutSuspended,
  withPresence,
  withRemoved,
  withRequest,
} from './call-attendance.ts'
import {
  alreadyInCall,
  type CallChange,
  type CallCommand,
  type CallDecision,
  type CallFacts,
  type CallOccurrence,
  type CallOutcome,
  type CallRefused,
  type CallReply,
  type DeviceCommand,
  NO_FACTS,
  type OperatorCommand,
  refused,
  type StartCommand,
} from './call-command.ts'
import { limitAtMs, withDeadlinesPassed } from './call-deadline.ts'
import { effectsOf } from './call-effect.ts'
import { isMadeBy, startedCall, withInvited } from './call-invitation.ts'
import { openAskOf, rejoinedCall, secondsOpen, withAnswer, withAsk, withKeys } from './call-keys.ts'
import { settled } from './call-settlement.ts'
import { timed } from './call-time-line.ts'
import { recordOf, recordWithKeySets, recordWithOwnKey } from './call-view.ts'

/**
 * `call` is undefined for a first `start` and for an id that no call has. Joining and inviting need the facts. A refusal
 * leaves the call as it was, even when a deadline has passed: its timer will apply it.
 */
export function decide(
  call: Call | undefined,
  command: CallCommand,
  facts: CallFacts = NO_FACTS,
): CallDecision {
  if (command.kind === 'start') return decideStart(call, command, facts)
  // Its removal, which puts a device out of its calls, may have overtaken what it asked for before.
  if (COMING.has(command.kind) && facts.actor === undefined) return deviceRemoved()
  if (call === undefined) return notFound()
  const next = nextVersionOf(call)
  const changedCall = (after: Call) => (after === next ? call : after)
  // A deadline before the command comes first, however late its timer is.
  const present = timed(next, withDeadlinesPassed(next, command.nowMs), command.nowMs)
  const due = effectsOf(next, present, undefined, command.nowMs)
  if (command.kind === 'deadline') {
    return { kind: 'accepted', call: changedCall(present), effects: due, reply: DONE }
  }
  if (isOccurrence(command) || isOfOperator(command)) {
    const outcome = isOfOperator(command)
      ? outcomeOfOperator(present, command, facts)
      : outcomeOfOccurrence(present, command)
    if (outcome.kind === 'refused') return outcome
    const after = timed(present, settled(outcome.call, command.nowMs), command.nowMs)
    const effects = [...due, ...effectsOf(present, after, undefined, command.nowMs), ...(outcome.told ?? [])]
    return { kind: 'accepted', call: changedCall(after), effects, reply: DONE }
  }
  const participant = memberOf(present, command.by.userId)
  if (participant === undefined) return isPresence(command) ? unchanged(call) : notFound()
  const refusal = refusalOf(present, participant, command)
  if (refusal !== undefined) return refusal
  const outcome = outcomeOf(present, participant, command, facts)
  if (outcome.kind === 'refused') return outcome
  const after = timed(present, settled(outcome.call, command.nowMs), command.nowMs, command.by.userId)
  const effects = [...due, ...effectsOf(present, after, command.by, command.nowMs), ...(outcome.told ?? [])]
  // A sign of life alone makes no version: a room may forget it.
  const kept = withRequest(changedCall(after), command.by, command.nowMs)
  return { kind: 'accepted', call: kept, effects, reply: replyTo(present, kept, command) }
}

/** A command to an existing call. */
type MemberCommand = Exclude<DeviceCommand, { kind: 'start' }>
type Occurrence = Exclude<CallOccurrence, { kind: 'deadline' }>
type PresenceCommand = Extract<CallCommand, { kind: `device-${string}` }>

function isOccurrence(command: CallCommand): command is Occurrence {
  return OCCURRENCES.has(command.kind)
}

function isOfOperator(command: CallCommand): command is OperatorCommand {
  return command.kind === 'operator-end' || command.kind === 'operator-remove'
}

function outcomeOfOperator(call: Call, command: OperatorCommand, { freeRoomId }: CallFacts): CallOutcome {
  return command.kind === 'operator-end'
    ? { kind: 'changed', call: endedByOperator(call, command.nowMs) }
    : removedByOperator(call, command, freeRoomId)
}

function outcomeOfOccurrence(call: Call, command: Occurrence): CallChange {
  switch (command.kind) {
    case 'inviter-blocked':
      return { kind: 'changed', call: withoutInvitation(call, command.userId, command.inviterId) }
    case 'account-ended':
      return { kind: 'changed', call: withoutInvitation(call, command.userId, undefined) }
    case 'account-suspended':
      return { kind: 'changed', call: withoutSuspended(call, command.userId, command.nowMs) }
    case 'media-admitted':
      return withAdmitted(call, command)
    case 'media-feeds':
      return withFeeds(call, command)
    case 'media-lost':
      return withoutRoom(call)
  }
}

function decideStart(call: Call | undefined, command: StartCommand, facts: CallFacts): CallDecision {
  const { actor } = facts
  if (actor === undefined) return deviceRemoved()
  if (call !== undefined && !isMadeBy(call, command)) return callIdTaken()
  const outcome =
    call === undefined ? startedCall(command, facts, actor) : ({ kind: 'changed', call } as const)
  if (outcome.kind === 'refused') return outcome
  const { ended } = outcome
  const started = timed(call, outcome.call, command.nowMs)
  const effects = effectsOf(call, started, command.by, command.nowMs)
  const record = recordOf(started, command.by)
  return {
    kind: 'accepted',
    call: started,
    effects,
    reply: { kind: 'record', record },
    ...(ended && { ended }),
  }
}

/** Why the user may not act in this way at all, whatever the details. */
function refusalOf(call: Call, participant: Participant, command: MemberCommand): CallRefused | undefined {
  if (isPresence(command) || command.kind === 'leave') return undefined
  if (participant.state === 'removed') return removedByHost()
  if (!isOver(call) || command.kind === 'end') return undefined
  if (command.kind === 'decline' && hasDeclined(participant, command)) return undefined
  if (command.kind === 'remove' && hasRemoved(call, command)) return undefined
  return callEnded(call.status)
}

/** Why the user may not watch the call's events; undefined for a user who may. */
export function refusalOfWatcher(call: Call | undefined, userId: UserId): CallRefused | undefined {
  if (call === undefined || memberOf(call, userId) === undefined) return notFound()
  if (!hasPart(call, userId)) return removedByHost()
  return isOver(call) ? callEnded(call.status) : undefined
}

function outcomeOf(
  call: Call,
  participant: Participant,
  command: MemberCommand,
  facts: CallFacts,
): CallOutcome {
  const { by, nowMs } = command
  switch (command.kind) {
    case 'invite':
      return withInvited(call, command, facts, limitAtMs(call))
    case 'join':
      return refusalOfBusyDevice(call, by, facts) ?? joinedCall(call, participant, facts.actor!, nowMs)
    case 'ringing':
      return { kind: 'changed', call: rungCall(call, participant) }
    case 'decline':
      return { kind: 'changed', call: declinedCall(call, participant, by, command.reason ?? 'declined') }
    case 'leave':
      return { kind: 'changed', call: leftCall(call, participant, by, nowMs) }
    case 'end':
      return endedCall(call, participant, by, nowMs)
    case 'remove':
      return withRemoved(call, command, facts.freeRoomId)
    case 'request-rejoin':
      return withAsk(call, participant, command, facts.actor!)
    case 'accept-rejoin':
      return withAnswer(call, command)
    case 'rejoin':
      return refusalOfBusyDevice(call, by, facts) ?? rejoinedCall(call, participant, facts.actor!, nowMs)
    case 'keys':
      return withKeys(call, command, limitAtMs(call))
    case 'device-online':
      return { kind: 'changed', call: withPresence(call, by, true, nowMs) }
    case 'device-offline':
      return { kind: 'changed', call: withPresence(call, by, false, nowMs) }
    case 'device-signed-out':
      return {
        kind: 'changed',
        call: joinedOn(call, by) === undefined ? call : leftCall(call, participant, by, nowMs),
      }
    case 'device-removed':
      return { kind: 'changed', call: withoutDevice(call, participant, by, nowMs) }
    case 'device-seen':
      return { kind: 'changed', call }
  }
}

/** A device is in one call: it has one microphone, and one key to encrypt with. */
function refusalOfBusyDevice(
  call: Call,
  by: CallDeviceRef,
  { otherCallId }: CallFacts,
): CallRefused | undefined {
  if (otherCallId === undefined || joinedOn(call, by) !== undefined) return undefined
  return alreadyInCall(otherCallId)
}

/** `present` is the call as the command found it: the key that a device joins with is in it, and after that nowhere. */
function replyTo(present: Call, after: Call, command: MemberCommand): CallReply {
  switch (command.kind) {
    case 'invite':
    case 'end':
      return { kind: 'record', record: recordOf(after, command.by) }
    case 'rejoin':
      return { kind: 'record', record: recordWithKeySets(after, command.by) }
    case 'join':
      return { kind: 'record', record: recordWithOwnKey(after, command.by, present) }
    case 'request-rejoin': {
      const ask = openAskOf(after, command.by, command.nowMs)!
      return { kind: 'asked', asked: ask.asked, expiresInS: secondsOpen(ask, command.nowMs) }
    }
    default:
      return DONE
  }
}

function hasDeclined({ state, declinedOn }: Participant, { by }: MemberCommand): boolean {
  return state === 'declined' || state === 'busy' || declinedOn === by.deviceId
}

/** A removal can end a call, when no other callee was ringing. */
function hasRemoved(call: Call, { by, userId }: Extract<CallCommand, { kind: 'remove' }>): boolean {
  return by.userId === call.hostUserId && participantOf(call, userId)?.state === 'removed'
}

function isPresence(command: MemberCommand): command is PresenceCommand {
  return command.kind.startsWith('device-')
}

function unchanged(call: Call): CallDecision {
  return { kind: 'accepted', call, effects: [], reply: DONE }
}

function notFound(): CallRefused {
  return refused('CALL_NOT_FOUND', 'no call of that id has you in it')
}

/** The same for every call, the starter's own among them. */
function callIdTaken(): CallRefused {
  return refused('CALL_ID_TAKEN', 'a call has this id, or had it: start with another one')
}

function deviceRemoved(): CallRefused {
  return refused('DEVICE_NOT_REGISTERED', 'the device was removed')
}

function removedByHost(): CallRefused {
  return refused('NOT_PARTICIPANT', 'the host removed you from the call')
}

function callEnded(status: CallStatus): CallRefused {
  return refused('CALL_ENDED', `the call is over: ${status}`)
}

/** Commands that bring a device into the call, or to its key. */
const COMING: ReadonlySet<CallCommand['kind']> = new Set(['join', 'request-rejoin', 'rejoin'])
const OCCURRENCES: ReadonlySet<CallCommand['kind']> = new Set([
  'inviter-blocked',
  'account-ended',
  'account-suspended',
  'media-admitted',
  'media-feeds',
  'media-lost',
])
const DONE: CallReply = { kind: 'done' }
