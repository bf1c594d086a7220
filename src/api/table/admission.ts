/** Who may ask how often, by network (contract 8): token buckets in memory. */

import type { Rates } from '../../domain/rates.ts'
import { TokenBuckets } from '../../domain/token-bucket.ts'
import { RATE_KEYS_MAX } from '../../limits.ts'
import type { AdmissionScope } from '../../transport/route.ts'

export class Admission {
  readonly #monotonicMs: () => number
  readonly #buckets: Record<AdmissionScope, TokenBuckets>

  constructor(rates: Pick<Rates, AdmissionScope>, monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs
    this.#buckets = {
      'log-files': new TokenBuckets(rates['log-files'], RATE_KEYS_MAX),
      lookup: new TokenBuckets(rates.lookup, RATE_KEYS_MAX),
      request: new TokenBuckets(rates.request, RATE_KEYS_MAX),
    }
  }

  /** Seconds to wait, rounded up; 0 when the request is admitted. */
  readonly admit = (network: string, scope: AdmissionScope): number =>
    Math.ceil(this.#buckets[scope].take(network, this.#monotonicMs()) / 1000)

  /** Forgets addresses with buckets that are full again. Call it now and then. */
  sweep(): void {
    for (const buckets of Object.values(this.#buckets)) buckets.sweep(this.#monotonicMs())
  }
}
