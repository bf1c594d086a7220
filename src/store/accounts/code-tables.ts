/** Tables of codes, the challenges that lead to them, and what is counted. */

import {
  CHALLENGE_ID_BYTES,
  type ChallengePurpose,
  type Code,
  findChallenge,
} from '../../domain/accounts/challenge.ts'
import { EXPIRY } from '../engine/expiries.ts'
import { beginningOf, HASH, opaque } from '../engine/key-parts.ts'
import {
  bytes,
  count,
  listOf,
  object,
  oneOf,
  optional,
  sealed,
  text,
  tuple,
  typed,
} from '../engine/row-form.ts'
import { rowTable, textKeyTable } from '../engine/table.ts'

const CHALLENGE = object({
  id: bytes(CHALLENGE_ID_BYTES),
  tries: count,
  purpose: typed<ChallengePurpose>(object({ kind: text })),
  address: object({ kind: oneOf('email', 'phone'), key: text, shown: text }),
  network: text,
  language: text,
  asker: optional(oneOf('token', 'network', 'stranger')),
})
const OWN_SENDS = object({ sendCount: count, sentAtMs: count })

/** By `codeName`. */
export const CODES = rowTable({
  name: 'codes',
  subject: 'codes and counts',
  holds: 'the last code for an address and purpose, its challenges',
  key: { code: HASH },
  row: object({
    codeId: bytes(),
    hash: bytes(),
    sealed,
    sentAtMs: count,
    sentAgainAtMs: optional(count),
    known: optional(object({ token: optional(OWN_SENDS), network: optional(OWN_SENDS) })),
    sendCount: count,
    triesByAddress: count,
    triesFromKnown: optional(count),
    isByMail: optional(oneOf(true)),
    challenges: listOf(CHALLENGE),
  }),
  ending: { kind: EXPIRY.code },
  *disagreements(key, { challenges }, rows) {
    for (const { id } of challenges) {
      const isFound = rows.holds<Uint8Array>('challenges', id, found => key.equals(found))
      if (!isFound) yield `challenges does not lead from challenge ${beginningOf(id)} to it`
    }
  },
  remedy: 'a person who waits for the code has to begin the sign-in again',
})

export const CHALLENGES = rowTable({
  name: 'challenges',
  subject: 'codes and counts',
  holds: 'the key of its code',
  key: { challenge: opaque(CHALLENGE_ID_BYTES) },
  row: bytes(HASH.bytes),
  relations: [
    {
      in: 'codes',
      under: (_, code) => code,
      where: (code: Code, challenge) => findChallenge(code, challenge) !== undefined,
      otherwise: (_, code) => `codes has no code ${beginningOf(code)} with this challenge`,
    },
  ],
  remedy: 'a person who waits for the code has to begin the sign-in again',
})

const POOL = {
  sentAtMs: listOf(count),
  failedAtMs: listOf(count),
  failuresInRow: count,
  stoppedUntilMs: count,
}
/** Slot of time, made, confirmed. */
const TALLY = listOf(tuple(count, count, count))
export const COUNTED_ANEW = 'requests that need the count may fail until a backup is restored'

export const CODE_COUNTS = rowTable({
  name: 'code-counts',
  subject: 'codes and counts',
  holds: 'codes to an address, and wrong ones',
  key: { address: HASH },
  row: object({
    ...POOL,
    reserves: optional(object({ token: optional(object(POOL)), network: optional(object(POOL)) })),
  }),
  ending: { kind: EXPIRY.identifier },
  remedy: COUNTED_ANEW,
})

export const CODE_TRIES = rowTable({
  name: 'code-tries',
  subject: 'codes and counts',
  holds: 'tries of codes from a network, and from all',
  key: { network: HASH },
  row: TALLY,
  ending: { kind: EXPIRY.codeTries },
  remedy: COUNTED_ANEW,
})

export const SMS_TALLIES = rowTable({
  name: 'sms-tallies',
  subject: 'codes and counts',
  holds: 'paid messages to a number range, or for a network',
  key: { 'range or network': HASH },
  row: TALLY,
  ending: { kind: EXPIRY.smsTally },
  remedy: COUNTED_ANEW,
})

export const SMS_DIAL_CODES = textKeyTable({
  name: 'sms-dial-codes',
  subject: 'codes and counts',
  holds: 'paid messages to a country, and to all',
  key: 'calling code, or `all`',
  row: TALLY,
  remedy: COUNTED_ANEW,
})

export const CODE_TABLES = [CODES, CHALLENGES, CODE_COUNTS, CODE_TRIES, SMS_TALLIES, SMS_DIAL_CODES]
