/**
 * The count of paid messages (contract 8): one row for the day, one for each country calling code, of which there are
 * some two hundred, so that nothing here has to expire.
 */

import { parsePhone } from '../domain/phone.ts'
import {
  countConfirmation,
  countMessage,
  countToday,
  type DayCount,
  type DialCodeCounts,
  missingForDay,
  missingForDialCode,
  NO_MESSAGES,
  pumpedForMs,
} from '../domain/sms-budget.ts'
import type { Database, RecordTable } from './database.ts'

export interface SmsBudgetParts {
  readonly database: Database
  /** Messages a day overall. */
  readonly dailyMax: number
  /** Told of a country calling code when sending to it stops because so few codes are confirmed. */
  readonly onPumped: (dialCode: string) => void
}

export class SmsBudget {
  readonly #parts: SmsBudgetParts
  readonly #dialCodes: RecordTable<DialCodeCounts>
  readonly #days: RecordTable<DayCount>
  /** Until when each calling code is known to be stopped, so that it is told of once. */
  readonly #stoppedUntilMs = new Map<string, number>()

  constructor(parts: SmsBudgetParts) {
    this.#parts = parts
    this.#dialCodes = parts.database.recordTable('sms-dial-codes')
    this.#days = parts.database.recordTable('sms-days')
  }

  /** Milliseconds until a message may go to this number (E.164); 0 when it may now. */
  missingMs(number: string, nowMs: number): number {
    const dialCode = dialCodeOf(number)
    const counts = this.#dialCodes.get(dialCode) ?? NO_MESSAGES
    this.#tellOfPumping(dialCode, nowMs + pumpedForMs(counts, nowMs), nowMs)
    const dayMs = missingForDay(this.#days.get(TODAY), this.#parts.dailyMax, nowMs)
    return Math.max(dayMs, missingForDialCode(counts, nowMs))
  }

  /** In a transaction. */
  countSent(number: string, nowMs: number): void {
    const dialCode = dialCodeOf(number)
    this.#dialCodes.put(dialCode, countMessage(this.#dialCodes.get(dialCode) ?? NO_MESSAGES, nowMs))
    this.#days.put(TODAY, countToday(this.#days.get(TODAY), nowMs))
  }

  /**
   * In a transaction: counts a message that is no code; by the day alone, since nobody confirms it. False, with nothing
   * counted, when the day's budget is used up.
   */
  takeLetter(nowMs: number): boolean {
    const count = this.#days.get(TODAY)
    if (missingForDay(count, this.#parts.dailyMax, nowMs) > 0) return false
    this.#days.put(TODAY, countToday(count, nowMs))
    return true
  }

  /** In a transaction: a code that was sent to this number was accepted. */
  countConfirmed(number: string, nowMs: number): void {
    const dialCode = dialCodeOf(number)
    this.#dialCodes.put(dialCode, countConfirmation(this.#dialCodes.get(dialCode) ?? NO_MESSAGES, nowMs))
  }

  #tellOfPumping(dialCode: string, untilMs: number, nowMs: number): void {
    if (untilMs === nowMs) return
    const known = this.#stoppedUntilMs.get(dialCode) ?? 0
    this.#stoppedUntilMs.set(dialCode, untilMs)
    if (known <= nowMs) this.#parts.onPumped(dialCode)
  }
}

/** Empty for numbers of no plan, which then share one row. */
function dialCodeOf(number: string): string {
  const phone = parsePhone(number, undefined)
  return phone.ok ? `+${phone.dialCode}` : '+'
}

const TODAY = 'today'
