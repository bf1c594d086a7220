/**
 * All rows as of one change, for a new node. They are read through a cursor in one read-only transaction, so the writer
 * goes on, and memory is bounded by two portions.
 */

import { assert } from '../../errors.ts'
import type { Position } from './changes.ts'
import { Connection, type ConnectionDeps, type Statement } from './connection.ts'
import { assertKnown } from './written-rows.ts'

export interface StoredRow {
  readonly table: string
  readonly key: Buffer
  readonly value: Buffer
}

/** Takes a portion of the rows, which come by table, then by key, as their octets compare; no more come before it is done. */
export type OnRows = (rows: readonly StoredRow[]) => void | Promise<void>

/**
 * Resolves with the change that the rows are of. Throws `STORE_UNAVAILABLE`: only a part of them was read; `MALFORMED`: another
 * program has written them, and none was read.
 */
export async function readSnapshot(deps: ConnectionDeps, onRows: OnRows): Promise<Position> {
  const connection = await Connection.open(deps)
  try {
    await connection.run({ text: BEGIN })
    const [applied] = await connection.run<Position & { form: number | null }>(POSITION)
    assert(applied !== undefined, 'the ledger says which change its rows are of')
    const { form, ...position } = applied
    if (form !== null) assertKnown(form)
    await connection.run(DECLARE)
    let next = connection.run<StoredRow>(FETCH)
    for (let rows = await next; rows.length > 0; rows = await next) {
      next = connection.run<StoredRow>(FETCH)
      // Its failure is heard when it is awaited.
      next.catch(() => {})
      await onRows(rows)
    }
    return position
  } finally {
    connection.cut()
  }
}

/** Rows of a portion: 150 MB if each has 300 kB, as the largest entry bundles have. */
const PORTION_ROWS = 500

/**
 * The node that takes the rows may be slow between two portions. Rows come from the index: sorting all of them would take
 * longer than a statement may.
 */
const BEGIN = `
  begin isolation level repeatable read, read only;
  set local enable_sort = off;
  set local idle_in_transaction_session_timeout = '60s'`

const POSITION: Statement = {
  text: `
    select number, coalesce(changes.epoch, 0) as epoch, get_byte(body, 0) as form
    from callsign.applied left join callsign.changes using (number)`,
}

const DECLARE: Statement = {
  text: 'declare all_rows no scroll cursor for select tbl as "table", k as key, v as value from callsign.rows order by tbl, k',
}

const FETCH: Statement = { name: 'fetch', text: `fetch ${PORTION_ROWS} from all_rows` }
