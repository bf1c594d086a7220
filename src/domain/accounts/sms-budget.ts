/**
 * How many short messages may be paid for (contract 2.2). Messages with a confirmed code are free: an honest country
 * never runs out. Unconfirmed ones are bounded by the first digits of the number, by the network that asks, by country
 * calling code, and over all, in this order: where hardly any code is confirmed, someone earns on the messages (SMS
 * pumping).
 *
 * Nor may one place use up what all newcomers of a country have in common: the more of a common budget is gone, the less a
 * network with unconfirmed messages gets of the rest, so that a newcomer from elsewhere is served.
 */

import type { CountedNetwork } from '../network.ts'
import type { TallyRule } from '../tally.ts'

/** The scopes that sending can be stopped for. */
export type SmsScope = 'range' | 'network' | 'calling-code' | 'all'

/** Why no messages are sent to a number for a while. */
export interface SmsStop {
  readonly scope: SmsScope
  /** The range, network or calling code that is stopped; empty for `all`. */
  readonly name: string
  /** When a message was asked for, and until when none is sent, milliseconds since 1970. */
  readonly metAtMs: number
  readonly untilMs: number
}

/** Unconfirmed messages that are allowed in any case: an hour, and over all a day. */
export interface SmsBudgets {
  readonly rangeHourly: number
  readonly networkHourly: number
  readonly callingCodeHourly: number
  readonly daily: number
}

/** `factor`: how many clients a network stands for. */
export function ruleOf(scope: SmsScope, budgets: SmsBudgets, factor = 1): TallyRule {
  switch (scope) {
    case 'range':
      return { ...TENTH_CONFIRMED, floor: budgets.rangeHourly }
    case 'network':
      return { ...TENTH_CONFIRMED, floor: budgets.networkHourly * factor }
    case 'calling-code':
      return { ...TWENTIETH_OF_DAY, perMs: HOUR_MS, floor: budgets.callingCodeHourly }
    case 'all':
      return { ...TWENTIETH_OF_DAY, perMs: DAY_MS, floor: budgets.daily }
  }
}

/** So much of a common budget is gone that networks are slowed which took more than their share. */
export interface Pressure {
  /** The common budget up to there. */
  readonly common: TallyRule
  /** A network's share. */
  readonly own: TallyRule
  readonly isSlowed: (network: CountedNetwork) => boolean
}

/** The pressures on the budget of a common scope, the lowest first. */
export function pressuresOn(scope: 'calling-code' | 'all', budgets: SmsBudgets): readonly Pressure[] {
  const { floor, perConfirmed, ...window } = ruleOf(scope, budgets)
  return PRESSURES.map(({ part, share, factorMax }) => ({
    common: { ...window, floor: floor * part, perConfirmed: perConfirmed * part },
    own: { ...TENTH_CONFIRMED, floor: Math.max(1, Math.floor(budgets.networkHourly * share)) },
    isSlowed: ({ factor }) => factor <= factorMax,
  }))
}

/** The first seven digits of an E.164 number: pumped numbers are rented in blocks. */
export function rangeOf(number: string): string {
  return number.slice(0, RANGE_CHARS)
}

/**
 * After a quarter a /48 gets no more than one client does, which leaves the rest of its /32 alone. After half any network gets
 * a third of that: it takes ten such networks to use up the other half.
 */
const PRESSURES = [
  { part: 1 / 4, share: 1, factorMax: 16 },
  { part: 1 / 2, share: 1 / 3, factorMax: Number.POSITIVE_INFINITY },
] as const
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const RANGE_CHARS = '+'.length + 7
const TENTH_CONFIRMED = { perMs: HOUR_MS, perConfirmed: 9, confirmedPerMs: HOUR_MS }
const TWENTIETH_OF_DAY = { perConfirmed: 20, confirmedPerMs: DAY_MS }
