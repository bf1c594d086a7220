/**
 * The writer's rows, written to PostgreSQL behind its changes: about once a second, coalesced, in one transaction with the
 * number of the change that they are of. So PostgreSQL holds the whole state, and a new node needs few changes.
 *
 * Rows collected in memory are a short cut. After a failure, or too many rows, or a new lease, the rows between the
 * applied and the collected ones are read back from the changes.
 */

import { assert } from '../../errors.ts'
import type { PutRow, WrittenRow } from '../engine/change-ledger.ts'
import { deleteOldChanges, readChanges } from './changes.ts'
import { CollectedRows } from './collected-rows.ts'
import type { Connection, ConnectionDeps, Statement } from './connection.ts'
import { LeaseLost } from './failure.ts'
import { readHeld } from './holds.ts'
import { Reconnecting } from './reconnecting.ts'
import { keysOf, portionsOf, valuesOf } from './row-portions.ts'
import { decodeRows } from './written-rows.ts'

export interface RowsBehindDeps {
  readonly connection: ConnectionDeps
  /** Those of the lease. */
  readonly epoch: number
  readonly last: number
  readonly everyMs: number
  /** How long changes are kept for followers. */
  readonly keptMs: number
  /** Hears why rows could not be written; they will be. */
  readonly onFailure: (error: unknown) => void
}

export class RowsBehind {
  readonly #deps: RowsBehindDeps
  readonly #reconnecting: Reconnecting
  #collected: CollectedRows
  /** Undefined before PostgreSQL was asked. */
  #applied: number | undefined
  /** Changes before it are deleted. */
  #oldest = 0
  #heldBack = 0
  #turn: Promise<unknown> = Promise.resolve()
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(deps: RowsBehindDeps) {
    this.#deps = deps
    this.#collected = new CollectedRows(deps.last)
    this.#reconnecting = new Reconnecting(deps.connection, connection => this.#claim(connection))
    this.#arm()
  }

  /** The change whose rows, and those of all before, are in PostgreSQL. Undefined before it was asked. */
  get applied(): number | undefined {
    return this.#applied
  }

  /** Rows in memory that wait to be written. */
  get waiting(): number {
    return this.#collected.count
  }

  /** Changes that a node which is being filled, or catches up, keeps from being deleted when they are old. */
  get heldBack(): number {
    return this.#heldBack
  }

  /** Takes the rows of the next change, which is in the ledger. Their bytes must not change. */
  add(number: number, rows: readonly WrittenRow[]): void {
    assert(number === this.#collected.to + 1, 'the rows of each change are added, in order')
    this.#collected.add(number, rows)
    if (this.#collected.bytes > COLLECTED_BYTES_MAX) this.#collected = new CollectedRows(number)
  }

  /** Resolves when the rows that were added so far are in PostgreSQL. Throws `STORE_UNAVAILABLE`. */
  settle(): Promise<void> {
    const settled = this.#turn.then(() => this.#writeAll())
    this.#turn = settled.catch(() => {})
    return settled
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    this.#reconnecting.cut()
    await this.#reconnecting.close()
    await this.#turn
  }

  #arm(): void {
    if (this.#isClosed) return
    this.#timer = setTimeout(() => {
      this.settle().then(
        () => this.#arm(),
        (error: unknown) => {
          if (this.#isClosed || error instanceof LeaseLost) return
          this.#deps.onFailure(error)
          this.#arm()
        },
      )
    }, this.#deps.everyMs)
  }

  async #writeAll(): Promise<void> {
    const connection = await this.#reconnecting.get()
    const due = this.#collected
    this.#collected = new CollectedRows(due.to)
    await this.#catchUp(connection, due.after)
    if (due.to > this.#appliedNow) await this.#write(connection, due)
    await this.#deleteOld(connection)
  }

  async #catchUp(connection: Connection, until: number): Promise<void> {
    while (this.#appliedNow < until) {
      const after = this.#appliedNow
      const changes = await readChanges(connection, { after, until, bytesMax: CATCH_UP_BYTES })
      assert(changes[0]?.number === after + 1, 'no change is deleted before its rows are written')
      const rows = new CollectedRows(after)
      for (const { number, body } of changes) rows.add(number, decodeRows(body))
      await this.#write(connection, rows)
    }
  }

  async #write(connection: Connection, collected: CollectedRows): Promise<void> {
    const { epoch } = this.#deps
    assert(collected.after === this.#appliedNow, 'rows follow those that are written')
    await connection.run(BEGIN)
    const moved = await connection.run(MOVE_APPLIED, [epoch, collected.after, collected.to])
    if (moved.length === 0) throw this.#lost(connection)
    for (const rows of portionsOf(collected.rows())) await writePortion(connection, rows)
    await connection.run(COMMIT)
    this.#applied = collected.to
  }

  async #deleteOld(connection: Connection): Promise<void> {
    const applied = this.#appliedNow
    // A hold that begins later is for rows of this change or a later one.
    const until = Math.min(applied, (await readHeld(connection)) ?? applied)
    this.#heldBack = applied - until
    for (let portions = 0; portions < PORTIONS_MAX; portions++) {
      const next = await deleteOldChanges(connection, {
        from: this.#oldest,
        until,
        keptMs: this.#deps.keptMs,
      })
      if (next === undefined) return
      this.#oldest = next
    }
  }

  /** Bars an earlier lease from writing rows; its transaction under way ends before. */
  async #claim(connection: Connection): Promise<void> {
    const [row] = await connection.run<{ number: number }>(CLAIM_APPLIED, [this.#deps.epoch])
    if (row === undefined) throw this.#lost(connection)
    this.#applied = row.number
  }

  get #appliedNow(): number {
    assert(this.#applied !== undefined, 'a connection begins with what is applied')
    return this.#applied
  }

  #lost(connection: Connection): LeaseLost {
    connection.cut()
    return new LeaseLost('another node writes the rows', 'not written')
  }
}

async function writePortion(connection: Connection, rows: readonly WrittenRow[]): Promise<void> {
  const put: PutRow[] = []
  const removed: WrittenRow[] = []
  for (const { table, key, value } of rows) {
    if (value === undefined) removed.push({ table, key, value })
    else put.push({ table, key, value })
  }
  if (put.length > 0) {
    await connection.run(PUT_ROWS, [...keysOf(put), valuesOf(put)])
  }
  if (removed.length > 0) await connection.run(REMOVE_ROWS, keysOf(removed))
}

/** Rows in memory beyond it are dropped, and read back from the changes. */
const COLLECTED_BYTES_MAX = 64 * 1024 * 1024
/** Bodies that are read back at a time. */
const CATCH_UP_BYTES = 4 * 1024 * 1024
/** Portions of old changes that are deleted in a second: several times as many as a writer makes. */
const PORTIONS_MAX = 10

const BEGIN: Statement = { text: 'begin' }
const COMMIT: Statement = { text: 'commit' }

const CLAIM_APPLIED: Statement = {
  name: 'claim_applied',
  text: 'update callsign.applied set epoch = $1 where epoch <= $1 returning number',
}

const MOVE_APPLIED: Statement = {
  name: 'move_applied',
  text: 'update callsign.applied set number = $3 where epoch = $1 and number = $2 returning number',
}

const PUT_ROWS: Statement = {
  name: 'put_rows',
  text: `
    insert into callsign.rows (tbl, k, v)
    select * from unnest($1::text[], $2::bytea[], $3::bytea[])
    on conflict (tbl, k) do update set v = excluded.v`,
}

const REMOVE_ROWS: Statement = {
  name: 'remove_rows',
  text: `
    delete from callsign.rows using unnest($1::text[], $2::bytea[]) as removed (tbl, k)
    where rows.tbl = removed.tbl and rows.k = removed.k`,
}
