/** The one error that `@callsign/sdk/server` throws. */

/** Codes of failures on this side; all other codes are the server's (docs/build/backend.md). */
export type LocalErrorCode =
  /** No server answered in time, or the answer broke off. */
  | 'NO_ANSWER'
  /** The server answered with something else than its interface says. */
  | 'ANSWER_INVALID'
  /** A webhook whose signature, time or form is not right. */
  | 'WEBHOOK_INVALID'
  /** A user token that is not good here: forged, over, for another audience, or not a user token. */
  | 'TOKEN_INVALID'

export class CallsignServerError extends Error {
  override readonly name = 'CallsignServerError'
  /** Stable: the code of the server's problem (RFC 9457), or a `LocalErrorCode`. */
  readonly code: LocalErrorCode | (string & Record<never, never>)
  /** The HTTP status of a refusal. */
  readonly status: number | undefined
  /** The problem's members, such as `retryIn`, `errors` or `requestId`. */
  readonly members: Readonly<Record<string, unknown>>

  constructor(
    code: CallsignServerError['code'],
    message: string,
    {
      status,
      members = {},
      cause,
    }: { status?: number; members?: CallsignServerError['members']; cause?: unknown } = {},
  ) {
    super(message, cause === undefined ? {} : { cause })
    this.code = code
    this.status = status
    this.members = members
  }
}
