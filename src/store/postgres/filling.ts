/**
 * The rows of a store as they move into an empty ledger, in portions that are durable one by one. Until `end` the ledger is
 * marked `filling`, so no node works on it; a filling that was broken off starts over.
 *
 * Each statement names the epoch of the lease, so of two fillings at once only the later one writes.
 */

import type { PutRow } from '../engine/change-ledger.ts'
import type { Position } from './changes.ts'
import { Connection, type ConnectionDeps, type Statement } from './connection.ts'
import { LeaseLost } from './failure.ts'
import { keysOf, portionsOf, valuesOf } from './row-portions.ts'
import type { LedgerState } from './writer-row.ts'
import { encodeRows } from './written-rows.ts'

export class Filling {
  /** Whether an earlier one was broken off, and its rows were removed. */
  readonly isAnew: boolean
  readonly #connection: Connection
  readonly #epoch: number

  private constructor(connection: Connection, epoch: number, isAnew: boolean) {
    this.#connection = connection
    this.#epoch = epoch
    this.isAnew = isAnew
  }

  /** Undefined where the ledger is not empty. Throws `LeaseLost`, `STORE_UNAVAILABLE`. */
  static async begin(deps: ConnectionDeps, epoch: number): Promise<Filling | undefined> {
    const connection = await Connection.open(deps)
    try {
      const before = await begin(connection, epoch)
      if (before !== undefined) return new Filling(connection, epoch, before === 'filling')
    } catch (error) {
      connection.cut()
      throw error
    }
    connection.cut()
    return undefined
  }

  /** Puts further rows; none has been put before. Throws `LeaseLost`, `STORE_UNAVAILABLE`. */
  async put(rows: Iterable<PutRow>): Promise<void> {
    for (const portion of portionsOf(rows)) {
      const values = [this.#epoch, ...keysOf(portion), valuesOf(portion)]
      const [put] = await this.#connection.run<{ rows: number }>(PUT, values)
      if (put?.rows !== portion.length) throw this.#lost()
    }
  }

  /**
   * All rows are there: nodes may work on the ledger, from the change that is returned. `head` is the log's. Throws
   * `LeaseLost`; `STORE_UNAVAILABLE`: it may have ended.
   */
  async end(head: Uint8Array): Promise<Position> {
    const values = [this.#epoch, FIRST_CHANGE, head, encodeRows([])]
    const [position] = await this.#connection.run<Position>(END, values)
    if (position === undefined) throw this.#lost()
    return position
  }

  close(): void {
    this.#connection.cut()
  }

  #lost(): LeaseLost {
    return new LeaseLost('another node has acquired one', 'not written')
  }
}

/** The state of the ledger before; undefined where it is open and not empty. */
async function begin(connection: Connection, epoch: number): Promise<LedgerState | undefined> {
  await connection.run({ text: 'begin' })
  const [found] = await connection.run<{ state: LedgerState; isEmpty: boolean }>(FIND, [epoch])
  if (found === undefined) throw new LeaseLost('another node has acquired one', 'not written')
  if (found.state === 'open' && !found.isEmpty) return undefined
  if (found.state === 'filling') await connection.run({ text: 'truncate callsign.rows' })
  await connection.run({ text: `update callsign.writer set state = 'filling'` })
  await connection.run({ text: 'commit' })
  return found.state
}

/**
 * Choice: not 1. A copy that was filled from the ledger while it was empty waits for change 1, misses it, and is filled anew.
 */
const FIRST_CHANGE = 2

const FIND: Statement = {
  text: `
    select state,
      head is null
        and not exists (select from callsign.rows)
        and not exists (select from callsign.changes) as "isEmpty"
    from callsign.writer where epoch = $1
    for update`,
}

const PUT: Statement = {
  name: 'put_moved_rows',
  text: `
    with lease as (
      select from callsign.writer where epoch = $1 and state = 'filling' for share
    ), put as (
      insert into callsign.rows (tbl, k, v)
      select moved.* from lease, unnest($2::text[], $3::bytea[], $4::bytea[]) as moved
      returning true
    )
    select count(*)::integer as rows from put`,
}

const END: Statement = {
  name: 'end_filling',
  text: `
    with opened as (
      update callsign.writer set state = 'open', head = $3 where epoch = $1 and state = 'filling'
      returning epoch
    ), appended as (
      insert into callsign.changes (number, epoch, body) select $2::bigint, epoch, $4::bytea from opened
      returning number, epoch
    )
    update callsign.applied set number = appended.number, epoch = appended.epoch from appended
    returning applied.number, applied.epoch`,
}
