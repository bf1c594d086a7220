/** The errors that an app meets: refusals of the server, and failures on this side. */

import type { ErrorCode } from '../errors.ts'
import { sentenceFor, spoken } from './sentences.ts'

/** Codes of failures that no server has named. */
export type LocalErrorCode =
  /** No server answered in time, or the answer broke off. */
  | 'NO_ANSWER'
  /** The server answered with something else than its interface says. */
  | 'ANSWER_INVALID'
  /** The operation needs a session, and there is none. */
  | 'SIGNED_OUT'
  /** The storage has a value that this app did not put there. `members.key` names it: without it the app can start over. */
  | 'STORAGE_CORRUPT'
  /** The storage could not be read or written. */
  | 'STORAGE_FAILED'
  /** This device is registered with other keys than the ones in its storage. Without the value `members.key` it starts over as a new one. */
  | 'DEVICE_KEYS_LOST'
  /** Another user is signed in. */
  | 'ALREADY_SIGNED_IN'
  /** The person has put the question for a passkey away, or there is none for this server. */
  | 'PASSKEY_CANCELLED'
  /** The platform has no passkeys, or refuses them here, such as on a page of another domain. */
  | 'PASSKEY_UNAVAILABLE'
  /** This device does not have the key of the call yet. */
  | 'KEY_MISSING'
  /** The call's key was not sealed by the device that is said to have sent it, or not for this one. */
  | 'CALL_KEY_INVALID'
  /** The call's key is sealed for a device or a person that it must not be for, or comes from one who had no key before. */
  | 'KEY_MEMBERS_REFUSED'
  /** The call's key was sent before, for another call, epoch or set of devices. */
  | 'CALL_KEY_REUSED'
  /** A second key came for an epoch that has one here. */
  | 'CALL_KEY_CHANGED'
  /** The call's key is of an epoch that this device has left behind. */
  | 'CALL_KEY_OLD'
  /** The invitation's key does not come from the person who is said to call. */
  | 'CALLER_NOT_SEALER'
  /** The invitation was sealed more than five minutes ago: ask the user, who may answer it all the same. */
  | 'INVITATION_OLD'
  /** The call's key is sealed for a device of the user's own that is on no list: ask whether it is theirs. */
  | 'OWN_DEVICE_IN_SET'
  /** The server wants the key for a person whom this device has removed: `members.userId`. */
  | 'REMOVAL_IGNORED'
  /** A device in the call got no key, since the key log does not prove it now: `members.name`. */
  | 'KEY_LEFT_OUT'
  /** The server or the key log has named keys that do not hold: nothing is encrypted for them. */
  | 'KEYS_REFUSED'
  /**
   * A contact's keys are new and nothing known vouches for them. Ask the user, call
   * `contacts.acceptKeys` with `members.userId` and `members.listHash`, and repeat; `members.kind` says what is new.
   */
  | 'KEYS_RESET'
  /** A user has no keys, or not for this user to see. */
  | 'KEYS_UNAVAILABLE'
  /** Nothing can be sealed for the device `members.deviceId` of `members.userId`: it has an RSA key and no place in a device list. */
  | 'KEY_UNSUPPORTED'
  /** The key log could not be asked. */
  | 'LOG_UNANSWERED'
  /** There is no connection to the server, or it broke before the answer came. */
  | 'OFFLINE'
  /** The platform has no WebSocket of its own, and the app gave none. */
  | 'WEBSOCKET_MISSING'
  /** Another device of the user has removed this one. */
  | 'DEVICE_REMOVED'
  /** The browser or the module can't encrypt the call's media, which is never sent in the clear. */
  | 'MEDIA_UNSUPPORTED'
  /** The media gateway did not answer in time, or the connection to it broke. */
  | 'MEDIA_UNANSWERED'
  /** The media gateway refused; `members.status` has its error code. */
  | 'MEDIA_REFUSED'
  /** The text leads to no contact's link and no user. */
  | 'INVALID_QR'

/** Servers newer than the app may send further codes. */
export type CallsignErrorCode = ErrorCode | LocalErrorCode | (string & Record<never, never>)

export class CallsignError extends Error {
  override readonly name = 'CallsignError'
  readonly code: CallsignErrorCode
  /** The HTTP status of a refusal. */
  readonly status: number | undefined
  /** The members of the problem (RFC 9457), such as `attemptsLeft` or `retryIn`. */
  readonly members: Readonly<Record<string, unknown>>

  constructor(
    code: CallsignErrorCode,
    message: string,
    {
      status,
      members = {},
      cause,
    }: {
      readonly status?: number
      readonly members?: Readonly<Record<string, unknown>>
      readonly cause?: unknown
    } = {},
  ) {
    super(message, cause === undefined ? {} : { cause })
    this.code = code
    this.status = status
    this.members = members
  }

  /**
   * What to show to the user: what happened and what to do now, in their language. `message` is for developers.
   * A refusal has the words of the server.
   */
  get sentence(): string {
    return sentenceFor(this.code, this.members.title, spoken.language)
  }
}

/** An error as plain data; a `CallsignError` is one. */
export interface Failure {
  readonly code: string
  readonly message?: string
  readonly members?: Readonly<Record<string, unknown>>
}

/** Whether the error is a `CallsignError` with one of these codes. */
export function hasCode(error: unknown, ...codes: readonly CallsignErrorCode[]): error is CallsignError {
  return error instanceof CallsignError && codes.includes(error.code)
}

/** Gives false where the server refused it to a device that its user has not approved yet. */
export async function isAllowed(act: Promise<void>): Promise<boolean> {
  try {
    await act
    return true
  } catch (error) {
    if (hasCode(error, 'DEVICE_NOT_LISTED')) return false
    throw error
  }
}

/** The error that a problem (RFC 9457) tells of. A value of another form has the code and the sentence given here. */
export function errorOf(problem: unknown, code: string, sentence: string, status?: number): CallsignError {
  const members = typeof problem === 'object' && problem !== null ? (problem as Members) : {}
  const message = [members.detail, members.title].find(each => typeof each === 'string')
  return new CallsignError(
    typeof members.code === 'string' && members.code !== '' ? members.code : code,
    typeof message === 'string' ? message : sentence,
    { members, ...(status !== undefined && { status }) },
  )
}

type Members = Readonly<Record<string, unknown>>
