/** What a conformance case is. Cases are data, so that the same table runs against the codec alone and through sockets. */

/**
 * What the client sees, in order, but for the RECEIPT of a SEND, which may come before or after the MESSAGEs that the
 * SEND caused. Texts are in the notation of `test/support/notation.ts`.
 */
export type Outcome =
  | FrameOutcome
  | RefusedOutcome
  /** A close without an ERROR having to come before it. */
  | { readonly kind: 'closed'; readonly code: number }
  /** Nothing at all, and the connection stays open. */
  | { readonly kind: 'silence' }

export interface FrameOutcome {
  readonly kind: 'message' | 'receipt' | 'connected'
  /** Header lines as they are on the wire, each the first of its name; `*` is any value. */
  readonly lines: readonly string[]
  /** Headers that must not be there. */
  readonly without: readonly string[]
  /** Value of that header. Not among the lines: runners have topics of their own. */
  readonly destination?: string
  readonly body?: string
  readonly isBinary?: boolean
}

/** An ERROR with all that every ERROR has, then a close with one of these codes. */
export interface RefusedOutcome {
  readonly kind: 'refused'
  readonly lines: readonly string[]
  readonly without: readonly string[]
  /** Whether the parser finds the fault itself or the session that it hands the frame to. */
  readonly by: 'codec' | 'session'
  readonly close: readonly number[]
}

interface CaseBeginning {
  readonly id: string
  readonly session: string
  readonly input: string
}

/** A case of octets in and frames out. */
export interface WireCase extends CaseBeginning {
  readonly kind: 'wire'
  readonly required: readonly Outcome[]
  /** Which of m1, m2, ... come again, with `redelivered:true`, once the device has dropped and subscribes anew. */
  readonly redelivered?: readonly string[]
}

/** A case that octets alone do not tell: clocks, several connections, HTTP, restarts, the WebSocket beneath. */
export interface StoryCase extends CaseBeginning {
  readonly kind: 'story'
}

export type Case = WireCase | StoryCase
