/**
 * How often one person rings another who does not answer (contract 8): five times in ten minutes, whichever calls they
 * are. An answer forgets what came before it. In memory: a restart forgives.
 */

import type { UserId } from './ids.ts'
import { type BucketRate, missingMs } from './token-bucket.ts'

export class UnansweredRings {
  readonly #pairsMax: number
  /** By caller and callee, the one that rang longest ago first: when their bucket is full again. */
  readonly #fullAtMs = new Map<string, number>()

  /** Remembers so many pairs; of more, those that rang longest ago are forgotten. */
  constructor(pairsMax: number) {
    this.#pairsMax = pairsMax
  }

  /** How long until the caller may ring the callee again; 0 when they may. */
  missingMs(callerId: UserId, calleeId: UserId, nowMs: number): number {
    return missingMs(RATE, this.#fullAtMs.get(nameOf(callerId, calleeId)) ?? 0, nowMs)
  }

  /** Counts a ring that was allowed. */
  note(callerId: UserId, calleeId: UserId, nowMs: number): void {
    const name = nameOf(callerId, calleeId)
    const fullAtMs = Math.max(this.#fullAtMs.get(name) ?? 0, nowMs) + RATE.perMs / RATE.count
    // Deleting first moves the pair to the end.
    this.#fullAtMs.delete(name)
    this.#fullAtMs.set(name, fullAtMs)
    if (this.#fullAtMs.size > this.#pairsMax) this.#forgetOldest()
  }

  /** The callee has answered. */
  forget(callerId: UserId, calleeId: UserId): void {
    this.#fullAtMs.delete(nameOf(callerId, calleeId))
  }

  #forgetOldest(): void {
    for (const name of this.#fullAtMs.keys()) {
      this.#fullAtMs.delete(name)
      return
    }
  }
}

function nameOf(callerId: UserId, calleeId: UserId): string {
  return `${callerId} ${calleeId}`
}

const RATE: BucketRate = { count: 5, perMs: 600_000, burst: 5 }
