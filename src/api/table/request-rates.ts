/** The rates of contract 8 that a process counts in memory: those of operations, and finer ones inside some. */

import type { RateName, Rates } from '../../domain/rates.ts'
import { TokenBuckets } from '../../domain/token-bucket.ts'
import { type Quota, SignalError } from '../../errors.ts'
import { RATE_KEYS_MAX } from '../../limits.ts'

/** One for each process: counts of one name are shared. */
export class RequestRates {
  readonly #limits: Rates
  readonly #monotonicMs: () => number
  readonly #buckets = new Map<RateName, TokenBuckets>()

  constructor(limits: Rates, monotonicMs: () => number) {
    this.#limits = limits
    this.#monotonicMs = monotonicMs
  }

  /** Counts one. Throws `RATE_LIMITED` with the seconds to wait; `scope` names the counted thing. */
  take(name: RateName, scope: string, key: string): void {
    const buckets = this.#of(name)
    const missingMs = buckets.take(key, this.#monotonicMs())
    if (missingMs > 0) throw rateLimited(missingMs, scope, buckets.rate)
  }

  /** Counts so many at once, also more than there are. Throws `RATE_LIMITED` where there was none. */
  takeMany(name: RateName, scope: string, key: string, count: number): void {
    const buckets = this.#of(name)
    const nowMs = this.#monotonicMs()
    const missingMs = count === 0 ? 0 : buckets.missingMs(key, nowMs)
    if (missingMs > 0) throw rateLimited(missingMs, scope, buckets.rate)
    for (let counted = 0; counted < count; counted++) buckets.count(key, nowMs)
  }

  /** Forgets counts of the past. */
  sweep(): void {
    for (const buckets of this.#buckets.values()) buckets.sweep(this.#monotonicMs())
  }

  #of(name: RateName): TokenBuckets {
    const known = this.#buckets.get(name)
    if (known !== undefined) return known
    const buckets = new TokenBuckets(this.#limits[name], RATE_KEYS_MAX)
    this.#buckets.set(name, buckets)
    return buckets
  }
}

/** `scope` names the counted thing: address, user, session or identifier; `quota` is its limit. */
export function rateLimited(missingMs: number, scope: string, quota: Quota): SignalError {
  const retryIn = Math.ceil(missingMs / 1000)
  const members = { retryIn, scope }
  return new SignalError('RATE_LIMITED', `too many requests, wait ${retryIn} s`, { members, quota })
}
