/**
 * The check of every table but the log's, which has its own (`log-check.ts`). Each row must have its table's form, and
 * each index must agree with its rows, both ways. It reads all tables at one moment, row by row.
 *
 * An ending in `expiries` without its row is no fault: a row deleted early leaves its ending behind, and the sweep
 * skips it. The check has no secret: it only tells whether sealed bytes have the form of sealed bytes.
 */

import { EXPIRIES, endingKey, TIME_BYTES } from '../../store/engine/expiries.ts'
import { keyName, lengthsOf } from '../../store/engine/key-parts.ts'
import type { LmdbStore } from '../../store/engine/lmdb-store.ts'
import type { AnyTable, Relation } from '../../store/engine/table.ts'
import { CHECKED_TABLES } from './checked-tables.ts'
import { wrongHead, wrongMark } from './counted-rows.ts'
import { EndingSet, partsFor } from './endings.ts'
import { emptyEntry } from './listed-ids.ts'
import { brokenChain, strangeList, unloggedKey, unloggedList } from './logged-devices.ts'
import { StoredRows, UNREADABLE } from './stored-rows.ts'

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

/** Throws what reading the store throws. */
export function checkRows(database: LmdbStore, options: RowCheckOptions = {}): RowReport {
  const rows = new StoredRows(database, CHECKED_TABLES.values())
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
      this.#checkTable(CHECKED_TABLES.get(name)!)
      if (!this.#hasTime) unread.push(name)
    }
    this.#checkEndings()
    if (!this.#hasTime && unread.length === 0) unread.push('expiries')
    return { tables: this.#sizes.size, rows: this.#count, faults: this.#faults, told: this.#told, unread }
  }

  #checkTable(table: AnyTable): void {
    if (!this.#hasTime) return
    for (const { key, value } of this.#rows.rows(table.name)) {
      this.#count++
      this.#checkRow(table, key, value)
      if (!this.#step()) return
    }
  }

  #checkRow(table: AnyTable, key: Buffer, value: unknown): void {
    if (value === UNREADABLE) return this.#report(table, key, NOT_OF_ITS_TABLE)
    try {
      for (const what of this.#disagreements(table, key, value)) this.#report(table, key, what)
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      // It has a number that no key has room for.
      this.#report(table, key, NOT_OF_ITS_TABLE)
    }
  }

  *#disagreements(
    { name, key: parts, description }: AnyTable,
    key: Buffer,
    value: unknown,
  ): Iterable<string> {
    const { ending, ownKey, relations = [] } = description
    const own = ownKey?.(key, value)
    if (own !== undefined && !key.equals(own)) yield `it says that it is ${keyName(parts, Buffer.from(own))}`
    for (const relation of relations) yield* lackOf(relation, key, value, this.#rows)
    yield* description.disagreements?.(key, value, this.#rows) ?? []
    yield* COMPUTED[name]?.(key, value as never, this.#rows) ?? []
    const atMs = ending?.atMs?.(value)
    if (ending === undefined || atMs === undefined) return
    if (!this.#rows.has(EXPIRIES.name, endingKey(ending.kind, atMs, key))) yield NO_ENDING
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
      for (const table of CHECKED_TABLES.values()) {
        const { ending } = table.description
        if (ending !== undefined && ending.atMs === undefined)
          this.#checkEndingsOf(table, ending.kind, endings)
        if (ending?.noticeKind !== undefined) this.#checkEndingsOf(table, ending.noticeKind, endings)
      }
    }
  }

  #checkEndingsOf(table: AnyTable, kind: number, endings: EndingSet): void {
    for (const key of this.#rows.keys(table.name)) {
      if (endings.lacks(kind, key)) this.#report(table, key, NO_ENDING)
      if (!this.#step()) return
    }
  }

  #report({ name, key: parts, description }: AnyTable, key: Buffer, what: string): void {
    this.#faults++
    if (this.#told.length === FAULTS_TOLD_MAX) return
    this.#told.push({ table: name, key: keyName(parts, key), detail: `${what}; ${description.remedy}` })
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

function* lackOf(
  relation: Relation<unknown>,
  key: Buffer,
  value: unknown,
  rows: StoredRows,
): Iterable<string> {
  const under = relation.under(key, value)
  if (under === undefined) return
  const tables = [relation.in].flat()
  const isSo = (other: never) => relation.where!(other, key, value)
  const isThere = (table: string) =>
    relation.where === undefined ? rows.has(table, under) : rows.holds(table, under, isSo)
  if (!tables.some(isThere))
    yield `${tables.join(' or ')} does not have ${relation.what?.(key, value) ?? 'it'}`
}

function* misplacedEnding(key: Buffer): Iterable<string> {
  const lengths = ENDING_KEY_LENGTHS.get(key[TIME_BYTES]!)
  if (lengths === undefined) return yield 'nothing ends so'
  const [least, most] = lengths
  const length = key.length - TIME_BYTES - 1
  if (length < least || length > most) yield 'it names no row that there could be'
}

/** By table, beside what descriptions say: rules that compute something from many rows, or from the log. */
const COMPUTED: Readonly<Record<string, (key: Buffer, value: never, rows: StoredRows) => Iterable<string>>> =
  {
    devices: unloggedKey,
    'devices-removed': unloggedKey,
    'device-lists': unloggedList,
    'device-list-chains': brokenChain,
    'device-lists-pending': strangeList,
    'id-lists': emptyEntry,
    'call-history-marks': wrongMark,
    'inbox-heads': wrongHead,
    expiries: misplacedEnding,
  }

const NOT_OF_ITS_TABLE = 'the row is not one of its table'
const NO_ENDING = 'expiries has no ending for it, so it stays for ever'
/** By kind, how long the keys of rows are that end so. */
const ENDING_KEY_LENGTHS = new Map(
  [...CHECKED_TABLES.values()].flatMap(({ key, description: { ending } }) =>
    [ending?.kind, ending?.noticeKind].flatMap(kind =>
      kind === undefined ? [] : [[kind, lengthsOf(key)] as const],
    ),
  ),
)
const FAULTS_TOLD_MAX = 100
const ROWS_PER_QUESTION = 256
