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
const OWN_SENDS = optional(object({ sendCount: count, sentAtMs: count }))
const CODE = object({
  codeId: bytes(),
  hash: bytes(),
  sealed,
  sentAtMs: count,
  sentAgainAtMs: optional(count),
  known: optional(object({ token: OWN_SENDS, network: OWN_SENDS })),
  sendCount: count,
  triesByAddress: count,
  triesFromKnown: optional(count),
  isByMail: optional(oneOf(true)),
  challenges: listOf(CHALLENGE),
})

/** By `codeName`. */
export const CODES = rowTable('codes', { code: HASH }, CODE, {
  holds: 'the last code for an address and purpose, its challenges',
  ending: { kind: EXPIRY.code },
  *disagreements(key, { challenges }, rows) {
    for (const { id } of challenges) {
      if (!rows.holds<Uint8Array>('challenges', id, found => key.equals(found)))
        yield `challenges does not lead from challenge ${beginningOf(id)} to it`
    }
  },
  remedy: 'a person who waits for the code has to begin the sign-in again',
})

export const CHALLENGES = rowTable('challenges', { challenge: opaque(CHALLENGE_ID_BYTES) }, bytes(32), {
  holds: 'the key of its code',
  relations: [
    {
      in: 'codes',
      under: (_, code) => code,
      where: (code: Code, challenge) => findChallenge(code, challenge) !== undefined,
      what: (_, code) => `code ${beginningOf(code)} with this challenge`,
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
const RESERVE = optional(object(POOL))
const COUNTS = object({ ...POOL, reserves: optional(object({ token: RESERVE, network: RESERVE })) })
/** Slot of time, made, confirmed. */
const TALLY = listOf(tuple(count, count, count))
export const COUNTED_ANEW = 'requests that need the count may fail until a backup is restored'

export const CODE_COUNTS = rowTable('code-counts', { address: HASH }, COUNTS, {
  holds: 'codes to an address, and wrong ones',
  ending: { kind: EXPIRY.identifier },
  remedy: COUNTED_ANEW,
})

export const CODE_TRIES = rowTable('code-tries', { network: HASH }, TALLY, {
  holds: 'tries of codes from a network, and from all',
  ending: { kind: EXPIRY.codeTries },
  remedy: COUNTED_ANEW,
})

export const SMS_TALLIES = rowTable('sms-tallies', { 'range or network': HASH }, TALLY, {
  holds: 'paid messages to a range of numbers, or for a network',
  ending: { kind: EXPIRY.smsTally },
  remedy: COUNTED_ANEW,
})

export const SMS_DIAL_CODES = textKeyTable('sms-dial-codes', 'calling code, or `all`', TALLY, {
  holds: 'paid messages to a country, and to all',
  remedy: COUNTED_ANEW,
})
