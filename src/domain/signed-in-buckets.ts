/**
 * Token buckets of people who are signed in (contract 0.1, "8 Rates by address"): each session has its own, and those at one
 * address share another, which is larger. A session that has used up its own takes nothing of what it shares.
 *
 * Where the shared bucket is empty, each session has the burst of its own still, which then fills at a twentieth of the rate:
 * neither ten thousand accounts behind one address nor a crowd that comes back at once keeps a further user out there.
 */

import { networkOfSignedIn } from './network.ts'
import { NetworkBuckets } from './network-buckets.ts'
import { type BucketRate, TokenBuckets } from './token-bucket.ts'

/** Why a request has to wait, and how long. */
export interface Shortage {
  readonly of: 'session' | 'address'
  readonly missingMs: number
  readonly rate: BucketRate
}

export class SignedInBuckets {
  readonly #own: TokenBuckets
  readonly #shared: NetworkBuckets
  readonly #reserve: TokenBuckets
  readonly #addressRate: BucketRate

  /** `own` is the rate of each session, `address` the rate of an address for requests without one. */
  constructor(own: BucketRate, address: BucketRate, keysMax: number) {
    this.#own = new TokenBuckets(own, keysMax)
    this.#shared = new NetworkBuckets(address, keysMax)
    this.#reserve = new TokenBuckets({ ...own, count: own.count / RESERVE_SHARE }, keysMax)
    this.#addressRate = address
  }

  /** Takes a token for the session, or says why there is none. */
  take(session: string, network: string, nowMs: number): Shortage | undefined {
    const ownMs = this.#own.missingMs(session, nowMs)
    if (ownMs > 0) return { of: 'session', missingMs: ownMs, rate: this.#own.rate }
    if (this.#shared.take([networkOfSignedIn(network)], nowMs) > 0) {
      const missingMs = this.#reserve.take(session, nowMs)
      if (missingMs > 0) return { of: 'address', missingMs, rate: this.#addressRate }
    }
    this.#own.count(session, nowMs)
    return undefined
  }

  /** Drops full buckets. */
  sweep(nowMs: number): void {
    for (const buckets of [this.#own, this.#shared, this.#reserve]) buckets.sweep(nowMs)
  }
}

const RESERVE_SHARE = 20
