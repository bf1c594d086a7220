/** Token buckets whose counts survive a restart (contract 8): friend requests, share tokens, registrations. */

import { type BucketRate, fullAtAfter, missingMs } from '../../domain/token-bucket.ts'
import { COUNTED_ANEW } from '../accounts/code-tables.ts'
import { EXPIRY, type Expiries } from '../engine/expiries.ts'
import { HASH } from '../engine/key-parts.ts'
import { textKey } from '../engine/keys.ts'
import { count } from '../engine/row-form.ts'
import type { Change, View } from '../engine/store.ts'
import { rowTable } from '../engine/table.ts'

export class RateStore {
  readonly #expiries: Expiries

  constructor(expiries: Expiries) {
    this.#expiries = expiries
    expiries.define(EXPIRY.rate, expire)
  }

  /** Milliseconds until every one of the rates has a token for this name, 0 when they have; and the rate that has not. */
  longestWait(
    view: View,
    name: string,
    rates: readonly BucketRate[],
    nowMs: number,
  ): { readonly missingMs: number; readonly rate: BucketRate } {
    const waits = rates.map((rate, at) => {
      const fullAtMs = view.get(RATES, rateKey(name, at))
      return { missingMs: missingMs(rate, believed(rate, fullAtMs, nowMs), nowMs), rate }
    })
    return waits.reduce((one, other) => (other.missingMs > one.missingMs ? other : one))
  }

  /** Takes a token of each rate. Call it when none is missing. */
  take(change: Change, name: string, rates: readonly BucketRate[]): void {
    const { nowMs } = change
    for (const [at, rate] of rates.entries()) {
      const key = rateKey(name, at)
      const known = change.get(RATES, key)
      const fullAtMs = fullAtAfter(rate, believed(rate, known, nowMs), nowMs)
      change.put(RATES, key, fullAtMs)
      if (known === undefined) this.#expiries.add(change, EXPIRY.rate, fullAtMs, key)
    }
  }
}

function expire(change: Change, key: Uint8Array): number | undefined {
  const fullAtMs = change.get(RATES, key)
  if (fullAtMs === undefined) return undefined
  if (fullAtMs > change.nowMs) return fullAtMs
  change.remove(RATES, key)
  return undefined
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

export const RATES = rowTable('rates', { 'rate and name': HASH }, count, {
  holds: 'when a bucket of a rate is full again',
  ending: { kind: EXPIRY.rate },
  remedy: COUNTED_ANEW,
})
