/** The rules of one table: how its rows look, and with which other rows they have to agree. */

import type { TableForm } from './form.ts'
import type { StoredRows } from './stored-rows.ts'

export interface TableCheck<Value = unknown> extends TableForm {
  /** How a report names a row. Only the beginning is told of a key that is a hash or opens something. */
  readonly keyAs: KeyName
  /** Disagreements, each as the beginning of a sentence. Called for rows whose key and value have their form. */
  readonly disagreements?: (key: Buffer, value: Value, rows: StoredRows) => Iterable<string>
  /** Its rows have an ending of this kind in `expiries`, without which they would stay for ever. */
  readonly ending?: {
    readonly kind: number
    /** When exactly, if its time is known; undefined for a row that has no ending. Left out: at any time. */
    readonly atMs?: (value: Value) => number | undefined
  }
  /** The meaning of a damaged row, and what to do. */
  readonly remedy: string
}

export type KeyName = (key: Buffer) => string

/** `7/12`: keys of ids and what follows them, shown whole. */
export const byIds: KeyName = key => {
  const ids: string[] = []
  for (let at = 0; at + 8 <= key.length; at += 8) ids.push(`${key.readBigUInt64BE(at)}`)
  return ids.join('/')
}

/** By the first id alone. */
export const byOwner: KeyName = key => (key.length < 8 ? '?' : `${key.readBigUInt64BE(0)}/…`)

/**
 * Only three bytes: they find the row among the others of a table, and don't tell which of all telephone numbers or
 * addresses was hashed.
 */
export const byBeginning: KeyName = key => `${key.toString('hex', 0, 3)}…`

/** For tables whose checks are written with the type of their rows. */
export function tableCheck<Value>(check: TableCheck<Value>): TableCheck {
  return check as TableCheck
}
