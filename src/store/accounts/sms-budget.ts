/**
 * The count of paid messages (contract 2.2): a row for each number range and network that was sent to or asked lately,
 * which expires; one for each country calling code and one for all, which are few and stay.
 */

import { parsePhone } from '../../domain/accounts/phone.ts'
import {
  rangeOf,
  ruleOf,
  type SmsBudgets,
  type SmsScope,
  type SmsStop,
} from '../../domain/accounts/sms-budget.ts'
import {
  missingForTally,
  NO_TALLY,
  type Tally,
  tallyConfirmed,
  tallyEndMs,
  tallyMade,
} from '../../domain/tally.ts'
import { BoundedCache } from '../engine/bounded-cache.ts'
import { EXPIRY, type Expiries } from '../engine/expiries.ts'
import { textKey } from '../engine/keys.ts'
import type { Change, ReadStore, View } from '../engine/store.ts'
import { SMS_DIAL_CODES, SMS_TALLIES } from './code-tables.ts'

/** A message that is to be paid for: to whom, and who asks for it. */
export interface PaidMessage {
  /** E.164. */
  readonly number: string
  readonly network: string
}

export class SmsBudget {
  readonly #expiries: Expiries
  readonly #budgets: SmsBudgets
  /** Told of each stop once. */
  readonly #onStopped: (stop: SmsStop) => void
  /** Until when each scope's names are known to be stopped. */
  readonly #stoppedUntilMs = new BoundedCache<string, number>(STOPS_KEPT_MAX)

  constructor(
    database: Pick<ReadStore, 'subscribe'>,
    expiries: Expiries,
    budgets: SmsBudgets,
    onStopped: (stop: SmsStop) => void,
  ) {
    this.#expiries = expiries
    this.#budgets = budgets
    this.#onStopped = onStopped
    expiries.define(EXPIRY.smsTally, (change, key) => this.#expire(change, key))
    database.subscribe('sms-refused', ({ stop }) => this.#tellOf(stop))
  }

  /** The stop that keeps the message from being sent; undefined when there is none. */
  stopOf(change: Change, message: PaidMessage): SmsStop | undefined {
    const { nowMs } = change
    for (const [scope, name] of countersOf(message)) {
      const waitMs = missingForTally(this.#read(change, scope, name), ruleOf(scope, this.#budgets), nowMs)
      if (waitMs === 0) continue
      const stop = { scope, name, metAtMs: nowMs, untilMs: nowMs + waitMs }
      change.happened({ kind: 'sms-refused', stop })
      return stop
    }
    return undefined
  }

  countSent(change: Change, message: PaidMessage): void {
    this.#count(change, message, tally => tallyMade(tally, change.nowMs))
  }

  /** A code that was sent so was accepted. */
  countConfirmed(change: Change, message: PaidMessage): void {
    this.#count(change, message, tally => tallyConfirmed(tally, change.nowMs))
  }

  /**
   * Counts a message that is no code, over all alone, since nobody confirms it. False, with nothing
   * counted, when the budget of the day is used up.
   */
  takeLetter(change: Change): boolean {
    const { nowMs } = change
    const tally = this.#read(change, 'all', '')
    if (missingForTally(tally, ruleOf('all', this.#budgets), nowMs) > 0) return false
    this.#put(change, 'all', '', tallyMade(tally, nowMs))
    return true
  }

  #count(change: Change, message: PaidMessage, counted: (tally: Tally) => Tally): void {
    for (const [scope, name] of countersOf(message))
      this.#put(change, scope, name, counted(this.#read(change, scope, name)))
  }

  #read(view: View, scope: SmsScope, name: string): Tally {
    if (scope === 'range' || scope === 'network')
      return view.get(SMS_TALLIES, tallyKey(scope, name)) ?? NO_TALLY
    return view.get(SMS_DIAL_CODES, scope === 'all' ? ALL : name) ?? NO_TALLY
  }

  #put(change: Change, scope: SmsScope, name: string, tally: Tally): void {
    if (scope === 'all' || scope === 'calling-code') {
      change.put(SMS_DIAL_CODES, scope === 'all' ? ALL : name, tally)
      return
    }
    const key = tallyKey(scope, name)
    if (!change.has(SMS_TALLIES, key)) this.#expiries.add(change, EXPIRY.smsTally, tallyEndMs(tally), key)
    change.put(SMS_TALLIES, key, tally)
  }

  #expire(change: Change, key: Uint8Array): number | undefined {
    const endMs = tallyEndMs(change.get(SMS_TALLIES, key) ?? NO_TALLY)
    if (change.nowMs < endMs) return endMs
    change.remove(SMS_TALLIES, key)
    return undefined
  }

  #tellOf(stop: SmsStop): void {
    const key = `${stop.scope} ${stop.name}`
    const known = this.#stoppedUntilMs.get(key) ?? 0
    this.#stoppedUntilMs.set(key, stop.untilMs)
    if (known <= stop.metAtMs) this.#onStopped(stop)
  }
}

/** In the order in which they are asked: the narrowest first, so that it spares the others. */
function countersOf({ number, network }: PaidMessage): readonly (readonly [SmsScope, string])[] {
  const phone = parsePhone(number, undefined)
  return [
    ['range', rangeOf(number)],
    ['network', network],
    // Numbers of no plan share one row.
    ['calling-code', phone.kind === 'accepted' ? `+${phone.dialCode}` : '+'],
    ['all', ''],
  ]
}

function tallyKey(scope: SmsScope, name: string): Uint8Array {
  return textKey(`${scope} ${name}`)
}

const ALL = 'all'
/** Stops that are remembered, so that each is reported once; beyond it the one reported longest ago is reported again. */
const STOPS_KEPT_MAX = 10_000
