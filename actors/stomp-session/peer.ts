/**
 * The way out to one client: frames in its version, and how much of them it has not read. A client that reads too slowly
 * lags first, which stops what can be had later, and is then cut off while an ERROR still reaches it (contract 7.1).
 */

import { LAG_MS_MAX, UNSENT_BYTES_LAGGING, UNSENT_BYTES_MAX } from '../../src/limits.ts'
import type { Headers, StompVersion } from '../../src/stomp/frame.ts'
import { encodeFrame } from '../../src/stomp/serializer.ts'
import type { Connection } from '../../src/transport/connection.ts'
import type { Outlet } from './inbox-delivery.ts'

/** Whoever has to act when the client does not read. */
export interface PeerOwner {
  /** It began to lag: `look` is to be called now and then. */
  onLagging(): void
  /** So much is unsent that it has to be ended at once. */
  onOverfull(): void
}

/** What a look at a lagging client found. */
export type LagState = 'flowing' | 'lagging' | 'too-slow'

export class Peer implements Outlet {
  readonly connection: Connection
  /** What frames are written in; a client that has not connected yet reads ERROR alike in all versions. */
  version: StompVersion = '1.2'
  /** When anything was sent last, on the monotonic clock. */
  sentAtMs: number
  readonly #owner: PeerOwner
  readonly #monotonicMs: () => number
  #lagsSinceMs = NEVER
  #isOver = false

  constructor(connection: Connection, owner: PeerOwner, monotonicMs: () => number) {
    this.connection = connection
    this.#owner = owner
    this.#monotonicMs = monotonicMs
    this.sentAtMs = monotonicMs()
  }

  get isLagging(): boolean {
    return this.#isOver || this.#lagsSinceMs !== NEVER
  }

  /** Whether all that was sent has left. */
  get isDrained(): boolean {
    return this.connection.bufferedBytes() === 0
  }

  /** Sends a whole frame or a beat; does nothing once it is over. */
  send(frame: Uint8Array, isText: boolean): void {
    if (this.#isOver) return
    this.connection.send(frame, isText)
    this.sentAtMs = this.#monotonicMs()
    const unsentBytes = this.connection.bufferedBytes()
    if (unsentBytes > UNSENT_BYTES_LAGGING) this.#onBacklog(unsentBytes)
  }

  /** Sends a RECEIPT if one was asked for. */
  receipt(receiptId: string | undefined, headers: Headers = []): void {
    if (receiptId === undefined) return
    this.send(encodeFrame('RECEIPT', ['receipt-id', receiptId, ...headers], this.version), true)
  }

  /** Whether a lagging client has caught up, and whether it has had time enough. */
  look(): LagState {
    if (this.#isOver || this.#lagsSinceMs === NEVER) return 'flowing'
    if (this.connection.bufferedBytes() <= UNSENT_BYTES_LAGGING / 2) {
      this.#lagsSinceMs = NEVER
      return 'flowing'
    }
    return this.#monotonicMs() - this.#lagsSinceMs >= LAG_MS_MAX ? 'too-slow' : 'lagging'
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
    if (this.#lagsSinceMs !== NEVER) return
    this.#lagsSinceMs = this.#monotonicMs()
    this.#owner.onLagging()
  }
}

const NEVER = -1
