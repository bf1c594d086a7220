/**
 * Addresses and display names as requests send them (contract 2.1). Addresses are parsed, of a country that is served, and the same for every spelling.
 * Addresses of reviewers and tests are taken as they are configured, also where no such number can exist.
 */

import type { Address } from '../../domain/accounts/challenge.ts'
import { normalizeDisplayName } from '../../domain/accounts/display-name.ts'
import { parseEmail } from '../../domain/accounts/email.ts'
import { parsePhone } from '../../domain/accounts/phone.ts'
import { isServed, type ServedNumbers } from '../../domain/accounts/served-number.ts'
import { SignalError } from '../../errors.ts'
import { invalidMember } from '../../schema/check.ts'

export interface AddressRules extends ServedNumbers {
  /** Fixed codes by address, in any spelling. */
  readonly testIdentifiers: ReadonlyMap<string, string>
}

/** The members by which a request names one address. */
export interface NamedAddress {
  readonly email?: string | undefined
  readonly phone?: string | undefined
  readonly identifier?: string | undefined
  readonly country?: string | undefined
}

export class AddressReader {
  /** Fixed codes by the `key` of their address. */
  readonly testCodes: ReadonlyMap<string, string>
  readonly #testNumbers: ReadonlySet<string>
  readonly #served: ServedNumbers

  constructor({ testIdentifiers, ...served }: AddressRules) {
    this.#served = served
    const codes = [...testIdentifiers].map(([text, otp]) => [keyOf(text), otp] as const)
    this.testCodes = new Map(codes)
    this.#testNumbers = new Set(this.testCodes.keys())
  }

  /** Throws `VALIDATION_FAILED` with this pointer, or `BLOCKED_COUNTRY`. */
  readonly read = (
    kind: Address['kind'],
    text: string,
    country: string | undefined,
    pointer: string,
  ): Address => (kind === 'email' ? readEmail(text, pointer) : this.#readPhone(text, country, pointer))

  /** The one address that a request names. Throws what `read` does. */
  readNamed({ email, phone, identifier, country }: NamedAddress): Address {
    const named = [email, phone, identifier].filter(text => text !== undefined)
    if (named.length !== 1) throw invalidMember('', 'REQUIRED', 'has to name one address')
    if (email !== undefined) return this.read('email', email, country, '/email')
    if (phone !== undefined) return this.read('phone', phone, country, '/phone')
    const text = identifier ?? ''
    return this.read(text.includes('@') ? 'email' : 'phone', text, country, '/identifier')
  }

  #readPhone(text: string, country: string | undefined, pointer: string): Address {
    const phone = parsePhone(text, country, this.#testNumbers)
    if (phone.kind === 'refused') {
      throw phone.reason === 'type'
        ? invalidMember(pointer, 'PHONE_TYPE', 'is not a number that takes short messages')
        : invalidMember(pointer, 'FORMAT', 'is not a phone number; begin it with + and the calling code')
    }
    if (!this.#testNumbers.has(phone.key) && !isServed(phone, this.#served)) {
      throw new SignalError('BLOCKED_COUNTRY', 'numbers of this country are not served')
    }
    return { kind: 'phone', key: phone.key, shown: phone.key }
  }
}

/** The name as it is kept, undefined where none was sent. Throws `VALIDATION_FAILED` at the pointer. */
export function readDisplayName(text: string | undefined, pointer = '/displayName'): string | undefined {
  if (text === undefined) return undefined
  const name = normalizeDisplayName(text)
  if (name !== undefined) return name
  const detail = 'has 1 to 50 characters in at most 200 bytes, one of them visible, and no line breaks'
  throw invalidMember(pointer, 'FORMAT', detail)
}

function readEmail(text: string, pointer: string): Address {
  const email = parseEmail(text)
  if (email === undefined) throw invalidMember(pointer, 'FORMAT', 'is not an email address')
  return { kind: 'email', key: email.key, shown: email.shown }
}

function keyOf(text: string): string {
  return parseEmail(text)?.key ?? text.replace(/[\s().-]/g, '')
}
