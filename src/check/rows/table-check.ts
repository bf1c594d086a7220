/** The rules of one table: its rows' form, and the rows that they have to agree with. */

import type { TableForm } from './form.ts'
import type { StoredRows } from './stored-rows.ts'

export interface TableCheck<Value = unknown> extends TableForm {
  /** How a report names a row. It shows only the beginning of a key that is a hash or a secret. */
  readonly keyAs: KeyName
  /** Disagreements, each as the beginning of a sentence. Called for rows whose key and value have their form. */
  readonly disagreements?: (key: Buffer, value: Value, rows: StoredRows) => Iterable<string>
  /** The kind of its rows' endings in `expiries`; without an ending, a row would stay for ever. */
  readonly ending?: {
    readonly kind: number
    /** The ending's exact time; undefined for a row without an ending. Left out: at any time. */
    readonly atMs?: (value: Value) => number | undefined
  }
  /** The meaning of a damaged row, and what to do. */
  readonly remedy: string
}

export type KeyName = (key: Buffer) => string

/** `7/12`: a key of ids and what may follow, shown whole. */
export const byIds: KeyName = key => {
  const ids: string[] = []
  for (let at = 0; at + 8 <= key.length; at += 8) ids.push(`${key.readBigUInt64BE(at)}`)
  return ids.join('/')
}

/** By the first id alone. */
export const byOwner: KeyName = key => (key.length < 8 ? '?' : `${key.readBigUInt64BE(0)}/…`)

/**
 * Three bytes are enough to find the row in its table, and too few to tell which telephone number or address was
 * hashed.
 */
export const byBeginning: KeyName = key => `${key.toString('hex', 0, 3)}…`

/** Lets a table's checks use the type of its rows. */
export function tableCheck<Value>(check: TableCheck<Value>): TableCheck {
  return check as TableCheck
}
