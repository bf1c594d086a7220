/**
 * How many short messages may be paid for (contract 2.2). Messages with a confirmed code are free: an honest country
 * never runs out. Unconfirmed ones are bounded by the first digits of the number, by the network that asks, by country
 * calling code, and over all, in this order: where hardly any code is confirmed, someone earns on the messages (SMS
 * pumping).
 */

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

export function ruleOf(scope: SmsScope, budgets: SmsBudgets): TallyRule {
  switch (scope) {
    case 'range':
      return { ...TENTH_CONFIRMED, floor: budgets.rangeHourly }
    case 'network':
      return { ...TENTH_CONFIRMED, floor: budgets.networkHourly }
    case 'calling-code':
      return { ...TWENTIETH_OF_DAY, perMs: HOUR_MS, floor: budgets.callingCodeHourly }
    case 'all':
      return { ...TWENTIETH_OF_DAY, perMs: DAY_MS, floor: budgets.daily }
  }
}

/** The first seven digits of an E.164 number: pumped numbers are rented in blocks. */
export function rangeOf(number: string): string {
  return number.slice(0, RANGE_CHARS)
}

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const RANGE_CHARS = '+'.length + 7
const TENTH_CONFIRMED = { perMs: HOUR_MS, perConfirmed: 9, confirmedPerMs: HOUR_MS }
const TWENTIETH_OF_DAY = { perConfirmed: 20, confirmedPerMs: DAY_MS }
