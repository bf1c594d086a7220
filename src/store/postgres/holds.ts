/**
 * A node that is being filled reads the rows, which may take hours, and then needs every later change. Its hold makes the
 * writer keep them although they are old. A hold lasts as long as its node makes progress: a node that is killed or stuck
 * loses it, so the changes can't pile up for ever. PostgreSQL's clock judges it, as it does the age of changes.
 */

import { randomUUID } from 'node:crypto'
import { assert } from '../../errors.ts'
import type { Connection, Statement } from './connection.ts'

export class Hold {
  readonly #id = randomUUID()
  readonly #node: string
  readonly #monotonicMs: () => number
  /** Undefined where it does not hold anything. */
  #held: { readonly after: number; readonly atMs: number } | undefined

  constructor(node: string, monotonicMs: () => number) {
    this.#node = node
    this.#monotonicMs = monotonicMs
  }

  /** Holds every change after the rows, as PostgreSQL has them now. Throws `STORE_UNAVAILABLE`. */
  begin(connection: Connection): Promise<void> {
    return this.#hold(connection, undefined)
  }

  /**
   * It lasts for its whole length again; call it with each progress. Without `after` it holds what it held. Throws
   * `STORE_UNAVAILABLE`.
   */
  async renew(connection: Connection, after = this.#held?.after): Promise<void> {
    if (this.#held !== undefined && this.#monotonicMs() < this.#held.atMs + RENEW_MS) return
    await this.#hold(connection, after)
  }

  /** Throws `STORE_UNAVAILABLE`: it may last until it runs out. */
  async release(connection: Connection): Promise<void> {
    if (this.#held === undefined) return
    this.#held = undefined
    await connection.run(RELEASE, [this.#id])
  }

  async #hold(connection: Connection, after: number | undefined): Promise<void> {
    const atMs = this.#monotonicMs()
    const values = [this.#id, this.#node, after ?? null, HOLD_MS]
    const [held] = await connection.run<{ after: number }>(HOLD, values)
    assert(held !== undefined, 'a hold has a row')
    this.#held = { after: held.after, atMs }
  }
}

/** The first change that a hold keeps; undefined where there is none. */
export async function readHeld(connection: Connection): Promise<number | undefined> {
  const [row] = await connection.run<{ after: number | null }>(READ_HELD)
  return row?.after ?? undefined
}

/** PostgreSQL itself ends the reading of rows that stands still for half as long. */
const HOLD_MS = 120_000
const RENEW_MS = 5_000

const HOLD: Statement = {
  name: 'hold_changes',
  text: `
    with over as (
      delete from callsign.holds where ends <= clock_timestamp() and id <> $1
    )
    insert into callsign.holds (id, node, after, ends)
    select $1, $2, coalesce($3::bigint, number), clock_timestamp() + $4::integer * interval '1 millisecond'
    from callsign.applied
    on conflict (id) do update set after = excluded.after, ends = excluded.ends
    returning after`,
}

const RELEASE: Statement = { name: 'release_changes', text: 'delete from callsign.holds where id = $1' }

const READ_HELD: Statement = {
  name: 'read_held',
  text: 'select min(after) as after from callsign.holds where ends > clock_timestamp()',
}
