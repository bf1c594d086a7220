/**
 * How often one person rings another who does not answer (contract 8), whichever calls they are.
 * An answer forgets what came before it. In memory: a restart forgives.
 */

import type { UserId } from '../ids.ts'
import { type BucketRate, TokenBuckets } from '../token-bucket.ts'

export class UnansweredRings {
  /** By caller and callee. */
  readonly #buckets: TokenBuckets

  /** Remembers so many pairs; of more, those that rang longest ago are forgotten. */
  constructor(rate: BucketRate, pairsMax: number) {
    this.#buckets = new TokenBuckets(rate, pairsMax)
  }

  /** How long until the caller may ring the callee again; 0 when they may. */
  missingMs(callerId: UserId, calleeId: UserId, nowMs: number): number {
    return this.#buckets.missingMs(nameOf(callerId, calleeId), nowMs)
  }

  /** Counts a ring that was allowed. */
  note(callerId: UserId, calleeId: UserId, nowMs: number): void {
    this.#buckets.count(nameOf(callerId, calleeId), nowMs)
  }

  /** The callee has answered. */
  forget(callerId: UserId, calleeId: UserId): void {
    this.#buckets.forget(nameOf(callerId, calleeId))
  }
}

function nameOf(callerId: UserId, calleeId: UserId): string {
  return `${callerId} ${calleeId}`
}
