/**
 * The order of changes beside LMDB: a system of ledger that the nodes of a cluster share. A change is done when the ledger has it; each
 * node's LMDB is a copy.
 */

/** A row as a change left it. */
export interface WrittenRow {
  readonly table: string
  /** The octets of LMDB, also where a table's keys are text. */
  readonly key: Uint8Array
  /** The octets of LMDB; undefined where the row was removed. */
  readonly value: Uint8Array | undefined
}

/** A row that is there. */
export type PutRow = WrittenRow & { readonly value: Uint8Array }

/** A change that the ledger has. */
export interface LedgerChange {
  /** Its place in the order, from 1 on. */
  readonly number: number
  /** The lease under which it was made. */
  readonly epoch: number
  readonly rows: readonly WrittenRow[]
}

export interface ChangeLedger {
  readonly epoch: number
  /**
   * Resolves once the ledger has all of them, in order. Called again only when it has resolved or rejected.
   *
   * Rejects with `NotInLedgerError` where it has none of them, and with `OUTCOME_UNKNOWN` where it may have them: then
   * whoever follows it will see. Any other error is final: this process must not change anything any more.
   */
  append(changes: readonly LedgerChange[]): Promise<void>
}

export class NotInLedgerError extends Error {
  override readonly name = 'NotInLedgerError'
}
