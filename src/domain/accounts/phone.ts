/**
 * Phone numbers as login identifiers (contract 2.1): E.164 by the tables of libphonenumber, and only kinds of number
 * that take an SMS at an ordinary price.
 */

import { createRequire } from 'node:module'
import type * as Library from 'libphonenumber-js/max'

export interface AcceptedPhone {
  readonly kind: 'accepted'
  /** E.164, such as `+84912345678`: two spellings of one number have one key. */
  readonly key: string
  /** ISO 3166 letters; undefined for numbers of no country, and where the tables don't say which. */
  readonly country: string | undefined
  /** Those that it may be of: one where the tables say which, none for a number of no country. */
  readonly countries: readonly string[]
  /** Digits of the country calling code; empty for a test number outside every plan. */
  readonly dialCode: string
  /** Set for satellites and other networks outside all countries, such as `+870`. */
  readonly isGlobal: boolean
}

export interface RefusedPhone {
  readonly kind: 'refused'
  /** `format`: no phone number. `type`: a landline, a premium-rate or shared-cost number, or similar. */
  readonly reason: 'format' | 'type'
}

/**
 * Judges a number in any usual spelling. `country` (ISO 3166) says what a number without calling code belongs to.
 * `testNumbers` are E.164 texts that are taken as they are, for accounts of app reviewers.
 */
export function parsePhone(
  text: string,
  country: string | undefined,
  testNumbers: ReadonlySet<string> = NO_NUMBERS,
): AcceptedPhone | RefusedPhone {
  if (text.length > PHONE_CHARS_MAX) return { kind: 'refused', reason: 'format' }
  // Phones copy a number with direction marks around it.
  const plain = inAscii(text.replace(/\p{Cf}/gu, '')).trim()
  const { parsePhoneNumberFromString } = tables()
  const typed = parsePhoneNumberFromString(plain, { extract: false, ...defaultCountry(country) })
  const number = withoutOldMobileDigit(typed)
  const compact = plain.replace(/[\s().-]/g, '')
  if (testNumbers.has(compact)) return accepted(compact, number)
  if (number === undefined || number.ext !== undefined || !number.isPossible()) {
    return { kind: 'refused', reason: 'format' }
  }
  // A number with two national prefixes reads as a different number: it can't be the key of one account.
  if (parsePhoneNumberFromString(number.number)?.number !== number.number)
    return { kind: 'refused', reason: 'format' }
  const type = number.getType()
  const types = number.isNonGeographic() ? GLOBAL_TYPES : MESSAGE_TYPES
  if (type !== undefined && !types.has(type)) return { kind: 'refused', reason: 'type' }
  return accepted(number.number, number)
}

/** Whether the ISO 3166 letters, in capitals, are of a country with phone numbers. */
export function isPhoneCountry(letters: string): boolean {
  return tables().isSupportedCountry(letters)
}

/** `+84•••678` for `+84912345678`: enough for its owner to know it by. */
export function maskPhone(key: string): string {
  return key.length < MASKED_CHARS_MIN ? MASK : `${key.slice(0, 3)}${MASK}${key.slice(-3)}`
}

function accepted(key: string, number: Library.PhoneNumber | undefined): AcceptedPhone {
  const { country, countryCallingCode: dialCode = '' } = number ?? {}
  const countries = country === undefined ? (number?.getPossibleCountries() ?? []) : [country]
  return { kind: 'accepted', key, country, countries, dialCode, isGlobal: number?.isNonGeographic() ?? false }
}

/** Keyboards for Chinese and Japanese type the plus, the digits and the marks between them at full width. */
function inAscii(text: string): string {
  const narrow = (wide: string) => String.fromCharCode(wide.charCodeAt(0) - FULL_WIDTH_OFFSET)
  return text.replace(/[\uff01-\uff5e]/g, narrow).replaceAll('\u3000', ' ')
}

/** Mexico's mobile numbers had a 1 behind the calling code until 2019, and many address books have it still. */
function withoutOldMobileDigit(number: Library.PhoneNumber | undefined): Library.PhoneNumber | undefined {
  const old = /^\+521(\d{10})$/.exec(number?.number ?? '')
  return old === null || number?.ext !== undefined
    ? number
    : tables().parsePhoneNumberFromString(`+52${old[1]}`)
}

function defaultCountry(country: string | undefined) {
  const letters = country?.toUpperCase()
  return letters !== undefined && tables().isSupportedCountry(letters) ? { defaultCountry: letters } : {}
}

/**
 * The library with its tables, loaded by the first number that is judged (27 ms): servers start without it. As a
 * CommonJS module, since only these can be loaded by a function that answers at once.
 */
function tables(): Pick<typeof Library, 'isSupportedCountry' | 'parsePhoneNumberFromString'> {
  library ??= require('libphonenumber-js/max') as typeof Library
  return library
}

const require = createRequire(import.meta.url)
let library: typeof Library | undefined
/** From `!` to `！`, and so on for all of printable ASCII. */
const FULL_WIDTH_OFFSET = 0xfee0
/** Spaces and hyphens in fifteen digits, and no more. */
const PHONE_CHARS_MAX = 40
/** Numbers unknown to the tables are tried: ranges are opened faster than tables are updated. */
const MESSAGE_TYPES: ReadonlySet<string> = new Set(['MOBILE', 'FIXED_LINE_OR_MOBILE'])
/** Some networks outside all countries have no other numbers. */
const GLOBAL_TYPES: ReadonlySet<string> = new Set([...MESSAGE_TYPES, 'VOIP'])
/** Below this a mask of six characters would show nearly all. */
const MASKED_CHARS_MIN = 9
const MASK = '•••'
const NO_NUMBERS: ReadonlySet<string> = new Set()
