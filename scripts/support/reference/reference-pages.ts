/** The pages of `docs/reference`: what the code knows is printed into places that they keep for it. */

import type { ErrorCode } from '../../../src/errors.ts'
import { statusOf, titleOf } from '../../../src/transport/problem.ts'
import { ADVISED, ERRORS_BY_SUBJECT } from './error-advice.ts'
import { eventTables } from './event-tables.ts'
import { limitTables } from './limit-tables.ts'
import { table } from './markdown-table.ts'
import { appOperationTables, logOperationTable, serverOperationTables } from './operation-tables.ts'
import { settingTables } from './setting-tables.ts'
import { tableList } from './table-list.ts'

/** By the page's name in `docs/reference`, the parts by the name of their place. */
export function referenceParts(): Readonly<Record<string, Readonly<Record<string, string>>>> {
  return {
    'operations.md': {
      app: appOperationTables(),
      log: logOperationTable(),
      server: serverOperationTables(),
    },
    'events.md': { events: eventTables() },
    'errors.md': { errors: errorTables() },
    'limits.md': limitTables(),
    'settings.md': settingTables(),
    'tables.md': { tables: tableList() },
  }
}

function errorTables(): string {
  const sections = Object.entries(ERRORS_BY_SUBJECT).map(([subject, advice]) => {
    const rows = Object.keys(advice).map(name => {
      const code = name as ErrorCode
      // Codes of checks in the SDK, which no answer has.
      const isAnswered = statusOf(code) !== 500 || code === 'INTERNAL'
      const answer = isAnswered ? [`${statusOf(code)}`, titleOf(code)] : ['', '']
      return [`\`${code}\``, ...answer, ADVISED[code]]
    })
    return `## ${subject}\n\n${table(['Code', 'Status', 'Title', 'Reason and next step'], rows)}`
  })
  return sections.join('\n')
}
