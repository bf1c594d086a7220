/** The list of all tables in `docs/reference/tables.md`, from their descriptions. */

import { TABLES_BY_SUBJECT } from '../../../src/check/rows/checked-tables.ts'
import { EXPIRY } from '../../../src/store/engine/expiries.ts'
import type { AnyTable } from '../../../src/store/engine/table.ts'
import { table } from './markdown-table.ts'

export function tableList(): string {
  const rows = [...TABLES_BY_SUBJECT].flatMap(([subject, tables]) =>
    tables.map((described, at) => rowOf(at === 0 ? subject : '', described)),
  )
  return table(['Subject', 'Table', 'Key', 'A row has', 'Ends as'], rows)
}

function rowOf(subject: string, { name, key, description: { holds, ending } }: AnyTable): readonly string[] {
  const parts = typeof key === 'string' ? key : Object.keys(key).join(', ')
  const [kind = ''] = Object.entries(EXPIRY).find(([, kind]) => kind === ending?.kind) ?? []
  return [subject, `\`${name}\``, parts, holds, kind && `\`${kind}\``]
}
