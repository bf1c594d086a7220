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

/** How long until a bucket that is full again at `fullAtMs` has a token; 0 when it has one. */
export function missingMs({ count, perMs, burst }: BucketRate, fullAtMs: number, nowMs: number): number {
  const costMs = perMs / count
  const missing = Math.max(fullAtMs, nowMs) + costMs - nowMs - costMs * burst
  return missing > ROUNDING_MS ? missing : 0
}

/** Costs are fractions, whose sum may be a little more than the whole: 30 in 10 s would be 29. */
const ROUNDING_MS = 0.01

export class TokenBuckets {
  readonly #rate: BucketRate
  readonly #costMs: number
  readonly #keysMax: number
  readonly #fullAtMs = new Map<string, number>()

  constructor(rate: BucketRate, keysMax: number) {
    this.#rate = rate
    this.#costMs = rate.perMs / rate.count
    this.#keysMax = keysMax
  }

  /** Takes one token; returns 0, or how many milliseconds are missing until there is one. */
  take(key: string, nowMs: number): number {
    const known = this.#fullAtMs.get(key) ?? 0
    const missing = missingMs(this.#rate, known, nowMs)
    if (missing > 0) return missing
    // Deleting first moves the key to the end, so the map stays in order of the last request.
    this.#fullAtMs.delete(key)
    this.#fullAtMs.set(key, Math.max(known, nowMs) + this.#costMs)
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
