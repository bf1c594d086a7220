/**
 * What a conformance case is, and short ways to write one. Cases are data, so that the same table runs against the
 * codec alone and through sockets.
 */

/** M: STOMP requires it. S: it should be so. C: our choice where STOMP is silent. */
export type Level = 'M' | 'S' | 'C'

/**
 * What the client sees, in order, but for the RECEIPT of a SEND, which may come before or after the MESSAGEs that the
 * SEND caused. Texts are in the notation of `test/support/notation.ts`.
 */
export type Outcome =
  | MessageOutcome
  | { readonly kind: 'receipt'; readonly id: string }
  | ConnectedOutcome
  | RefusedOutcome
  /** A close without an ERROR having to come before it. */
  | { readonly kind: 'closed'; readonly code: number }
  /** Nothing at all, and the connection stays open. */
  | { readonly kind: 'silence' }

export interface MessageOutcome {
  readonly kind: 'message'
  readonly subscription?: string
  readonly destination?: string
  readonly body?: string
  /** First values of headers, unescaped. */
  readonly headers?: Readonly<Record<string, string>>
  /** Header lines as they are on the wire. */
  readonly lines?: readonly string[]
  /** Headers that must not be there. */
  readonly without?: readonly string[]
  readonly isBinary?: boolean
}

export interface ConnectedOutcome {
  readonly kind: 'connected'
  readonly version: string
  readonly headers?: Readonly<Record<string, string>>
  /** Headers that must be there with any value. */
  readonly has?: readonly string[]
}

/** An ERROR with `message`, `content-type` and `content-length`, then a close with one of these codes. */
export interface RefusedOutcome {
  readonly kind: 'refused'
  /** Whether the parser finds the fault itself or the session that it hands the frame to. */
  readonly by: 'codec' | 'session'
  readonly close: readonly number[]
  readonly headers?: Readonly<Record<string, string>>
  readonly has?: readonly string[]
}

/**
 * A case of octets in and frames out. `session` is `new`, or `C10`, `C11`, `C12` (connected in that version) with:
 * `+s1` a subscription s1 to the topic in auto mode, `+s1c` in client mode, `+s1i` in client-individual mode, both
 * to the durable queue when followed by `+2u` or `+3u`: so many messages, m1, m2, ..., were delivered there and are
 * not settled. In the input `<creds>` is a header line with a good credential, `<tok>` the token in it, `<user>` its
 * user's id, `<m1>` the message-id of m1 and `<m1 ack>` its `ack`.
 */
export interface WireCase {
  readonly kind: 'wire'
  readonly id: string
  readonly level: Level
  readonly session: string
  readonly input: string
  readonly required: readonly Outcome[]
  /** Which of m1, m2, ... come again, with `redelivered:true`, once the device has dropped and subscribes anew. */
  readonly redelivered?: readonly string[]
}

/** A case that octets alone do not tell: clocks, several connections, HTTP, restarts, the WebSocket beneath. */
export interface StoryCase {
  readonly kind: 'story'
  readonly id: string
  readonly level: Level
  readonly session: string
  readonly input: string
  readonly required: string
}

export type Case = WireCase | StoryCase

export function wire(
  id: string,
  level: Level,
  session: string,
  input: string,
  ...required: readonly Outcome[]
): WireCase {
  return { kind: 'wire', id, level, session, input, required }
}

/** A case whose unsettled messages, those that are named, come again. */
export function ledger(
  id: string,
  level: Level,
  session: string,
  input: string,
  redelivered: readonly string[],
): WireCase {
  return { ...wire(id, level, session, input, silence), redelivered }
}

export function story(id: string, level: Level, session: string, input: string, required: string): StoryCase {
  return { kind: 'story', id, level, session, input, required }
}

export function message(expected: Omit<MessageOutcome, 'kind'>): MessageOutcome {
  return { kind: 'message', ...expected }
}

export function receipt(id: string): Outcome {
  return { kind: 'receipt', id }
}

export function connected(version: string, rest: Omit<ConnectedOutcome, 'kind' | 'version'> = {}): Outcome {
  return { kind: 'connected', version, ...rest }
}

/** Refused by the parser. */
export function refused(...close: readonly number[]): Outcome {
  return { kind: 'refused', by: 'codec', close }
}

/** Refused by the session, from what the frame says. */
export function refusedBySession(
  close: number | readonly number[],
  rest: Pick<RefusedOutcome, 'headers' | 'has'> = {},
): Outcome {
  return { kind: 'refused', by: 'session', close: [close].flat(), ...rest }
}

export function closed(code: number): Outcome {
  return { kind: 'closed', code }
}

export const silence: Outcome = { kind: 'silence' }
