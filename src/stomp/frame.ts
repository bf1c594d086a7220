/**
 * What a STOMP frame is (STOMP 1.2, with 1.0 and 1.1 beside it) once its octets have been read: a command, headers in
 * order, a body. Headers are a flat list, because a frame has few of them, repeated ones count, and a peer chooses the
 * names. Octets to frames is `parser.ts`, frames to octets `serializer.ts`.
 */

/** Equal in the code, but not in their rules: 1.0 has neither escapes nor NACK nor heart-beats. */
export type StompVersion = '1.0' | '1.1' | '1.2'

export type ClientCommand =
  | 'CONNECT'
  | 'STOMP'
  | 'SEND'
  | 'SUBSCRIBE'
  | 'UNSUBSCRIBE'
  | 'ACK'
  | 'NACK'
  | 'BEGIN'
  | 'COMMIT'
  | 'ABORT'
  | 'DISCONNECT'

export type ServerCommand = 'CONNECTED' | 'MESSAGE' | 'RECEIPT' | 'ERROR'

export type Command = ClientCommand | ServerCommand

/** Name, value, name, value, ... in the order of the wire, unescaped. */
export type Headers = readonly string[]

/** A frame that a client sent. It owns its strings and its body; nothing in it points into a socket's memory. */
export class Frame {
  readonly command: ClientCommand
  readonly headers: Headers
  readonly body: Buffer

  constructor(command: ClientCommand, headers: Headers, body: Buffer) {
    this.command = command
    this.headers = headers
    this.body = body
  }

  /** The value of the first header of that name: of repeated headers the first one counts. */
  header(name: string): string | undefined {
    return headerOf(this.headers, name)
  }
}

/** The value of the first header of that name. */
export function headerOf(headers: Headers, name: string): string | undefined {
  for (let at = 0; at < headers.length; at += 2) {
    if (headers[at] === name) return headers[at + 1]
  }
  return undefined
}

/** Every version we speak, the best one last, as the `version` header of an ERROR lists them. */
export const STOMP_VERSIONS: readonly StompVersion[] = ['1.0', '1.1', '1.2']

/**
 * The best version that both sides speak, out of the value of `accept-version`; undefined when there is none. A
 * CONNECT without the header is one of 1.0. Blanks around the commas are forgiven, as everything in CONNECT.
 */
export function negotiateVersion(acceptVersion: string | undefined): StompVersion | undefined {
  if (acceptVersion === undefined) return '1.0'
  const accepted = acceptVersion.split(',').map(version => version.trim())
  return STOMP_VERSIONS.findLast(version => accepted.includes(version))
}
