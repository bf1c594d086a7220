/** The rates of contract 8 that a process counts in memory: those of requests, of operations, and finer ones inside some. */

import { type CountedNetwork, countedNetworks } from '../../domain/network.ts'
import { NetworkBuckets } from '../../domain/network-buckets.ts'
import type { RateName, Rates } from '../../domain/rates.ts'
import { type Shortage, SignedInBuckets } from '../../domain/signed-in-buckets.ts'
import { TokenBuckets } from '../../domain/token-bucket.ts'
import { type Quota, SignalError } from '../../errors.ts'
import { RATE_KEYS_MAX } from '../../limits.ts'

/** One for each process: counts of one name are shared. */
export class RequestRates {
  readonly limits: Rates
  readonly monotonicMs: () => number
  readonly #byKey = new Map<RateName, TokenBuckets>()
  readonly #byNetwork = new Map<RateName, NetworkBuckets>()
  readonly #bySession = new Map<RateName, SignedInBuckets>()

  constructor(limits: Rates, monotonicMs: () => number) {
    this.limits = limits
    this.monotonicMs = monotonicMs
  }

  /** Counts one. Throws `RATE_LIMITED` with the seconds to wait; `scope` names the counted thing. */
  take(name: RateName, scope: string, key: string): void {
    const buckets = this.#keyed(name)
    const missingMs = buckets.take(key, this.monotonicMs())
    if (missingMs > 0) throw rateLimited(missingMs, scope, buckets.rate)
  }

  /** Counts so many at once, also more than there are. Throws `RATE_LIMITED` where there was none. */
  takeMany(name: RateName, scope: string, key: string, count: number): void {
    const buckets = this.#keyed(name)
    const nowMs = this.monotonicMs()
    const missingMs = count === 0 ? 0 : buckets.missingMs(key, nowMs)
    if (missingMs > 0) throw rateLimited(missingMs, scope, buckets.rate)
    for (let counted = 0; counted < count; counted++) buckets.count(key, nowMs)
  }

  /**
   * Counts one for the network of a request without a session, and for the prefixes around it but those that its account
   * knows. Throws `RATE_LIMITED`.
   */
  takeByNetwork(name: RateName, network: string, isKnown?: (prefix: CountedNetwork) => boolean): void {
    const missingMs = this.missingByNetwork(name, network, isKnown)
    if (missingMs > 0) throw rateLimited(missingMs, 'address', this.limits[name])
  }

  /** Likewise, but returns how many milliseconds are missing; 0 where it was counted. */
  missingByNetwork(name: RateName, network: string, isKnown?: (prefix: CountedNetwork) => boolean): number {
    const make = () => new NetworkBuckets(this.limits[name], RATE_KEYS_MAX)
    const buckets = kept(this.#byNetwork, name, make)
    return buckets.take(countedNetworks(network), this.monotonicMs(), isKnown)
  }

  /** Counts one for a session, at the rate of `own`, and for its address. Throws `RATE_LIMITED`. */
  takeSignedIn(name: RateName, own: RateName, session: string, network: string): void {
    const shortage = this.shortageOf(name, own, session, network)
    if (shortage !== undefined) throw rateLimited(shortage.missingMs, shortage.of, shortage.rate)
  }

  /** Likewise, but returns why it has to wait; undefined where it was counted. */
  shortageOf(name: RateName, own: RateName, session: string, network: string): Shortage | undefined {
    const make = () => new SignedInBuckets(this.limits[own], this.limits[name], RATE_KEYS_MAX)
    return kept(this.#bySession, name, make).take(session, network, this.monotonicMs())
  }

  /** Forgets counts of the past. */
  sweep(): void {
    const nowMs = this.monotonicMs()
    for (const each of [this.#byKey, this.#byNetwork, this.#bySession]) {
      for (const buckets of each.values()) buckets.sweep(nowMs)
    }
  }

  #keyed(name: RateName): TokenBuckets {
    return kept(this.#byKey, name, () => new TokenBuckets(this.limits[name], RATE_KEYS_MAX))
  }
}

function kept<Buckets>(known: Map<RateName, Buckets>, name: RateName, make: () => Buckets): Buckets {
  const there = known.get(name)
  if (there !== undefined) return there
  const made = make()
  known.set(name, made)
  return made
}

/** `scope` names the counted thing: address, user, session or identifier; `quota` is its limit. */
export function rateLimited(missingMs: number, scope: string, quota: Quota): SignalError {
  const retryIn = Math.ceil(missingMs / 1000)
  const members = { retryIn, scope }
  return new SignalError('RATE_LIMITED', `too many requests, wait ${retryIn} s`, { members, quota })
}
