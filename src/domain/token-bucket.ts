/**
 * Token buckets (contract 8) as the generic cell rate algorithm: one number per key, the time at which its bucket is
 * full again. Exact, and cheap enough for every request; `rate-limiter-flexible`, which counts in fixed windows and
 * answers by promise, is neither.
 */

export interface BucketRate {
  /** Requests admitted in `perMs` in the long run. */
  readonly count: number
  readonly perMs: number
  /** Requests admitted at once by a full bucket. */
  readonly burst: number
}

export class TokenBuckets {
  readonly #costMs: number
  readonly #depthMs: number
  readonly #keysMax: number
  readonly #fullAtMs = new Map<string, number>()

  constructor({ count, perMs, burst }: BucketRate, keysMax: number) {
    this.#costMs = perMs / count
    this.#depthMs = this.#costMs * burst
    this.#keysMax = keysMax
  }

  /** Takes one token; returns 0, or how many milliseconds are missing until there is one. */
  take(key: string, nowMs: number): number {
    const fullAtMs = Math.max(this.#fullAtMs.get(key) ?? 0, nowMs) + this.#costMs
    const missingMs = fullAtMs - nowMs - this.#depthMs
    if (missingMs > 0) return missingMs
    // Deleting first moves the key to the end, so the map stays in order of the last request.
    this.#fullAtMs.delete(key)
    this.#fullAtMs.set(key, fullAtMs)
    if (this.#fullAtMs.size > this.#keysMax) this.#forgetOldest()
    return 0
  }

  /** Drops full buckets, which are as good as none. Cheap: stops at the first key that was asked for lately. */
  sweep(nowMs: number): void {
    for (const [key, fullAtMs] of this.#fullAtMs) {
      if (fullAtMs > nowMs) return
      this.#fullAtMs.delete(key)
    }
  }

  #forgetOldest(): void {
    for (const key of this.#fullAtMs.keys()) {
      this.#fullAtMs.delete(key)
      return
    }
  }
}
