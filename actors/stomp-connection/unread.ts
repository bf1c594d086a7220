/**
 * Octets that a socket brought and its actor has not read. However many pieces they came in, the actor gets one message:
 * a client may send each octet as a WebSocket message of its own, thousands in one turn of the event loop.
 */

import { UNREAD_BYTES_MAX } from '../../src/limits.ts'

export class Unread {
  #first: Uint8Array | undefined = undefined
  #more: Uint8Array[] | undefined = undefined
  #bytes = 0

  /**
   * Adds a piece, which is this object's own from then on. `due`: it is the first, so the caller notifies the actor. `full`: it
   * would exceed `UNREAD_BYTES_MAX` and was not added.
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

  get isEmpty(): boolean {
    return this.#first === undefined
  }

  /** Takes all octets. Called once for each `due`. */
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
