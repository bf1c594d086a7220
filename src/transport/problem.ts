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
  // RFC 6750, section 3: a scheme without a parameter is none, and Foundation on Linux crashes at it.
  if (status === 401) headers.push(['WWW-Authenticate', 'Bearer realm="callsign"'])
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

/** The English title of a code. */
export function titleOf(code: ErrorCode): string {
  return PROBLEMS[code].title
}

function problem(status: number, title: string): { readonly status: number; readonly title: string } {
  return { status, title }
}

const PROBLEMS: Record<ErrorCode, { readonly status: number; readonly title: string }> = {
  MALFORMED: problem(500, 'Something went wrong on the server. Try again later.'),
  KEY_INVALID: problem(500, 'Something went wrong on the server. Try again later.'),
  SIGNATURE_INVALID: problem(500, 'Something went wrong on the server. Try again later.'),
  PROOF_INVALID: problem(500, 'Something went wrong on the server. Try again later.'),
  MALFORMED_REQUEST: problem(400, 'Not a proper HTTP request'),
  MALFORMED_JSON: problem(400, 'Not JSON'),
  VALIDATION_FAILED: problem(422, 'Something is missing or not valid. Check it and try again.'),
  BODY_TOO_LARGE: problem(413, 'This is too large. Make it shorter.'),
  UNSUPPORTED_MEDIA_TYPE: problem(415, 'Media type not supported'),
  METHOD_NOT_ALLOWED: problem(405, 'Method not allowed'),
  NOT_FOUND: problem(404, 'Not found'),
  RATE_LIMITED: problem(429, 'Too many tries. Wait a moment and try again.'),
  CLIENT_TOO_OLD: problem(426, 'This app is too old. Update it.'),
  UPGRADE_REQUIRED: problem(426, 'WebSocket only'),
  ORIGIN_NOT_ALLOWED: problem(403, 'Origin not allowed'),
  HOST_NOT_ALLOWED: problem(403, 'Host not allowed'),
  IDEMPOTENCY_KEY_REUSED: problem(422, 'Idempotency key of another request'),
  TOKEN_MISSING: problem(401, 'No access token'),
  TOKEN_INVALID: problem(401, 'Access token not accepted'),
  TOKEN_EXPIRED: problem(401, 'Access token expired'),
  SESSION_REVOKED: problem(401, 'This session has ended. Sign in again.'),
  REFRESH_TOKEN_INVALID: problem(401, 'This session has ended. Sign in again.'),
  REFRESH_TOKEN_REUSED: problem(401, 'This session has ended. Sign in again.'),
  OTP_INVALID: problem(400, 'That is not the code. Check it and try again.'),
  OTP_EXPIRED: problem(400, 'The code has expired. Ask for a new one.'),
  OTP_COOLDOWN: problem(429, 'Wait a moment before you ask for the next code.'),
  CHALLENGE_GONE: problem(410, 'This code is not valid any more. Ask for a new one.'),
  PROVIDER_TOKEN_REQUIRED: problem(400, 'Provider token missing'),
  PROVIDER_TOKEN_INVALID: problem(400, 'The sign-in was not accepted. Try again.'),
  AUTH_CODE_INVALID: problem(400, 'The sign-in was not accepted. Try again.'),
  PROVIDER_UNAVAILABLE: problem(503, 'This way to sign in does not work right now. Try again later.'),
  DELIVERY_UNAVAILABLE: problem(503, 'No code can be sent right now. Try again later.'),
  BLOCKED_COUNTRY: problem(403, 'Country not served'),
  ACCOUNT_EXISTS: problem(409, 'Account exists'),
  METHOD_EXISTS: problem(409, 'You can already sign in this way.'),
  LAST_LOGIN_METHOD: problem(409, 'This is your last way to sign in. Add another one first.'),
  LOGIN_METHOD_LIMIT: problem(409, 'You have too many ways to sign in. Remove one first.'),
  LOGIN_METHOD_NOT_FOUND: problem(404, 'No such login method'),
  SESSION_NOT_FOUND: problem(404, 'No such session'),
  STEP_UP_REQUIRED: problem(403, 'Confirm who you are first.'),
  PASSKEYS_OFF: problem(404, 'No passkeys'),
  PASSKEY_UNKNOWN: problem(404, 'This passkey is not valid any more. Sign in another way.'),
  PASSKEY_ORIGIN_REFUSED: problem(403, 'Origin not allowed for passkeys'),
  PASSKEY_RP_REFUSED: problem(400, 'Passkey of another domain'),
  PASSKEY_CHALLENGE_GONE: problem(410, 'That took too long. Try again.'),
  PASSKEY_NOT_VERIFIED: problem(403, 'The passkey was not accepted. Try again.'),
  PASSKEY_INVALID: problem(400, 'The passkey was not accepted. Try again.'),
  PASSKEY_NOT_PRIMARY: problem(409, 'A passkey is never the primary login method'),
  SIGN_IN_WAITING: problem(403, 'Approve this sign-in on another device.'),
  SIGN_IN_REFUSED: problem(403, 'This sign-in was refused on another device.'),
  SIGN_IN_GONE: problem(410, 'This sign-in is over. Start again.'),
  SIGN_IN_NOT_FOUND: problem(404, 'No such sign-in'),
  SIGN_IN_TOKEN_INVALID: problem(400, 'This sign-in is not valid any more. Start again.'),
  ACCOUNT_SUSPENDED: problem(403, 'This account is suspended. Contact the support of this app.'),
  AUDIENCE_UNKNOWN: problem(422, 'No such audience'),
  DEVICE_NOT_REGISTERED: problem(403, 'Session without a device'),
  DEVICE_NOT_LISTED: problem(403, 'Approve this device on another of your devices first.'),
  DEVICE_REQUIRED: problem(403, 'Register this device first'),
  DEVICE_NOT_FOUND: problem(404, 'No such device'),
  DEVICE_LIMIT: problem(409, 'You have too many devices. Remove one first.'),
  DEVICE_LIST_CONFLICT: problem(409, 'Another device list is the newest'),
  SESSION_HAS_DEVICE: problem(409, 'This sign-in belongs to another device. Sign in again.'),
  KEY_IN_USE: problem(409, 'Key of another user'),
  PUSH_ENDPOINT_REFUSED: problem(422, 'Calls can’t ring in this browser while the page is closed.'),
  USER_NOT_FOUND: problem(404, 'This person was not found.'),
  SHARE_TOKEN_NOT_FOUND: problem(404, 'This link is not valid any more. Ask for a new one.'),
  SHARE_TOKEN_EXPIRED: problem(410, 'This link is not valid any more. Ask for a new one.'),
  SHARE_TOKEN_LIMIT: problem(409, 'You have too many links. Remove one first.'),
  REQUEST_NOT_FOUND: problem(404, 'This request is not open any more.'),
  REQUEST_CLOSED: problem(409, 'This request is not open any more.'),
  ALREADY_FRIENDS: problem(409, 'You are contacts already.'),
  SELF_REQUEST: problem(422, 'You can’t add yourself.'),
  CONTACT_LIMIT: problem(409, 'There are too many contacts. Remove one first.'),
  PENDING_LIMIT: problem(409, 'Too many requests are open. Wait for answers, or take one back.'),
  USER_BLOCKED: problem(409, 'You have blocked this person. Unblock them first.'),
  BLOCK_LIMIT: problem(409, 'You have blocked too many people. Unblock one first.'),
  CONTACTS_BY_SERVER: problem(403, 'Your contacts are managed for you. You can’t add people yourself.'),
  CALL_NOT_FOUND: problem(404, 'This call was not found.'),
  CALL_ENDED: problem(410, 'This call has ended.'),
  CALL_NOT_ACTIVE: problem(409, 'Call not active'),
  CALL_FULL: problem(409, 'This call is full.'),
  ALREADY_IN_CALL: problem(409, 'You are in another call. End it first.'),
  CALL_CROSSED: problem(409, 'They are calling you'),
  CALL_ID_TAKEN: problem(409, 'Call id taken'),
  ROOM_IN_USE: problem(409, 'Room in use'),
  CALLEE_NOT_CONTACT: problem(403, 'You can’t call this person yet. Become contacts first.'),
  DEVICE_LIST_MISMATCH: problem(409, 'Devices have changed'),
  PLAINTEXT_KEY_SUSPECTED: problem(422, 'A call key that is not encrypted'),
  NOT_HOST: problem(403, 'Only the host of the call can do this.'),
  NOT_PARTICIPANT: problem(403, 'You are not in this call.'),
  NO_ACTIVE_PARTICIPANT: problem(409, 'Nobody to ask'),
  REJOIN_REQUIRED: problem(409, 'Ask to rejoin first'),
  EPOCH_CONFLICT: problem(409, 'Epoch of another key'),
  KEY_MEMBERS_NOT_FOUND: problem(404, 'No such key members'),
  TURN_NOT_CONFIGURED: problem(503, 'No relay'),
  SERVER_KEY_INVALID: problem(401, 'Server key not accepted'),
  SERVER_KEY_EXPIRED: problem(401, 'Server key expired'),
  SERVER_KEY_REVOKED: problem(401, 'Server key revoked'),
  SERVER_KEY_NOT_FOUND: problem(404, 'No such server key'),
  SCOPE_MISSING: problem(403, 'Server key without this scope'),
  METHOD_IN_USE: problem(409, 'Address of another account'),
  EXTERNAL_ID_IN_USE: problem(409, 'External id of another user'),
  USER_OWNS_SIGN_IN: problem(409, 'The user signs in by their own methods'),
  CIRCLE_FULL: problem(409, 'Too many members, or too many circles'),
  REPORT_NOT_FOUND: problem(404, 'No such report'),
  WEBHOOK_NOT_FOUND: problem(404, 'No such webhook'),
  WEBHOOK_LIMIT: problem(409, 'Too many webhooks'),
  PROTOCOL_ERROR: problem(400, 'STOMP rule broken'),
  DESTINATION_FORBIDDEN: problem(403, 'Destination not open to you'),
  CONNECTION_LIMIT: problem(409, 'Too many on one connection'),
  CONNECTION_TIMED_OUT: problem(408, 'Nothing heard in time'),
  CONNECTION_REPLACED: problem(409, 'A newer connection of the device'),
  CONNECTION_SLOW: problem(503, 'Reads too slowly'),
  RESTRICTION_CHANGED: problem(503, 'Rights of the device changed'),
  DRAINING: problem(503, 'The server is restarting. Try again in a moment.'),
  UNKNOWN_PUBLIC_KEY_HASH: problem(404, 'No key under this hash'),
  IDENTITY_MISMATCH: problem(409, 'The log entry is not of this identity'),
  CHECKPOINT_INVALID: problem(503, 'The log can not prove its state'),
  LOG_UNAVAILABLE: problem(503, 'The server can’t do this right now. Try again in a moment.'),
  INDEX_UNAVAILABLE: problem(503, 'There is no index of the log to answer from'),
  TOO_MANY_KEYS: problem(429, 'Too many keys of one device'),
  OVERLOADED: problem(503, 'The server is too busy. Try again in a moment.'),
  DEADLINE_EXCEEDED: problem(503, 'That took too long. Try again.'),
  STORE_UNAVAILABLE: problem(503, 'The server can’t do this right now. Try again in a moment.'),
  OUTCOME_UNKNOWN: problem(503, 'It is not known whether this was done. Check before you try again.'),
  INTERNAL: problem(500, 'Something went wrong on the server. Try again later.'),
}

/** RFC 9110, 7.8 and 15.5.22; RFC 6455, 4.4. */
const UPGRADE_HEADERS: readonly [string, string][] = [
  ['Upgrade', 'websocket'],
  ['Connection', 'Upgrade'],
  ['Sec-WebSocket-Version', '13'],
]
/** The longest wait after a 503 that does not say how long. */
const RETRY_SECONDS_MAX = 4
