/** Token buckets whose counts survive a restart (contract 8): friend requests, share tokens, registrations. */

import { type BucketRate, fullAtAfter, missingMs } from '../../domain/token-bucket.ts'
import type { Database, Table } from './database.ts'
import { EXPIRY, type Expiries } from './expiries.ts'
import { textKey } from './keys.ts'

export class RateStore {
  readonly #expiries: Expiries
  /** When the bucket is full again, milliseconds since 1970. */
  readonly #fullAtMs: Table<number>

  constructor(database: Database, expiries: Expiries) {
    this.#expiries = expiries
    this.#fullAtMs = database.table('rates')
    expiries.define(EXPIRY.rate, (key, nowMs) => this.#expire(key, nowMs))
  }

  /** Milliseconds until every one of the rates has a token for this name, 0 when they have; and the rate that has not. */
  longestWait(
    name: string,
    rates: readonly BucketRate[],
    nowMs: number,
  ): { readonly missingMs: number; readonly rate: BucketRate } {
    const waits = rates.map((rate, at) => {
      const fullAtMs = this.#fullAtMs.get(rateKey(name, at))
      return { missingMs: missingMs(rate, believed(rate, fullAtMs, nowMs), nowMs), rate }
    })
    return waits.reduce((one, other) => (other.missingMs > one.missingMs ? other : one))
  }

  /** In a transaction: takes a token of each rate. To be called when none is missing. */
  take(name: string, rates: readonly BucketRate[], nowMs: number): void {
    for (const [at, rate] of rates.entries()) {
      const key = rateKey(name, at)
      const known = this.#fullAtMs.get(key)
      const fullAtMs = fullAtAfter(rate, believed(rate, known, nowMs), nowMs)
      this.#fullAtMs.put(key, fullAtMs)
      if (known === undefined) this.#expiries.add(EXPIRY.rate, fullAtMs, key)
    }
  }

  #expire(key: Uint8Array, nowMs: number): number | undefined {
    const fullAtMs = this.#fullAtMs.get(key)
    if (fullAtMs === undefined) return undefined
    if (fullAtMs > nowMs) return fullAtMs
    this.#fullAtMs.remove(key)
    return undefined
  }
}

/**
 * When the bucket is full again; 0 where nothing is known. No bucket takes longer than its rate to fill, so what is
 * twice as far ahead was written by a clock that has been set back since: it would refuse for as long as the clock was
 * wrong.
 */
function believed({ count, perMs, burst }: BucketRate, fullAtMs: number | undefined, nowMs: number): number {
  const filledInMs = Math.max(perMs, (perMs / count) * burst)
  return fullAtMs !== undefined && fullAtMs <= nowMs + 2 * filledInMs ? fullAtMs : 0
}

function rateKey(name: string, at: number): Uint8Array {
  return textKey(`${at} ${name}`)
}
