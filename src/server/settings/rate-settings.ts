/** `CALLSIGN_RATES`: counts of rates by name, as JSON. Rates can be higher or lower; none can be switched off. */

import {
  RATE_FACTOR_MAX,
  RATE_NAMES,
  type RateName,
  type Rates,
  ratesWith,
  USUAL_RATES,
} from '../../domain/rates.ts'
import type { EnvironmentReader } from './environment.ts'
import { guessOf } from './spelling.ts'

const NAME = 'CALLSIGN_RATES'
const FORM = 'a JSON object of rates and their counts such as {"call-start":40}'
/** A longer one may be a secret in the wrong place. */
const NAME_SHOWN_MAX = 20

/** The rates of the server; faults are named one by one. */
export function readRates(reader: EnvironmentReader): Rates {
  const text = reader.text(NAME, FORM, 'the usual counts')
  if (text === undefined) return USUAL_RATES
  const given = objectOf(text)
  if (given === undefined) {
    reader.problems.push(`${NAME} is ${FORM}`)
    return USUAL_RATES
  }
  const counts: Partial<Record<RateName, number>> = {}
  for (const [name, count] of Object.entries(given)) {
    const problem = problemWith(name, count)
    if (problem === undefined) counts[name as RateName] = count as number
    else reader.problems.push(`${NAME}: ${problem}`)
  }
  return ratesWith(counts)
}

function problemWith(name: string, count: unknown): string | undefined {
  if (!Object.hasOwn(USUAL_RATES, name)) {
    const shown = name.length > NAME_SHOWN_MAX ? 'a long name' : JSON.stringify(name)
    return `${shown} is no rate${guessOf(name, RATE_NAMES)}`
  }
  const countMax = USUAL_RATES[name as RateName].count * RATE_FACTOR_MAX
  if (Number.isInteger(count) && (count as number) >= 1 && (count as number) <= countMax) return undefined
  return `${name} is a number from 1 to ${countMax}, no rate can be switched off`
}

function objectOf(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined
  } catch {
    return undefined
  }
}
