/** Records of the nodes of a test, and what their tables hold. */

import { setTimeout } from 'node:timers/promises'
import type { Test } from 'tap'
import type { WrittenRow } from '../../src/store/engine/change-ledger.ts'
import { PostgresLedger, type PostgresLedgerDeps } from '../../src/store/postgres/ledger.ts'
import type { WriteLease } from '../../src/store/postgres/write-lease.ts'
import type { Postgres } from './postgres.ts'

/** A node's record, until the end of the test. */
export async function openLedger(
  t: Test,
  url: string,
  deps: Partial<PostgresLedgerDeps> = {},
): Promise<PostgresLedger> {
  const record = await PostgresLedger.open({
    url,
    node: { name: 'one', address: '127.0.0.1:1', version: '0.1.0' },
    monotonicMs: () => performance.now(),
    random: () => Math.random(),
    onFailure: () => {},
    ...deps,
  })
  t.teardown(() => record.close())
  return record
}

/** Asks until the lease of the node before has run out. */
export async function acquireNext(record: PostgresLedger): Promise<WriteLease> {
  for (;;) {
    const lease = await record.acquire()
    if (lease !== undefined) return lease
    await setTimeout(PAUSE_MS)
  }
}

export interface ChangeInRecord {
  readonly number: number
  readonly epoch: number
  readonly body: string
}

/** All changes, bodies as text. */
export async function changesIn(server: Postgres, url: string): Promise<ChangeInRecord[]> {
  return await server.query<ChangeInRecord>(
    url,
    `select number::integer, epoch::float8, convert_from(body, 'UTF8') as body from callsign.changes order by number`,
  )
}

/** All rows, as text: table, key and value. */
export async function rowsIn(server: Postgres, url: string): Promise<string[]> {
  const rows = await server.query<{ row: string }>(
    url,
    `select concat_ws(' ', tbl, encode(k, 'hex'), encode(v, 'hex')) as row from callsign.rows`,
  )
  return rows.map(({ row }) => row).toSorted()
}

/** The same of rows in memory, by table and key. */
export class RowModel {
  readonly #rows = new Map<string, string>()

  add(rows: readonly WrittenRow[]): void {
    for (const { table, key, value } of rows) {
      const name = `${table} ${Buffer.from(key).toString('hex')}`
      if (value === undefined) this.#rows.delete(name)
      else this.#rows.set(name, Buffer.from(value).toString('hex'))
    }
  }

  get rows(): string[] {
    return Array.from(this.#rows, ([name, value]) => `${name} ${value}`).toSorted()
  }
}

export function bytesOf(text: string): Buffer {
  return Buffer.from(text)
}

/** Between two looks: a lease lasts for seconds, and each look is a statement of PostgreSQL. */
const PAUSE_MS = 20
