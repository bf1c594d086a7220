/** Token buckets of one rate by network: a wider network has a larger one (`network.ts`). */

import { type CountedNetwork, isWide } from './network.ts'
import { type BucketRate, TokenBuckets } from './token-bucket.ts'

export class NetworkBuckets {
  readonly #rate: BucketRate
  readonly #keysMax: number
  readonly #byFactor = new Map<number, TokenBuckets>()

  /** Knows so many networks of each width. */
  constructor(rate: BucketRate, keysMax: number) {
    this.#rate = rate
    this.#keysMax = keysMax
  }

  /**
   * Takes a token of each network, or none of any: an empty bucket of a wide one must not empty the narrow ones. Returns 0, or
   * how many milliseconds are missing. A wide network that `isKnown` to the request's account does not slow it.
   */
  take(
    networks: readonly CountedNetwork[],
    nowMs: number,
    isKnown: (network: CountedNetwork) => boolean = nothingIsKnown,
  ): number {
    const missingMs = this.#missingMs(networks, nowMs)
    if (missingMs === 0) return this.#count(networks, nowMs)
    const narrowMs = this.#missingMs(
      networks.filter(network => !isWide(network)),
      nowMs,
    )
    // Asked only now, since most requests need no answer.
    const slowing = narrowMs > 0 ? networks : networks.filter(each => !isWide(each) || !isKnown(each))
    if (slowing.length === networks.length) return missingMs
    const stillMs = this.#missingMs(slowing, nowMs)
    return stillMs > 0 ? stillMs : this.#count(slowing, nowMs)
  }

  /** Puts tokens back that were taken. */
  giveBack(networks: readonly CountedNetwork[], nowMs: number): void {
    for (const network of networks) this.#of(network).giveBack(network.name, nowMs)
  }

  /** Drops full buckets. */
  sweep(nowMs: number): void {
    for (const buckets of this.#byFactor.values()) buckets.sweep(nowMs)
  }

  #missingMs(networks: readonly CountedNetwork[], nowMs: number): number {
    let missingMs = 0
    for (const network of networks) {
      missingMs = Math.max(missingMs, this.#of(network).missingMs(network.name, nowMs))
    }
    return missingMs
  }

  #count(networks: readonly CountedNetwork[], nowMs: number): 0 {
    for (const network of networks) this.#of(network).count(network.name, nowMs)
    return 0
  }

  #of({ factor }: CountedNetwork): TokenBuckets {
    const known = this.#byFactor.get(factor)
    if (known !== undefined) return known
    const { count, perMs, burst } = this.#rate
    const rate = { count: factor * count, perMs, burst: factor * burst }
    const buckets = new TokenBuckets(rate, this.#keysMax)
    this.#byFactor.set(factor, buckets)
    return buckets
  }
}

function nothingIsKnown(): boolean {
  return false
}
