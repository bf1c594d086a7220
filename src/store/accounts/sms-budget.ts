/**
 * The count of paid messages (contract 2.2): a row for each number range that was sent to lately, and for each network
 * that asked, at every width, which expires; one for each country calling code and one for all, which are few and stay.
 */

import { parsePhone } from '../../domain/accounts/phone.ts'
import {
  pressuresOn,
  rangeOf,
  ruleOf,
  type SmsBudgets,
  type SmsScope,
  type SmsStop,
} from '../../domain/accounts/sms-budget.ts'
import { countedNetworks } from '../../domain/network.ts'
import {
  missingForTally,
  NO_TALLY,
  type Tally,
  tallyConfirmed,
  tallyEndMs,
  tallyMade,
  tallyTakenBack,
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

/** How long a scope has the message wait; 0 where it does not. */
interface Wait {
  readonly scope: SmsScope
  readonly name: string
  readonly waitMs: number
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
    // The narrowest first: it spares the wider ones.
    for (const { scope, name, waitMs } of this.#waits(change, message, nowMs)) {
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

  /** A message that was counted then has not left after all. */
  takeBack(change: Change, message: PaidMessage, countedAtMs: number): void {
    this.#count(change, message, tally => tallyTakenBack(tally, countedAtMs))
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

  *#waits(view: View, message: PaidMessage, nowMs: number): Generator<Wait> {
    const budgets = this.#budgets
    const wait = (scope: SmsScope, name: string, factor?: number): Wait => {
      const waitMs = missingForTally(this.#read(view, scope, name), ruleOf(scope, budgets, factor), nowMs)
      return { scope, name, waitMs }
    }
    const networks = countedNetworks(message.network)
    yield wait('range', rangeOf(message.number))
    for (const { name, factor } of networks) yield wait('network', name, factor)
    for (const [scope, name] of commonCountersOf(message)) {
      yield wait(scope, name)
      for (const pressure of pressuresOn(scope, budgets)) {
        const commonMs = missingForTally(this.#read(view, scope, name), pressure.common, nowMs)
        if (commonMs === 0) break
        for (const network of networks.filter(pressure.isSlowed)) {
          const ownMs = missingForTally(this.#read(view, 'network', network.name), pressure.own, nowMs)
          yield { scope: 'network', name: network.name, waitMs: Math.min(commonMs, ownMs) }
        }
      }
    }
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

function countersOf(message: PaidMessage): readonly (readonly [SmsScope, string])[] {
  const networks = countedNetworks(message.network)
  return [
    ['range', rangeOf(message.number)],
    ...networks.map(({ name }) => ['network', name] as const),
    ...commonCountersOf(message),
  ]
}

/** Counters of the budgets that all newcomers share. */
function commonCountersOf({ number }: PaidMessage) {
  const phone = parsePhone(number, undefined)
  // Numbers of no plan share one row.
  const callingCode = phone.kind === 'accepted' ? `+${phone.dialCode}` : '+'
  return [['calling-code', callingCode] as const, ['all', ''] as const]
}

function tallyKey(scope: SmsScope, name: string): Uint8Array {
  return textKey(`${scope} ${name}`)
}

const ALL = 'all'
/** Stops that are remembered, so that each is reported once; beyond it the one reported longest ago is reported again. */
const STOPS_KEPT_MAX = 10_000
