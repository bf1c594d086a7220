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

/** When a bucket that is full again at `fullAtMs` is so once a token was taken from it. */
export function fullAtAfter({ count, perMs }: BucketRate, fullAtMs: number, nowMs: number): number {
  return Math.max(fullAtMs, nowMs) + perMs / count
}

/** Costs are fractions, whose sum may be a little more than the whole: 30 in 10 s would be 29. */
const ROUNDING_MS = 0.01

/** Token buckets by key. A port: counts are per node, in memory. */
export interface RateBuckets {
  /** Takes one token; returns 0, or how many milliseconds are missing until there is one. */
  take(key: string, nowMs: number): number
  /** Returns how many milliseconds are missing until there is a token; 0 when there is one. */
  missingMs(key: string, nowMs: number): number
  /** Takes one token, even from an empty bucket. */
  count(key: string, nowMs: number): void
  /** Fills the bucket. */
  forget(key: string): void
}

export class TokenBuckets implements RateBuckets {
  readonly rate: BucketRate
  readonly #keysMax: number
  /** By key, the one that was counted longest ago first. */
  readonly #fullAtMs = new Map<string, number>()

  /** Knows so many keys; of more, those that were counted longest ago are forgotten. */
  constructor(rate: BucketRate, keysMax: number) {
    this.rate = rate
    this.#keysMax = keysMax
  }

  /** Takes one token; returns 0, or how many milliseconds are missing until there is one. */
  take(key: string, nowMs: number): number {
    const known = this.#fullAtMs.get(key) ?? 0
    const missing = missingMs(this.rate, known, nowMs)
    if (missing > 0) return missing
    this.#charge(key, known, nowMs)
    return 0
  }

  /** How many milliseconds are missing until there is a token; 0 when there is one. */
  missingMs(key: string, nowMs: number): number {
    return missingMs(this.rate, this.#fullAtMs.get(key) ?? 0, nowMs)
  }

  /** Takes one token, also where there is none. */
  count(key: string, nowMs: number): void {
    this.#charge(key, this.#fullAtMs.get(key) ?? 0, nowMs)
  }

  /** Puts a token back that was taken. A full bucket takes none. */
  giveBack(key: string, nowMs: number): void {
    const fullAtMs = this.#fullAtMs.get(key) ?? 0
    if (fullAtMs > nowMs) this.#fullAtMs.set(key, fullAtMs - this.rate.perMs / this.rate.count)
  }

  /** The bucket is full again. */
  forget(key: string): void {
    this.#fullAtMs.delete(key)
  }

  /** Drops full buckets, which are as good as none. Cheap: stops at the first key that was asked for lately. */
  sweep(nowMs: number): void {
    for (const [key, fullAtMs] of this.#fullAtMs) {
      if (fullAtMs > nowMs) return
      this.#fullAtMs.delete(key)
    }
  }

  #charge(key: string, fullAtMs: number, nowMs: number): void {
    // Deleting first moves the key to the end.
    this.#fullAtMs.delete(key)
    this.#fullAtMs.set(key, fullAtAfter(this.rate, fullAtMs, nowMs))
    if (this.#fullAtMs.size > this.#keysMax) this.#forgetOldest()
  }

  #forgetOldest(): void {
    for (const key of this.#fullAtMs.keys()) {
      this.#fullAtMs.delete(key)
      return
    }
  }
}
