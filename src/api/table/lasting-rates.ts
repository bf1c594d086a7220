/** Rates that survive a restart (contract 8): counted per user, in the change of what they count. */

import type { UserId } from '../../domain/ids.ts'
import type { RateName } from '../../domain/rates.ts'
import type { SignalError } from '../../errors.ts'
import type { Change, View } from '../../store/engine/store.ts'
import type { ApiDeps } from '../deps.ts'
import { rateLimited } from './request-rates.ts'

type Deps = Pick<ApiDeps, 'database' | 'rateLimits' | 'rates'>

/** What is counted, under a name that stores keep, and the rates that bound it. */
export interface LastingRate {
  readonly name: string
  readonly rates: readonly RateName[]
}

/** A user who takes from a rate at a time. */
interface Taker {
  readonly userId: UserId
  readonly nowMs: number
  /** How much is promised to them, which counts as taken. */
  readonly promised?: number
}

/** Throws `RATE_LIMITED` while the user has used up one of the rates. */
export function assertRate(deps: Deps, view: View, { name, rates }: LastingRate, taker: Taker): void {
  const { userId, nowMs, promised = 0 } = taker
  const { rateLimits } = deps
  if (rateLimits === undefined) return
  const left = rates.map(each => ({ ...rateLimits[each], burst: rateLimits[each].burst - promised }))
  const { missingMs, rate } = deps.rates.longestWait(view, `${name} ${userId}`, left, nowMs)
  if (missingMs > 0) throw rateLimited(missingMs, 'user', rate)
}

/** Counts one, which was allowed when it was asserted. */
export function countRate(deps: Deps, change: Change, { name, rates }: LastingRate, userId: UserId): void {
  const { rateLimits } = deps
  if (rateLimits === undefined) return
  const counted = rates.map(each => rateLimits[each])
  deps.rates.take(change, `${name} ${userId}`, counted)
}

/** Counts one, or throws `RATE_LIMITED`. */
export function takeRate(deps: Deps, change: Change, rate: LastingRate, userId: UserId): void {
  assertRate(deps, change, rate, { userId, nowMs: change.nowMs })
  countRate(deps, change, rate, userId)
}

/** Rejects with the refusal once the attempt is counted, or with `RATE_LIMITED`. */
export async function refuseCounted(
  deps: Deps,
  rate: LastingRate,
  { userId, nowMs }: Taker,
  refusal: SignalError,
): Promise<never> {
  await deps.database.change(change => takeRate(deps, change, rate, userId), nowMs)
  throw refusal
}
