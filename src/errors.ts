/**
 * The closed list of error codes, and the one error class whose code a peer may hear.
 * Codes are the contract (UPPER_SNAKE, never renamed); which HTTP or gRPC status a code gets is decided by the
 * transport that speaks it.
 */

export type ErrorCode =
  // What a peer sent is not of its form, or does not verify (parsers and verifiers of `log`).
  | 'MALFORMED'
  | 'KEY_INVALID'
  | 'SIGNATURE_INVALID'
  | 'PROOF_INVALID'
  // HTTP and gRPC requests.
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
  | 'TOO_MANY_KEYS'
  // The process.
  | 'OVERLOADED'
  | 'DEADLINE_EXCEEDED'
  | 'STORE_UNAVAILABLE'
  | 'INTERNAL'

/** One element of a request that was refused: a JSON pointer to it, a code and a sentence (contract 1.5). */
export interface FieldError {
  readonly pointer: string
  readonly code: string
  readonly detail: string
}

/**
 * A failure the peer may hear of by its code. `message` is for our log and for developers; it names thing and value
 * in lower case and never holds a secret.
 */
export class SignalError extends Error {
  readonly code: ErrorCode
  readonly errors: readonly FieldError[]

  constructor(
    code: ErrorCode,
    message: string,
    options: { cause?: unknown; errors?: readonly FieldError[] } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'SignalError'
    this.code = code
    this.errors = options.errors ?? []
  }
}

/** States a condition of our own that must hold; a failure is a defect or a damaged store, never a peer's fault. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${message}`)
}
