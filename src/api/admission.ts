/** Who may ask how often, by address (contract 8): token buckets in memory, IPv6 counted by its /64. */

import { TokenBuckets } from '../domain/token-bucket.ts'
import { RATE_KEYS_MAX } from '../limits.ts'
import type { AdmissionScope } from '../transport/http.ts'

export class Admission {
  readonly #monotonicMs: () => number
  readonly #buckets: Record<AdmissionScope, TokenBuckets> = {
    'log-files': new TokenBuckets({ count: 60_000, perMs: MINUTE_MS, burst: 60_000 }, RATE_KEYS_MAX),
    lookup: new TokenBuckets({ count: 120, perMs: MINUTE_MS, burst: 120 }, RATE_KEYS_MAX),
    request: new TokenBuckets({ count: 1_200, perMs: MINUTE_MS, burst: 400 }, RATE_KEYS_MAX),
  }

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs
  }

  /** Seconds to wait, rounded up; 0 when the request is admitted. */
  readonly admit = (remoteAddress: Uint8Array, scope: AdmissionScope): number =>
    Math.ceil(this.#buckets[scope].take(networkOf(remoteAddress), this.#monotonicMs()) / 1000)

  /** To be called now and then: forgets addresses whose buckets are full again. */
  sweep(): void {
    for (const buckets of Object.values(this.#buckets)) buckets.sweep(this.#monotonicMs())
  }
}

/** The network that counts as one client: an IPv4 address, or the /64 of an IPv6 address. */
export function networkOf(address: Uint8Array): string {
  // An IPv4 address that came in on an IPv6 socket is still one IPv4 address (RFC 4291, 2.5.5.2).
  const isMappedIpv4 =
    address.length === 16 && address.every((byte, at) => at >= 12 || byte === (at < 10 ? 0 : 0xff))
  const network = isMappedIpv4 ? address.subarray(12) : address.subarray(0, 8)
  return Buffer.from(network).toString('latin1')
}

const MINUTE_MS = 60_000
