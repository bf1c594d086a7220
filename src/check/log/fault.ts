/** Findings of a check of the log's tables: faults by the rule they break, and corrections. */

import type { IndexState } from '../../keyserver/index/index-tables.ts'
import type { BytesName, TableName } from './raw-log.ts'

/** The rules for the log, and then for its index, in the order of a report. */
export const CHECKS = ['maker', 'checkpoint', 'entries', 'tiles', 'identities', 'lookup', 'vrf'] as const
export const INDEX_CHECKS = ['index', 'index-checkpoint', 'index-leaves', 'index-tiles', 'index-map'] as const
export type LogCheckName = (typeof CHECKS)[number]
export type IndexCheckName = (typeof INDEX_CHECKS)[number]
export type CheckName = LogCheckName | IndexCheckName

export interface Fault {
  readonly check: CheckName
  readonly table: TableName
  /** The row, in the words of its table: `head`, bundle or block index, `level/index` of a tile, hexadecimal id. */
  readonly key: string
  /** The first wrong byte of the row's value; absent for a row that is missing or should not exist. */
  readonly offset?: number
  readonly detail: string
  /** Whether a repair puts it right: the row derives from entries, and nothing it needs is lost. */
  readonly isDerived: boolean
}

/** A change that makes a derived row agree with the entries. An undefined `value` removes the row. */
export type Correction =
  | {
      readonly kind: 'row'
      readonly table: BytesName
      readonly key: Uint8Array
      readonly value: Uint8Array | undefined
    }
  | { readonly kind: 'index-state'; readonly state: IndexState }
  | {
      readonly kind: 'identity'
      readonly index: number
      readonly previousIndex: number | undefined
      readonly earlierKeys: number
    }

/** How one check ended. */
export interface CheckOutcome {
  readonly check: CheckName
  /** True without a fault; null for a check that was not asked for or not possible. */
  readonly ok: boolean | null
  /** The part that was looked at, as a sentence. */
  readonly detail: string
  readonly faults: number
  /** How many of them no repair puts right. */
  readonly lasting: number
  /** The first fault in the order of the table. */
  readonly first?: Fault
}

export interface LogReport {
  readonly treeSize: number
  /** Base64, of the tree that the entries and tiles make. */
  readonly rootHash: string
  /** Whether the entries make a tree whose root the log's key has signed, so that tables may be derived from them. */
  readonly isProven: boolean
  readonly outcomes: readonly CheckOutcome[]
}

/** Collects what checks report. It passes corrections on at once, counts faults, and keeps the first of each check. */
export class Findings {
  readonly #onCorrection: ((correction: Correction) => void) | undefined
  #heldBack: Correction[] | undefined
  readonly #found = new Map<CheckName, { faults: number; lasting: number; first: Fault }>()

  constructor(onCorrection?: (correction: Correction) => void) {
    this.#onCorrection = onCorrection
  }

  report(fault: Fault): void {
    const found = this.#found.get(fault.check) ?? { faults: 0, lasting: 0, first: fault }
    found.faults++
    if (!fault.isDerived) found.lasting++
    this.#found.set(fault.check, found)
  }

  correct(correction: Correction): void {
    if (this.#onCorrection === undefined) return
    if (this.#heldBack === undefined) this.#onCorrection(correction)
    else this.#heldBack.push(correction)
  }

  /** From here on corrections wait for `letGo`, because whether they are right is not known yet. */
  holdBack(): void {
    this.#heldBack = []
  }

  letGo(areRight: boolean): void {
    const heldBack = this.#heldBack ?? []
    this.#heldBack = undefined
    if (areRight) for (const correction of heldBack) this.correct(correction)
  }

  has(check: CheckName): boolean {
    return this.#found.has(check)
  }

  /** `detail` says how much was checked; without `isLooked`, why nothing was. */
  outcome(check: CheckName, detail: string, isLooked = true): CheckOutcome {
    const found = this.#found.get(check)
    if (found === undefined) return { check, ok: isLooked || null, detail, faults: 0, lasting: 0 }
    return { check, ok: false, detail, ...found }
  }
}
