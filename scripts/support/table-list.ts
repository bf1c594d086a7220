/** The list of all tables in `docs/house.md`, from their descriptions. */

import { TABLES_BY_SUBJECT } from '../../src/check/rows/checked-tables.ts'
import { EXPIRY } from '../../src/store/engine/expiries.ts'
import type { AnyTable } from '../../src/store/engine/table.ts'

/** The document with the list as it is now, in the place of the list that it has. */
export function withTableList(document: string): string {
  const [before, rest] = document.split(HEADING)
  if (before === undefined || rest === undefined) throw new Error('the document has no list of tables')
  return `${before}${HEADING}${tableList()}${rest.replace(/^(?:\|.*\n)*/, '')}`
}

function tableList(): string {
  const lines = [...TABLES_BY_SUBJECT].flatMap(([subject, tables]) =>
    tables.map((table, at) => line(at === 0 ? subject : '', table)),
  )
  return lines.join('')
}

function line(subject: string, { name, key, description: { holds, ending } }: AnyTable): string {
  const parts = typeof key === 'string' ? key : Object.keys(key).join(', ')
  const [kind = ''] = Object.entries(EXPIRY).find(([, kind]) => kind === ending?.kind) ?? []
  return `| ${[subject, `\`${name}\``, parts, holds, kind && `\`${kind}\``].join(' | ')} |\n`
}

const HEADING = '| Subject | Table | Key | A row has | Ends as |\n| --- | --- | --- | --- | --- |\n'
