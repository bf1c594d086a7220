/**
 * What a connection has brought and its session has not read. To the session it is one message, in however many pieces
 * it came: a client may send each octet as a WebSocket message of its own, and thousands of them come in one turn of
 * the event loop.
 */

import { UNREAD_BYTES_MAX } from '../../src/limits.ts'

export class Unread {
  readonly kind = 'bytes'
  #first: Uint8Array | undefined = undefined
  #more: Uint8Array[] | undefined = undefined
  #bytes = 0

  /**
   * Adds a piece, which nobody else may change. `due`: there was nothing before, so the session has to be told; `full`:
   * with it there would be too much, and it was not added.
   */
  add(piece: Uint8Array): 'due' | 'waiting' | 'full' {
    if (this.#first === undefined) {
      this.#first = piece
      this.#bytes = piece.length
      return 'due'
    }
    if (this.#bytes + piece.length > UNREAD_BYTES_MAX) return 'full'
    this.#bytes += piece.length
    this.#more ??= []
    this.#more.push(piece)
    return 'waiting'
  }

  /** Takes everything there is. To be called once for each time that it was due. */
  take(): Uint8Array {
    const first = this.#first ?? NO_BYTES
    const bytes = this.#more === undefined ? first : Buffer.concat([first, ...this.#more], this.#bytes)
    this.#first = undefined
    this.#more = undefined
    this.#bytes = 0
    return bytes
  }
}

const NO_BYTES = new Uint8Array(0)
