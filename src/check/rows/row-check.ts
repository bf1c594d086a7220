/**
 * The check of every table but the log's, which has its own (`log-check.ts`): each row decodes into what its table holds,
 * and each index agrees with what it points to, both ways. All of it is read at one moment, row by row.
 *
 * An ending in `expiries` whose row is gone is no fault: rows that go early leave theirs behind, and the sweep passes
 * over them. What is sealed stays so: the check needs no secret, and says of sealed bytes only whether they can be some.
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

/** A row that is damaged, or that another one disagrees with. */
export interface RowFault {
  readonly table: string
  /** In the words of its table: ids, or the beginning of a hash. */
  readonly key: string
  /** A sentence: what disagrees, and what to do. */
  readonly detail: string
}

export interface RowCheckOptions {
  /** Asked every few rows: whether there is time to go on. */
  readonly mayGoOn?: () => boolean
  /** Told every few rows how much of the work is done, from 0 to 1. */
  readonly onProgress?: (done: number) => void
}

export interface RowReport {
  readonly tables: number
  readonly rows: number
  readonly faults: number
  /** The first of them. */
  readonly told: readonly RowFault[]
  /** Tables that were not read to their end, for want of time. */
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

/** Throws what reading the store throws. */
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
  /** How many rows are to be looked at, those of endings twice. */
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
    // The small ones first, so that a check that is cut short has most of them.
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

  /** Checks rows whose endings may be at any time. */
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
/** By kind, the tables whose rows end so. */
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
