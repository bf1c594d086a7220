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
    if (
      NAMES_STATEMENTS.has(code) ||
      (code === PROTOCOL_VIOLATION && /prepared statement|pooling/.test(error.message))
    )
      return `${SHARED_SESSION} (${code})`
    if (code === READ_ONLY) return `it takes no changes (${code}): ${READ_ONLY_ADVICE}`
    return NAMES_VALUES.has(code.slice(0, 2)) ? `SQLSTATE ${code}` : `${error.message} (${code})`
  }
  // Several addresses were tried, each with its own error.
  return error.message === '' ? code : error.message
}

/** The session has changed since the last statement. */
export const SHARED_SESSION =
  'a pooler gives each transaction another session: have it keep sessions (pgbouncer: pool_mode = session), or give the address of PostgreSQL itself'
export const READ_ONLY_ADVICE =
  'find out who set default_transaction_read_only, and why: a nearly full disk, or a server that must not be written to any more'

/** A prepared statement that is not there, or is there already. */
const NAMES_STATEMENTS = new Set(['26000', '42P05'])
const PROTOCOL_VIOLATION = '08P01'
const READ_ONLY = '25006'
const SQLSTATE = /^(?!E)[0-9A-Z]{5}$/
/** Classes whose messages can quote values: data exceptions and violated constraints. */
const NAMES_VALUES = new Set(['22', '23', '44'])
