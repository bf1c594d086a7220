/**
 * Failures of PostgreSQL as the store tells them: a code, a sentence, and nothing that a statement carried. The URL and its
 * password are in none of them.
 */

import { SignalError } from '../../errors.ts'

/** `STORE_UNAVAILABLE` for whatever the client library threw while `doing`. */
export function databaseFailure(doing: string, error: unknown): SignalError {
  if (error instanceof SignalError) return error
  return new SignalError('STORE_UNAVAILABLE', `PostgreSQL: ${doing}: ${reasonOf(error)}`)
}

/** The fate of a lost lease's write: `unknown` where the ledger may have it. */
export type FinalOutcome = 'not written' | 'unknown'

/** The lease is lost: it never writes again, and its holder starts anew as a follower. */
export class LeaseLost extends SignalError {
  readonly outcome: FinalOutcome

  constructor(reason: string, outcome: FinalOutcome) {
    super('STORE_UNAVAILABLE', `the writer's lease is lost: ${reason}`)
    this.name = 'LeaseLost'
    this.outcome = outcome
  }
}

/** The library's error itself would bring the values of a row along, in its `detail`. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'no reason'
  const code = 'code' in error ? String(error.code) : ''
  if (SQLSTATE.test(code)) {
    return NAMES_VALUES.has(code.slice(0, 2)) ? `SQLSTATE ${code}` : `${error.message} (${code})`
  }
  // Several addresses were tried, each with its own error.
  return error.message === '' ? code : error.message
}

const SQLSTATE = /^(?!E)[0-9A-Z]{5}$/
/** Classes whose messages can quote values: data exceptions and violated constraints. */
const NAMES_VALUES = new Set(['22', '23', '44'])
