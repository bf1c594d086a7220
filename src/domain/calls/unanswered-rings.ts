/**
 * How often one person rings another who does not answer (contract 8), whichever calls they are.
 * An answer forgets what came before it. In memory: a restart forgives.
 */

import type { UserId } from '../ids.ts'
import type { RateBuckets } from '../token-bucket.ts'

/** Per node, and so a port for call rooms. */
export interface RingRates {
  /** Returns how long until the caller may ring the callee again; 0 when they may. */
  missingMs(callerId: UserId, calleeId: UserId, nowMs: number): number
  /** Counts a ring that was allowed. */
  note(callerId: UserId, calleeId: UserId, nowMs: number): void
  /** The callee has answered. */
  forget(callerId: UserId, calleeId: UserId): void
}

export class UnansweredRings implements RingRates {
  /** By caller and callee. */
  readonly #buckets: RateBuckets

  /** The buckets bound how many pairs are remembered; the pairs that rang longest ago are forgotten first. */
  constructor(buckets: RateBuckets) {
    this.#buckets = buckets
  }

  missingMs(callerId: UserId, calleeId: UserId, nowMs: number): number {
    return this.#buckets.missingMs(nameOf(callerId, calleeId), nowMs)
  }

  note(callerId: UserId, calleeId: UserId, nowMs: number): void {
    this.#buckets.count(nameOf(callerId, calleeId), nowMs)
  }

  forget(callerId: UserId, calleeId: UserId): void {
    this.#buckets.forget(nameOf(callerId, calleeId))
  }
}

function nameOf(callerId: UserId, calleeId: UserId): string {
  return `${callerId} ${calleeId}`
}
