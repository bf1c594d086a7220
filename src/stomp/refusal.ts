/**
 * Why a frame is refused before it takes effect. The session answers with an ERROR frame and closes; nothing that the
 * peer sends afterwards is read. A refusal names our rule and its limit, and nothing that the peer sent.
 */
import { SignalError } from '../errors.ts'

/** 1002 protocol error, 1007 not UTF-8, 1009 too big (RFC 6455, section 7.4.1). */
export type RefusalCloseCode = 1002 | 1007 | 1009

/** The `reason` header of the ERROR frame. */
export type RefusalReason =
  | 'malformed_frame'
  | 'unknown_command'
  | 'undefined_escape'
  | 'invalid_utf8'
  | 'content_length_invalid'
  | 'body_not_allowed'
  | 'heart_beat_invalid'
  | 'header_line_too_long'
  | 'too_many_headers'
  | 'frame_too_large'

/** A refused frame. `receipt` is the frame's own `receipt` header, where it was read before the fault. */
export class FrameRefusal extends SignalError {
  readonly reason: RefusalReason
  readonly closeCode: RefusalCloseCode
  readonly receipt: string | undefined

  constructor(reason: RefusalReason, message: string, receipt?: string) {
    super(CLOSE_CODE[reason] === 1009 ? 'BODY_TOO_LARGE' : 'MALFORMED', message)
    this.name = 'FrameRefusal'
    this.reason = reason
    this.closeCode = CLOSE_CODE[reason]
    this.receipt = receipt
  }
}

const CLOSE_CODE: Record<RefusalReason, RefusalCloseCode> = {
  malformed_frame: 1002,
  unknown_command: 1002,
  undefined_escape: 1002,
  invalid_utf8: 1007,
  content_length_invalid: 1002,
  body_not_allowed: 1002,
  heart_beat_invalid: 1002,
  header_line_too_long: 1009,
  too_many_headers: 1009,
  frame_too_large: 1009,
}
