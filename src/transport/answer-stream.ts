/**
 * An answer that is written part by part, as fast as its client reads it. One part waits here and about one in the socket;
 * the next is asked for only when the socket has taken the one before.
 *
 * The head leaves with the first part, so a stream that fails before it is refused like any request. One that fails later
 * ends the connection without the last chunk of RFC 9112, 7.1: the client sees an answer that was cut off, never a whole one.
 */

import type uWS from 'uWebSockets.js'
import { SignalError } from '../errors.ts'
import { stopParts } from './answer-body.ts'

/** The request that the stream answers. */
interface StreamWatcher {
  /** Writes status and headers; the socket is corked. */
  writeHead(): void
  /** The last octet is with the socket. */
  onWritten(bytes: number): void
  /** Nothing more is written. With `hasBegun` a part of the answer is on its way, and the connection has to end. */
  onFailed(error: unknown, hasBegun: boolean): void
  /** The parts' maker failed while it was told to stop. */
  onFault(error: unknown): void
}

export class AnswerStream {
  readonly #res: uWS.HttpResponse
  readonly #parts: AsyncIterator<Uint8Array>
  readonly #watcher: StreamWatcher
  readonly #tooLate: NodeJS.Timeout
  /** A part, or the end, that waits for the socket. */
  #inHand: IteratorResult<Uint8Array> | undefined
  /** Whether the socket has taken all that was written. */
  #isWritable = true
  #hasBegun = false
  #isOver = false
  #bytes = 0

  constructor(
    res: uWS.HttpResponse,
    parts: AsyncIterable<Uint8Array>,
    deadlineMs: number,
    watcher: StreamWatcher,
  ) {
    this.#res = res
    this.#parts = parts[Symbol.asyncIterator]()
    this.#watcher = watcher
    this.#tooLate = setTimeout(() => {
      this.#fail(new SignalError('DEADLINE_EXCEEDED', 'the answer was not read in time'))
      this.#stop()
    }, deadlineMs).unref()
    this.#pull()
  }

  /** The client is gone. */
  abort(): void {
    if (this.#end()) this.#stop()
  }

  #pull(): void {
    this.#parts.next().then(
      part => this.#take(part),
      error => this.#fail(error),
    )
  }

  #take(part: IteratorResult<Uint8Array>): void {
    if (this.#isOver) return
    // An empty chunk would say that the answer is whole.
    if (!part.done && part.value.length === 0) return this.#pull()
    this.#inHand = part
    if (this.#isWritable) this.#write(part)
  }

  #write(part: IteratorResult<Uint8Array>): void {
    this.#inHand = undefined
    this.#res.cork(() => {
      if (!this.#hasBegun) this.#begin()
      if (part.done) this.#res.end()
      else this.#isWritable = this.#res.write(part.value)
    })
    if (part.done) {
      if (this.#end()) this.#watcher.onWritten(this.#bytes)
    } else {
      this.#bytes += part.value.length
      this.#pull()
    }
  }

  #begin(): void {
    this.#hasBegun = true
    this.#watcher.writeHead()
    // Octets that the socket holds back leave with the next write, so a part in hand is written in this handler.
    this.#res.onWritable(() => {
      this.#isWritable = true
      if (this.#inHand !== undefined) this.#write(this.#inHand)
      return true
    })
  }

  #fail(error: unknown): void {
    if (this.#end()) this.#watcher.onFailed(error, this.#hasBegun)
  }

  /** Returns whether it was not over before. */
  #end(): boolean {
    if (this.#isOver) return false
    this.#isOver = true
    this.#inHand = undefined
    clearTimeout(this.#tooLate)
    return true
  }

  #stop(): void {
    stopParts(this.#parts, error => this.#watcher.onFault(error))
  }
}
