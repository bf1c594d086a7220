/** The sentences that elements show: why something failed, and how a call ended. */

import { type CallEnding, CallsignError, hasCode } from '../app/app.ts'
import { whenText } from './when.ts'
import { type Word, word } from './words.ts'

export type NameOf = (id: string) => string

/** `nameOf` names users; `deviceNameOf` names the user's own devices. */
export function sentenceOf(
  error: unknown,
  nameOf: NameOf = () => word('name-somebody'),
  deviceNameOf?: NameOf,
): string {
  if (!(error instanceof CallsignError)) return error instanceof Error ? error.message : String(error)
  const named = namedSentence(error, nameOf, deviceNameOf)
  if (named !== undefined) return named
  const { attemptsLeft, retryIn } = error.members
  return [
    error.sentence,
    ...(typeof attemptsLeft === 'number'
      ? [word(attemptsLeft === 1 ? 'failure-attempt-left' : 'failure-attempts-left', attemptsLeft)]
      : []),
    ...(typeof retryIn === 'number' ? [word('failure-retry-in', durationText(retryIn))] : []),
  ].join(' ')
}

/** A sentence that names people, devices or times; undefined where the SDK's own says all. */
function namedSentence(error: CallsignError, nameOf: NameOf, deviceNameOf?: NameOf): string | undefined {
  const { members } = error
  const name = () => nameOf(String(members.userId))
  switch (error.code) {
    case 'KEYS_REFUSED':
      return isOfAnotherLog(error)
        ? word('failure-another-log')
        : word('failure-keys-refused', name(), String(members.check ?? 'name'))
    case 'KEYS_RESET':
      return word('failure-keys-reset', name(), word(RESETS[String(members.kind)] ?? 'reset-all'))
    case 'KEYS_UNAVAILABLE': {
      const [userId, ...more] = Array.isArray(members.userIds) ? members.userIds.map(String) : []
      return userId === undefined || more.length > 0 ? undefined : word('failure-no-device', nameOf(userId))
    }
    case 'CALLEE_NOT_CONTACT':
      return word('failure-not-contact')
    case 'INVITATION_OLD':
      return word('failure-invitation-old', Math.floor(Number(members.sealedAgoMs) / 60_000))
    case 'OWN_DEVICE_IN_SET':
      return deviceNameOf && word('failure-own-device', deviceNameOf(String(members.name).split('_')[1]!))
    case 'SIGN_IN_REFUSED':
      return word('failure-sign-in-refused', whenText(new Date(String(members.until))))
    default:
      return undefined
  }
}

/** Whether the server shows another log than the app was built for: it was begun anew, or the pins are old. */
export function isOfAnotherLog(error: unknown): boolean {
  return hasCode(error, 'KEYS_REFUSED') && OTHER_LOG.includes(String(error.members.check))
}

/** How a call came to its end for this device. */
export function endingOf(reason: CallEnding): string {
  return word(ENDINGS[reason] ?? 'ending-other')
}

/** Why a call does not ring any more; undefined where there is nothing to say. */
export function ringEndingOf(reason: CallEnding, callerName: string): string | undefined {
  if (reason === 'cancelled' || reason === 'missed') return word('ending-ring-given-up', callerName)
  const key = ELSEWHERE[reason]
  return key && word(key)
}

function durationText(seconds: number): string {
  return seconds < 120 ? `${seconds} s` : `${Math.ceil(seconds / 60)} min`
}

/** A note is none of the log that the app knows. */
const OTHER_LOG: readonly string[] = ['checkpoint', 'origin', 'signature']
const RESETS: Readonly<Record<string, Word>> = {
  'first-list': 'reset-first-list',
  added: 'reset-added',
  replaced: 'reset-replaced',
}
const ENDINGS: Readonly<Partial<Record<CallEnding, Word>>> = {
  cancelled: 'ending-cancelled',
  declined: 'ending-declined',
  unanswered: 'ending-unanswered',
  caller_lost: 'ending-caller-lost',
  empty: 'ending-empty',
  alone: 'ending-alone',
  limit: 'ending-limit',
  removed: 'ending-removed',
  operator: 'ending-operator',
  suspended: 'ending-suspended',
  left: 'ending-left',
  moved: 'ending-moved',
  key_lost: 'ending-key-lost',
}
const ELSEWHERE: Readonly<Partial<Record<CallEnding, Word>>> = {
  answered_elsewhere: 'ending-answered-elsewhere',
  declined_elsewhere: 'ending-declined-elsewhere',
  busy_elsewhere: 'ending-busy-elsewhere',
}
