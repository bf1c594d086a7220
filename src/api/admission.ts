/** Who may ask how often, by network (contract 8): token buckets in memory. */

import { type BucketRate, TokenBuckets } from '../domain/token-bucket.ts'
import { RATE_KEYS_MAX } from '../limits.ts'
import type { AdmissionScope } from '../transport/http.ts'

const MINUTE_MS = 60_000
/** What an address may ask for. */
export const ADMISSION_RATES: Readonly<Record<AdmissionScope, BucketRate>> = {
  'log-files': { count: 60_000, perMs: MINUTE_MS, burst: 60_000 },
  lookup: { count: 120, perMs: MINUTE_MS, burst: 120 },
  request: { count: 1_200, perMs: MINUTE_MS, burst: 400 },
}

export class Admission {
  readonly #monotonicMs: () => number
  readonly #buckets: Record<AdmissionScope, TokenBuckets> = {
    'log-files': new TokenBuckets(ADMISSION_RATES['log-files'], RATE_KEYS_MAX),
    lookup: new TokenBuckets(ADMISSION_RATES.lookup, RATE_KEYS_MAX),
    request: new TokenBuckets(ADMISSION_RATES.request, RATE_KEYS_MAX),
  }

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs
  }

  /** Seconds to wait, rounded up; 0 when the request is admitted. */
  readonly admit = (network: string, scope: AdmissionScope): number =>
    Math.ceil(this.#buckets[scope].take(network, this.#monotonicMs()) / 1000)

  /** To be called now and then: forgets addresses whose buckets are full again. */
  sweep(): void {
    for (const buckets of Object.values(this.#buckets)) buckets.sweep(this.#monotonicMs())
  }
}
