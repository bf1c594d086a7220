/** The lease that both moves hold, and the proof that store and ledger have the same rows. */

import type { LogReport } from '../../src/check/log/fault.ts'
import { SignalError } from '../../src/errors.ts'
import { VERSION } from '../../src/server/process/version.ts'
import type { PutRow } from '../../src/store/engine/change-ledger.ts'
import type { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import type { Position } from '../../src/store/postgres/changes.ts'
import type { PostgresLedger } from '../../src/store/postgres/ledger.ts'
import type { WriteLease } from '../../src/store/postgres/write-lease.ts'
import type { LedgerState, NodeIdentity } from '../../src/store/postgres/writer-row.ts'

/** The writer of the ledger while it moves. No node reaches it. */
export const MIGRATE: NodeIdentity = { name: 'migrate', address: 'migrate.invalid:1', version: VERSION }

export interface Moved {
  readonly rows: number
  /** The lengths of keys and values together. */
  readonly bytes: number
  /** The change that the rows are of. */
  readonly change: number
  readonly log: LogReport
}

export class RowsDiffer extends SignalError {
  constructor(table: string, at: number) {
    super('STORE_UNAVAILABLE', `row ${at}, in table ${table}, is not the same in store and ledger`)
  }
}

/** Runs `act` as the ledger's writer. Throws `STORE_UNAVAILABLE` where a node is that, or in none of these states. */
export async function asWriter<Result>(
  ledger: PostgresLedger,
  states: readonly LedgerState[],
  act: (lease: WriteLease) => Promise<Result>,
): Promise<Result> {
  const lease = await ledger.acquire(states)
  if (lease === undefined) throw await refusal(ledger)
  // Each write names the lease's epoch, so a lease that is lost is noticed there.
  const renewing = setInterval(() => void lease.renew().catch(() => undefined), RENEW_MS)
  try {
    return await act(lease)
  } finally {
    clearInterval(renewing)
    // Otherwise it runs out.
    await lease.release().catch(() => undefined)
  }
}

/** Compares every row of the store with the ledger's, in order. Throws `RowsDiffer` at the first difference. */
export async function proveSame(
  database: LmdbStore,
  ledger: PostgresLedger,
): Promise<Pick<Moved, 'rows' | 'bytes'> & { readonly position: Position }> {
  const stored = database.rowsInOrder()[Symbol.iterator]()
  let [rows, bytes] = [0, 0]
  try {
    const position = await ledger.snapshot(portion => {
      for (const row of portion) {
        const next = stored.next()
        if (next.done === true || !isSame(next.value, row)) throw new RowsDiffer(row.table, rows)
        rows += 1
        bytes += row.key.length + row.value.length
      }
    })
    const more = stored.next()
    if (more.done !== true) throw new RowsDiffer(more.value.table, rows)
    return { rows, bytes, position }
  } finally {
    stored.return?.()
  }
}

export function refused(reason: string): SignalError {
  return new SignalError('STORE_UNAVAILABLE', reason)
}

async function refusal(ledger: PostgresLedger): Promise<SignalError> {
  const { state, holder } = await ledger.writer()
  if (state === 'left') return refused(LEFT)
  if (holder?.address === MIGRATE.address) return refused(`another move works on the ledger; ${KILLED}`)
  if (holder !== undefined) {
    return refused(
      `${holder.name} at ${holder.address} writes to the ledger: stop all nodes first; ${KILLED}`,
    )
  }
  return refused(state === 'filling' ? FILLING : 'the writer of the ledger has just ended: try again')
}

function isSame(one: PutRow, other: PutRow): boolean {
  return (
    one.table === other.table &&
    Buffer.compare(one.key, other.key) === 0 &&
    Buffer.compare(one.value, other.value) === 0
  )
}

const RENEW_MS = 1_000
const KILLED = 'one that was killed is its writer for five more seconds'
const FILLING = 'a store moves into the ledger, and has not ended: run migrate --to postgres to its end'
const LEFT =
  'the ledger has moved to the store of one machine, which goes on from it: name another database, or remove this one first (drop schema callsign cascade)'
