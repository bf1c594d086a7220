/** Refusals of requests that no handler sees. */

import { SignalError } from '../errors.ts'
import type { Match } from './router.ts'

/** The refusal where nothing takes the method at a path, or nothing is there. */
export function nothingAt(match: Match | undefined): SignalError {
  if (match === undefined) return new SignalError('NOT_FOUND', 'there is nothing at this path')
  const allow = [...match.targets.keys()].join(', ')
  return new SignalError('METHOD_NOT_ALLOWED', `this path takes ${allow}`, { members: { allow } })
}

/** Bodies are small, and a compressed one would have to be bounded twice (RFC 9110, 15.5.16). */
export function refuseCoded(contentEncoding: string): void {
  if (contentEncoding === '' || contentEncoding.toLowerCase() === 'identity') return
  throw new SignalError('UNSUPPORTED_MEDIA_TYPE', 'send the body without a Content-Encoding', {
    members: { acceptEncoding: 'identity' },
  })
}

/** The refusal of a body that is longer than its route takes. */
export function bodyTooLarge(bytesMax: number): SignalError {
  return new SignalError('BODY_TOO_LARGE', `a body here has at most ${bytesMax} bytes`)
}
