/** Each error code with its reason and the client's next step, by the part of the product it belongs to. */

import type { ErrorCode } from '../../../src/errors.ts'

type Advice = Readonly<Partial<Record<ErrorCode, string>>>

const EVERYWHERE = {
  MALFORMED_REQUEST: 'HTTP itself is broken, such as two lengths. The connection is closed: mend the client',
  MALFORMED_JSON: 'the body is not JSON: mend the client',
  VALIDATION_FAILED: '`errors` points to each fault: mend the request',
  BODY_TOO_LARGE: 'send less: [limits](limits.md)',
  UNSUPPORTED_MEDIA_TYPE: 'send `application/json`',
  METHOD_NOT_ALLOWED: '`allow` names the methods of this path',
  NOT_FOUND: 'no such path, or over STOMP no such destination',
  RATE_LIMITED:
    'wait `retryIn` seconds and a random one; `scope` names the count. `callee`: they did not answer your last five calls',
  CLIENT_TOO_OLD: 'ask the user to update the app',
  IDEMPOTENCY_KEY_REUSED: 'that `Idempotency-Key` came with another body: draw a new one',
  OVERLOADED: 'wait `Retry-After` seconds and a random one, then repeat',
  DEADLINE_EXCEEDED: 'wait, then repeat',
  STORE_UNAVAILABLE: 'nothing was changed: wait, then repeat',
  OUTCOME_UNKNOWN: 'it may have been done: read, or repeat with the same `Idempotency-Key`',
  INTERNAL: 'a fault of the server: its log has the `requestId`',
} satisfies Advice

const SESSION = {
  TOKEN_MISSING: 'send `Authorization: Bearer <access token>`',
  TOKEN_INVALID: 'the session is unknown here: sign in',
  TOKEN_EXPIRED: 'refresh, then repeat',
  SESSION_REVOKED: 'the session was ended: sign in',
  REFRESH_TOKEN_INVALID: 'sign in',
  REFRESH_TOKEN_REUSED: 'an old refresh token came again, so the session has ended: sign in',
  SESSION_NOT_FOUND: 'no such session, or not yours',
  DEVICE_NOT_REGISTERED: 'the session has no device: [register it](../protocol/devices.md#register-a-key)',
  DEVICE_REQUIRED: 'the account has a device list: register a device first',
  DEVICE_NOT_LISTED:
    'the device list does not name this device: [approve it](../protocol/devices.md#restricted-sessions)',
  STEP_UP_REQUIRED: '[prove it once more](../protocol/accounts.md#prove-it-once-more), then repeat',
  ACCOUNT_SUSPENDED:
    "the operator has suspended the account; `reason` is the operator's code, `until` its end",
} satisfies Advice

const SIGN_IN = {
  OTP_INVALID: 'a wrong code: let the user type it again; `attemptsLeft`',
  OTP_EXPIRED: 'ask for another code',
  OTP_COOLDOWN: 'the next code in `retryIn` seconds',
  CHALLENGE_GONE: 'used, tried too often, or replaced: begin again',
  DELIVERY_UNAVAILABLE: 'the server sends no mail, or no SMS, now: offer another way',
  BLOCKED_COUNTRY: 'numbers of this country or network are not served: offer another way',
  PROVIDER_TOKEN_REQUIRED: "send the provider's ID token",
  PROVIDER_TOKEN_INVALID: 'get a new token from the provider',
  AUTH_CODE_INVALID: 'get a new code from Apple',
  PROVIDER_UNAVAILABLE: "the provider can't be asked now: wait",
  ACCOUNT_EXISTS:
    'the address has an account: the `challenge` links both; while a method is added: it signs in to another account',
  METHOD_EXISTS: 'it is yours already',
  LAST_LOGIN_METHOD: 'add another method first',
  LOGIN_METHOD_LIMIT: 'remove one of its kind first',
  LOGIN_METHOD_NOT_FOUND: 'no such method, or not yours',
  SIGN_IN_WAITING:
    '[a listed device answers](../protocol/sign-in.md#when-a-right-code-waits): ask `login/waiting`',
  SIGN_IN_REFUSED: 'the owner said no; the next sign-in after `until`',
  SIGN_IN_GONE: 'over, or a later one took its place: begin again',
  SIGN_IN_NOT_FOUND: 'no such sign-in waits',
  SIGN_IN_TOKEN_INVALID: "your backend's token was used, or is too old: ask for a new one",
  AUDIENCE_UNKNOWN: 'the server makes no [user tokens](../build/backend.md#user-tokens) for that service',
  PASSKEYS_OFF: 'the server has no passkeys: offer another way',
  PASSKEY_UNKNOWN: 'removed, or of another server: sign in another way',
  PASSKEY_CHALLENGE_GONE: 'ask for new options',
  PASSKEY_ORIGIN_REFUSED:
    'the page or app is not in `CALLSIGN_PASSKEY_ORIGINS`, or another site frames the page',
  PASSKEY_NOT_VERIFIED: 'the authenticator asked for no PIN or fingerprint: try again',
  PASSKEY_RP_REFUSED: 'a passkey of another domain',
  PASSKEY_INVALID: 'anything else is wrong with it: try again',
  PASSKEY_NOT_PRIMARY: 'keep another method as the primary one',
} satisfies Advice

const DEVICES = {
  DEVICE_NOT_FOUND: 'no such device, or not yours',
  DEVICE_LIMIT: 'remove a device first',
  DEVICE_LIST_CONFLICT: 'another list is the newest: read `deviceListSeq`, sign again',
  KEY_IN_USE: 'the key is of another user: make a new one',
  SESSION_HAS_DEVICE: 'the session belongs to a listed device: sign in again for another key',
  PUSH_ENDPOINT_REFUSED: "the browser's push service is not in `CALLSIGN_WEB_PUSH_HOSTS`",
} satisfies Advice

const CONTACTS = {
  USER_NOT_FOUND: 'unknown, or not yours to see',
  SHARE_TOKEN_NOT_FOUND: 'ask for a new link',
  SHARE_TOKEN_EXPIRED: 'ask for a new link',
  SHARE_TOKEN_LIMIT: 'remove a link first',
  REQUEST_NOT_FOUND: 'unknown, or not yours to see',
  REQUEST_CLOSED: 'answered, taken back or too old',
  ALREADY_FRIENDS: 'contacts already',
  SELF_REQUEST: 'name another person than yourself',
  CONTACT_LIMIT: 'one of the two has too many: remove a contact first',
  PENDING_LIMIT: 'wait for answers, or take a request back',
  USER_BLOCKED: 'unblock them first; over the server API one of the two has blocked the other',
  BLOCK_LIMIT: 'unblock a person first',
  CONTACTS_BY_SERVER: 'your [backend](../build/backend.md#contacts) makes contacts: users send no requests',
} satisfies Advice

const CALLS = {
  CALL_NOT_FOUND: 'no such call, or none of yours',
  CALL_ENDED: 'close the call',
  CALL_NOT_ACTIVE: 'not answered yet, or the invitation has ended',
  CALL_FULL: 'too many people: [limits](limits.md#for-each-call)',
  ALREADY_IN_CALL: '`callId` is the other call: leave it first',
  CALL_CROSSED: 'the callee is calling you: [join](../protocol/calls.md#two-who-call-each-other) `callId`',
  CALL_ID_TAKEN: '[draw another id](../protocol/calls.md#a-calls-id-chosen-by-the-app)',
  ROOM_IN_USE: 'the room has another call: name another',
  CALLEE_NOT_CONTACT: '`calleeIds` lists them: no contacts, or blocked by you',
  DEVICE_LIST_MISMATCH: '`missing`, `extra`, `deviceListSeqs`: fetch the keys again, seal again',
  PLAINTEXT_KEY_SUSPECTED: '32 bytes are the key itself: seal it',
  NOT_HOST: 'the host alone may',
  NOT_PARTICIPANT: 'this device is not in the call, or the host has removed its user',
  NO_ACTIVE_PARTICIPANT: 'no device to ask: rejoin with a new key',
  REJOIN_REQUIRED: 'ask for the key first',
  EPOCH_CONFLICT: "`keyEpoch` is the call's: seal for it",
  KEY_MEMBERS_NOT_FOUND: "the epoch's key came without a set, or two newer sets came",
  TURN_NOT_CONFIGURED: 'go on without a relay',
} satisfies Advice

const LOG = {
  UNKNOWN_PUBLIC_KEY_HASH: 'the log has no key under this hash',
  IDENTITY_MISMATCH: 'the entry is of another user or device: refuse the key',
  CHECKPOINT_INVALID:
    'the server refuses to answer from a log that it can not prove: wait; the operator hears of it',
  LOG_UNAVAILABLE: 'wait, then repeat',
  INDEX_UNAVAILABLE:
    "the log's [index](../check/crypto.md#the-index) can't answer now: of `/index/lookup` alone",
  TOO_MANY_KEYS: 'the device has 1,000 keys: register as a new device',
  MALFORMED: '`@callsign/sdk/client` alone: the answer is not of its form',
  KEY_INVALID: '`@callsign/sdk/client` alone: a pinned key is not of its form',
  SIGNATURE_INVALID: '`@callsign/sdk/client` alone: a signature does not verify',
  PROOF_INVALID: '`@callsign/sdk/client` alone: a proof does not verify',
} satisfies Advice

const SERVER_API = {
  SERVER_KEY_INVALID: 'no key, or none that is known',
  SERVER_KEY_EXPIRED: 'make a new key',
  SERVER_KEY_REVOKED: 'make a new key',
  SCOPE_MISSING: 'the key lacks the scope that `detail` names',
  METHOD_IN_USE: 'another account signs in by that address',
  EXTERNAL_ID_IN_USE: 'another user has that id of yours',
  USER_OWNS_SIGN_IN: 'the user has a login method, and signs in by it',
  CIRCLE_FULL: 'too many members, or too many circles of a user: [limits](limits.md#for-each-user)',
  REPORT_NOT_FOUND: 'no such report, or its days are over',
  SERVER_KEY_NOT_FOUND: 'no such key',
  WEBHOOK_NOT_FOUND: 'no such webhook',
  WEBHOOK_LIMIT: 'remove an endpoint first',
} satisfies Advice

const CONNECTIONS = {
  UPGRADE_REQUIRED: 'open a WebSocket at this path',
  ORIGIN_NOT_ALLOWED: "the operator adds the page's origin to `CALLSIGN_CORS_ORIGINS`",
  HOST_NOT_ALLOWED: 'open the development surface by an address of its own machine',
  PROTOCOL_ERROR: 'a frame breaks a rule of STOMP: mend the client',
  DESTINATION_FORBIDDEN: "another user's destination",
  CONNECTION_LIMIT:
    'too many subscriptions, transactions or connections: [limits](limits.md#for-each-connection)',
  CONNECTION_TIMED_OUT: 'connect again',
  CONNECTION_REPLACED: 'a newer connection of this device took over: stay away',
  CONNECTION_SLOW: 'connect again with `since`',
  RESTRICTION_CHANGED: "the device was put on the user's list, or taken off: connect again",
  DRAINING: 'the server restarts: connect again after a random second',
} satisfies Advice

export const ERRORS_BY_SUBJECT: Readonly<Record<string, Advice>> = {
  'Any operation': EVERYWHERE,
  Session: SESSION,
  'Sign-in': SIGN_IN,
  Devices: DEVICES,
  Contacts: CONTACTS,
  Calls: CALLS,
  Log: LOG,
  'Server API': SERVER_API,
  Connections: CONNECTIONS,
}

/** The compiler refuses this file while a code is missing. */
export const ADVISED = {
  ...EVERYWHERE,
  ...SESSION,
  ...SIGN_IN,
  ...DEVICES,
  ...CONTACTS,
  ...CALLS,
  ...LOG,
  ...SERVER_API,
  ...CONNECTIONS,
} satisfies Record<ErrorCode, string>
