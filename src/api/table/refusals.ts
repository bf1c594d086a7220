/**
 * Which codes an operation can refuse with: its own, and those that come from its access and form. The document names
 * them and tests hold every answer against them, so they are worked out in one place.
 */

import type { ErrorCode } from '../../errors.ts'
import type { Access, OperationForm } from './operation.ts'

/** Every code that an answer of the operation may have, in alphabetical order. */
export function codesOf(operation: OperationForm): readonly ErrorCode[] {
  const codes = [...operation.codes, ...ANY_CODES, ...ACCESS_CODES[operation.access], ...formCodes(operation)]
  return [...new Set(codes)].sort()
}

function formCodes(operation: OperationForm): readonly ErrorCode[] {
  const { method, tag, bodySchema, querySchema, isIdempotent = false } = operation
  const codes: ErrorCode[] = []
  if (isVersionChecked(operation)) codes.push('CLIENT_TOO_OLD')
  // A body is read where one may come, also where nothing is expected of it.
  if (method !== 'GET') codes.push('BODY_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE')
  if (method !== 'GET' && tag !== 'log') codes.push('STORE_UNAVAILABLE', 'OUTCOME_UNKNOWN')
  if (bodySchema !== undefined) codes.push('MALFORMED_JSON', 'VALIDATION_FAILED')
  if (querySchema !== undefined) codes.push('VALIDATION_FAILED')
  if (isIdempotent) codes.push('IDEMPOTENCY_KEY_REUSED', 'VALIDATION_FAILED')
  return codes
}

/** Whether clients that are too old are turned away: `meta` tells them so, and the log is open to all. */
export function isVersionChecked({ tag, access }: OperationForm): boolean {
  return tag !== 'meta' && tag !== 'log' && access !== 'server-key' && access !== 'operator'
}

const ANY_CODES: readonly ErrorCode[] = ['MALFORMED_REQUEST', 'RATE_LIMITED', 'INTERNAL']

const BAD_SESSION_CODES: readonly ErrorCode[] = ['TOKEN_INVALID', 'TOKEN_EXPIRED', 'SESSION_REVOKED']

const SERVER_KEY_CODES: readonly ErrorCode[] = [
  'SERVER_KEY_INVALID',
  'SERVER_KEY_EXPIRED',
  'SERVER_KEY_REVOKED',
]

const RESTRICTION_CODES: readonly ErrorCode[] = ['DEVICE_NOT_LISTED', 'DEVICE_REQUIRED']

const ACCESS_CODES: Record<Access, readonly ErrorCode[]> = {
  public: [],
  optional: BAD_SESSION_CODES,
  ended: ['TOKEN_MISSING', 'TOKEN_INVALID', 'TOKEN_EXPIRED'],
  restricted: ['TOKEN_MISSING', ...BAD_SESSION_CODES],
  'restricted-device': ['TOKEN_MISSING', ...BAD_SESSION_CODES, 'DEVICE_NOT_REGISTERED'],
  'server-key': [...SERVER_KEY_CODES, 'SCOPE_MISSING'],
  operator: SERVER_KEY_CODES,
  session: ['TOKEN_MISSING', ...BAD_SESSION_CODES, ...RESTRICTION_CODES],
  device: ['TOKEN_MISSING', ...BAD_SESSION_CODES, ...RESTRICTION_CODES, 'DEVICE_NOT_REGISTERED'],
}
