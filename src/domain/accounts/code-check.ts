/**
 * What the operator's login check is asked about a code before it leaves (contract 0.1, "2.2 SMS"): enough to tell SMS
 * pumping and robots by, and no address.
 */

import type { Address, ChallengePurpose } from './challenge.ts'
import { parsePhone } from './phone.ts'
import { networkPrefix } from './sign-in-place.ts'
import { rangeOf } from './sms-budget.ts'

/** Waits with its message. */
export interface CodeCheck {
  /** Unique to the message. */
  readonly id: string
  /** First seven digits of the number, or the domain of the mail address. */
  readonly prefix: string
  /** ISO 3166 letters of the number; undefined where they are not known. */
  readonly country?: string
  /** Roughly where the code was asked for, such as `203.0.113.0/24`. */
  readonly network?: string
  readonly purpose: ChallengePurpose['kind']
  /** Set where the message counts against the budget of short messages: who is to get it back, and since when. */
  readonly charged?: { readonly network: string; readonly atMs: number }
}

/** Begins once the message is durable. */
export interface CheckedCode {
  readonly channel: 'mail' | 'sms'
  readonly check: CodeCheck
  /** As the client gave it; kept in memory alone. */
  readonly attestation?: string | undefined
}

export function codeCheckOf(
  id: string,
  { kind, key }: Pick<Address, 'kind' | 'key'>,
  asked: { readonly network: string; readonly purpose: ChallengePurpose },
): CodeCheck {
  const phone = kind === 'phone' ? parsePhone(key, undefined) : undefined
  const country = phone?.kind === 'accepted' ? phone.country : undefined
  const network = networkPrefix(asked.network)
  return {
    id,
    prefix: kind === 'phone' ? rangeOf(key) : key.slice(key.lastIndexOf('@') + 1),
    ...(country === undefined ? {} : { country }),
    ...(network === undefined ? {} : { network }),
    purpose: asked.purpose.kind,
  }
}
