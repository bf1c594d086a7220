/** Codes, the challenges that lead to them, and what is counted. */

import { type Code, findChallenge } from '../../domain/accounts/challenge.ts'
import { EXPIRY } from '../../store/engine/expiries.ts'
import { bytes, count, type Form, listOf, record, sealed, text, tuple } from './form.ts'
import { byBeginning, type TableCheck, tableCheck } from './table-check.ts'

const HASH = [32]
const tally = listOf(tuple(count, count, count))
const pool = {
  sentAtMs: listOf(count),
  failedAtMs: listOf(count),
  failuresInRow: count,
  stoppedUntilMs: count,
}
const challenge = record({
  id: bytes(16),
  tries: count,
  purpose: record({ kind: text }),
  address: record({ key: text }),
})
const COUNTED_ANEW = 'requests that need the count may fail until a backup is restored'

export const CODE_TABLES: Readonly<Record<string, TableCheck>> = {
  codes: tableCheck<Code>({
    key: HASH,
    keyAs: byBeginning,
    form: record(
      {
        codeId: bytes(),
        hash: bytes(),
        sentAtMs: count,
        sendCount: count,
        triesByAddress: count,
        sealed,
        challenges: listOf(challenge),
      },
      { sentAgainAtMs: count, triesFromKnown: count },
    ),
    ending: { kind: EXPIRY.code },
    *disagreements(key, { challenges }, rows) {
      for (const { id } of challenges) {
        const isFound = rows.holds<Uint8Array>('challenges', id, found => key.equals(found))
        if (!isFound) yield `challenges does not lead from challenge ${byBeginning(Buffer.from(id))} to it`
      }
    },
    remedy: 'a person who waits for the code has to begin the sign-in again',
  }),
  challenges: tableCheck<Uint8Array>({
    key: [16],
    keyAs: byBeginning,
    form: bytes(32),
    *disagreements(key, code, rows) {
      if (!rows.holds<Code>('codes', code, found => findChallenge(found, key) !== undefined)) {
        yield `codes has no code ${byBeginning(Buffer.from(code))} with this challenge`
      }
    },
    remedy: 'a person who waits for the code has to begin the sign-in again',
  }),
  'code-counts': counts(EXPIRY.identifier, record(pool)),
  'code-tries': counts(EXPIRY.codeTries, tally),
  'sms-tallies': counts(EXPIRY.smsTally, tally),
  rates: counts(EXPIRY.rate, count),
  'sms-dial-codes': {
    key: 'text',
    keyAs: String,
    form: tally,
    remedy: COUNTED_ANEW,
  },
}

function counts(kind: number, form: Form): TableCheck {
  return { key: HASH, keyAs: byBeginning, form, ending: { kind }, remedy: COUNTED_ANEW }
}
