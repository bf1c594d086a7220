/** Refusals as RFC 9457 problem details with the members of contract 1.5: the status and title of each code, the body. */

import { type ErrorCode, type Quota, SignalError } from '../errors.ts'
import { TITLES, type TitleLanguage } from './problem-titles.ts'

export interface Problem {
  readonly status: number
  /** The JSON text of the body. */
  readonly body: string
  /** Besides `Cache-Control: no-store`, which every refusal has. */
  readonly headers: readonly (readonly [string, string])[]
}

/**
 * What the peer hears of an error. A fault of ours says nothing more than the request id. The title alone is in the
 * peer's language: `detail` is for developers.
 */
export function problemOf(error: unknown, requestId: string, language: TitleLanguage = 'en'): Problem {
  const refusal = error instanceof SignalError ? error : new SignalError('INTERNAL', 'a fault of the server')
  const { status, title } = PROBLEMS[refusal.code]
  const isFault = status === 500
  const members = isFault ? {} : refusal.members
  const retryIn = members.retryIn ?? (status === 503 ? retrySeconds(requestId) : undefined)
  const headers: [string, string][] = []
  if (retryIn !== undefined) headers.push(['Retry-After', String(retryIn)])
  if (status === 429 && retryIn !== undefined) {
    headers.push(...rateHeaders(members.scope, retryIn, refusal.quota))
  }
  if (typeof members.allow === 'string') headers.push(['Allow', members.allow])
  if (typeof members.acceptEncoding === 'string') headers.push(['Accept-Encoding', members.acceptEncoding])
  if (status === 401) headers.push(['WWW-Authenticate', 'Bearer'])
  if (refusal.code === 'UPGRADE_REQUIRED') headers.push(...UPGRADE_HEADERS)
  const code = isFault ? 'INTERNAL' : refusal.code
  const body = {
    type: `urn:problem:${code.toLowerCase().replaceAll('_', '-')}`,
    title: language === 'en' ? title : TITLES[refusal.code][language],
    status,
    code,
    detail: isFault ? 'The server failed; the request id names the fault in its log.' : refusal.message,
    requestId,
    ...(retryIn === undefined ? {} : { retryIn }),
    ...members,
    ...(refusal.errors.length === 0 ? {} : { errors: refusal.errors }),
  }
  return { status, body: JSON.stringify(body), headers }
}

/**
 * The wait after a 503 that does not say how long. Ids count up, so requests that are refused together come back spread over
 * some seconds.
 */
function retrySeconds(requestId: string): number {
  return 1 + ((requestId.charCodeAt(requestId.length - 1) || 0) % RETRY_SECONDS_MAX)
}

/**
 * A quota that is used up: for how many seconds, its name, and its size in a time
 * (draft-ietf-httpapi-ratelimit-headers-11: informative).
 */
function rateHeaders(scope: unknown, retryIn: number, quota: Quota | undefined): [string, string][] {
  const name = `"${typeof scope === 'string' ? scope : 'default'}"`
  const limit: [string, string] = ['RateLimit', `${name};r=0;t=${retryIn}`]
  if (quota === undefined) return [limit]
  return [limit, ['RateLimit-Policy', `${name};q=${quota.count};w=${Math.ceil(quota.perMs / 1000)}`]]
}

/** The HTTP status of a code. */
export function statusOf(code: ErrorCode): number {
  return PROBLEMS[code].status
}

function problem(status: number, title: string): { readonly status: number; readonly title: string } {
  return { status, title }
}

const PROBLEMS: Record<ErrorCode, { readonly status: number; readonly title: string }> = {
  MALFORMED: problem(500, 'Server fault'),
  KEY_INVALID: problem(500, 'Server fault'),
  SIGNATURE_INVALID: problem(500, 'Server fault'),
  PROOF_INVALID: problem(500, 'Server fault'),
  MALFORMED_REQUEST: problem(400, 'Not a proper HTTP request'),
  MALFORMED_JSON: problem(400, 'Not JSON'),
  VALIDATION_FAILED: problem(422, 'A field breaks a rule'),
  BODY_TOO_LARGE: problem(413, 'Body too large'),
  UNSUPPORTED_MEDIA_TYPE: problem(415, 'Media type not supported'),
  METHOD_NOT_ALLOWED: problem(405, 'Method not allowed'),
  NOT_FOUND: problem(404, 'Not found'),
  RATE_LIMITED: problem(429, 'Too many requests'),
  CLIENT_TOO_OLD: problem(426, 'Client too old'),
  UPGRADE_REQUIRED: problem(426, 'WebSocket only'),
  ORIGIN_NOT_ALLOWED: problem(403, 'Origin not allowed'),
  HOST_NOT_ALLOWED: problem(403, 'Host not allowed'),
  IDEMPOTENCY_KEY_REUSED: problem(422, 'Idempotency key of another request'),
  TOKEN_MISSING: problem(401, 'No access token'),
  TOKEN_INVALID: problem(401, 'Access token not accepted'),
  TOKEN_EXPIRED: problem(401, 'Access token expired'),
  SESSION_REVOKED: problem(401, 'Session over'),
  REFRESH_TOKEN_INVALID: problem(401, 'Refresh token not accepted'),
  REFRESH_TOKEN_REUSED: problem(401, 'Refresh token used before'),
  OTP_INVALID: problem(400, 'Code not accepted'),
  OTP_EXPIRED: problem(400, 'Code expired'),
  OTP_COOLDOWN: problem(429, 'Wait before the next code'),
  CHALLENGE_GONE: problem(410, 'Challenge over'),
  PROVIDER_TOKEN_REQUIRED: problem(400, 'Provider token missing'),
  PROVIDER_TOKEN_INVALID: problem(400, 'Provider token not accepted'),
  AUTH_CODE_INVALID: problem(400, 'Authorization code not accepted'),
  PROVIDER_UNAVAILABLE: problem(503, 'Identity provider not available'),
  DELIVERY_UNAVAILABLE: problem(503, 'Codes can not be sent'),
  BLOCKED_COUNTRY: problem(403, 'Country not served'),
  ACCOUNT_EXISTS: problem(409, 'Account exists'),
  METHOD_EXISTS: problem(409, 'Login method exists'),
  LAST_LOGIN_METHOD: problem(409, 'Last login method'),
  LOGIN_METHOD_LIMIT: problem(409, 'Too many login methods'),
  LOGIN_METHOD_NOT_FOUND: problem(404, 'No such login method'),
  SESSION_NOT_FOUND: problem(404, 'No such session'),
  STEP_UP_REQUIRED: problem(403, 'Confirm who you are first'),
  PASSKEYS_OFF: problem(404, 'No passkeys'),
  PASSKEY_UNKNOWN: problem(404, 'No such passkey'),
  PASSKEY_ORIGIN_REFUSED: problem(403, 'Origin not allowed for passkeys'),
  PASSKEY_RP_REFUSED: problem(400, 'Passkey of another domain'),
  PASSKEY_CHALLENGE_GONE: problem(410, 'Passkey challenge over'),
  PASSKEY_NOT_VERIFIED: problem(403, 'Passkey without verification of the user'),
  PASSKEY_INVALID: problem(400, 'Passkey not accepted'),
  PASSKEY_NOT_PRIMARY: problem(409, 'A passkey is never the primary login method'),
  SIGN_IN_WAITING: problem(403, 'Sign-in waits for its owner'),
  SIGN_IN_REFUSED: problem(403, 'Sign-in refused by its owner'),
  SIGN_IN_GONE: problem(410, 'Sign-in over'),
  SIGN_IN_NOT_FOUND: problem(404, 'No such sign-in'),
  DEVICE_NOT_REGISTERED: problem(403, 'Session without a device'),
  DEVICE_NOT_LISTED: problem(403, 'Device not approved yet'),
  DEVICE_REQUIRED: problem(403, 'Register this device first'),
  DEVICE_NOT_FOUND: problem(404, 'No such device'),
  DEVICE_LIMIT: problem(409, 'Too many devices'),
  DEVICE_LIST_CONFLICT: problem(409, 'Another device list is the newest'),
  SESSION_HAS_DEVICE: problem(409, 'Session of another device'),
  KEY_IN_USE: problem(409, 'Key of another user'),
  PUSH_ENDPOINT_REFUSED: problem(422, 'Push service not known'),
  USER_NOT_FOUND: problem(404, 'No such user'),
  SHARE_TOKEN_NOT_FOUND: problem(404, 'No such share token'),
  SHARE_TOKEN_EXPIRED: problem(410, 'Share token over'),
  SHARE_TOKEN_LIMIT: problem(409, 'Too many share tokens'),
  REQUEST_NOT_FOUND: problem(404, 'No such request'),
  REQUEST_CLOSED: problem(409, 'Request closed'),
  ALREADY_FRIENDS: problem(409, 'Contacts already'),
  SELF_REQUEST: problem(422, 'Request to oneself'),
  CONTACT_LIMIT: problem(409, 'Too many contacts'),
  PENDING_LIMIT: problem(409, 'Too many open requests'),
  USER_BLOCKED: problem(409, 'Blocked by you'),
  BLOCK_LIMIT: problem(409, 'Too many blocked users'),
  CALL_NOT_FOUND: problem(404, 'No such call'),
  CALL_ENDED: problem(410, 'Call over'),
  CALL_NOT_ACTIVE: problem(409, 'Call not active'),
  CALL_FULL: problem(409, 'Call full'),
  ALREADY_IN_CALL: problem(409, 'In another call'),
  CALL_CROSSED: problem(409, 'They are calling you'),
  CALL_ID_TAKEN: problem(409, 'Call id taken'),
  ROOM_IN_USE: problem(409, 'Room in use'),
  CALLEE_NOT_CONTACT: problem(403, 'Callee is no contact'),
  DEVICE_LIST_MISMATCH: problem(409, 'Devices have changed'),
  PLAINTEXT_KEY_SUSPECTED: problem(422, 'A call key that is not encrypted'),
  NOT_HOST: problem(403, 'Only for the host'),
  NOT_PARTICIPANT: problem(403, 'Only for participants'),
  NO_ACTIVE_PARTICIPANT: problem(409, 'Nobody to ask'),
  REJOIN_REQUIRED: problem(409, 'Ask to rejoin first'),
  EPOCH_CONFLICT: problem(409, 'Epoch of another key'),
  KEY_MEMBERS_NOT_FOUND: problem(404, 'No such key members'),
  TURN_NOT_CONFIGURED: problem(503, 'No relay'),
  PROTOCOL_ERROR: problem(400, 'STOMP rule broken'),
  DESTINATION_FORBIDDEN: problem(403, 'Destination not open to you'),
  CONNECTION_LIMIT: problem(409, 'Too many on one connection'),
  CONNECTION_TIMED_OUT: problem(408, 'Nothing heard in time'),
  CONNECTION_REPLACED: problem(409, 'A newer connection of the device'),
  CONNECTION_SLOW: problem(503, 'Reads too slowly'),
  RESTRICTION_CHANGED: problem(503, 'Rights of the device changed'),
  DRAINING: problem(503, 'Server is stopping'),
  UNKNOWN_PUBLIC_KEY_HASH: problem(404, 'No key under this hash'),
  IDENTITY_MISMATCH: problem(409, 'The log entry is not of this identity'),
  CHECKPOINT_INVALID: problem(503, 'The log can not prove its state'),
  LOG_UNAVAILABLE: problem(503, 'The log is not available'),
  TOO_MANY_KEYS: problem(429, 'Too many keys of one device'),
  OVERLOADED: problem(503, 'Too much to do'),
  DEADLINE_EXCEEDED: problem(503, 'Took too long'),
  STORE_UNAVAILABLE: problem(503, 'The store is not available'),
  OUTCOME_UNKNOWN: problem(503, 'Whether the request was carried out is not known'),
  INTERNAL: problem(500, 'Server fault'),
}

/** RFC 9110, 7.8 and 15.5.22; RFC 6455, 4.4. */
const UPGRADE_HEADERS: readonly [string, string][] = [
  ['Upgrade', 'websocket'],
  ['Connection', 'Upgrade'],
  ['Sec-WebSocket-Version', '13'],
]
/** The longest wait after a 503 that does not say how long. */
const RETRY_SECONDS_MAX = 4
