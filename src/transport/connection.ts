/**
 * A client's connection as its session sees it, whatever carries it: a WebSocket, or plain TCP on loopback. Frames go
 * out in the order of `send` and leave together at the end of the loop turn, one WebSocket message each.
 *
 * A connection is open, then ending, then closed. Once it is ending nothing comes in any more and `send` and `end` do
 * nothing; once it is closed every call does nothing. So a session never has to ask which it is.
 */

export interface Connection {
  /** Unique in this process and never used again. */
  readonly id: string
  /** Where the client is, seen through trusted proxies, as `networkOf` has it: bytes would weigh ten times as much. */
  readonly network: string
  /** The Authorization header of the WebSocket upgrade; empty for none. A secret. */
  readonly authorization: string
  /**
   * Queues a whole frame. Its bytes must not change until the loop turn ends; the same bytes may be sent to many.
   * `isText` chooses the kind of WebSocket message, and the bytes of a text message have to be UTF-8; a client that
   * speaks in binary messages gets everything in them.
   *
   * A connection that has more than `BACKPRESSURE_BYTES_MAX` unsent is closed rather than given a gap: watch
   * `bufferedBytes`.
   */
  send(frame: Uint8Array, isText: boolean): void
  /** Bytes given to `send` that the kernel has not taken yet; 0 when closed. Cheap. */
  bufferedBytes(): number
  /**
   * Ends the connection when everything sent before has left, with a WebSocket close code and an ASCII reason of at
   * most 123 bytes; hard when that takes longer than `LINGER_MS`. May call `onClosed` before it returns.
   */
  end(code: number, reason: string): void
  /** Ends the connection now; unsent bytes are lost. May call `onClosed` before it returns. */
  close(): void
}

/** Events from a connection to its session. A throw in one ends the connection with 1011. */
export interface ConnectionEvents {
  /** The next bytes, cut anywhere, never empty. They are lent: parse or copy them before returning. */
  onBytes(bytes: Uint8Array): void
  /**
   * The kernel has taken bytes that it had left at the end of an earlier turn, or some of `BACKLOG_BYTES` and more;
   * `bufferedBytes` is the rest. Not called for smaller frames that leave with their turn.
   */
  onDrain(): void
  /**
   * The connection is closed, by whichever side: called exactly once, and last. The code is the client's, or that of
   * `end`; 1005 where the client gave none, 1006 for a connection that broke or was closed hard.
   */
  onClosed(code: number): void
}

/** Takes a new connection in. It may already send; it hears nothing before it has returned. */
export type Accept = (connection: Connection) => ConnectionEvents
