/** Rates that survive a restart (contract 8): counted per user, in the transaction of what they count. */

import type { UserId } from '../domain/ids.ts'
import type { BucketRate } from '../domain/token-bucket.ts'
import type { SignalError } from '../errors.ts'
import type { RateStore } from '../store/rate-store.ts'
import { rateLimited } from './operation-routes.ts'

export interface LastingRatesWorld {
  readonly rates: Pick<RateStore, 'longestWait' | 'take'>
  readonly areRatesLimited: boolean
  readonly database: { commit<Result>(write: () => Result): Promise<Result> }
}

/** What is counted, and how much of it there may be. */
export interface LastingRate {
  readonly name: string
  readonly rates: readonly BucketRate[]
}

/** Throws `RATE_LIMITED` while the user has used up one of the rates. */
export function assertRate(world: LastingRatesWorld, rate: LastingRate, userId: UserId, nowMs: number): void {
  if (!world.areRatesLimited) return
  const wait = world.rates.longestWait(nameOf(rate, userId), rate.rates, nowMs)
  if (wait.missingMs > 0) throw rateLimited(wait.missingMs, 'user', wait.rate)
}

/** In a transaction, before anything else is written: counts one, or throws `RATE_LIMITED`. */
export function takeRate(world: LastingRatesWorld, rate: LastingRate, userId: UserId, nowMs: number): void {
  assertRate(world, rate, userId, nowMs)
  if (world.areRatesLimited) world.rates.take(nameOf(rate, userId), rate.rates, nowMs)
}

/** Rejects with the refusal once the attempt is counted, or with `RATE_LIMITED`. */
export async function refuseCounted(
  world: LastingRatesWorld,
  rate: LastingRate,
  userId: UserId,
  nowMs: number,
  refusal: SignalError,
): Promise<never> {
  await world.database.commit(() => takeRate(world, rate, userId, nowMs))
  throw refusal
}

function nameOf({ name }: LastingRate, userId: UserId): string {
  return `${name} ${userId}`
}
