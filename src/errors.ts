/**
 * The closed list of error codes, and the one error class whose code a peer may hear.
 * Codes are the contract (UPPER_SNAKE, never renamed); which HTTP or gRPC status a code gets is decided by the
 * transport that speaks it.
 */

export type ErrorCode = CoreErrorCode | ApplicationErrorCode | ConnectionErrorCode

/** Codes of the log, the process and requests as such; gRPC speaks them too. */
export type CoreErrorCode =
  // A peer sent something that is not of its form, or does not verify (parsers and verifiers of `log`).
  | 'MALFORMED'
  | 'KEY_INVALID'
  | 'SIGNATURE_INVALID'
  | 'PROOF_INVALID'
  // HTTP and gRPC requests.
  | 'MALFORMED_REQUEST'
  | 'MALFORMED_JSON'
  | 'VALIDATION_FAILED'
  | 'BODY_TOO_LARGE'
  | 'UNSUPPORTED_MEDIA_TYPE'
  | 'METHOD_NOT_ALLOWED'
  | 'NOT_FOUND'
  | 'RATE_LIMITED'
  | 'TOKEN_MISSING'
  | 'TOKEN_INVALID'
  // The log.
  | 'UNKNOWN_PUBLIC_KEY_HASH'
  | 'IDENTITY_MISMATCH'
  | 'CHECKPOINT_INVALID'
  | 'LOG_UNAVAILABLE'
  | 'INDEX_UNAVAILABLE'
  | 'TOO_MANY_KEYS'
  // The process.
  | 'OVERLOADED'
  | 'DEADLINE_EXCEEDED'
  | 'STORE_UNAVAILABLE'
  | 'OUTCOME_UNKNOWN'
  | 'INTERNAL'

/** Codes of the application API, which only HTTP and STOMP speak. */
export type ApplicationErrorCode =
  | 'CLIENT_TOO_OLD'
  // WebSocket upgrades.
  | 'UPGRADE_REQUIRED'
  | 'ORIGIN_NOT_ALLOWED'
  // The development surface, asked for by another name than this machine's.
  | 'HOST_NOT_ALLOWED'
  | 'IDEMPOTENCY_KEY_REUSED'
  // The session; a client logs its user out on most of these (contract 1.6, 2.3).
  | 'TOKEN_EXPIRED'
  | 'SESSION_REVOKED'
  | 'REFRESH_TOKEN_INVALID'
  | 'REFRESH_TOKEN_REUSED'
  // Sign-in and login methods.
  | 'OTP_INVALID'
  | 'OTP_EXPIRED'
  | 'OTP_COOLDOWN'
  | 'CHALLENGE_GONE'
  | 'PROVIDER_TOKEN_REQUIRED'
  | 'PROVIDER_TOKEN_INVALID'
  | 'AUTH_CODE_INVALID'
  | 'PROVIDER_UNAVAILABLE'
  | 'DELIVERY_UNAVAILABLE'
  | 'BLOCKED_COUNTRY'
  | 'ACCOUNT_EXISTS'
  | 'METHOD_EXISTS'
  | 'LAST_LOGIN_METHOD'
  | 'LOGIN_METHOD_LIMIT'
  | 'LOGIN_METHOD_NOT_FOUND'
  | 'SESSION_NOT_FOUND'
  | 'STEP_UP_REQUIRED'
  | 'PASSKEYS_OFF'
  | 'PUSH_ENDPOINT_REFUSED'
  | 'PASSKEY_UNKNOWN'
  | 'PASSKEY_ORIGIN_REFUSED'
  | 'PASSKEY_RP_REFUSED'
  | 'PASSKEY_CHALLENGE_GONE'
  | 'PASSKEY_NOT_VERIFIED'
  | 'PASSKEY_INVALID'
  | 'PASSKEY_NOT_PRIMARY'
  | 'SIGN_IN_WAITING'
  | 'SIGN_IN_REFUSED'
  | 'SIGN_IN_GONE'
  | 'SIGN_IN_NOT_FOUND'
  // The backend's sign-ins, and a moderator's suspension.
  | 'SIGN_IN_TOKEN_INVALID'
  | 'ACCOUNT_SUSPENDED'
  | 'AUDIENCE_UNKNOWN'
  // Devices.
  | 'DEVICE_NOT_REGISTERED'
  // The session may do little: its device is on no list, or it has none.
  | 'DEVICE_NOT_LISTED'
  | 'DEVICE_REQUIRED'
  | 'DEVICE_NOT_FOUND'
  | 'DEVICE_LIMIT'
  | 'DEVICE_LIST_CONFLICT'
  | 'KEY_IN_USE'
  | 'SESSION_HAS_DEVICE'
  // Contacts.
  | 'USER_NOT_FOUND'
  | 'SHARE_TOKEN_NOT_FOUND'
  | 'SHARE_TOKEN_EXPIRED'
  | 'SHARE_TOKEN_LIMIT'
  | 'REQUEST_NOT_FOUND'
  | 'REQUEST_CLOSED'
  | 'ALREADY_FRIENDS'
  | 'SELF_REQUEST'
  | 'CONTACT_LIMIT'
  | 'PENDING_LIMIT'
  | 'USER_BLOCKED'
  | 'BLOCK_LIMIT'
  | 'CONTACTS_BY_SERVER'
  // Calls.
  | 'CALL_NOT_FOUND'
  | 'CALL_ENDED'
  | 'CALL_NOT_ACTIVE'
  | 'CALL_FULL'
  | 'ALREADY_IN_CALL'
  | 'CALL_CROSSED'
  | 'CALL_ID_TAKEN'
  | 'ROOM_IN_USE'
  | 'CALLEE_NOT_CONTACT'
  | 'DEVICE_LIST_MISMATCH'
  | 'PLAINTEXT_KEY_SUSPECTED'
  | 'NOT_HOST'
  | 'NOT_PARTICIPANT'
  | 'NO_ACTIVE_PARTICIPANT'
  | 'REJOIN_REQUIRED'
  | 'EPOCH_CONFLICT'
  | 'KEY_MEMBERS_NOT_FOUND'
  | 'TURN_NOT_CONFIGURED'
  // The server API.
  | 'SERVER_KEY_INVALID'
  | 'SERVER_KEY_EXPIRED'
  | 'SERVER_KEY_REVOKED'
  | 'SERVER_KEY_NOT_FOUND'
  | 'SCOPE_MISSING'
  | 'METHOD_IN_USE'
  | 'EXTERNAL_ID_IN_USE'
  | 'USER_OWNS_SIGN_IN'
  | 'CIRCLE_FULL'
  | 'REPORT_NOT_FOUND'
  | 'WEBHOOK_NOT_FOUND'
  | 'WEBHOOK_LIMIT'

/** Codes of STOMP connections, which only STOMP speaks. */
export type ConnectionErrorCode =
  // A frame breaks a rule of STOMP.
  | 'PROTOCOL_ERROR'
  | 'DESTINATION_FORBIDDEN'
  // Too many of something on one connection, or too many connections.
  | 'CONNECTION_LIMIT'
  | 'CONNECTION_TIMED_OUT'
  | 'CONNECTION_REPLACED'
  | 'CONNECTION_SLOW'
  // The device was put on the user's device list, or taken off it: it connects again.
  | 'RESTRICTION_CHANGED'
  | 'DRAINING'

/** One element of a request that was refused: a JSON pointer to it, a code and a sentence (contract 1.5). */
export interface FieldError {
  readonly pointer: string
  readonly code: string
  readonly detail: string
}

/** Members of a problem body beyond its code (contract 1.5); `retryIn`, in seconds, is also its `Retry-After`. */
export type ProblemMembers = Readonly<Record<string, unknown>> & { readonly retryIn?: number }

/** How many requests a rate admits in a time. */
export interface Quota {
  readonly count: number
  readonly perMs: number
}

export interface SignalErrorOptions {
  readonly cause?: unknown
  readonly errors?: readonly FieldError[]
  readonly members?: ProblemMembers
  /** The rate that a request was refused by. */
  readonly quota?: Quota | undefined
}

/**
 * A failure the peer may hear of by its code. `message` is for our log and for developers; it names thing and value
 * in lower case and never holds a secret.
 */
export class SignalError extends Error {
  readonly code: ErrorCode
  readonly errors: readonly FieldError[]
  readonly members: ProblemMembers
  readonly quota: Quota | undefined

  constructor(code: ErrorCode, message: string, options: SignalErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'SignalError'
    this.code = code
    this.errors = options.errors ?? []
    this.members = options.members ?? {}
    this.quota = options.quota
  }
}

/** Whether it says that an access token is not accepted, whatever else is asked. */
export function isTokenRefusal(error: unknown): boolean {
  return error instanceof SignalError && TOKEN_REFUSALS.has(error.code)
}

/** The message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** States a condition of our own that must hold; a failure is a defect or a damaged store, never a peer's fault. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${message}`)
}

const TOKEN_REFUSALS: ReadonlySet<ErrorCode> = new Set(['TOKEN_INVALID', 'TOKEN_EXPIRED', 'SESSION_REVOKED'])
