/** Rates that survive a restart (contract 8): counted per user, in the change of what they count. */

import type { UserId } from '../../domain/ids.ts'
import type { RateName, Rates } from '../../domain/rates.ts'
import type { SignalError } from '../../errors.ts'
import type { RateStore } from '../../store/engine/rate-store.ts'
import type { Change, Store, View } from '../../store/engine/store.ts'
import { rateLimited } from './operation-routes.ts'

export interface LastingRatesWorld {
  readonly rates: Pick<RateStore, 'longestWait' | 'take'>
  readonly rateLimits: Rates | undefined
  readonly database: Pick<Store, 'change'>
}

/** What is counted, under a name that stores keep, and the rates that bound it. */
export interface LastingRate {
  readonly name: string
  readonly rates: readonly RateName[]
}

/** Throws `RATE_LIMITED` while the user has used up one of the rates; what is `promised` counts as taken. */
export function assertRate(
  world: LastingRatesWorld,
  view: View,
  { name, rates }: LastingRate,
  userId: UserId,
  nowMs: number,
  promised = 0,
): void {
  const { rateLimits } = world
  if (rateLimits === undefined) return
  const left = rates.map(each => ({ ...rateLimits[each], burst: rateLimits[each].burst - promised }))
  const { missingMs, rate } = world.rates.longestWait(view, `${name} ${userId}`, left, nowMs)
  if (missingMs > 0) throw rateLimited(missingMs, 'user', rate)
}

/** Counts one, which was allowed when it was asserted. */
export function countRate(
  world: LastingRatesWorld,
  change: Change,
  { name, rates }: LastingRate,
  userId: UserId,
): void {
  const { rateLimits } = world
  if (rateLimits === undefined) return
  const counted = rates.map(each => rateLimits[each])
  world.rates.take(change, `${name} ${userId}`, counted)
}

/** Counts one, or throws `RATE_LIMITED`. */
export function takeRate(world: LastingRatesWorld, change: Change, rate: LastingRate, userId: UserId): void {
  assertRate(world, change, rate, userId, change.nowMs)
  countRate(world, change, rate, userId)
}

/** Rejects with the refusal once the attempt is counted, or with `RATE_LIMITED`. */
export async function refuseCounted(
  world: LastingRatesWorld,
  rate: LastingRate,
  userId: UserId,
  nowMs: number,
  refusal: SignalError,
): Promise<never> {
  await world.database.change(change => takeRate(world, change, rate, userId), nowMs)
  throw refusal
}
