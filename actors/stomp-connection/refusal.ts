/**
 * How a connection is ended from our side: an ERROR frame that says why, in headers and as a problem object, then a
 * close with a code (contract 7.1). Texts are ours; only the receipt of the peer's frame goes back.
 */

import { SignalError, type SignalErrorOptions } from '../../src/errors.ts'
import type { Headers, StompVersion } from '../../src/stomp/frame.ts'
import { FrameRefusal } from '../../src/stomp/refusal.ts'
import { encodeFrame } from '../../src/stomp/serializer.ts'
import type { Dismissal } from '../messages.ts'

export type Retry = 'false' | 'refresh' | 'after'

interface Ending {
  /** Lower snake case. */
  readonly reason: string
  readonly closeCode: number
  readonly retry: Retry
  readonly retryAfterMs?: number
  /** Beside the usual ones. */
  readonly headers?: Headers
}

/** Ends the connection when thrown by the handler of a frame. */
export class ConnectionRefusal extends SignalError {
  readonly ending: Ending

  constructor(ending: Ending, code: SignalError['code'], message: string, options?: SignalErrorOptions) {
    super(code, message, options)
    this.name = 'ConnectionRefusal'
    this.ending = ending
  }
}

/** A frame that is well formed and breaks a rule of STOMP. */
export function protocolRefusal(reason: string, message: string, headers: Headers = []): ConnectionRefusal {
  return new ConnectionRefusal(
    { reason, closeCode: 1002, retry: 'false', headers },
    'PROTOCOL_ERROR',
    message,
  )
}

/** Too many of something on one connection. */
export function limitRefusal(reason: string, message: string): ConnectionRefusal {
  return new ConnectionRefusal({ reason, closeCode: 1008, retry: 'false' }, 'CONNECTION_LIMIT', message)
}

/** Too often; the wait is given in milliseconds, and in whole seconds in the body. */
export function rateRefusal(message: string, retryAfterMs: number): ConnectionRefusal {
  const ending: Ending = { reason: 'rate_limited', closeCode: 1008, retry: 'after', retryAfterMs }
  const retryIn = Math.max(1, Math.ceil(retryAfterMs / 1_000))
  return new ConnectionRefusal(ending, 'RATE_LIMITED', message, { members: { retryIn } })
}

export function timeoutRefusal(reason: string, message: string): ConnectionRefusal {
  return new ConnectionRefusal({ reason, closeCode: 4408, retry: 'after' }, 'CONNECTION_TIMED_OUT', message)
}

/** Unread messages can be had again: from the inbox, or by reading the list of participants. */
export function slowRefusal(): ConnectionRefusal {
  const ending: Ending = { reason: 'slow', closeCode: 4410, retry: 'after', retryAfterMs: 0 }
  return new ConnectionRefusal(
    ending,
    'CONNECTION_SLOW',
    'the connection reads too slowly; resume with since',
  )
}

export function overloadRefusal(retryAfterMs: number): ConnectionRefusal {
  const ending: Ending = { reason: 'overloaded', closeCode: 1013, retry: 'after', retryAfterMs }
  return new ConnectionRefusal(ending, 'OVERLOADED', 'the server has too much to do')
}

/** `retryAfterMs` is for those that are to come back, so that they do not come all at once. */
export function dismissalRefusal(why: Dismissal, retryAfterMs: number): ConnectionRefusal {
  switch (why) {
    case 'replaced':
      return new ConnectionRefusal(
        { reason: why, closeCode: 4409, retry: 'false' },
        'CONNECTION_REPLACED',
        'a newer connection of this device took over',
      )
    case 'too_many_connections':
      return limitRefusal(why, 'the user has too many connections')
    case 'session_revoked':
      return new ConnectionRefusal(
        { reason: why, closeCode: 4401, retry: 'false' },
        'SESSION_REVOKED',
        'the session was ended, sign in again',
      )
    case 'device_removed':
      return new ConnectionRefusal(
        { reason: why, closeCode: 4403, retry: 'false' },
        'DEVICE_NOT_REGISTERED',
        'the device was removed',
      )
    case 'restriction_changed':
      // Its subscriptions were allowed by the old list: the next connection asks anew.
      return new ConnectionRefusal(
        { reason: why, closeCode: 4411, retry: 'after', retryAfterMs: 0 },
        'RESTRICTION_CHANGED',
        'the device list has changed what this device may do; connect again',
      )
    case 'draining':
      return new ConnectionRefusal(
        { reason: why, closeCode: 1012, retry: 'after', retryAfterMs },
        'DRAINING',
        'the server is stopping',
      )
    case 'moved':
      // A few at a time, so they need no pause.
      return new ConnectionRefusal(
        { reason: why, closeCode: 1012, retry: 'after', retryAfterMs: 0 },
        'DRAINING',
        'another process of the server has more room',
      )
  }
}

/** The refusal that any error ends a connection with; `status` is what HTTP would answer it with. */
export function refusalOf(error: SignalError, status: number): ConnectionRefusal {
  if (error instanceof ConnectionRefusal) return error
  const { message, errors, members } = error
  if (error instanceof FrameRefusal) {
    const { reason, closeCode } = error
    const code = closeCode === 1009 ? 'BODY_TOO_LARGE' : 'PROTOCOL_ERROR'
    return new ConnectionRefusal({ reason, closeCode, retry: 'false' }, code, message)
  }
  const reason = status === 500 ? 'internal' : error.code.toLowerCase()
  const ending: Ending = { reason, closeCode: closeCodeOf(status), retry: retryOf(error, status) }
  return new ConnectionRefusal(ending, error.code, message, { errors, members })
}

/** The octets of the ERROR frame. */
export function encodeError(
  refusal: ConnectionRefusal,
  problem: { readonly status: number; readonly body: string },
  version: StompVersion,
  receipt: string | undefined,
): Buffer {
  const { reason, retry, retryAfterMs, headers = [] } = refusal.ending
  const isFault = problem.status === 500
  return encodeFrame(
    'ERROR',
    [
      'message',
      isFault ? 'fault of the server' : plainText(refusal.message),
      'code',
      String(problem.status),
      'reason',
      reason,
      'retry',
      retry,
      ...(retryAfterMs === undefined ? [] : ['retry-after', String(Math.ceil(retryAfterMs))]),
      ...headers,
      ...(receipt === undefined ? [] : ['receipt-id', receipt]),
      'content-type',
      'application/problem+json',
    ],
    version,
    Buffer.from(problem.body),
  )
}

function closeCodeOf(status: number): number {
  switch (status) {
    case 401:
      return 4401
    case 413:
      return 1009
    case 500:
      return 1011
    case 503:
      return 1013
    default:
      return 1008
  }
}

function retryOf({ code }: SignalError, status: number): Retry {
  if (code === 'TOKEN_EXPIRED') return 'refresh'
  return status === 429 || status >= 500 ? 'after' : 'false'
}

/** Text that needs no escape: stompjs decodes escapes one kind after the other, and gets some of them wrong. */
function plainText(text: string): string {
  return text.replace(/:/g, ',').replace(/[^\x20-\x7e]|\\/g, ' ')
}
