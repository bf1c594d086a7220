/** Sentences for people: failures, ends of calls, and news of keys. */

import { type CallEnding, CallsignError, hasCode, type KeyEvent } from '../../src/app/app.ts'
import { whenText } from './times.ts'

type NameOf = (id: string) => string

/** Its own devices are named by `deviceNameOf`. */
export function sentenceOf(error: unknown, nameOf: NameOf, deviceNameOf: NameOf): string {
  if (hasCode(error, 'KEYS_REFUSED')) return refusalOf(error, nameOf)
  if (hasCode(error, 'KEYS_RESET'))
    return questionOf(String(error.members.kind), nameOf(String(error.members.userId)))
  if (hasCode(error, 'INVITATION_OLD')) return ageOf(Number(error.members.sealedAgoMs))
  if (hasCode(error, 'OWN_DEVICE_IN_SET'))
    return `The call’s key is for one more device of yours, ${deviceNameOf(String(error.members.name).split('_')[1]!)}, for which only the server vouches. Is it yours?`
  if (hasCode(error, 'SIGN_IN_REFUSED'))
    return `Another device of this account has refused the sign-in. Until ${whenText(new Date(String(error.members.until)))} the address opens nothing, and then a new account.`
  if (!(error instanceof CallsignError)) return error instanceof Error ? error.message : String(error)
  const { attemptsLeft, retryIn } = error.members
  return [
    error.sentence,
    ...(typeof attemptsLeft === 'number' ? [`${attemptsLeft} more tries.`] : []),
    ...(typeof retryIn === 'number' ? [`Try again in ${retryIn} s.`] : []),
  ].join(' ')
}

/** Why a contact's keys are new, before the person goes on with them. */
function questionOf(kind: string, name: string): string {
  return `${name}’s keys are new: ${QUESTIONS[kind] ?? QUESTIONS.reset}. Compare the code with ${name}, or go on?`
}

function ageOf(sealedAgoMs: number): string {
  const minutes = Math.floor(sealedAgoMs / 60_000)
  return `This invitation is ${minutes} minutes old, or a clock is wrong: somebody may have held it back. Do you expect the call?`
}

/** A sentence for news of keys; undefined where the failed action has one. */
export function newsOf(event: KeyEvent, ownUserId: string | undefined, nameOf: NameOf): string | undefined {
  switch (event.kind) {
    case 'refused':
      if (event.evidence === undefined) return undefined
      return `${nameOf(event.userId)} was shown another key log than you (${event.check}): one of you may be given false keys. Keep this page’s storage: it has both signed checkpoints.`
    case 'own-key-alert':
      return undefined
    case 'own-list-alert':
      return 'The log holds a device list in your name that none of your devices has made.'
    default:
      if (event.userId !== ownUserId) return NEWS[event.kind]?.(nameOf(event.userId))
      return event.kind === 'reset'
        ? 'Your devices were started over on a new one. If that was not you, somebody else is signed in as you.'
        : undefined
  }
}

/** How a call came to its end for this device. */
export const ENDINGS: Readonly<Partial<Record<CallEnding, string>>> = {
  cancelled: 'The call was given up.',
  declined: 'The call was declined.',
  unanswered: 'Nobody has answered.',
  caller_lost: 'The caller’s connection was lost.',
  empty: 'Everybody had left: the call is over.',
  alone: 'Nobody else came back: the call is over.',
  limit: 'The call has lasted as long as a call may.',
  removed: 'The host has removed you from the call.',
  operator: 'The operator of this service has ended the call for you.',
  suspended: 'Your account was suspended.',
  left: 'You left the call.',
  moved: 'The call goes on on another device of yours.',
  key_lost: 'The page was reloaded while it rang: the key is gone, so the call was given up.',
}

/** Why it does not ring any more. */
export function ringEndingOf(reason: CallEnding, callerName: string): string | undefined {
  if (reason === 'cancelled' || reason === 'missed') return `${callerName} has given up.`
  return ELSEWHERE[reason]
}

function refusalOf({ members, message }: CallsignError, nameOf: NameOf): string {
  return `The key of ${nameOf(String(members.userId))} does not verify in the key log (${members.check}). ${message} Nothing is encrypted for it.`
}

const ELSEWHERE: Readonly<Partial<Record<CallEnding, string>>> = {
  answered_elsewhere: 'Answered on another device.',
  declined_elsewhere: 'Declined on another device.',
  busy_elsewhere: 'Another device of yours is in a call.',
}

const NEWS: Readonly<Partial<Record<KeyEvent['kind'], (name: string) => string>>> = {
  'added-by-list': name => `${name} has a new device, which another device of theirs has approved.`,
  reset: name =>
    `${name} has started over on a new device. Ask whether that is so before you say anything private.`,
  unlisted: name =>
    `The server names a device of ${name}’s that ${name} has not approved. Nothing is encrypted for it.`,
  added: name => `${name} has a new device. Nothing is encrypted for it before you have said so.`,
  replaced: name =>
    `${name} has a device with a new key. Nothing is encrypted for it before you have said so.`,
  'left-out': name => `${name} was not called: an app of theirs is too old for this call’s encryption.`,
}
const QUESTIONS: Readonly<Record<string, string>> = {
  reset: 'all devices were replaced by a new one, or somebody else is signed in under that name',
  'first-list': 'the devices have a list from now on, which no device that you know has signed',
  added: 'there is a new device, and only the server says whose it is',
  replaced: 'a device has a new key, and only the server says whose it is',
}
