/**
 * Which phone numbers are served: those of the countries that the operator lists, and of networks outside all countries
 * only where their calling code is listed. Messages to satellites cost dollars, and the renters
 * of such numbers get a part.
 */

import type { AcceptedPhone } from './phone.ts'

export interface ServedNumbers {
  /** ISO 3166 letters, calling codes of no country such as `+870`, and `EVERY_COUNTRY`; empty for every country. */
  readonly smsCountries: ReadonlySet<string>
  /** ISO 3166 letters of countries that are refused, listed or not. */
  readonly blockedCountries: ReadonlySet<string>
}

export function isServed(
  { countries, dialCode, isGlobal }: Pick<AcceptedPhone, 'countries' | 'dialCode' | 'isGlobal'>,
  { smsCountries, blockedCountries }: ServedNumbers,
): boolean {
  if (isGlobal) return smsCountries.has(`+${dialCode}`)
  const isEvery = smsCountries.size === 0 || smsCountries.has(EVERY_COUNTRY)
  // For a new range the tables know only the countries that share its calling code.
  return countries.some(country => !blockedCountries.has(country) && (isEvery || smsCountries.has(country)))
}

/** In a list, beside calling codes of no country. */
export const EVERY_COUNTRY = '*'
/** Calling codes of no country that have numbers which may take a message. */
export const GLOBAL_CALLING_CODES: ReadonlySet<string> = new Set(['+870', '+878', '+881', '+882', '+883'])
