/** Findings of a check of the log's tables: faults by the rule they break, and corrections. */

import type { TableName } from './raw-log.ts'

/** The rules, in the order of a report. */
export const CHECKS = ['maker', 'checkpoint', 'entries', 'tiles', 'identities', 'lookup', 'vrf'] as const
export type CheckName = (typeof CHECKS)[number]

export interface Fault {
  readonly check: CheckName
  readonly table: TableName
  /** The row, in the words of its table: `head`, bundle or block index, `level/index` of a tile, hexadecimal node id. */
  readonly key: string
  /** The first wrong byte of the row's value; absent for a row that is missing or should not exist. */
  readonly offset?: number
  readonly detail: string
  /** Whether a repair puts it right: the row derives from entries, and nothing it needs is lost. */
  readonly isDerived: boolean
}

/** A change that makes a derived row agree with the entries. An undefined `value` removes the tile. */
export type Correction =
  | {
      readonly kind: 'tile'
      readonly key: Uint8Array
      readonly value: Uint8Array | undefined
    }
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
    this.#onCorrection?.(correction)
  }

  outcome(check: CheckName, detail: string): CheckOutcome {
    const found = this.#found.get(check)
    if (found === undefined) return { check, ok: true, detail, faults: 0, lasting: 0 }
    return { check, ok: false, detail, ...found }
  }
}
