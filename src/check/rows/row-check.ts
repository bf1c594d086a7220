/**
 * The check of every table but the log's, which has its own (`log-check.ts`). Each row must have its table's form, and
 * each index must agree with its rows, both ways. It reads all tables at one moment, row by row.
 *
 * An ending in `expiries` without its row is no fault: a row deleted early leaves its ending behind, and the sweep
 * skips it. The check has no secret: it only tells whether sealed bytes have the form of sealed bytes.
 */

import { endingKey, TIME_BYTES } from '../../store/engine/expiries.ts'
import type { LmdbStore } from '../../store/engine/lmdb-store.ts'
import { ACCOUNT_TABLES } from './account-tables.ts'
import { CALL_TABLES } from './call-tables.ts'
import { CODE_TABLES } from './code-tables.ts'
import { CONTACT_TABLES } from './contact-tables.ts'
import { DEVICE_TABLES } from './device-tables.ts'
import { EndingSet, partsFor } from './endings.ts'
import { count, flag, oneOf, record } from './form.ts'
import { MESSAGE_TABLES } from './message-tables.ts'
import { StoredRows, UNREADABLE } from './stored-rows.ts'
import { byBeginning, type TableCheck } from './table-check.ts'

/** A row that is damaged, or that disagrees with another row. */
export interface RowFault {
  readonly table: string
  /** In the words of its table: ids, or the beginning of a hash. */
  readonly key: string
  /** A sentence: what disagrees, and what to do. */
  readonly detail: string
}

export interface RowCheckOptions {
  /** Called every few rows: whether there is time to go on. */
  readonly mayGoOn?: () => boolean
  /** Called every few rows; `done` is from 0 to 1. */
  readonly onProgress?: (done: number) => void
}

export interface RowReport {
  readonly tables: number
  readonly rows: number
  readonly faults: number
  /** The first faults. */
  readonly told: readonly RowFault[]
  /** Tables that the check had no time to finish. */
  readonly unread: readonly string[]
}

/** By name: every table that is not the log's. */
export const TABLE_CHECKS: Readonly<Record<string, TableCheck>> = {
  ...ACCOUNT_TABLES,
  ...DEVICE_TABLES,
  ...CONTACT_TABLES,
  ...CALL_TABLES,
  ...MESSAGE_TABLES,
  ...CODE_TABLES,
  expiries: {
    key: Array.from({ length: 64 }, (_, at) => at + TIME_BYTES + 1),
    keyAs: key => `kind ${key[TIME_BYTES]}, ${byBeginning(key.subarray(TIME_BYTES + 1))}`,
    form: oneOf(0),
    *disagreements(key) {
      const kind = key[TIME_BYTES]!
      const length = key.length - TIME_BYTES - 1
      const owner = OWNERS.get(kind)
      if (owner === undefined) yield 'nothing ends so'
      else if (owner.key === 'text' || !owner.key.includes(length))
        yield 'it names no row that there could be'
    },
    remedy: 'the sweep logs a fault for it each minute: restore a backup',
  },
  'copy-state': {
    key: 'text',
    keyAs: () => 'state',
    form: record({ number: count, epoch: count, isFilling: flag }),
    remedy: 'remove the store of this node: it is filled anew from the record',
  },
}

/** Throws as reading the store does. */
export function checkRows(database: LmdbStore, options: RowCheckOptions = {}): RowReport {
  const rows = new StoredRows(database, TABLE_CHECKS)
  try {
    return new RowCheck(rows, options).run()
  } finally {
    rows.end()
  }
}

class RowCheck {
  readonly #rows: StoredRows
  readonly #options: RowCheckOptions
  readonly #sizes: ReadonlyMap<string, number>
  /** How many rows to read; rows with endings count twice. */
  readonly #work: number
  #done = 0
  #count = 0
  #faults = 0
  readonly #told: RowFault[] = []
  #hasTime = true

  constructor(rows: StoredRows, options: RowCheckOptions) {
    this.#rows = rows
    this.#options = options
    this.#sizes = rows.sizes()
    this.#work = 2 * [...this.#sizes.values()].reduce((sum, size) => sum + size, 1)
  }

  run(): RowReport {
    const unread: string[] = []
    // Small tables first: a check that is cut short has then read most of them.
    for (const name of this.#sizes.keys()) {
      this.#checkTable(name, TABLE_CHECKS[name]!)
      if (!this.#hasTime) unread.push(name)
    }
    this.#checkEndings()
    if (!this.#hasTime && unread.length === 0) unread.push('expiries')
    return { tables: this.#sizes.size, rows: this.#count, faults: this.#faults, told: this.#told, unread }
  }

  #checkTable(name: string, check: TableCheck): void {
    if (!this.#hasTime) return
    for (const { key, value } of this.#rows.rows(name)) {
      this.#count++
      if (value === UNREADABLE) this.#report(name, check, key, 'the row is not one of its table')
      else this.#checkRow(name, check, key, value)
      if (!this.#step()) return
    }
  }

  #checkRow(name: string, check: TableCheck, key: Buffer, value: unknown): void {
    const { disagreements, ending } = check
    for (const what of disagreements?.(key, value, this.#rows) ?? []) this.#report(name, check, key, what)
    const atMs = ending?.atMs?.(value)
    if (ending === undefined || atMs === undefined) return
    if (!this.#rows.has('expiries', endingKey(ending.kind, atMs, key)))
      this.#report(name, check, key, NO_ENDING)
  }

  /** Checks that rows have an ending, at any time. */
  #checkEndings(): void {
    const parts = partsFor(this.#sizes.get('expiries') ?? 0)
    for (let part = 0; part < parts; part++) {
      const endings = new EndingSet(part, parts)
      for (const key of this.#rows.keys('expiries')) {
        endings.add(key)
        if (!this.#step()) return
      }
      for (const [name, check] of Object.entries(TABLE_CHECKS)) {
        if (check.ending !== undefined && check.ending.atMs === undefined) {
          this.#checkEndingsOf(name, check, check.ending.kind, endings)
        }
      }
    }
  }

  #checkEndingsOf(name: string, check: TableCheck, kind: number, endings: EndingSet): void {
    for (const key of this.#rows.keys(name)) {
      if (endings.lacks(kind, key)) this.#report(name, check, key, NO_ENDING)
      if (!this.#step()) return
    }
  }

  #report(table: string, { keyAs, remedy }: TableCheck, key: Buffer, what: string): void {
    this.#faults++
    if (this.#told.length === FAULTS_TOLD_MAX) return
    this.#told.push({ table, key: keyAs(key), detail: `${what}; ${remedy}` })
  }

  /** Whether to go on. */
  #step(): boolean {
    this.#done++
    if (this.#done % ROWS_PER_QUESTION !== 0) return this.#hasTime
    this.#options.onProgress?.(Math.min(1, this.#done / this.#work))
    this.#hasTime &&= this.#options.mayGoOn?.() ?? true
    return this.#hasTime
  }
}

const NO_ENDING = 'expiries has no ending for it, so it stays for ever'
/** The tables by the kind of their endings. */
const OWNERS = new Map(
  Object.values({
    ...ACCOUNT_TABLES,
    ...CONTACT_TABLES,
    ...CALL_TABLES,
    ...MESSAGE_TABLES,
    ...CODE_TABLES,
  }).flatMap(check => (check.ending === undefined ? [] : [[check.ending.kind, check] as const])),
)
const FAULTS_TOLD_MAX = 100
const ROWS_PER_QUESTION = 256
