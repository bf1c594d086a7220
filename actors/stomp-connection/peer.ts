/**
 * The way out to one client: frames in its version, and how much of them it has not read. Messages that can be had
 * later are held back early, so that a slow link gets a long inbox in pieces; a client that reads the rest too slowly
 * lags, and is then cut off while an ERROR still reaches it (contract 7.1).
 */

import { LAG_MS_MAX, UNSENT_BYTES_HELD, UNSENT_BYTES_LAGGING, UNSENT_BYTES_MAX } from '../../src/limits.ts'
import type { Headers, StompVersion } from '../../src/stomp/frame.ts'
import { encodeFrame } from '../../src/stomp/serializer.ts'
import type { Connection } from '../../src/transport/connection.ts'

/** Acts when the client does not read. */
export interface PeerOwner {
  /** It is held: `look` is to be called now and then. */
  onHeld(): void
  /** So much is unsent that it has to be ended at once. */
  onOverfull(): void
}

/** The result of a look at a held client. */
export type LagState = 'flowing' | 'held' | 'too-slow'

export class Peer {
  readonly connection: Connection
  /**
   * The version that frames are written in; ERROR is alike in all versions, for a client that has not connected yet.
   */
  version: StompVersion = '1.2'
  /** When anything was sent last, on the monotonic clock. */
  sentAtMs: number
  readonly #owner: PeerOwner
  readonly #monotonicMs: () => number
  #isHeld = false
  #lagsSinceMs = NEVER
  #isOver = false

  constructor(connection: Connection, owner: PeerOwner, monotonicMs: () => number) {
    this.connection = connection
    this.#owner = owner
    this.#monotonicMs = monotonicMs
    this.sentAtMs = monotonicMs()
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** Whether so much is unsent that the inbox has to wait. */
  get isHeld(): boolean {
    return this.#isOver || this.#isHeld
  }

  /** Whether all that was sent has left. */
  get isDrained(): boolean {
    return this.connection.bufferedBytes() === 0
  }

  /** Sends a whole frame or a beat; does nothing once the connection has ended. */
  send(frame: Uint8Array, isText: boolean): void {
    if (this.#isOver) return
    this.connection.send(frame, isText)
    this.sentAtMs = this.#monotonicMs()
    const unsentBytes = this.connection.bufferedBytes()
    if (unsentBytes > UNSENT_BYTES_HELD) this.#onBacklog(unsentBytes)
  }

  /** Sends a RECEIPT if one was asked for. */
  receipt(receiptId: string | undefined, headers: Headers = []): void {
    if (receiptId === undefined) return
    this.send(encodeFrame('RECEIPT', ['receipt-id', receiptId, ...headers], this.version), true)
  }

  /** Whether all has left that a client is held for, and whether one that lags has had time enough. */
  look(): LagState {
    if (this.#isOver || !this.#isHeld) return 'flowing'
    const unsentBytes = this.connection.bufferedBytes()
    if (unsentBytes <= UNSENT_BYTES_LAGGING / 2) this.#lagsSinceMs = NEVER
    if (this.#lagsSinceMs !== NEVER) {
      return this.#monotonicMs() - this.#lagsSinceMs >= LAG_MS_MAX ? 'too-slow' : 'held'
    }
    this.#isHeld = unsentBytes > 0
    return this.#isHeld ? 'held' : 'flowing'
  }

  /** Sends a last frame, if there is one, and ends the connection behind it. */
  end(closeCode: number, reason: string, lastFrame?: Uint8Array): void {
    if (this.#isOver) return
    this.#isOver = true
    if (lastFrame !== undefined) this.connection.send(lastFrame, true)
    this.connection.end(closeCode, reason)
  }

  #onBacklog(unsentBytes: number): void {
    if (unsentBytes > UNSENT_BYTES_MAX) return this.#owner.onOverfull()
    if (unsentBytes > UNSENT_BYTES_LAGGING && this.#lagsSinceMs === NEVER) {
      this.#lagsSinceMs = this.#monotonicMs()
    }
    if (this.#isHeld) return
    this.#isHeld = true
    this.#owner.onHeld()
  }
}

const NEVER = -1
