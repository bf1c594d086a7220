/** Decimal numbers as the formats of the log write them: ASCII digits, no sign, no leading zero. */
import { SignalError } from '../errors.ts'

/** The number `text` spells. Throws `MALFORMED` for any other spelling and above 2^53 - 1. */
export function parseDecimal(text: string): number {
  const value = DECIMAL.test(text) ? Number(text) : Number.NaN
  if (!Number.isSafeInteger(value)) {
    throw new SignalError('MALFORMED', `${JSON.stringify(text.slice(0, 24))} is not a number below 2^53`)
  }
  return value
}

const DECIMAL = /^(?:0|[1-9][0-9]*)$/
